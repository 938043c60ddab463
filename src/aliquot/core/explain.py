"""Why a workload waits, and the smallest change that would start it.

Promises: pure; a change that is given was tried in the engine on this very snapshot, and with it the workload is bound
or promised in that cycle; where trying all kinds of change finds one, one is given. Changes that evict nobody come
first, then the order of `aliquot.core.remedies`, then the least amount. What nobody can change, or what ends by itself,
says so. Where many wait the search looks at fewer amounts and at fewer others (`aliquot.core.trials`).
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal, get_args

from aliquot.core import change, remedies, schedule, trials
from aliquot.core.errors import NotFound
from aliquot.core.ladders import Candidate, Ladder, WhoCan
from aliquot.core.model import PodState, Policy, Snapshot, Workload
from aliquot.core.plan import Code, Reason
from aliquot.core.remedies import Kind
from aliquot.core.snapshot import World
from aliquot.core.trials import Evicting, Question, Trials

ALL_KINDS: frozenset[type] = frozenset(get_args(change.Change))
_MOST_STEPS = 20_000
"""Where many wait: when all trials together took so many steps, what is known to work is not made smaller any more."""
_MOST_STOPPED = 12
"""Where many wait: so many others, unlike each other, are tried as the one to be stopped."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A change that starts the workload. `evicts`: the workloads that would lose pods for it, by id."""

    change: change.Change
    description: str
    who_can: WhoCan
    outcome: Literal["starts", "starts-after-evictions"]
    evicts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why it waits (None: it does not, it starts in this very cycle), and what would help or why nothing does."""

    reason: Reason | None
    position: int | None = None
    suggestion: Suggestion | None = None
    no_suggestion_because: str | None = None


def explain(
    taken: Snapshot | World,
    workload_id: str,
    *,
    policy: Policy,
    now: datetime,
    kinds: Collection[type] = ALL_KINDS,
    most_whole: int = trials.MOST_WHOLE,
) -> Explanation:
    """Why this workload waits and the smallest change that starts it. Raises NotFound if it is not in the snapshot.

    A world that is kept from cycle to cycle saves building it; it is left as it was. `kinds`: the changes that can be
    made here. `most_whole`: where more wait, trials of few come first.
    """
    snapshot = taken.snapshot if isinstance(taken, World) else taken
    workload = next((one for one in snapshot.workloads if one.id == workload_id), None)
    if workload is None:
        raise NotFound(f"there is no workload {workload_id!r} here", field="workload")
    world = taken if isinstance(taken, World) else World(snapshot)
    cycle = schedule.decide(world, policy, now)
    ask = schedule.ask_of(cycle, workload_id)
    if ask is None:
        world.rollback(0)
        return Explanation(reason=None)
    reason, line = schedule.reason_of(cycle, ask), schedule.before(cycle, ask)
    known = Explanation(reason, len(line) + 1)
    if (ending := _ends_by_itself(workload, reason)) is not None:
        world.rollback(0)
        return replace(known, no_suggestion_because=ending)
    about = trials.question(cycle, ask, line, most_whole=most_whole)
    world.rollback(0)
    suggestion = _Search(about, Trials(about), kinds, reason).smallest()
    world.sync(snapshot)
    if suggestion is not None:
        return replace(known, suggestion=suggestion)
    return replace(known, no_suggestion_because=_why_none(snapshot, workload, reason))


@dataclass(frozen=True, slots=True)
class _Search:
    """The search for the smallest change that starts one workload."""

    about: Question
    trials: Trials
    allowed: Collection[type]
    reason: Reason

    def smallest(self) -> Suggestion | None:
        """The first kind that helps, without evictions first, and of it the least amount."""
        kinds = list(remedies.kinds(self.about))
        wanted: tuple[Evicting, ...] = ("nobody", "others")
        for evicting in wanted:
            for kind in kinds:
                found = self._least(kind, evicting)
                if found is not None:
                    return self._suggestion(found)
        return self._stop_one()

    def _suggestion(self, found: Candidate) -> Suggestion:
        evicts = self.trials.evicted_by(found.change)
        outcome: Literal["starts", "starts-after-evictions"] = "starts-after-evictions" if evicts else "starts"
        return Suggestion(found.change, found.description, found.who_can, outcome, evicts)

    def _least(self, kind: Kind, evicting: Evicting) -> Candidate | None:
        ladders = [one for one in kind.ladders if one.length and type(one.at(0).change) in self.allowed]
        if not ladders or (kind.together and not self.trials.could_start(*kind.together, evicting=evicting)):
            return None
        found = [one for ladder in ladders if (one := self._first(ladder, evicting)) is not None]
        return min(found, key=lambda one: one.amount, default=None)

    def _first(self, ladder: Ladder, evicting: Evicting) -> Candidate | None:
        """The first candidate of a ladder that starts the workload."""

        def works(index: int) -> bool:
            return self.trials.starts(ladder.at(index).change, evicting=evicting)

        if not ladder.is_steady:
            return next((ladder.at(index) for index in range(ladder.length) if works(index)), None)
        if self.about.is_large and works(0):
            return ladder.at(0)
        if not works(ladder.length - 1):
            return None
        low, high = 0, ladder.length - 1
        while low < high and not self._is_costly():
            middle = (low + high) // 2
            low, high = (low, middle) if works(middle) else (middle + 1, high)
        return ladder.at(high)

    def _is_costly(self) -> bool:
        return self.about.is_large and self.trials.steps > _MOST_STEPS

    # The last resort.

    def _stop_one(self) -> Suggestion | None:
        """The end of one other workload: of the same project first, then the least work lost."""
        if change.RemoveWorkload not in self.allowed or self.reason.code in _NOT_OF_OTHERS:
            return None
        others = self._others()
        if not self.about.is_large and not self.trials.starts(*(change.RemoveWorkload(one.id) for one in others)):
            return None
        for other in others:
            stopped = change.RemoveWorkload(other.id)
            if not self.trials.starts(stopped):
                continue
            is_near = other.queue == self.about.workload.queue
            where = "of the same project" if is_near else f"of project {_queue_name(self.about.snapshot, other.queue)}"
            who: WhoCan = "project" if is_near else "administrator"
            return self._suggestion(Candidate(stopped, f"stop {other.name} ({where})", who))
        return None

    def _others(self) -> list[Workload]:
        """Who may be stopped, the least loss first; where many wait, a few that hold unlike amounts."""
        about = self.about
        others = sorted((one for one in about.snapshot.workloads if one.id != about.workload.id), key=self._loss)
        if not about.is_large:
            return others
        kinds: dict[object, Workload] = {}
        for one in others:
            held = sorted((len(pod.shares), sum(share.milli for share in pod.shares)) for pod in one.pods if pod.node)
            if held:
                kinds.setdefault((one.queue, tuple(held)), one)
        return list(kinds.values())[:_MOST_STOPPED]

    def _loss(self, other: Workload) -> tuple[bool, bool, timedelta, str]:
        held = sum(share.milli for pod in other.pods for share in pod.shares)
        ran = self.about.now - other.started if other.started is not None else timedelta(0)
        holds = any(pod.state is PodState.RUNNING for pod in other.pods)
        return (other.queue != self.about.workload.queue, not holds, ran * held, other.id)


# What no change mends.


_NOT_OF_OTHERS = frozenset(
    {
        Code.LARGER_THAN_ANY_NODE,
        Code.LARGER_THAN_POOL,
        Code.POOL_EMPTY,
        Code.TAINT,
        Code.SELECTOR,
        Code.UNMET_DEPENDENCY,
        Code.QUEUE_HELD,
    }
)
"""It waits for none of those who run."""


def _ends_by_itself(workload: Workload, reason: Reason) -> str | None:
    code = reason.code
    if code is Code.BACKING_OFF and workload.not_before is not None:
        return f"it tries again by itself at {workload.not_before:%H:%M:%S} ({workload.not_before.tzname()})"
    if code is Code.WAITING_FOR_RELEASE:
        due = reason.numbers.get("due")
        return f"its place is promised and it starts by itself once that is free{f', by {due}' if due else ''}"
    if code is Code.NO_SUCH_QUEUE:
        return f"an administrator has to make the project {workload.queue}, or it has to be submitted to another"
    if code is Code.UNMET_DEPENDENCY:
        return "it starts by itself once that is there; its owner, or who owns what is missing, has to see to it"
    if code is Code.BUDGET:
        return "the search was ended by its budget and goes on in the next cycle; an administrator can raise the budget"
    return None


def _why_none(snapshot: Snapshot, workload: Workload, reason: Reason) -> str:
    if reason.code is Code.DEVICE_IN_USE:
        return f"who runs {_foreign(snapshot, workload.pool)} can end it, or an administrator of the machine"
    if reason.code is Code.POOL_EMPTY:
        return f"an administrator has to bring nodes into pool {workload.pool}: there is none that could take it"
    if reason.code is Code.NODE_UNAVAILABLE:
        return "an administrator has to bring back what is away; taking one cordon away does not start it"
    if reason.code is Code.QUEUE_HELD:
        return "an administrator has to release the project; that alone does not start it"
    if reason.code is Code.PREEMPTION_DELAY:
        until = workload.created + workload.preemption_delay
        return (
            f"by itself it may evict others from {until:%H:%M:%S} ({until.tzname()}) on; no one change starts it before"
        )
    if reason.code is Code.PROTECTED_MIN_RUNTIME:
        return "by itself it may evict others once their minimum run time is over; no one change starts it before"
    return (
        "no smaller request, other priority, single quota or limit starts it, nor does the end of one other workload: "
        "more than one of these would have to change"
    )


def _foreign(snapshot: Snapshot, pool: str) -> str:
    uses = sorted(
        {
            f"process {use.pid} of {use.user}"
            for node in snapshot.nodes
            if node.pool == pool
            for device in node.devices
            for use in device.foreign
        }
    )
    return ", ".join(uses) or "the processes that are not Aliquot's"


def _queue_name(snapshot: Snapshot, id: str) -> str:
    return next((queue.name for queue in snapshot.queues if queue.id == id), id)
