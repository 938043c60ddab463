"""Workloads of a scenario: gangs as trees of groups, and the pods that belong to them."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from aliquot.core import gang
from aliquot.core.model import DEFAULT_POOL, Group, Near, Pod, PodState, Queue, Share, Topology, Workload
from aliquot.wire.scenario import fields, places, pods
from aliquot.wire.scenario.fields import Fields, Version
from aliquot.wire.scenario.nodes import NodePart

WORKLOAD = fields.keys(
    "name namespace queue priority preemptible created started preemptionDelay staleFor staleGangGrace topology groups"
    " minGroups pods",
    "pool fallbackPools preemptibility neverPreempts maxRunTime notBefore attainedService saved minPods",
)
NEAR = fields.keys("name required preferred")
GROUP = fields.keys("name min minGroups groups topology")

NAMESPACE = "default"
PRIORITY = 50
PREEMPTIBILITIES = ("preemptible", "semi-preemptible", "non-preemptible")
MOST_DEPTH = 16
MOST_PODS = 250_000
"""More than the largest clusters run. Each takes about two kibibytes, and a cycle gives each a reason."""
_MOST = (f"at most {MOST_PODS} pods; `aliquot simulate` replays longer lists of jobs",)
_POSITION = timedelta(microseconds=1)
"""Of two that began to wait at once the first in the file is the older one, by so little. Nothing is in the future."""
_RUNNING = frozenset({PodState.RUNNING, PodState.RELEASING})


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a workload may name."""

    version: Version
    now: datetime
    nodes: Mapping[str, NodePart]
    queues: Mapping[str, Queue]
    inner_queues: Collection[str]
    topologies: Mapping[str, Topology]
    pools: Collection[str]


def read(
    top: Fields, around: Surroundings, *, requests: pods.Requests, desks: Mapping[str, places.Desk]
) -> tuple[Workload, ...]:
    """All workloads, their pods with the shares that they hold."""
    found: dict[str, Workload] = {}
    parts: dict[str, pods.PodPart] = {}
    entries = list(top.items("workloads"))
    count = sum(_count_pods(data) for data, _ in entries)
    if count > MOST_PODS:
        fields.refuse("workloads", f"there are {count} pods", valid=_MOST)
    for position, (data, path) in enumerate(entries, start=1):
        one = Fields(data, path, WORKLOAD, around.version)
        own = _pods(one, requests, around, parts)
        workload = _workload(one, own, around, younger=len(entries) - position)
        if workload.id in found:
            fields.refuse_twin(one.at("name"), "workloads", workload.id)
        found[workload.id] = workload
    shares = places.assign(parts.values(), desks)
    return tuple(_with_shares(workload, shares) for workload in found.values()) if shares else tuple(found.values())


def _count_pods(data: object) -> int:
    """How many pods a workload has, as far as one can tell without reading it; each should have one."""
    found = data.get("pods") if isinstance(data, dict) else None
    return len(found) if isinstance(found, list) else 1


def _pods(
    one: Fields, requests: pods.Requests, around: Surroundings, parts: dict[str, pods.PodPart]
) -> tuple[Pod, ...]:
    namespace = one.text("namespace", NAMESPACE)
    own: list[Pod] = []
    for index, (data, path) in enumerate(one.items("pods")):
        each = Fields(data, path, pods.POD, around.version)
        part = pods.read(each, index, request=requests.read(each, namespace), now=around.now)
        if part.pod.id in parts:
            fields.refuse_twin(each.at("name"), "pods", part.pod.id)
        parts[part.pod.id] = part
        own.append(part.pod)
    if not own:
        fields.refuse(one.at("pods"), "must have at least one pod")
    return tuple(own)


def _workload(one: Fields, own: tuple[Pod, ...], around: Surroundings, *, younger: int) -> Workload:
    one.needs("name", "queue")
    tree, near = _tree(one, around), _near(one, around)
    if tree is not None and near is not None:
        tree, near = replace(tree, near=near), None
    tree = None if tree is None else _with_minimums(tree, own)
    _check_groups(one, own, tree)
    preemptibility = _preemptibility(one)
    created = around.now + one.past("created") - younger * _POSITION
    runs = any(pod.state in _RUNNING for pod in own)
    priority = one.data.get("priority")
    name = one.name()
    return Workload(
        id=name,
        name=name,
        queue=_queue(one, around),
        created=created,
        pods=own,
        min_pods=one.whole("minPods", len(own)) if tree is None else gang.least_pods(tree),
        priority=PRIORITY if priority is None else fields.as_whole(priority, one.at("priority"), least=-(2**31)),
        is_preemptible=preemptibility == "preemptible",
        pool=_pool(one, around),
        started=around.now + one.past("started") if one.has("started") else created if runs else None,
        not_before=around.now + one.span("notBefore") if one.has("notBefore") else None,
        max_run_time=one.span_or_none("maxRunTime"),
        gang=tree,
        near=near,
        is_semi_preemptible=preemptibility == "semi-preemptible",
        never_preempts=one.flag("neverPreempts", default=False),
        preemption_delay=one.span("preemptionDelay"),
        stale_for=one.span_or_none("staleFor"),
        stale_grace=one.offset("staleGangGrace", timedelta()) if one.has("staleGangGrace") else None,
        fallback_pools=_fallbacks(one, around),
        attained_milli_seconds=_attained(one),
        saved=around.now + one.past("saved") if one.has("saved") else None,
    )


