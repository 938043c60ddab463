"""Queues of a scenario: a tree, listed from the oldest to the youngest; only leaves take workloads."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from aliquot.core.model import RESOURCES, Claim, PoolTerms, Queue, QueueOrder, ResourceName, Usage
from aliquot.wire.scenario import fields
from aliquot.wire.scenario.fields import Fields, Version

QUEUE = fields.keys(
    "name parent priority gpu cpu memory preemptMinRuntime reclaimMinRuntime",
    "pools usage held drained order holdAfter evictionsLeft created",
)
TERMS = fields.keys("", "priority gpu cpu memory usage")
CLAIM = fields.keys("quota weight limit")
USAGE = fields.keys("", "gpu cpu memory")

PRIORITY = 100
_AGE = timedelta(days=365)
_MILLION = 1_000_000
_CLAIM = Claim()


def read(top: Fields, version: Version, *, now: datetime, pools: Iterable[str]) -> dict[str, Queue]:
    """All queues by name. The terms at the top of a queue hold in every pool for which it has none of its own."""
    found: dict[str, Queue] = {}
    paths: dict[str, str] = {}
    pools = tuple(pools)
    for data, path in top.items("queues"):
        one = Fields(data, path, QUEUE, version)
        listed = now - _AGE + timedelta(seconds=len(found))
        created = now + one.past("created") if one.has("created") else listed
        queue = _queue(one, version, created=created, pools=pools)
        if queue.id in found:
            fields.refuse_twin(f"{path}.name", "queues", queue.id)
        found[queue.id] = queue
        paths[queue.id] = path
    _check_tree(found, paths)
    return found


def inner(queues: Mapping[str, Queue]) -> frozenset[str]:
    """The queues that have others below them."""
    return frozenset(queue.parent for queue in queues.values() if queue.parent is not None)


def _queue(one: Fields, version: Version, *, created: datetime, pools: Iterable[str]) -> Queue:
    name = one.name()
    plain = _terms(one, PoolTerms(gpu=_CLAIM), version)
    used = _usage(one, version)
    own: dict[str, Fields] = {
        pool: Fields(data, f"{one.at('pools')}.{pool}", TERMS, version) for pool, data in one.pairs("pools")
    }
    terms = {pool: _terms(own[pool], plain, version) if pool in own else plain for pool in (*pools, *own)}
    usage = {pool: (_usage(own[pool], version) if pool in own else None) or used for pool in terms}
    return Queue(
        id=name,
        name=name,
        created=created,
        parent=one.text("parent") or None,
        terms=terms,
        is_held=one.flag("held", default=False),
        is_drained=one.flag("drained", default=False),
        order=one.choice("order", tuple(QueueOrder), QueueOrder.WAITING_TIME),
        hold_after=one.span_or_none("holdAfter"),
        preempt_min_runtime=one.span_or_none("preemptMinRuntime"),
        reclaim_min_runtime=one.span_or_none("reclaimMinRuntime"),
        evictions_left=one.whole("evictionsLeft", 0) if one.has("evictionsLeft") else None,
        usage={pool: use for pool, use in usage.items() if use is not None},
    )


def _terms(one: Fields, default: PoolTerms, version: Version) -> PoolTerms:
    priority = one.data.get("priority")
    return PoolTerms(
        gpu=_claim(one, "gpu", default.gpu, version=version),
        cpu=_claim(one, "cpu", default.cpu, version=version),
        memory=_claim(one, "memory", default.memory, version=version),
        priority=default.priority
        if priority is None
        else fields.as_whole(priority, one.at("priority"), least=-(2**31)),
    )


def _claim(one: Fields, resource: ResourceName, default: Claim, *, version: Version) -> Claim:
    data = one.data.get(resource)
    if data is None:
        return default
    claim = Fields(data, one.at(resource), CLAIM, version)
    read = claim.size if resource == "memory" else claim.milli
    return Claim(
        quota=read("quota") if claim.has("quota") else None,
        weight=claim.whole("weight", 1),
        limit=read("limit") if claim.has("limit") else None,
    )


def _usage(one: Fields, version: Version) -> Usage | None:
    if not one.has("usage"):
        return None
    used = Fields(one.data["usage"], one.at("usage"), USAGE, version)
    amounts: list[int] = []
    for resource in RESOURCES:
        part = fields.as_fraction(used.data.get(resource) or 0, used.at(resource)) * _MILLION
        if part.denominator != 1:
            fields.refuse(used.at(resource), "a part of the pool is in whole millionths", valid=("0.25", "0.000001"))
        amounts.append(int(part))
    return Usage(*amounts)


def _check_tree(queues: Mapping[str, Queue], paths: Mapping[str, str]) -> None:
    sound: set[str] = set()
    for name, queue in queues.items():
        if queue.parent is not None:
            fields.check_name(queue.parent, queues, f"{paths[name]}.parent", noun="queue")
    for name in queues:
        chain: list[str] = []
        here: str | None = name
        while here is not None and here not in sound:
            if here in chain:
                circle = " -> ".join([*chain[chain.index(here) :], here])
                why = f"the queues are a circle, not a tree: {circle}"
                fields.refuse(f"{paths[here]}.parent", why, valid=("a queue that is not below this one", "null"))
            chain.append(here)
            here = queues[here].parent
        sound.update(chain)
