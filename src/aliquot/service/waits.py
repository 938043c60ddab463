"""Why each workload waits, as the last cycle found it: one fact for all of them.

Promises: a cycle writes once however many wait, and nothing if nothing changed. Equal reasons are kept once: work of
one kind waits for one reason, and differs in its position alone.
"""

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from aliquot.core import plan
from aliquot.service import ports, records

FACT = "waits"
CHANGED, REWORDED = "waits", "waits-words"
"""What is touched (`ports.Touched`) when a workload waits for another reason, or for the same one in other words."""


@dataclass(frozen=True, slots=True)
class Waits:
    """The reasons of the last cycle."""

    reasons: Sequence[records.StoredReason] = ()
    """Those that differ."""
    places: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """By workload, which of the reasons is its own, and its position."""

    def position(self, workload: str) -> int | None:
        """Its place in the order in which its pool is served; None if it did not wait."""
        found = self.places.get(workload)
        return None if found is None else found[1]

    def reason(self, workload: str) -> records.StoredReason | None:
        """Why it waits; None if it did not when the last cycle ended."""
        found = self.places.get(workload)
        return None if found is None else self.reasons[found[0]]


def write(tx: ports.Transaction, waits: Sequence[plan.Wait], now: datetime) -> None:
    """Keep what a cycle found."""
    numbers: dict[str, int] = {}
    seen: dict[int, int] = {}
    places: dict[str, tuple[int, int]] = {}
    for wait in waits:
        number = seen.get(id(wait.reason))
        if number is None:  # A plan gives one object to all that wait for one reason.
            number = seen[id(wait.reason)] = numbers.setdefault(_text(wait.reason), len(numbers))
        places[wait.workload] = (number, wait.position)
    text = f'{{"reasons": [{", ".join(numbers)}], "places": {json.dumps(places)}}}'
    before = tx.facts.get(FACT)
    if before is None or before.value != text:
        tx.facts.put(records.FactRow(FACT, text))
        changed = _tell(tx, Waits() if before is None else _read(before.value), list(numbers), places=places)
        _keep(tx, {wait.workload: wait.reason for wait in waits}, changed, now=now)


def _tell(
    tx: ports.Transaction, before: Waits, texts: Sequence[str], *, places: Mapping[str, tuple[int, int]]
) -> Sequence[str]:
    """Touch those who wait for another reason now, and those for whom only its words are others; return the former. A
    position alone is not told: each that starts moves all that are behind it."""
    old = {_text_of(reason): number for number, reason in enumerate(before.reasons)}
    same = [old.get(text) for text in texts]
    codes = [json.loads(text)[0] for text in texts]
    changed: list[str] = []
    reworded: list[str] = []
    for workload, (number, _) in places.items():
        was = before.places.get(workload)
        if was is None or before.reasons[was[0]].code != codes[number]:
            changed.append(workload)
        elif was[0] != same[number]:
            reworded.append(workload)
    tx.touch(CHANGED, changed)
    tx.touch(REWORDED, reworded)
    return changed


def _keep(tx: ports.Transaction, reasons: Mapping[str, plan.Reason], changed: Sequence[str], *, now: datetime) -> None:
    """Keep since when they wait for this, for timelines."""
    mark = now.strftime("%Y%m%dT%H%M%S.%f")
    for workload in changed:
        reason = reasons[workload]
        row = records.PastReasonRow(f"{workload}/{mark}", workload, now, reason.code, reason.message)
        tx.past_reasons.put(row)


def read(tx: ports.Transaction) -> Waits:
    """What the last cycle found; nothing before the first."""
    row = tx.facts.get(FACT)
    return Waits() if row is None else _read(row.value)


def _text(reason: plan.Reason) -> str:
    blockers = [(blocker.workload, blocker.description) for blocker in reason.blockers]
    return json.dumps([reason.code, reason.message, dict(reason.numbers), blockers])


def _text_of(reason: records.StoredReason) -> str:
    """The same text, of one that was read."""
    return json.dumps([reason.code, reason.message, dict(reason.numbers), reason.blockers])


@functools.lru_cache(maxsize=2)  # Most lists are asked for more than once between two cycles.
def _read(text: str) -> Waits:
    kept = json.loads(text)
    reasons = [
        records.StoredReason(
            plan.Code(code), message, numbers, tuple((workload, description) for workload, description in blockers)
        )
        for code, message, numbers, blockers in kept["reasons"]
    ]
    return Waits(reasons, {id: (number, position) for id, (number, position) in kept["places"].items()})
