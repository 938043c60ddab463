"""What is written down: how a look at the workloads and a plan become rows, each within one transaction.

Promises: an intent, the ledger entries that it opens and the phase of its workload are stored together, before any
effect; a ledger entry closes in the transaction in which its pod is found ended; a gang is bound whole or not at all,
also when a person's wish came between snapshot and plan.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from aliquot.core import lifecycle, quantities
from aliquot.core.lifecycle import Phase, Signal
from aliquot.core.model import Amounts, Place, PodRequest, Snapshot
from aliquot.core.plan import Bind, Evict, Plan
from aliquot.local import metering, reconcile
from aliquot.local.launch import Observation
from aliquot.service import demand, queues, waits
from aliquot.service.ports import Transaction, Where
from aliquot.service.records import (
    EventRow,
    FactRow,
    LedgerRow,
    PodRow,
    PromiseRow,
    ReceiptRow,
    WorkloadRow,
)
from aliquot.wire.workloads import Kind, PodPhase


@dataclass(frozen=True, slots=True)
class Pen:
    """What writing a plan down needs from outside: the time, and a free port for a pod."""

    now: datetime
    new_port: Callable[[frozenset[int]], int]


def look_over(
    tx: Transaction, rows: Sequence[WorkloadRow], seen: Mapping[str, Observation], *, now: datetime
) -> tuple[reconcile.Turn, ...]:
    """One look at each of these workloads. Reads only."""
    pods = current_pods(tx, rows)
    return tuple(reconcile.look_over(row, pods.get(row.id, ()), seen, now) for row in rows)


def open_rows(tx: Transaction) -> list[WorkloadRow]:
    """Each workload that something may have happened to, by id."""
    rows = {row.id: row for row in tx.workloads.find(Where("finished", "is", None), deleted=None)}
    rows |= {row.id: row for row in tx.workloads.find(deleted=None, is_deleting=True)}
    rows |= {row.id: row for row in tx.workloads.find(Where("ttl", "ne", None), deleted=None)}
    return [row for _, row in sorted(rows.items())]


def rows_of(tx: Transaction, ids: Iterable[str]) -> list[WorkloadRow]:
    """Those of these workloads that are there, by id."""
    return list(tx.workloads.find(Where("id", "in", tuple(ids)), deleted=None))


def write_turns(tx: Transaction, turns: Sequence[reconcile.Turn]) -> None:
    """Store what the look found: only what is different, ledger entries of ended pods closed."""
    for turn in turns:
        if turn.row != turn.was:
            tx.workloads.put(turn.row)
        for pod in turn.pods:
            if pod in turn.pods_were:
                continue
            tx.pods.put(pod)
            if pod.phase is PodPhase.ENDED:
                _close(tx, pod)
        for event in turn.events:
            tx.events.put(event)
        for receipt in turn.receipts:
            tx.receipts.put(receipt)


def current_pods(tx: Transaction, rows: Iterable[WorkloadRow]) -> Mapping[str, tuple[PodRow, ...]]:
    """The pods of the current attempt of each workload that has (had) a place."""
    attempts = {row.id: row.attempt for row in rows if row.attempt and row.phase is not Phase.PENDING}
    found: dict[str, list[PodRow]] = defaultdict(list)
    for pod in tx.pods.find(Where("workload", "in", tuple(attempts))) if attempts else ():
        if pod.attempt == attempts[pod.workload]:
            found[pod.workload].append(pod)
    return {workload: tuple(pods) for workload, pods in found.items()}


def write_plan(tx: Transaction, plan: Plan, snapshot: Snapshot, pen: Pen) -> None:
    """Store what the plan decided, as far as the rows still are what the plan was made for."""
    _write_binds(tx, plan.binds, snapshot, pen)
    for evict in plan.evicts:
        _write_evict(tx, evict, pen.now)
    _write_promises(tx, plan, pen.now)
    waits.write(tx, plan.waits, pen.now)
    _write_standings(tx, plan)


def _write_binds(tx: Transaction, binds: Sequence[Bind], snapshot: Snapshot, pen: Pen) -> None:
    planned = {workload.id: workload for workload in snapshot.workloads}
    gangs: dict[str, list[Place]] = defaultdict(list)
    for bind in binds:
        gangs[bind.workload].append(bind.place)
    ports = frozenset(pod.port for pod in tx.pods.find(Where("ended", "is", None)) if pod.port is not None)
    for workload, places in gangs.items():
        row = tx.workloads.get(workload)
        if row is None or demand.demand(row, ()) != planned[workload]:
            continue  # A person changed it since the snapshot: the next cycle sees that.
        pods = {pod.id: pod for pod in planned[workload].pods}
        row = replace(row, phase=lifecycle.follow(row.phase, Signal.BOUND), attempt=row.attempt + 1, not_before=None)
        tx.workloads.put(row)
        for place in places:
            port = pen.new_port(ports) if row.definition.kind is Kind.WORKSPACE else None
            ports |= {port} if port is not None else set()
            _write_bind(tx, row, place, pods[place.pod].index, port=port, now=pen.now)
        where = ", ".join(sorted({place.node for place in places}))
        milli = sum(share.milli for place in places for share in place.shares)
        what = f", {quantities.format_milli(milli)} GPU" if milli else ""
        tx.events.put(_event(row, "bound", f"gets its place on {where}{what}", pen.now))


def _write_bind(
    tx: Transaction, row: WorkloadRow, place: Place, index: int, *, port: int | None, now: datetime
) -> None:
    request: PodRequest = row.request
    tx.pods.put(
        PodRow(
            id=place.pod,
            workload=row.id,
            index=index,
            attempt=row.attempt,
            node=place.node,
            bound=now,
            shares=place.shares,
            milli_cpus=request.milli_cpus,
            memory_bytes=request.memory_bytes,
            port=port,
        )
    )
    for share in place.shares:
        entry = metering.entry_id(place.pod, share.device)
        tx.ledger.put(LedgerRow(entry, row.id, row.project, place.pod, share.device, share.milli, share.mib, now))


def _write_evict(tx: Transaction, evict: Evict, now: datetime) -> None:
    row, pod = tx.workloads.get(evict.workload), tx.pods.get(evict.pod)
    if row is None or pod is None or pod.phase not in {PodPhase.BOUND, PodPhase.RUNNING}:
        return  # It ended, or a person ended it, since the snapshot.
    beneficiary = tx.workloads.get(evict.beneficiary) if evict.beneficiary else None
    name = beneficiary.name if beneficiary else evict.beneficiary
    how = f"is evicted for {name}" if name else "is told to end, for nobody"
    if lifecycle.is_possible(row.phase, Signal.EVICT):
        row = replace(row, phase=lifecycle.follow(row.phase, Signal.EVICT), evictions=row.evictions + 1)
        tx.workloads.put(row)
        tx.events.put(_event(row, "evicted", f"{how} ({evict.rule}): {evict.explanation}", now))
    tx.pods.put(replace(pod, phase=PodPhase.ENDING, ending_since=now))
    tx.receipts.put(
        ReceiptRow(
            id=f"{pod.id}-evicted",
            workload=row.id,
            workload_name=row.name,
            project=row.project,
            pod=pod.id,
            rule=evict.rule,
            explanation=evict.explanation,
            evicted=now,
            ran=now - pod.started if pod.started else timedelta(0),
            milli_gpus=sum(share.milli for share in pod.shares),
            beneficiary=evict.beneficiary or None,
            beneficiary_name=name or None,
            rejected=evict.rejected,
        )
    )


def _write_promises(tx: Transaction, plan: Plan, now: datetime) -> None:
    """The plan's promises are all that hold: one that is not made again is dropped."""
    wanted = {
        made.workload: PromiseRow(
            made.workload, made.places, now, made.due, made.expires, made.waits_for, made.may_evict
        )
        for made in plan.nominates
    }
    for row in tx.promises.find():
        if row.id not in wanted:
            tx.promises.delete(row.id)
    for id, promise in wanted.items():
        before = tx.promises.get(id)
        kept = (
            replace(promise, made=before.made) if before is not None and before.expires == promise.expires else promise
        )
        if kept == before:
            continue
        tx.promises.put(kept)
        workload = tx.workloads.get(id)
        if workload is not None and before is None:
            due = quantities.format_duration(max(promise.due - now, timedelta(seconds=1)))
            tx.events.put(
                _event(workload, "promised", f"is promised a place that is being freed, due within {due}", now)
            )


def _write_standings(tx: Transaction, plan: Plan) -> None:
    standings: dict[str, dict[str, dict[str, dict[str, int]]]] = {}
    for name, table in (("fair_share", plan.fair_share), ("held", plan.held), ("asked", plan.asked)):
        for (pool, queue), amounts in table.items():
            standings.setdefault(pool, {}).setdefault(queue, {})[name] = _amounts(amounts)
    text = json.dumps(standings, sort_keys=True)
    before = tx.facts.get(queues.STANDINGS)
    if before is None or before.value != text:
        tx.facts.put(FactRow(queues.STANDINGS, text))


def _amounts(amounts: Amounts) -> dict[str, int]:
    return {"gpu": amounts.milli_gpus, "cpu": amounts.milli_cpus, "memory": amounts.memory_bytes}


def _close(tx: Transaction, pod: PodRow) -> None:
    for entry in tx.ledger.find(Where("closed", "is", None), pod=pod.id):
        tx.ledger.put(replace(entry, closed=max(pod.ended or entry.opened, entry.opened)))


def _event(row: WorkloadRow, code: str, message: str, now: datetime) -> EventRow:
    return EventRow(now, "workload", row.id, row.name, code, message, row.project)
