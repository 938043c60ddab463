"""Departments and projects are one tree of queues: reading their terms, the ready default, following the machine."""

from aliquot.service import ports

DEFAULT = "default"


async def ensure_default(store: ports.Store, *, clock: ports.Clock, ids: ports.Ids) -> None:
    """Create the default department and project at the first start; later it does nothing."""
    raise NotImplementedError


async def follow_machine(store: ports.Store, *, milli_gpus: int) -> None:
    """Set the GPU quota of the queues that follow the machine to what it has now; the app calls it at each start."""
    raise NotImplementedError
