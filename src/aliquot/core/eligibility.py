"""Why a workload cannot start in a cycle whatever is free: its queue, its back-off, its own pods. Checked first."""

from dataclasses import dataclass, field
from datetime import datetime

from aliquot.core import gang, wording
from aliquot.core.asks import Ask, Entry
from aliquot.core.model import PodState, Queue, Workload
from aliquot.core.plan import Code, Reason
from aliquot.core.snapshot import World


@dataclass(slots=True)
class Bars:
    """What keeps those who wait from starting in one cycle, and what of it is the same for a whole queue."""

    world: World
    now: datetime
    _queues: dict[tuple[str, str], tuple[Reason | None, Reason | None]] = field(default_factory=dict)
    """By pool and queue: there is no such queue to work in; it is held."""

    def of(self, entry: Entry, ask: Ask) -> Reason | None:
        """The reason, or None if it may start where there is room."""
        key = (ask.pool, ask.workload.queue)
        if key not in self._queues:
            self._queues[key] = (_unknown(self.world, key[1]), _held(self.world, *key))
        unknown, held = self._queues[key]
        if entry.is_ready and unknown is None and held is None:
            return None
        return unknown or _backing_off(ask.workload, self.now) or held or _unready(self.world, ask)


def _unknown(world: World, queue: str) -> Reason | None:
    if queue not in world.queues:
        known = sorted(one.name for id, one in world.queues.items() if world.is_leaf(id))
        listed = f"; there are {wording.names(known)}" if known else ""
        return Reason(Code.NO_SUCH_QUEUE, f"project {queue!r} does not exist{listed}", {"project": queue})
    if world.is_leaf(queue):
        return None
    name = world.queues[queue].name
    return Reason(Code.NO_SUCH_QUEUE, f"{name} is a department; workloads belong to a project in it", {"project": name})


def _backing_off(workload: Workload, now: datetime) -> Reason | None:
    if workload.not_before is None or workload.not_before <= now:
        return None
    seconds = int((workload.not_before - now).total_seconds())
    return Reason(
        Code.BACKING_OFF,
        f"it failed and is tried again at {workload.not_before.isoformat(timespec='seconds')}",
        {"notBefore": workload.not_before.isoformat(), "seconds": seconds},
    )


def _held(world: World, pool: str, queue: str) -> Reason | None:
    held = next((one.queue for one in world.accounts_of(pool, queue) if _is_held(one.queue)), None)
    if held is None:
        return None
    how = "drained" if held.is_drained else "held"
    return Reason(
        Code.QUEUE_HELD,
        f"{held.name} is {how}: nothing new starts in it until an administrator releases it",
        {"queue": held.name, "how": how},
    )


def _unready(world: World, ask: Ask) -> Reason | None:
    """What of the workload itself keeps it from starting."""
    workload = ask.workload
    unmet = next((pod.unmet for pod in ask.pods if pod.unmet), "")
    if unmet:
        return Reason(Code.UNMET_DEPENDENCY, unmet, {"unmet": unmet})
    ending = world.releasing_of(workload.id)
    if ending:
        return Reason(
            Code.WAITING_FOR_RELEASE,
            f"{wording.plural(len(ending), 'pod')} of its last attempt must end first",
            {"ending": len(ending)},
        )
    if gang.choices(workload, active={one.pod.id for one in world.running_of(workload.id)}, waiting=ask.pods):
        return None
    if workload.gang is not None:
        return Reason(
            Code.GANG_INCOMPLETE,
            "a group of its gang has fewer pods that can run than its minimum",
            {"present": len(ask.pods)},
        )
    counted = {PodState.PENDING, PodState.RUNNING, PodState.SUCCEEDED}
    present = sum(pod.state in counted for pod in workload.pods)
    return Reason(
        Code.GANG_INCOMPLETE,
        f"it starts with {wording.plural(workload.min_pods, 'pod')} or not at all; only {present} can run",
        {"needs": workload.min_pods, "present": present},
    )


def is_open(world: World, workload: Workload, now: datetime) -> bool:
    """Whether its queue takes new work and it does not back off: what was told to end could start again."""
    if not world.is_leaf(workload.queue) or (workload.not_before is not None and workload.not_before > now):
        return False
    return not any(_is_held(one.queue) for one in world.accounts_of(workload.pool, workload.queue))


def _is_held(queue: Queue) -> bool:
    return queue.is_held or queue.is_drained
