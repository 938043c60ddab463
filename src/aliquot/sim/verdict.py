"""Compares what came out of a scenario with what its file expects."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from aliquot.core import quantities
from aliquot.wire.scenario.outcome import Cycle, Decision, NodeEnd, Outcome, PodEnd
from aliquot.wire.scenario.shape import Expectation, Expected, ExpectedNode, ExpectedReason, Mode, Scenario, Status

_SETTLED = {Status.BOUND: Status.RUNNING, Status.EVICTED: Status.PENDING, Status.NOMINATED: Status.PENDING}


@dataclass(frozen=True, slots=True)
class Missed:
    """One expectation that was missed."""

    what: str
    wanted: str
    got: str


def missed(expect: Expectation, outcome: Outcome, scenario: Scenario, *, where: str = "") -> list[Missed]:
    """All expectations that were missed, in the order of the file's shape."""
    found = _missed(expect, outcome, scenario)
    return [replace(one, what=f"{where}{one.what}") for one in found] if where else found


def _missed(expect: Expectation, outcome: Outcome, scenario: Scenario) -> list[Missed]:
    is_settled = scenario.mode is Mode.SETTLE
    members = {workload.id: [pod.id for pod in workload.pods] for workload in scenario.snapshot.workloads}
    found: list[Missed] = []
    for name, want in expect.workloads.items():
        found += _ends(f"workload {name}", members[name], want, ends=outcome.pods, is_settled=is_settled)
    for name, want in expect.pods.items():
        found += _ends(f"pod {name}", [name], want, ends=outcome.pods, is_settled=is_settled)
    for name, node in expect.nodes.items():
        found += _node(name, node, outcome.nodes[name])
    found += _devices(expect, outcome.pods)
    found += _counts(expect, outcome.cycles)
    found += _reasons(expect, outcome)
    found += _promises(expect, outcome, scenario.now)
    found += _evictions(expect, outcome.cycles)
    if expect.is_cut_off is not None and expect.is_cut_off != any(cycle.is_cut_off for cycle in outcome.cycles):
        found.append(Missed("cut off by its budget", _yes(is_it=expect.is_cut_off), _yes(is_it=not expect.is_cut_off)))
    return found


def _ends(
    what: str, pods: Sequence[str], want: Expected, *, ends: Mapping[str, PodEnd], is_settled: bool
) -> list[Missed]:
    found: list[Missed] = []
    for name in pods:
        end, of = ends[name], what if len(pods) == 1 else f"{what}, pod {name}"
        is_same = want.status is None or _counted(end.status, is_settled=is_settled) == _counted(
            want.status, is_settled=is_settled
        )
        if want.status is not None and not is_same:
            found.append(Missed(f"{of}: status", str(want.status), str(end.status)))
        node = end.place.node if end.place else None
        if want.nodes is not None and node not in want.nodes:
            found.append(Missed(f"{of}: node", " or ".join(want.nodes), node or "none"))
    milli = sum(ends[name].milli_gpus for name in pods)
    if want.milli_gpus is not None and want.milli_gpus != milli:
        found.append(Missed(f"{what}: gpus", _gpus(want.milli_gpus), _gpus(milli)))
    return found


def _counted(status: Status, *, is_settled: bool) -> Status:
    return _SETTLED.get(status, status) if is_settled else status


def _node(name: str, want: ExpectedNode, got: NodeEnd) -> list[Missed]:
    found: list[Missed] = []
    if want.idle_milli is not None and want.idle_milli != got.idle_milli:
        found.append(Missed(f"node {name}: idleGpus", _gpus(want.idle_milli), _gpus(got.idle_milli)))
    if want.releasing_milli is not None and want.releasing_milli != got.releasing_milli:
        found.append(Missed(f"node {name}: releasingGpus", _gpus(want.releasing_milli), _gpus(got.releasing_milli)))
    return found


def _devices(expect: Expectation, ends: Mapping[str, PodEnd]) -> list[Missed]:
    found = [
        Missed(f"pods {', '.join(names)}: devices", "one in common", _listed(names, ends))
        for names in expect.same_device
        if not frozenset.intersection(*(ends[name].devices for name in names))
    ]
    for names in expect.other_device:
        all_of_them = [device for name in names for device in ends[name].devices]
        if len(set(all_of_them)) < len(all_of_them):
            found.append(Missed(f"pods {', '.join(names)}: devices", "none in common", _listed(names, ends)))
    return found