def _queue(one: Fields, around: Surroundings) -> str:
    name = one.name("queue")
    fields.check_name(name, around.queues, one.at("queue"), noun="queue")
    if name in around.inner_queues:
        leaves = [queue for queue in around.queues if queue not in around.inner_queues]
        fields.refuse(one.at("queue"), f"{name!r} has queues below it; only leaves take workloads", valid=leaves)
    return name


def _pool(one: Fields, around: Surroundings) -> str:
    if not one.has("pool"):
        return DEFAULT_POOL
    name = one.name("pool")
    fields.check_name(name, around.pools, one.at("pool"), noun="pool")
    return name


def _fallbacks(one: Fields, around: Surroundings) -> tuple[str, ...]:
    found = one.words("fallbackPools")
    for index, name in enumerate(found):
        fields.check_name(name, around.pools, f"{one.at('fallbackPools')}[{index}]", noun="pool")
    return found


def _preemptibility(one: Fields) -> str:
    if one.has("preemptibility"):
        if one.has("preemptible"):
            fields.refuse(one.at("preemptible"), "excludes `preemptibility`", valid=("one of the two",))
        return one.choice("preemptibility", PREEMPTIBILITIES, "preemptible")
    return "preemptible" if one.flag("preemptible", default=True) else "non-preemptible"


def _attained(one: Fields) -> int:
    """GPU time, as if one device had run for so long."""
    return int(one.span("attainedService") / timedelta(milliseconds=1))


def _near(one: Fields, around: Surroundings) -> Near | None:
    if not one.has("topology"):
        return None
    near = Fields(one.data["topology"], one.at("topology"), NEAR, around.version)
    topology = fields.find(near.name(), around.topologies, near.at("name"), noun="topology")
    for key in ("required", "preferred"):
        if near.has(key):
            fields.check_name(near.name(key), topology.levels, near.at(key), noun="level")
    required, preferred = near.text("required") or None, near.text("preferred") or None
    if required is None and preferred is None:
        fields.refuse(near.path, "says neither what is required nor what is preferred", valid=topology.levels)
    return Near(topology.name, required, preferred)


_ALL = -1
"""The minimum of a group for which none is given: all of its groups, or all of its pods."""


def _tree(one: Fields, around: Surroundings) -> Group | None:
    if not one.has("groups"):
        if one.has("minGroups"):
            fields.refuse(one.at("minGroups"), "needs `groups`")
        return None
    if one.has("minPods"):
        fields.refuse(one.at("minPods"), "excludes `groups`", valid=("`min` of a group",))
    groups = tuple(_group(data, path, around, depth=1) for data, path in one.items("groups"))
    if not groups:
        fields.refuse(one.at("groups"), "must have at least one group")
    root = Group("", one.whole("minGroups", len(groups)), groups)
    _check_enough(root, one)
    seen: set[str] = set()
    for name in _names(root):
        if name in seen:
            fields.refuse_twin(one.at("groups"), "groups", name)
        seen.add(name)
    return root


def _group(data: object, path: str, around: Surroundings, *, depth: int) -> Group:
    one = Fields(data, path, GROUP, around.version)
    name, near = one.name(), _near(one, around)
    if depth > MOST_DEPTH:
        fields.refuse(path, f"groups are nested deeper than {MOST_DEPTH} levels")
    if not one.has("groups"):
        if one.has("minGroups"):
            fields.refuse(one.at("minGroups"), "the group has no groups; a leaf has `min`", valid=("min",))
        return Group(name, one.whole("min", _ALL), near=near)
    if one.has("min"):
        fields.refuse(one.at("min"), "the group has groups; an inner one has `minGroups`", valid=("minGroups",))
    groups = tuple(_group(each, place, around, depth=depth + 1) for each, place in one.items("groups"))
    found = Group(name, one.whole("minGroups", len(groups)), groups, near)
    _check_enough(found, one)
    return found


def _check_enough(group: Group, one: Fields) -> None:
    if group.minimum > len(group.groups):
        fields.refuse(one.at("minGroups"), f"{group.minimum} of {len(group.groups)} groups can never run")


def _names(group: Group) -> Iterator[str]:
    for child in group.groups:
        yield child.name
        yield from _names(child)


def _check_groups(one: Fields, own: tuple[Pod, ...], tree: Group | None) -> None:
    leaves = frozenset(gang.leaves_of(tree)) if tree is not None else frozenset[str]()
    for pod in own:
        path = f"{one.path}.pods[{pod.index}].group"
        if pod.group and pod.group not in leaves:
            if tree is None:
                fields.refuse(path, "the workload has no groups")
            if pod.group in _names(tree):
                fields.refuse(path, f"{pod.group!r} has groups below it; pods name a leaf", valid=sorted(leaves))
            fields.check_name(pod.group, sorted(leaves), path, noun="group")
        if not pod.group and tree is not None:
            fields.refuse(path, "is missing: the workload has groups, and each pod is in one", valid=sorted(leaves))


def _with_minimums(group: Group, own: tuple[Pod, ...]) -> Group:
    """The tree with `all` spelled out."""
    if not group.groups:
        minimum = sum(pod.group == group.name for pod in own) if group.minimum == _ALL else group.minimum
        return replace(group, minimum=minimum)
    return replace(group, groups=tuple(_with_minimums(child, own) for child in group.groups))


def _with_shares(workload: Workload, shares: Mapping[str, tuple[Share, ...]]) -> Workload:
    if not any(pod.id in shares for pod in workload.pods):
        return workload
    own = tuple(replace(pod, shares=shares[pod.id]) if pod.id in shares else pod for pod in workload.pods)
    return replace(workload, pods=own)
