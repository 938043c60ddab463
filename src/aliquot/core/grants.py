"""Changes that an administrator can make for a workload: open a node or a queue, raise a quota or a limit."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from aliquot.core import change, fairshare, ladders, quantities, trials
from aliquot.core.ladders import MIB, Candidate, Ladder
from aliquot.core.model import (
    RESOURCES,
    WHOLE_DEVICE_MILLI,
    Claim,
    PodRequest,
    PoolTerms,
    Queue,
    ResourceName,
)
from aliquot.core.trials import Question


def release(about: Question) -> Ladder:
    by_id = {queue.id: queue for queue in about.snapshot.queues}
    held = [one for one in fairshare.path_of(about.workload.queue, by_id) if one.is_held or one.is_drained]

    def at(index: int) -> Candidate:
        text = f"release {held[index].name}"
        return Candidate(change.ReleaseQueue(held[index].id), text, "administrator")

    return Ladder(len(held), at, is_steady=False)


def uncordon(about: Question) -> Ladder:
    candidates: list[Candidate] = []
    for node in sorted(about.snapshot.nodes, key=lambda node: node.id):
        if node.pool != about.ask.pool:
            continue
        for device in node.devices:
            if device.withheld == "cordoned":
                text = f"take the cordon from device {device.index} of {node.id}"
                candidates.append(Candidate(change.OfferDevice(device.id), text, "administrator"))
        if node.is_cordoned or node.is_drained:
            text = f"take the cordon from {node.id}" if node.is_cordoned else f"end the drain of {node.id}"
            candidates.append(Candidate(change.UncordonNode(node.id), text, "administrator"))
    return Ladder(len(candidates), candidates.__getitem__, is_steady=False)


def _path(about: Question) -> list[Queue]:
    return fairshare.path_of(about.workload.queue, {queue.id: queue for queue in about.snapshot.queues})


Part = Literal["limit", "quota"]


def terms(about: Question, part: Part) -> Iterator[Ladder]:
    """Each limit, or quota, on the way from its project up, of what it asks for; and where few wait of all else, as
    it may be drawn to others who would start then."""
    asked = [one for one in RESOURCES if any(_asks_for(request, one) for request in ladders.requests(about.workload))]
    others = [one for one in RESOURCES if one not in asked and not about.is_large]
    for resource, queue in itertools.product((*asked, *others), _path(about)):
        claim = queue.terms_in(about.ask.pool).of(resource)
        before = claim.limit if part == "limit" else claim.quota
        if before is not None:
            steps = _steps(about, queue, before, RESOURCES.index(resource))
            yield _raise(about, queue, resource, part=part, steps=steps)


def _steps(about: Question, queue: Queue, before: int, index: int) -> Sequence[int]:
    """The amounts to which one term may be raised: all that can matter, in thousandths or MiB of memory. Where many
    wait: what it needs itself, and then also what those need who are served before it, one after the other."""
    unit = MIB if RESOURCES[index] == "memory" else 1
    if not about.is_large:
        return range(before + unit, max(before, _enough(about, queue, index)) + unit, unit)
    held = about.held[queue.id]
    needed = about.ask.amounts[index]
    totals = {held.later[index] + needed, held.now[index] + needed}
    for ask in trials.ahead(about, queue.id):
        needed += ask.amounts[index]
        totals |= {held.later[index] + needed, held.now[index] + needed}
    totals.add(_enough(about, queue, index))
    return sorted({before + -(-(one - before) // unit) * unit for one in totals if one > before})


def _enough(about: Question, queue: Queue, index: int) -> int:
    """More than any term of this queue need be: all that is there, and all that is held and asked."""
    pool = about.world.pools[about.ask.pool]
    held = about.held[queue.id].now[index] if queue.id in about.held else 0
    known = held + (pool.asked[queue.id].of(RESOURCES[index]) if queue.id in pool.asked else 0)
    nodes = [node for node in about.snapshot.nodes if node.pool == about.ask.pool]
    there = (
        sum(WHOLE_DEVICE_MILLI * len(node.devices) for node in nodes),
        sum(node.milli_cpus for node in nodes),
        sum(node.memory_bytes for node in nodes),
    )
    return known + there[index]


def _raise(about: Question, queue: Queue, resource: ResourceName, *, part: Part, steps: Sequence[int]) -> Ladder:
    """Raising one term."""
    terms = queue.terms_in(about.ask.pool)
    claim = terms.of(resource)
    before = (claim.limit if part == "limit" else claim.quota) or 0
    noun = "department" if any(one.parent == queue.id for one in about.snapshot.queues) else "project"
    name = {"gpu": "GPU", "cpu": "CPU", "memory": "memory"}[resource]

    def at(index: int) -> Candidate:
        after = steps[index]
        raised = replace(claim, limit=after) if part == "limit" else replace(claim, quota=after)
        text = (
            f"raise the {name} {part} of {noun} {queue.name} from {_text(before, resource)} to {_text(after, resource)}"
        )
        changed = change.SetTerms(queue.id, about.ask.pool, _with_claim(terms, resource, raised))
        is_other = not any(_asks_for(request, resource) for request in ladders.requests(about.workload))
        return Candidate(changed, text, "administrator", (is_other, RESOURCES.index(resource), after - before))

    return Ladder(len(steps), at)


def without(about: Question, part: Part) -> tuple[change.Change, ...]:
    """As if no such term were set on the way from its project up."""
    found: list[change.Change] = []
    for queue in _path(about):
        terms = queue.terms_in(about.ask.pool)
        for resource in RESOURCES:
            claim = terms.of(resource)
            raised = replace(claim, limit=None) if part == "limit" else replace(claim, quota=None)
            terms = _with_claim(terms, resource, raised)
        found.append(change.SetTerms(queue.id, about.ask.pool, terms))
    return tuple(found)


def _with_claim(terms: PoolTerms, resource: ResourceName, claim: Claim) -> PoolTerms:
    if resource == "gpu":
        return replace(terms, gpu=claim)
    return replace(terms, cpu=claim) if resource == "cpu" else replace(terms, memory=claim)


# Words.


def _asks_for(request: PodRequest, resource: ResourceName) -> bool:
    if resource == "gpu":
        return request.gpu is not None
    return (request.milli_cpus if resource == "cpu" else request.memory_bytes) > 0


def _text(amount: int, resource: ResourceName) -> str:
    return ladders.exact(amount) if resource == "memory" else quantities.format_milli(amount)
