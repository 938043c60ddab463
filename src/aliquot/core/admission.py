"""What is refused when it is submitted: that which nothing present could ever start.

Everything that is there counts, cordoned, withheld or in use by others or not, and limits count as if nothing ran. What
is admitted could start on the emptied cluster: the same placement says so that schedules it later.
"""

from aliquot.core import gang, house, quota, shortages, wording
from aliquot.core.asks import Ask
from aliquot.core.errors import CannotEverStart
from aliquot.core.model import RESOURCES, Snapshot, Workload
from aliquot.core.placement import Placer
from aliquot.core.snapshot import World

_FIELDS = {"gpu": "gpu", "cpu": "cpu", "memory": "memory"}


def refuse(taken: Snapshot, workload: Workload) -> CannotEverStart | None:
    """The error that a submission of this workload deserves, or None if it could start some day."""
    world = World(house.emptied(taken, pool=workload.pool), more_pools=(workload.pool,))
    if not world.is_leaf(workload.queue):
        return _no_project(world, workload)
    ask = _whole_ask(world, workload)
    pool = world.pools[workload.pool]
    if not pool.nodes:
        pools = sorted({node.pool for node in taken.nodes})
        return CannotEverStart(f"pool {workload.pool!r} has no node", field="pool", valid=pools)
    placer = Placer(world)
    for request in sorted(set(ask.requests), key=repr):
        if not shortages.fits_empty(placer, ask, (request,)):
            reason = shortages.larger_than_any_node(request, pool)
            return CannotEverStart(
                reason.message, field=_field(str(reason.numbers.get("resource"))), details=reason.numbers
            )
    if not shortages.fits_empty(placer, ask, ask.requests):
        return _larger_than_pool(world, placer, ask)
    return _over_terms(placer, ask)


def _whole_ask(world: World, workload: Workload) -> Ask:
    """What it asks for with all its pods at once."""
    pods = gang.pending_of(workload.pods)
    return world.make_ask(workload, workload.pool, pods, is_core=True)


def _no_project(world: World, workload: Workload) -> CannotEverStart:
    projects = sorted(queue.name for id, queue in world.queues.items() if world.is_leaf(id))
    if workload.queue in world.queues:
        name = world.queues[workload.queue].name
        return CannotEverStart(
            f"project: {name} is a department; workloads belong to a project", field="project", valid=projects
        )
    return CannotEverStart(f"project: {workload.queue!r} does not exist", field="project", valid=projects)


def _larger_than_pool(world: World, placer: Placer, ask: Ask) -> CannotEverStart:
    fitting = shortages.count_fitting(world, placer, ask)
    return CannotEverStart(
        f"replicas: {len(ask.requests)} pods start at once; pool {ask.pool} holds {fitting} of them even when empty",
        field="replicas",
        details={"asked": len(ask.requests), "fitting": fitting},
    )


def _over_terms(placer: Placer, ask: Ask) -> CannotEverStart | None:
    """A limit, or the quota of work that may not be preempted, that is passed though nothing runs."""
    if placer.place(ask, "now") is not None:
        return None
    over = placer.excess(ask, ask.amounts, "now")
    if over is None:
        return None
    accounts = placer.world.accounts_of(ask.pool, ask.workload.queue)
    is_limit = quota.over_limit(accounts, ask.amounts, counting="now") is not None
    noun = "limit" if is_limit else "quota, which work that may not be preempted cannot pass,"
    kind = "project" if over.account.is_leaf else "department"
    amount = wording.amount
    return CannotEverStart(
        f"{_FIELDS[over.resource]}: this asks {amount(over.resource, over.asked)} in all; the {noun} of {kind} "
        f"{over.account.queue.name} is {amount(over.resource, over.bound)}",
        field=_field(over.resource),
        details={"asked": over.asked, "limit" if is_limit else "quota": over.bound, "queue": over.account.queue.name},
    )


def _field(resource: str) -> str:
    return resource if resource in RESOURCES else "gpu"
