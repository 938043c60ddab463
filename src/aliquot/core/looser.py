"""Changes by which a workload may run elsewhere, in another way, or before others."""

from datetime import timedelta

from aliquot.core import change, constraints, ladders, quantities, shortages, wording
from aliquot.core.ladders import Candidate, Ladder
from aliquot.core.model import Toleration
from aliquot.core.trials import Question

HIGHEST_PRIORITY = 1000


def other_pool(about: Question) -> Ladder:
    workload = about.workload
    pools = sorted({node.pool for node in about.snapshot.nodes} - {workload.pool})

    def at(index: int) -> Candidate:
        text = f"submit it to pool {pools[index]} instead of {workload.pool}"
        return Candidate(change.SetPool(workload.id, pools[index]), text, "owner", (1, index))

    return Ladder(len(pools), at, is_steady=False)


def near(about: Question) -> Ladder:
    def at(index: int) -> Candidate:
        text = "prefer that its pods are near each other instead of requiring it"
        return Candidate(change.LoosenNear(about.workload.id), text, "owner")

    return Ladder(int(shortages.has_required(about.workload.root)), at)


def sharing(about: Question) -> Ladder:
    modes = sorted(
        {
            one.gpu.sharing
            for one in ladders.requests(about.workload)
            if one.gpu and one.gpu.is_sharing_required and one.gpu.sharing
        }
    )

    def at(index: int) -> Candidate:
        text = f"prefer {wording.names(modes)} instead of requiring it"
        return Candidate(change.LoosenSharing(about.workload.id), text, "owner", (1,))

    return Ladder(int(bool(modes)), at)


def drop_selector(about: Question) -> Ladder:
    is_choosy = any(one.nodes is not None or one.node_labels for one in ladders.requests(about.workload))

    def at(index: int) -> Candidate:
        return Candidate(change.DropSelector(about.workload.id), "ask for no particular nodes", "owner", (2,))

    return Ladder(int(is_choosy), at)


def tolerate(about: Question) -> Ladder:
    """One more taint that is tolerated."""
    nodes = [node for node in about.snapshot.nodes if node.pool == about.ask.pool and node.taints]
    taints = sorted(
        {
            taint
            for request in ladders.requests(about.workload)
            for node in nodes
            for taint in constraints.untolerated(node, request)
        },
        key=lambda one: (one.key, one.value, one.effect),
    )

    def at(index: int) -> Candidate:
        taint = taints[index]
        changed = change.Tolerate(about.workload.id, Toleration(taint.key, taint.value, taint.effect))
        return Candidate(changed, f"tolerate the taint {constraints.name_of(taint)}", "owner", (3, index))

    return Ladder(len(taints), at, is_steady=False)


def open_nodes(about: Question) -> Ladder:
    """Both at once: no selector, and every taint tolerated."""
    is_choosy = any(one.nodes is not None or one.node_labels for one in ladders.requests(about.workload))
    tainted = sum(bool(node.taints) for node in about.snapshot.nodes if node.pool == about.ask.pool)

    def at(index: int) -> Candidate:
        text = "let it use any node of its pool: no selector, and every taint tolerated"
        return Candidate(change.OpenNodes(about.workload.id), text, "owner", (4,))

    return Ladder(int(is_choosy or tainted > 0), at)


def shorter(about: Question) -> Ladder:
    """A stated run time that ends before promised room is needed."""
    known = about.workload.max_run_time
    spans = sorted({(due - about.now) // timedelta(seconds=1) for due in about.dues}, reverse=True)
    spans = [one for one in spans if one > 0 and (known is None or timedelta(seconds=one) < known)]

    def at(index: int) -> Candidate:
        span = timedelta(seconds=spans[index])
        lasts = quantities.format_duration(span)
        text = f"state that it runs for {lasts} at most: it may then use promised room until that is needed"
        return Candidate(change.SetMaxRunTime(about.workload.id, span), text, "owner", (index,))

    return Ladder(len(spans), at)


# How it is treated.


def higher_priority(about: Question) -> Ladder:
    own, queue = about.workload.priority, about.workload.queue
    others = {one.priority for one in about.snapshot.workloads if one.queue == queue}
    steps = sorted(one + 1 for one in others if own <= one < HIGHEST_PRIORITY)

    def at(index: int) -> Candidate:
        text = f"raise its priority from {own} to {steps[index]}"
        return Candidate(change.SetPriority(about.workload.id, steps[index]), text, "owner", (steps[index],))

    return Ladder(len(steps), at, is_steady=False)


def preemptible(about: Question) -> Ladder:
    is_now = about.workload.is_preemptible

    def at(index: int) -> Candidate:
        text = "make it non-preemptible" if is_now else "make it preemptible: it may then be evicted for others"
        return Candidate(change.SetPreemptible(about.workload.id, not is_now), text, "owner", (index,))

    return Ladder(1, at)
