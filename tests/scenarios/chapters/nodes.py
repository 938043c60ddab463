"""Which nodes may be used, and where a pod goes."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from aliquot.core import constraints, eligibility, fitting, rooms, scores, snapshot
from aliquot.core.model import Affinity, Device, GpuRequest, Group, Node, PodRequest, Workload
from aliquot.core.neighbours import Neighbours, _Rule
from aliquot.core.placement import Placer
from aliquot.core.rooms import NodeRoom, View
from aliquot.core.scores import NO_ROOM, Scores
from aliquot.core.snapshot import World
from tests.scenarios.rule import Without, around, rule, without

Suits = Callable[[Device, GpuRequest], bool]
Score = Callable[..., int]


def _as_if(**changes: Any) -> Callable[[Callable[..., NodeRoom]], Callable[..., NodeRoom]]:
    def wrap(known: Callable[..., NodeRoom]) -> Callable[..., NodeRoom]:
        def node_room(node: Node, *, row: int, touched: list[int]) -> NodeRoom:
            return known(replace(node, **changes), row=row, touched=touched)

        return node_room

    return wrap


def _nodes_of_all_pools(known: Callable[[World, str], None]) -> Callable[[World, str], None]:
    def add_pool(world: World, name: str) -> None:
        before = world.snapshot
        world.snapshot = replace(before, nodes=tuple(replace(node, pool=name) for node in before.nodes))
        known(world, name)
        world.snapshot = before

    return add_pool


def _asks_for_less(**changes: Any) -> Callable[[Callable[..., bool]], Callable[..., bool]]:
    def wrap(known: Callable[..., bool]) -> Callable[..., bool]:
        return lambda node, request, view: known(node, replace(request, **changes), view)

    return wrap


def _any_number_of_pods(known: Callable[..., bool]) -> Callable[..., bool]:
    def has_node_room(node: NodeRoom, request: PodRequest, view: View) -> bool:
        return known(replace(node, idle=[*node.idle[:2], 100], future=[*node.future[:2], 100]), request, view)

    return has_node_room


def _other_than(name: str) -> Callable[[PodRequest], tuple[tuple[str, int], ...]]:
    def others_of(request: PodRequest) -> tuple[tuple[str, int], ...]:
        ports = tuple((f"{rooms.PORT}{port}", 1) for port in request.host_ports)
        return ports if name == "resources" else request.resources

    return others_of


def _suits_with(**changes: Any) -> Callable[[Suits], Suits]:
    return lambda known: lambda device, gpu: known(device, replace(gpu, **changes))


def _in_any_namespace(rule: _Rule, namespace: str, labels: tuple[tuple[str, str], ...]) -> bool:
    return set(rule.labels) <= set(labels)


def _never_the_first(neighbours: Neighbours, node: Node, request: PodRequest, term: Affinity) -> bool:
    return bool(neighbours._count(node, term, request))


def _whom_it_dislikes(known: Callable[..., str | None]) -> Callable[..., str | None]:
    return lambda neighbours, node, request: known(neighbours, node, replace(request, anti_affinity=()))


def _prefers_nothing(known: property) -> property:
    def root(workload: Workload) -> Group:
        found: Group = known.__get__(workload)
        return found if found.near is None else replace(found, near=replace(found.near, preferred=None))

    return property(root)


def _without_bits(mask: int, shift: int) -> Callable[[Score], Score]:
    """A part of the score that counts for nothing."""

    def wrap(known: Score) -> Score:
        def score(*args: Any, **more: Any) -> int:
            value = known(*args, **more)
            return value if value == NO_ROOM else value & ~(mask << shift)

        return score

    return wrap


_WASTE, _IMBALANCE, _LATE = 24, 10, 1
_SHARED = _without_bits(31, _WASTE + _IMBALANCE + _LATE)
_LATER = _without_bits(1, _WASTE + _IMBALANCE)


def _of_all_nodes(known: Callable[..., int]) -> Callable[..., int]:
    def waste(found: Scores, node: NodeRoom, request: PodRequest, slots: Any, *, strategy: str) -> int:
        return known(found, node, request, slots, strategy=strategy) % scores._MOST_WASTE

    return waste


def _strategy(name: str) -> Without:
    return without(Scores, "strategy", lambda found, pool: name)


def _as_listed(found: Iterable[Any], **_: Any) -> list[Any]:
    return list(found)


MAY_BE_USED = (
    rule(
        "A node takes a pod if it is ready and not cordoned, is in the pool, has no taint that the pod does not "
        "tolerate, is one that its selector allows, has room for its CPU, memory, named resources, host ports and "
        "number of pods, and has devices of a model and size that it allows.",
        "node-not-ready node-cordoned in-another-pool tainted selected room-for-cpu room-for-memory any-other-resource "
        "host-ports room-for-pods of-a-model of-a-size",
        around(rooms, "node_room", _as_if(is_ready=True)),
        around(rooms, "node_room", _as_if(is_cordoned=False)),
        around(World, "_add_pool", _nodes_of_all_pools),
        without(constraints, "untolerated", lambda node, request: []),
        without(constraints, "_tolerates", lambda toleration, taint: False),
        without(constraints, "is_selected", lambda node, nodes, labels: True),
        around(fitting, "has_node_room", _asks_for_less(milli_cpus=0)),
        around(fitting, "has_node_room", _asks_for_less(memory_bytes=0)),
        without(rooms, "others_of", _other_than("resources")),
        without(rooms, "others_of", _other_than("ports")),
        around(fitting, "has_node_room", _any_number_of_pods),
        around(constraints, "suits", _suits_with(models=())),
        around(constraints, "suits", _suits_with(min_device_mib=0)),
    ),
    rule(
        "Rules about other pods mean what they mean in Kubernetes:",
        "other-namespaces",
        without(_Rule, "means", _in_any_namespace),
    ),
    rule(
        "*affinity*: only near pods with these labels; the first of a group that is drawn to itself may go anywhere;",
        "affinity drawn-to-itself",
        without(Neighbours, "_attracts", lambda neighbours, node, request, term: True),
        without(Neighbours, "_attracts", _never_the_first),
    ),
    rule(
        "*anti-affinity*: not near them; and they not near it;",
        "anti-affinity anti-affinity-of-others",
        around(Neighbours, "refusal", _whom_it_dislikes),
        without(Neighbours, "_is_kept_away", lambda neighbours, node, request: False),
    ),
    rule(
        "*spread*: the numbers of such pods in different domains differ by so many at most.",
        "spread",
        without(Neighbours, "_is_even", lambda neighbours, node, request, spread: True),
    ),
    rule(
        "What the engine cannot compute (a volume that is not there) comes with the snapshot as a fact, and is said as "
        "it is.",
        "a-fact",
        without(eligibility, "_unready", lambda world, ask: None),
    ),
)

GOES = (
    rule(
        "Of the nodes that may be used, the first of these that tells them apart decides:",
        "taints-that-would-rather",
        without(Scores, "_score", lambda found, node, request, view, *, order, strategy: 0),
    ),
    rule("The place that was promised.", "the-promised-place", without(Placer, "stay", lambda *_: None)),
    rule(
        "Then what the topology prefers.",
        "preferred-level",
        around(Workload, "root", _prefers_nothing),
    ),
    rule(
        "Then the fewest taints that would rather keep it off.",
        "taints-that-would-rather",
        without(constraints, "preference", lambda node, request: 0),
    ),
    rule(
        "Then a device that is shared already, if it asks for a share (`fragmentation` weighs that by itself).",
        "a-shared-device-first",
        around(Scores, "_score", _SHARED),
    ),
    rule(
        "Then room that is free now before room that is being freed.",
        "free-now-first",
        around(Scores, "_score_whole", _LATER),
    ),
    rule(
        "Then as the pool says:",
        "by-fragmentation by-packing by-spreading",
        _strategy("pack"),
        _strategy("spread"),
    ),
    rule(
        "| `fragmentation` | the place that costs those least who are expected next, by what was asked lately or "
        "waits; room that few nodes have and many want is dear. The product's default |",
        "by-fragmentation",
        _strategy("pack"),
    ),
    rule(
        "| `pack` | the fullest node that has room, so that whole nodes stay free |", "by-packing", _strategy("spread")
    ),
    rule(
        "| `spread` | the emptiest node, and the device with the fewest sharers |",
        "by-spreading",
        _strategy("pack"),
        without(fitting, "_ORDERS", {**fitting._ORDERS, "open": fitting._tight}),
    ),
    rule(
        "Then the place that leaves CPU and memory in balance; then the first node by name.",
        "left-in-balance listed-otherwise",
        without(scores, "_imbalance", lambda node, request: 0),
        without(snapshot, "sorted", _as_listed),
    ),
    rule(
        "Work without a GPU keeps off the nodes that have some.",
        "off-the-gpus",
        around(Scores, "_waste", _of_all_nodes),
    ),
    rule(
        "On a device it is the tightest fit.",
        "the-tightest-fit",
        without(fitting, "_ORDERS", {**fitting._ORDERS, "tight": fitting._wide}),
    ),
)

RULES = (*MAY_BE_USED, *GOES)
