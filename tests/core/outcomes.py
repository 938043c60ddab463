"""What a plan comes to, in the words of the tests: who started where, who was evicted, who was promised what."""

from datetime import timedelta

from aliquot.core import schedule
from aliquot.core.model import Policy, Promise, Snapshot, Workload
from aliquot.core.plan import Code, Plan
from tests.builders import NOW, job, running

GRACE = timedelta(seconds=30)


def plan(taken: Snapshot, *, policy: Policy | None = None, after: timedelta = timedelta()) -> Plan:
    return schedule.schedule(taken, policy or Policy(), NOW + after)


def bound(made: Plan) -> dict[str, list[str]]:
    """By workload, the devices of its pods (or the node, where it asks for none)."""
    found: dict[str, list[str]] = {}
    for one in made.binds:
        names = [share.device.removeprefix("node-1-") for share in one.place.shares] or [one.place.node]
        found.setdefault(one.workload, []).extend(names)
    return found


def evicted(made: Plan) -> list[str]:
    return [one.pod for one in made.evicts]


def nominated(made: Plan) -> list[str]:
    return [one.workload for one in made.nominates]


def code_of(made: Plan, workload: str) -> Code:
    return next(one.reason.code for one in made.waits if one.workload == workload)


def full(queue_id: str, count: int = 8, *, first: int = 0, **more: int) -> list[Workload]:
    """So many running jobs of one device each."""
    return [
        running(job(f"{queue_id}{index}", queue_id, **more), f"node-1:{index}")  # type: ignore[arg-type]  # ints only
        for index in range(first, first + count)
    ]


def promise_of(made: Plan, workload: str) -> Promise:
    """The nomination, as whoever stores it gives it back."""
    one = next(one for one in made.nominates if one.workload == workload)
    return Promise(
        workload=one.workload,
        places=one.places,
        made=one.due - (one.expires - one.due),
        due=one.due,
        expires=one.expires,
        waits_for=one.waits_for,
        may_evict=one.may_evict,
    )
