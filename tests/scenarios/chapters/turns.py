"""Who is served first, and gangs."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from aliquot.core import endings, gang, order, snapshot, victims
from aliquot.core.asks import Ask, Unit
from aliquot.core.cycle import Cycle
from aliquot.core.model import Pod, PodState, Policy, Queue, Workload
from aliquot.core.order import Turns
from aliquot.core.rooms import Account, Vector
from aliquot.sim.stage import Stage
from tests.scenarios.rule import Without, around, rule, without

Choices = Callable[..., list[tuple[Pod, ...]]]
Units = Callable[[Workload, Sequence[Pod]], list[gang.Unit]]


def _without_part(attribute: str, *parts: int) -> Without:
    """A key of the order that does not tell apart by some of its parts."""

    def wrap(known: Callable[..., tuple[Any, ...]]) -> Callable[..., tuple[Any, ...]]:
        def key(*args: Any) -> tuple[Any, ...]:
            return tuple(0 if index in parts else part for index, part in enumerate(known(*args)))

        return key

    return around(order, attribute, wrap)


def _last_name_first(known: Callable[..., order.QueueKey]) -> Callable[..., tuple[Any, ...]]:
    def queue_key(account: Account, more: Vector = (0, 0, 0)) -> tuple[Any, ...]:
        *parts, name, _ = known(account, more)
        return (*parts, tuple(-ord(letter) for letter in name))

    return queue_key


def _by_gpu_alone(known: Callable[..., int]) -> Callable[..., int]:
    def dominant_share(account: Account, more: Vector = (0, 0, 0)) -> int:
        held = replace(account, level=[account.level[0], 0, 0])
        return known(held, (more[0], 0, 0))

    return dominant_share


def _looked_at_once(known: Callable[..., order.QueueKey]) -> Callable[..., order.QueueKey]:
    kept: dict[tuple[int, Vector], tuple[Account, order.QueueKey]] = {}

    def queue_key(account: Account, more: Vector = (0, 0, 0)) -> order.QueueKey:
        key = (id(account), more)
        if key not in kept or kept[key][0] is not account:
            kept[key] = (account, known(account, more))
        return kept[key][1]

    return queue_key


def _to_the_end_of_the_line(known: Callable[[Stage, str, str], None]) -> Callable[[Stage, str, str], None]:
    def end(stage: Stage, id: str, pod: str) -> None:
        known(stage, id, pod)
        stage._put(replace(stage._workloads[id], created=stage.now))

    return end


def _by_waiting_time(known: Callable[..., order.WorkloadKey]) -> Callable[..., order.WorkloadKey]:
    def workload_key(ask: Ask, queue: Queue | None, policy: Policy) -> order.WorkloadKey:
        return known(ask, None, policy)

    return workload_key


def _as_listed(found: Iterable[Any], **_: Any) -> list[Any]:
    return list(found)


def _all_are_dropped(turns: Turns, ask: Ask) -> None:
    for queue in turns._leaves:
        turns._keep(queue, [])


def _one_by_one(known: Choices) -> Choices:
    def choices(workload: Workload, *, active: Collection[str], waiting: Sequence[Pod]) -> list[tuple[Pod, ...]]:
        return [(pod,) for pod in sorted(waiting, key=gang.task_key)[:1]]

    return choices


def _all_at_once(known: Choices) -> Choices:
    def choices(workload: Workload, *, active: Collection[str], waiting: Sequence[Pod]) -> list[tuple[Pod, ...]]:
        return [tuple(sorted(waiting, key=gang.task_key))] if waiting else []

    return choices


def _without_the_tree(known: Choices) -> Choices:
    def choices(workload: Workload, *, active: Collection[str], waiting: Sequence[Pod]) -> list[tuple[Pod, ...]]:
        return known(replace(workload, gang=None), active=active, waiting=waiting)

    return choices


def _ended_is_missing(known: Choices) -> Choices:
    def choices(workload: Workload, *, active: Collection[str], waiting: Sequence[Pod]) -> list[tuple[Pod, ...]]:
        pods = tuple(
            replace(pod, state=PodState.FAILED) if pod.state is PodState.SUCCEEDED else pod for pod in workload.pods
        )
        return known(replace(workload, pods=pods), active=active, waiting=waiting)

    return choices


def _grows_at_once(known: Choices) -> Choices:
    def choices(workload: Workload, *, active: Collection[str], waiting: Sequence[Pod]) -> list[tuple[Pod, ...]]:
        if waiting and gang.is_satisfied(workload, active):
            return [tuple(waiting)]
        return known(workload, active=active, waiting=waiting)

    return choices


def _half_a_group(known: Choices) -> Choices:
    def choices(workload: Workload, *, active: Collection[str], waiting: Sequence[Pod]) -> list[tuple[Pod, ...]]:
        found = known(workload, active=active, waiting=waiting)
        return [one[:1] for one in found] if gang.is_satisfied(workload, active) else found

    return choices


def _all_at_once_ends(known: Units) -> Units:
    return lambda workload, placed: [gang.Unit(tuple(placed), is_core=True)]


def _first_pod_first(known: Callable[[Unit], tuple[str, int, int, str]]) -> Callable[[Unit], tuple[str, int, int, str]]:
    def last_key(unit: Unit) -> tuple[str, int, int, str]:
        workload, priority, index, pod = known(unit)
        return (workload, priority, -index, pod)

    return last_key


def _pod_by_pod(known: Units) -> Units:
    return lambda workload, placed: [gang.Unit((pod,), is_core=False) for pod in reversed(placed)]


Release = Callable[[Cycle, str], None]


def _nothing_is_stale(known: Release) -> Release:
    return lambda cycle, pool: None


def _always(**changes: Any) -> Callable[[Release], Release]:
    """Stale gangs are looked for as if their workloads were so."""

    def wrap(known: Release) -> Release:
        def release_stale(cycle: Cycle, pool: str) -> None:
            for entry in cycle.world.broken.values():
                entry.workload = replace(entry.workload, **changes)
            known(cycle, pool)

        return release_stale

    return wrap


def _grace_is_positive(known: Release) -> Release:
    def release_stale(cycle: Cycle, pool: str) -> None:
        for entry in cycle.world.broken.values():
            grace = entry.workload.stale_grace
            entry.workload = replace(entry.workload, stale_grace=None if grace is None else abs(grace))
        known(cycle, pool)

    return release_stale


ORDER = (
    rule(
        "Among the queues of one parent, the first of these that tells them apart decides:",
        "short-of-quota-is-first",
        without(order, "queue_key", lambda account, more=(0, 0, 0): account.queue.created),
    ),
    rule("Who holds no more than its fair share comes first.", "over-share-is-last", _without_part("queue_key", 0)),
    rule(
        "Then whose next workload still fits in what it is guaranteed.",
        "short-of-quota-is-first",
        _without_part("queue_key", 1),
    ),
    rule("Then who has the higher priority.", "higher-priority-queue-first", _without_part("queue_key", 2)),
    rule(
        "Then who would hold the smaller part of its fair share with its next workload, of the resource of which that "
        "is most.",
        "smaller-share-with-the-next-first the-resource-of-which-it-is-most",
        _without_part("queue_key", 3),
        around(order, "dominant_share", _by_gpu_alone),
    ),
    rule("Then who holds the smaller part now.", "smaller-share-now-first", _without_part("queue_key", 4)),
    rule(
        "Then who is older; then the first by name.",
        "older-queue-first first-name-first",
        _without_part("queue_key", 5),
        around(order, "queue_key", _last_name_first),
    ),
    rule(
        "After each decision the order is looked at anew.",
        "looked-at-anew",
        around(order, "queue_key", _looked_at_once),
    ),
    rule(
        "Among the workloads of a project: by priority; then those that are below the minimum of their gang; then who "
        "has waited longest.",
        "higher-priority-first below-the-minimum-first longest-waiting-first",
        _without_part("workload_key", 0),
        _without_part("workload_key", 2),
        _without_part("workload_key", 3),
    ),
    rule(
        "An eviction does not send a workload to the end of the line.",
        "an-eviction-keeps-the-place",
        around(Stage, "_end", _to_the_end_of_the_line),
    ),
    rule(
        "A project may choose another order:",
        "least-service-first largest-first",
        around(order, "workload_key", _by_waiting_time),
    ),
    rule(
        "`least-attained-service`: work that has had the least GPU time first, see [time slices](#time-slices);",
        "least-service-first",
        without(order, "service_class", lambda workload, policy: 0),
    ),
    rule(
        "`largest-first`: work that asks for most first, so that what is hard to place is placed while there is room.",
        "largest-first",
        _without_part("workload_key", 1),
    ),
    rule(
        "Nothing depends on the order in which things are listed.",
        "listed-otherwise",
        without(snapshot, "sorted", _as_listed),
    ),
    rule(
        "What does not fit holds nothing back that needs other room.",
        "a-blocked-head",
        without(Turns, "drop_like", _all_are_dropped),
    ),
)

GANGS = (
    rule(
        "The pods of a workload start together or not at all: with `minPods`, so many of them.",
        "all-or-none",
        around(gang, "choices", _one_by_one),
        around(gang, "choices", _all_at_once),
    ),
    rule(
        "A gang may be a tree of groups, each with a minimum: of pods, or of groups below it.",
        "minimums-of-groups",
        around(gang, "choices", _without_the_tree),
        around(gang, "choices", _all_at_once),
    ),
    rule("Pods that ended well count as there.", "ended-well-counts", around(gang, "choices", _ended_is_missing)),
    rule(
        "Above its minimum a gang grows by one pod, or one group, at a time, and competes again each time.",
        "grows-by-one-pod grows-by-one-group",
        around(gang, "choices", _grows_at_once),
        around(gang, "choices", _half_a_group),
    ),
    rule(
        "When it has to give, it gives what is above the minimum first, the last pod first; what is at the minimum "
        "goes as a whole.",
        "the-last-pod-first the-minimum-goes-whole",
        around(gang, "units", _all_at_once_ends),
        around(victims, "_last_key", _first_pod_first),
        around(gang, "units", _pod_by_pod),
    ),
    rule(
        "A gang that has been below its minimum for its grace (60 s unless set) is ended as a whole, and waits again.",
        "stale-after-a-minute a-grace-of-its-own",
        around(endings, "release_stale", _nothing_is_stale),
        around(endings, "release_stale", _always(stale_grace=None)),
    ),
    rule(
        "A negative grace turns that off.",
        "no-grace-at-all",
        around(endings, "release_stale", _grace_is_positive),
    ),
)

RULES = (*ORDER, *GANGS)
