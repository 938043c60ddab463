"""Figures over time: sampled every ten seconds, kept in three grains, asked for as lines of a chart."""

from dataclasses import dataclass
from datetime import datetime

from aliquot.core import errors
from aliquot.service import access, ports
from aliquot.wire import series as shapes


@dataclass(frozen=True, slots=True)
class Request:
    """Which figures. `start` and `end` None: the last hour. `name`: of one project, department or pool alone."""

    metric: shapes.Metric
    by: shapes.By
    start: datetime | None = None
    end: datetime | None = None
    points: int = 300
    name: str | None = None


class Series:
    """The use cases of series."""

    def __init__(self, store: ports.Store, *, clock: ports.Clock) -> None:
        self._store = store
        self._clock = clock

    async def get(self, actor: access.Actor, request: Request) -> shapes.Series:
        """One metric over time."""
        access.check(actor, "get", "series")
        raise errors.Unavailable("series are not built yet")