def _counts(expect: Expectation, cycles: Sequence[Cycle]) -> list[Missed]:
    done = [decision.do for cycle in cycles for decision in cycle.decisions]
    found = [
        Missed(f"{does} decisions", f"at most {most}", str(done.count(does)))
        for does, most in expect.at_most.items()
        if done.count(does) > most
    ]
    return found + [
        Missed(f"{does} decisions", f"at least {least}", str(done.count(does)))
        for does, least in expect.at_least.items()
        if done.count(does) < least
    ]


def _reasons(expect: Expectation, outcome: Outcome) -> list[Missed]:
    last = outcome.cycles[-1].decisions if outcome.cycles else ()
    waits = {decision.workload: decision for decision in last if decision.reason is not None}
    found = [one for name, want in expect.reasons.items() for one in _reason(name, want, waits.get(name))]
    for name, wanted in expect.suggestions.items():
        kind, text = outcome.suggestions.get(name, ("none", ""))
        said = wanted.says if wanted.says and wanted.says in text else text
        pairs = [("suggestion", wanted.kind, kind), ("suggestion says", wanted.says, said)]
        found += _compared(f"workload {name}", pairs)
    return found


def _reason(name: str, want: ExpectedReason, got: Decision | None) -> list[Missed]:
    if got is None or got.reason is None:
        return [Missed(f"workload {name}: reason", want.code or "any", "it does not wait")]
    reason = got.reason
    numbers = {key: str(value) for key, value in reason.numbers.items()}
    blockers = sorted(one.workload for one in reason.blockers if one.workload is not None)
    found = [
        ("reason", want.code, str(reason.code)),
        ("reason says", want.says, want.says if want.says and want.says in reason.message else reason.message),
        *((f"reason: {key}", value, numbers.get(key, "none")) for key, value in want.numbers.items()),
        ("place in line", _text(want.position), _text(got.position)),
    ]
    if want.blockers is not None:
        found.append(("in its way", ", ".join(sorted(want.blockers)) or "nobody", ", ".join(blockers) or "nobody"))
    return _compared(f"workload {name}", found)


def _promises(expect: Expectation, outcome: Outcome, start: datetime) -> list[Missed]:
    last = outcome.cycles[-1].promises if outcome.cycles else {}
    found: list[Missed] = []
    for name, want in expect.promises.items():
        got = last.get(name)
        if (want is None) != (got is None):
            found.append(Missed(f"workload {name}: promise", _yes(is_it=want is not None), _yes(is_it=got is not None)))
        elif want is not None and got is not None:
            due, expires = (one - start for one in got)
            pairs = [("promise due", want.due, due), ("promise expires", want.expires, expires)]
            texts = [(what, None if wanted is None else str(wanted), str(got)) for what, wanted, got in pairs]
            found += _compared(f"workload {name}", texts)
    return found


def _compared(whose: str, found: Iterable[tuple[str, str | None, str | None]]) -> list[Missed]:
    """What is wanted and is not so. None: nothing is wanted."""
    return [
        Missed(f"{whose}: {what}", wanted, got or "none")
        for what, wanted, got in found
        if wanted is not None and wanted != got
    ]


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


def _evictions(expect: Expectation, cycles: Sequence[Cycle]) -> list[Missed]:
    evicted = {decision.pod: decision for cycle in cycles for decision in cycle.decisions if decision.do == "evict"}
    found: list[Missed] = []
    for pod, want in expect.evictions.items():
        got = evicted.get(pod)
        if got is None:
            found.append(Missed(f"pod {pod}: eviction", "one", "none"))
            continue
        if want.beneficiary is not None and want.beneficiary != (got.beneficiary or ""):
            found.append(Missed(f"pod {pod}: evicted for", want.beneficiary or "nobody", got.beneficiary or "nobody"))
        if want.rule is not None and want.rule != got.rule:
            found.append(Missed(f"pod {pod}: evicted by", want.rule, str(got.rule)))
        if want.says is not None and want.says not in (got.explanation or ""):
            found.append(Missed(f"pod {pod}: eviction says", want.says, got.explanation or "nothing"))
    return found


def _listed(names: Iterable[str], ends: Mapping[str, PodEnd]) -> str:
    return "; ".join(", ".join(sorted(ends[name].devices)) or "none" for name in names)


def _gpus(milli: int) -> str:
    return quantities.format_milli(milli)


def _yes(*, is_it: bool) -> str:
    return "yes" if is_it else "no"
