"""Domains of nodes: which nodes share a zone, a rack, a switch, and which of them a gang should be tried in.

A domain of a level is the combination of the node labels from the widest level down to it, so that two racks of the
same name in two zones are two racks. A node that lacks one of the labels is in no domain of that topology.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from aliquot.core.model import Topology

Domain = tuple[str, ...]


@dataclass(slots=True)
class Domains:
    """The rows of a pool's nodes by topology, level and domain."""

    levels: Mapping[str, Sequence[str]]
    rows: dict[tuple[str, str], dict[Domain, list[int]]] = field(default_factory=dict)

    @classmethod
    def of(cls, topologies: Iterable[Topology], labels: Sequence[Mapping[str, str]]) -> "Domains":
        """`labels`: those of each node, by row."""
        made = cls({one.name: one.levels for one in topologies})
        for name, levels in made.levels.items():
            for row, known in enumerate(labels):
                if any(key not in known for key in levels):
                    continue
                path = tuple(known[key] for key in levels)
                for depth, level in enumerate(levels):
                    made.rows.setdefault((name, level), {}).setdefault(path[: depth + 1], []).append(row)
        return made

    def at(self, topology: str, level: str) -> Mapping[Domain, Sequence[int]]:
        """The rows of each domain of a level; empty if there is no such level."""
        return self.rows.get((topology, level), {})

    def levels_from(self, topology: str, *, preferred: str | None, required: str | None) -> list[str | None]:
        """The levels worth trying, from the narrowest wanted to the widest allowed. None: no domain at all.

        Only required: that level. Preferred: from it up to the required one, or to no domain.
        """
        levels = self.levels.get(topology, ())
        if (required is not None and required not in levels) or (preferred is not None and preferred not in levels):
            return [None] if required is None else []
        top = 0 if required is None else levels.index(required)
        start = top if preferred is None else max(levels.index(preferred), top)
        wanted: list[str | None] = list(reversed(levels[top : start + 1]))
        return wanted if required is not None else [*wanted, None]
