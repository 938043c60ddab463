"""Why a workload cannot start in a cycle whatever is free: its queue, its back-off, its own pods. Checked first."""

from datetime import datetime

from aliquot.core import wording
from aliquot.core.model import PodState
from aliquot.core.order import Ask
from aliquot.core.plan import Code, Reason
from aliquot.core.snapshot import World


def bar(world: World, ask: Ask, now: datetime) -> Reason | None:
    """The reason, or None if it may start where there is room."""
    workload = ask.workload
    if workload.queue not in world.queues:
        known = sorted(queue.name for id, queue in world.queues.items() if world.is_leaf(id))
        listed = f"; there are {wording.names(known)}" if known else ""
        return Reason(
            Code.NO_SUCH_QUEUE, f"project {workload.queue!r} does not exist{listed}", {"project": workload.queue}
        )
    if not world.is_leaf(workload.queue):
        name = world.queues[workload.queue].name
        return Reason(
            Code.NO_SUCH_QUEUE, f"{name} is a department; workloads belong to a project in it", {"project": name}
        )
    if workload.not_before is not None and workload.not_before > now:
        seconds = int((workload.not_before - now).total_seconds())
        return Reason(
            Code.BACKING_OFF,
            f"it failed and is tried again at {workload.not_before.isoformat(timespec='seconds')}",
            {"notBefore": workload.not_before.isoformat(), "seconds": seconds},
        )
    ending = world.releasing.get(workload.id, [])
    if ending:
        return Reason(
            Code.WAITING_FOR_RELEASE,
            f"{wording.plural(len(ending), 'pod')} of its last attempt must end first",
            {"ending": len(ending)},
        )
    counted = {PodState.PENDING, PodState.RUNNING, PodState.SUCCEEDED}
    present = sum(pod.state in counted for pod in workload.pods)
    if present < workload.min_pods:
        return Reason(
            Code.GANG_INCOMPLETE,
            f"it starts with {wording.plural(workload.min_pods, 'pod')} or not at all; only {present} can run",
            {"needs": workload.min_pods, "present": present},
        )
    return None
