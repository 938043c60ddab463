"""The search for victims: as few and as cheap as can be, and only if the workload they are for then fits.

Promises: nothing is evicted unless the workload it is for then fits, in the same simulation; no victim is taken that
the result does not need; each step is legal before and after. Victims that fit elsewhere are promised a new place in
the same plan.

Two ways are tried. The first takes victims in the order in which they would be given up until the workload fits, and
spares again whom the result does not need. The second looks, pod by pod, for the node with the cheapest victims: it
finds what the first misses where the rules allow only few victims. The cheaper result is taken.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import product

from aliquot.core import constraints, eligibility, gang, placement, promises, rooms, victims, wording
from aliquot.core.asks import Ask, Unit
from aliquot.core.cycle import Cycle
from aliquot.core.model import RESOURCES, Amounts, Pod, PodRequest, Workload
from aliquot.core.plan import Evict, Rule
from aliquot.core.rooms import Account, Holding, NodeRoom
from aliquot.core.victims import Choice, Giver

_GPU = 0
_MOST_REJECTED = 5
MOST_NODES = 32
"""So many nodes are compared for the cheapest victims of one pod."""
MOST_PODS = 64
"""Gangs up to this size are tried pod by pod."""


@dataclass(slots=True)
class Search:
    """The search for one workload by one rule. The world is left as it was unless `take` succeeds."""

    cycle: Cycle
    ask: Ask
    rule: Rule
    refused: list[tuple[int, str]] = field(default_factory=list)
    """Whom the rules protect, with the number of victims that had been found before it."""
    may_cross: bool = False
    """A queue that is over what it is due may be left below it, by a unit that cannot be split."""
    spared: list[str] = field(default_factory=list)
    """Whom the result does not need."""
    barred: set[str] = field(default_factory=set)
    """Workloads of which a unit was refused: a core does not go while pods above it stay."""
    is_cut: bool = False

    def take(self) -> bool:
        """Find victims, evict them and promise (or bind) the places; False if there are none that help."""
        cycle, world = self.cycle, self.cycle.world
        givers = victims.givers(cycle, self.ask, self.rule)
        if not givers or not self._could_help(givers):
            return False
        mark = world.mark()
        chosen = self._cheapest(givers)
        if not chosen and not self.is_cut and self.rule is Rule.RECLAIM:
            self.may_cross = True
            chosen = self._cheapest(givers)
        cycle.trial.clear()
        world.rollback(mark)
        if self.is_cut:
            cycle.unsearched.add(self.ask.id)
        if not chosen:
            return False
        explanations = self._evict_all(chosen)
        holdings = cycle.placer.place(self.ask, "later") if explanations is not None else None
        cycle.trial.clear()
        if holdings is None or explanations is None:
            world.rollback(mark)
            return False
        self._commit(chosen, holdings, explanations)
        return True

    def _could_help(self, givers: Sequence[Giver]) -> bool:
        """A sound "no": what is free, and the most that the rules allow to free, is less than what is asked."""
        asked = self.ask.amounts[_GPU]
        if not asked or _is_by_memory(self.ask):
            return True
        most = sum(victims.most_to_give(self.cycle, giver, self.ask.amounts, _GPU) for giver in givers)
        if most < asked:
            most += self.cycle.placer.scores.free_gpus(self.ask.pool)
        if most < asked and self.rule is Rule.RECLAIM:
            most += sum(victims.largest(giver, _GPU) for giver in givers)
        return most >= asked

    def _cheapest(self, givers: Sequence[Giver]) -> list[Choice] | None:
        """The victims; None or none if nothing helps."""
        mark = self.cycle.world.mark()
        found = self._greedy(givers)
        self._undo(mark)
        if self.is_cut or (found is not None and len(found) < 2) or len(self.ask.pods) > MOST_PODS:
            return found
        local = self._local(givers)
        self._undo(mark)
        if local is None:
            return found
        if found is None or self._cost(local, givers) < self._cost(found, givers):
            return local
        return found

    def _undo(self, mark: int) -> None:
        self.cycle.trial.clear()
        self.cycle.world.rollback(mark)

    # In the order in which they would be given up.

    def _greedy(self, givers: Sequence[Giver]) -> list[Choice] | None:
        """As few victims, from the first on, as make it fit; then without those that the result does not need."""
        cycle = self.cycle
        chosen: list[Choice] = []
        barred = self.barred
        holdings: list[Holding] | None = None
        pause, looked = 1, 0
        self.refused.clear()
        for giver, unit in self._offers(givers, chosen):
            if cycle.is_spent:
                self.is_cut = True
                return None
            choice = (
                None
                if unit.workload.id in barred
                else victims.choose(cycle, giver, unit, self.rule, may_cross=self.may_cross)
            )
            if choice is None:
                barred.add(unit.workload.id)
                self.refused.append((len(chosen), _protect(giver, unit)))
                continue
            chosen.append(choice)
            self._evict(choice)
            looked += 1
            if looked >= pause and cycle.placer.may_fit(self.ask, "later"):
                holdings = cycle.placer.place(self.ask, "later")
                if holdings is not None:
                    break
                looked, pause = 0, pause * 2
        if holdings is None and looked:
            holdings = cycle.placer.place(self.ask, "later")
        return None if holdings is None else self._shrunk(chosen, holdings)

    def _offers(self, givers: Sequence[Giver], chosen: Sequence[Choice]) -> Iterator[tuple[Giver, Unit]]:
        """All units in order; and again those that were refused, as long as what was taken since may have changed that:
        what is taken inside a department makes room under what that department is due."""
        before = -1
        while before < len(chosen):
            before = len(chosen)
            self.barred.clear()
            taken = {id(choice.unit) for choice in chosen}
            for giver, unit in victims.in_order(self.cycle, givers):
                if id(unit) not in taken:
                    yield giver, unit
            if len(givers) < 2 or not victims.is_nested(givers):
                return

    def _shrunk(self, chosen: list[Choice], holdings: Sequence[Holding]) -> list[Choice] | None:
        """Without those that the result does not need; the dearest are spared first."""
        kept = self._near(chosen, holdings)
        near = {id(choice) for choice in kept}
        self.spared = [choice.unit.workload.name for choice in chosen if id(choice) not in near]
        spared: set[int] = set()
        cores = {choice.unit.workload.id for choice in kept if choice.unit.is_core and not choice.unit.is_promise}
        for choice in reversed(list(kept)):
            if self.cycle.is_spent:
                self.is_cut = True
                return None
            workload = choice.unit.workload.id
            if workload in cores and not choice.unit.is_core:
                continue  # Pods above the minimum do not stay without the core.
            mark = self.cycle.world.mark()
            self._restore(choice)
            if self._fits():
                spared.add(id(choice))
                self.spared.append(choice.unit.workload.name)
                cores -= {workload} if choice.unit.is_core else set()
            else:
                self._take_again(choice, mark)
        return [choice for choice in kept if id(choice) not in spared]

    def _near(self, chosen: list[Choice], holdings: Sequence[Holding]) -> list[Choice]:
        """Those on the nodes of the places found, if they do; a quick first cut of a long list."""
        nodes = {id(holding.node) for holding in holdings}
        workloads = {
            choice.unit.workload.id
            for choice in chosen
            if any(id(holding.node) in nodes for holding in choice.unit.holdings)
        }
        far = [choice for choice in chosen if choice.unit.workload.id not in workloads]
        if not far:
            return list(chosen)
        for choice in far:
            self._restore(choice)
        if self._fits():
            return [choice for choice in chosen if choice.unit.workload.id in workloads]
        for choice in far:
            self._evict(choice)
        return list(chosen)

    # Node by node.

    def _local(self, givers: Sequence[Giver]) -> list[Choice] | None:
        """For each pod the node where the cheapest victims make it fit."""
        cycle, world = self.cycle, self.cycle.world
        chosen: list[Choice] = []
        mark = world.mark()
        for pod in sorted(self.ask.pods, key=lambda pod: placement.size_key(pod.request)):
            lone = world.make_ask(self.ask.workload, self.ask.pool, (pod,), is_core=self.ask.is_core)
            found = cycle.placer.place_alone(lone, "later")
            if found is None:
                best = self._best_node(givers, lone, chosen)
                if best is None:
                    return None
                for choice in best:
                    self._evict(choice)
                chosen += best
                found = cycle.placer.place_alone(lone, "later")
            assert found is not None, "these victims were chosen because it fits then"
            for holding in found:
                world.promise(holding)
        self._undo(mark)
        for choice in chosen:
            self._evict(choice)
        holdings = cycle.placer.place(self.ask, "later")
        return None if holdings is None else self._shrunk(chosen, holdings)

    def _best_node(self, givers: Sequence[Giver], lone: Ask, chosen: Sequence[Choice]) -> list[Choice] | None:
        taken = {id(choice.unit) for choice in chosen}
        by_node: dict[int, tuple[NodeRoom, list[tuple[Giver, Unit]]]] = {}
        for giver, unit in victims.in_order(self.cycle, givers):
            if id(unit) in taken:
                continue
            for node in {id(one.node): one.node for one in unit.holdings if one.node is not None}.values():
                if id(node) not in by_node and len(by_node) >= MOST_NODES:
                    continue
                by_node.setdefault(id(node), (node, []))[1].append((giver, unit))
            if self.cycle.is_spent:
                self.is_cut = True
                return None
        best: tuple[tuple[object, ...], list[Choice]] | None = None
        for node, units in by_node.values():
            found = self._on_node(node, units, lone, givers)
            if found is None:
                continue
            key = (*self._cost(found, givers), node.row)
            if best is None or key < best[0]:
                best = (key, found)
        return None if best is None else best[1]

    def _on_node(
        self, node: NodeRoom, units: Sequence[tuple[Giver, Unit]], lone: Ask, givers: Sequence[Giver]
    ) -> list[Choice] | None:
        """The first units of a node that make one pod fit on it, each step legal; the world is left as it was."""
        request = lone.requests[0]
        if not node.is_usable or constraints.refusal(node.node, request) is not None:
            return None
        best: list[Choice] | None = None
        for ordered in (units, _largest_first(units)):
            found = self._first_on_node(node, ordered, request)
            if found is not None and (best is None or self._cost(found, givers) < self._cost(best, givers)):
                best = found
        return best

    def _first_on_node(
        self, node: NodeRoom, units: Sequence[tuple[Giver, Unit]], request: PodRequest
    ) -> list[Choice] | None:
        world = self.cycle.world
        mark, before = world.mark(), list(self.cycle.trial)
        chosen: list[Choice] = []
        barred: set[str] = set()
        is_there = False
        for giver, unit in units:
            world.steps += 1
            choice = (
                None
                if unit.workload.id in barred
                else victims.choose(self.cycle, giver, unit, self.rule, may_cross=self.may_cross)
            )
            if choice is None or (unit.is_core and not self._is_bare(unit, chosen)):
                barred.add(unit.workload.id)
                continue
            chosen.append(choice)
            self._evict(choice)
            is_there = self.cycle.placer.fits_on(node, request, "later")
            if is_there:
                break
        world.rollback(mark)
        self.cycle.trial = {id: self.cycle.trial[id] for id in before}
        return chosen if is_there else None

    def _is_bare(self, unit: Unit, chosen: Sequence[Choice]) -> bool:
        """Whether all that is above the minimum of its gang goes too."""
        if unit.is_promise:
            return True
        gone = {holding.pod.id for choice in chosen for holding in choice.unit.holdings} | self.cycle.evicted
        gone |= set(self.cycle.trial) | {holding.pod.id for holding in unit.holdings}
        return all(one.pod.id in gone for one in self.cycle.world.running_of(unit.workload.id))

    def _cost(self, chosen: Sequence[Choice], givers: Sequence[Giver]) -> tuple[object, ...]:
        """What sets of victims are compared by, the smaller the better: the queue that would be served last, the
        highest priority touched, work lost in all, pods, age."""
        keys = sorted({giver.key for giver in givers}, reverse=True)
        lost = timedelta()
        for choice in chosen:
            if not choice.unit.is_promise:
                lost += victims.work_lost(self.cycle, choice.unit.workload, choice.unit.amounts[_GPU])[0]
        return (
            max(keys.index(choice.giver.key) for choice in chosen),
            max(choice.unit.workload.priority for choice in chosen),
            lost,
            sum(len(choice.unit.holdings) for choice in chosen),
            max(self.cycle.now - choice.unit.workload.created for choice in chosen),
        )

    # Carrying it out.

    def _fits(self) -> bool:
        placer = self.cycle.placer
        return placer.may_fit(self.ask, "later") and placer.place(self.ask, "later") is not None

    def _evict(self, choice: Choice) -> None:
        world = self.cycle.world
        for holding in choice.unit.holdings:
            if choice.unit.is_promise:
                world.unpromise(holding)
            else:
                world.evict(holding)
                self.cycle.trial[holding.pod.id] = holding

    def _take_again(self, choice: Choice, mark: int) -> None:
        """It is needed after all: undo that it was restored at this mark."""
        self.cycle.world.reopen(mark)
        if not choice.unit.is_promise:
            self.cycle.trial.update({holding.pod.id: holding for holding in choice.unit.holdings})

    def _restore(self, choice: Choice) -> None:
        world = self.cycle.world
        for holding in choice.unit.holdings:
            if choice.unit.is_promise:
                world.promise(holding)
            else:
                world.restore(holding)
                del self.cycle.trial[holding.pod.id]

    def _evict_all(self, chosen: Sequence[Choice]) -> list[str] | None:
        """Evict what was chosen, looking again at each step whether it is legal; the numbers that make it so."""
        explanations: list[str] = []
        for choice in chosen:
            giver, unit = choice.giver, choice.unit
            if victims.choose(self.cycle, giver, unit, self.rule, may_cross=self.may_cross) is None:
                return None
            explanations.append(_explain(self.cycle, self.ask, choice))
            self._evict(choice)
        return explanations

    def _commit(self, chosen: Sequence[Choice], holdings: list[Holding], explanations: Sequence[str]) -> None:
        cycle = self.cycle
        spared = tuple(self._rejected(chosen))
        strike(cycle, self.ask.pool, [choice.unit for choice in chosen])
        evicted: list[Holding] = []
        for choice, explanation in zip(chosen, explanations, strict=True):
            unit = choice.unit
            if unit.is_promise:
                promises.revoke(cycle, unit.workload.id, by=self.ask.id)
                continue
            for holding in unit.holdings:
                evicted.append(holding)
                evict = Evict(unit.workload.id, holding.pod.id, self.ask.id, self.rule, explanation, spared)
                cycle.evict(evict, holding)
        # Where pods have to end first, room or a limit still counts them. If they only drew it elsewhere, it starts.
        is_for_room = evicted and not any(request.is_social for request in self.ask.requests)
        now = None if is_for_room else cycle.placer.stay(self.ask, [holding.place for holding in holdings], "now")
        if now is not None:
            cycle.bind(self.ask, now)
        else:
            promises.make(cycle, self.ask, holdings, evicted=evicted)
        replace_victims(cycle, [choice.unit for choice in chosen if not choice.unit.is_promise], holdings)

    def _rejected(self, chosen: Sequence[Choice]) -> list[str]:
        last = len(chosen)
        texts = ["nothing: it does not fit without an eviction"]
        texts += [text for before, text in self.refused if before < last]
        texts += [f"{name}: the result does not need it" for name in dict.fromkeys(self.spared)]
        return texts[:_MOST_REJECTED]


def replace_victims(cycle: Cycle, units: Sequence[Unit], taken: Sequence[Holding]) -> None:
    """Promise evicted pods a new place where there is one: whole gangs, or what was above their minimum. `taken`: the
    places for which they were evicted."""
    old = {holding.pod.id: holding.place for unit in units for holding in unit.holdings}
    by_workload: dict[str, list[Pod]] = {}
    for unit in units:
        by_workload.setdefault(unit.workload.id, []).extend(holding.pod for holding in unit.holdings)
    full: set[tuple[object, ...]] = set()
    for id in sorted(by_workload, key=lambda id: (-cycle.world.entries[id].workload.priority, id)):
        if not eligibility.is_open(cycle.world, cycle.world.entries[id].workload, cycle.now):
            continue
        pods = tuple(sorted(by_workload[id], key=gang.task_key))
        workload = cycle.world.entries[id].workload
        if not gang.is_satisfied(workload, cycle.pods_in_place(id) | {pod.id for pod in pods}):
            continue
        is_plain = workload.gang is None and workload.near is None
        kinds = (cycle.world.entries[id].pool, *(cycle.world.kind_of(pod.request) for pod in pods))
        if is_plain and kinds in full:
            continue
        ask = ask_anew(cycle, workload, pods)
        holdings = cycle.placer.place(ask, "later")
        if is_plain and cycle.placer.is_full(ask, ("later",)):
            full.add(kinds)
        if holdings is None or any(one.place == old.get(one.pod.id) for one in holdings):
            continue
        if leaves_welcome(cycle, holdings, taken):
            promises.move(cycle, ask, holdings)


def leaves_welcome(cycle: Cycle, holdings: Sequence[Holding], taken: Sequence[Holding]) -> bool:
    """Whether the rules about who may be near whom still let the taker be where it is promised to be."""
    if not any(one.pod.request.is_social or one.pod.request.labels for one in taken):
        return True
    world = cycle.world
    mark = world.mark()
    for one in holdings:
        world.promise(one)
    is_welcome = True
    for one in taken:
        world.unpromise(one)
        is_welcome = is_welcome and cycle.placer.can_hold(one, "later")
        world.promise(one)
    world.rollback(mark)
    return is_welcome


def ask_anew(cycle: Cycle, workload: Workload, pods: tuple[Pod, ...]) -> Ask:
    """What pods that were told to end would wait for."""
    entry = cycle.world.entries[workload.id]
    is_core = not gang.is_satisfied(workload, cycle.pods_in_place(workload.id))
    return cycle.world.make_ask(workload, entry.pool, pods, is_core=is_core)


def _largest_first(units: Sequence[tuple[Giver, Unit]]) -> list[tuple[Giver, Unit]]:
    """By what a workload holds in all; still, of one workload what is above its minimum comes before its core."""
    total: dict[str, tuple[int, int, int]] = {}
    for _, unit in units:
        total[unit.workload.id] = rooms.plus(total.get(unit.workload.id, (0, 0, 0)), unit.amounts)
    return sorted(units, key=lambda one: total[one[1].workload.id], reverse=True)


def strike(cycle: Cycle, pool: str, units: Sequence[Unit]) -> None:
    """They are no victims any more."""
    by_queue: dict[str, list[Unit]] = {}
    for unit in units:
        by_queue.setdefault(unit.workload.queue, []).append(unit)
    for queue, struck in by_queue.items():
        cycle.victims[pool, queue].strike(struck)


def _is_by_memory(ask: Ask) -> bool:
    return any(one.gpu is not None and one.gpu.mib is not None for one in ask.requests)


def _protect(giver: Giver, unit: Unit) -> str:
    """Why a unit of a queue that has to give is not taken."""
    bases = [
        (basis, ground) for basis, grounds in giver.grounds().items() for ground in grounds if unit.amounts[ground]
    ]
    for (basis, ground), account in product(bases, giver.below):
        left, due = account.level[ground] - unit.amounts[ground], victims.due(account, basis)[ground]
        if left < due:
            resource = RESOURCES[ground]
            return (
                f"{unit.workload.name}: without it {account.queue.name} would hold "
                f"{wording.amount(resource, left)} of its {basis} of {wording.amount(resource, due)}"
            )
    return f"{unit.workload.name}: {giver.accounts[0].queue.name} is not over what it is due of what it holds"


def _explain(cycle: Cycle, ask: Ask, choice: Choice) -> str:
    victim = choice.unit.workload
    if choice.basis == "priority":
        return _explain_inside(ask, victim)
    resource = RESOURCES[choice.ground]
    asked = cycle.world.pools[ask.pool].asked
    taker, giver = choice.giver.taker[-1], choice.giver.below[-1]
    return (
        f"{taker.queue.name} holds {wording.amount(resource, taker.level[choice.ground])} and stays with "
        f"{ask.workload.name} within its {_said(taker, choice, asked[taker.queue.id])}; {giver.queue.name} holds "
        f"{wording.amount(resource, giver.level[choice.ground])}, over its "
        f"{_said(giver, choice, asked[giver.queue.id])}"
    )


def _explain_inside(ask: Ask, victim: Workload) -> str:
    if victim.priority == ask.workload.priority:
        return f"{ask.workload.name} has had less GPU time than {victim.name} of its project, which had its quantum"
    return (
        f"{ask.workload.name} has priority {ask.workload.priority}, {victim.name} of the same project has "
        f"{victim.priority}"
    )


def _said(account: Account, choice: Choice, asked: Amounts) -> str:
    """What a queue is due, as it is set where nothing cuts it."""
    resource = RESOURCES[choice.ground]
    due = victims.due(account, choice.basis)[choice.ground]
    quota = account.terms.of(resource).quota
    if choice.basis != "quota" or quota is None:
        return f"{choice.basis} of {wording.amount(resource, due)}"
    is_cut = due < min(quota, asked.of(resource))
    return f"quota of {wording.amount(resource, quota)}" + (
        f", cut to {wording.amount(resource, due)}" if is_cut else ""
    )
