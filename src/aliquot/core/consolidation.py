"""Making room by moving: pods end where they are only if each of them gets a new place in the same plan.

Nobody loses by it, so that quotas and minimum run times have no say. As few pods as can be are moved, and at most so
many as the policy says. A gang below whose minimum a move would take it moves whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from aliquot.core import constraints, eligibility, eviction, gang, placement, promises, victims
from aliquot.core.asks import Ask, Unit
from aliquot.core.cycle import Cycle
from aliquot.core.model import Pod
from aliquot.core.plan import Evict, Rule
from aliquot.core.rooms import Holding, NodeRoom

Places = list[tuple[Ask, list[Holding]]]
"""Where those go that move."""
Solution = tuple[list[Unit], list[Holding], Places]
"""What moves, the places of the one for whom it does, and the new places."""

MOST_DOMAINS = 8
MOST_NODES = 64
"""So many nodes are compared for the cheapest moves of one pod."""


@dataclass(slots=True)
class Consolidation:
    """The search for moves that make room for one workload. The world is left as it was unless `take` succeeds."""

    cycle: Cycle
    ask: Ask
    is_cut: bool = False
    _rows: set[int] | None = None
    """The nodes in which the gang is tried; None is all of them."""

    def take(self) -> bool:
        """Move what stands in the way and promise the places; False if no moves help."""
        cycle, world = self.cycle, self.cycle.world
        if not self._could_help():
            return False
        mark = world.mark()
        found = self._moves()
        self._undo(mark)
        if self.is_cut:
            cycle.unsearched.add(self.ask.id)
        if found is None:
            return False
        while (fewer := self._with_one_less(*found)) is not None:
            found = fewer
        moved, holdings, places = found
        self._commit(moved, holdings, places)
        return True

    def _could_help(self) -> bool:
        """A sound "no": moving frees nothing in all, so that what is free must be enough."""
        cycle, ask = self.cycle, self.ask
        if cycle.placer.excess(ask, ask.amounts, "later") is not None:
            return False
        if any(one.gpu is not None and one.gpu.mib is not None for one in ask.requests):
            return cycle.placer.scores.free_gpus(ask.pool) > 0
        return not ask.amounts[0] or cycle.placer.scores.free_gpus(ask.pool) >= ask.amounts[0]

    def _moves(self) -> Solution | None:
        """The fewest moves, over the domains in which the gang could be."""
        if len(self.ask.pods) > eviction.MOST_PODS:
            return None
        mark = self.cycle.world.mark()
        best: Solution | None = None
        for rows in self.cycle.placer.domains_of(self.ask)[:MOST_DOMAINS]:
            self._rows = None if rows is None else set(rows.tolist())
            found = self._moves_in(rows)
            self._undo(mark)
            if found and (best is None or self._cost(found) < self._cost(best[0])):
                best = self._settled(found) or best
        return None if best is None else self._shrunk(best)

    def _shrunk(self, found: Solution) -> Solution:
        """Without those workloads that need not move, now that all places are known."""
        for stay in _apart(found[0]):
            fewer = [unit for unit in found[0] if unit not in stay]
            found = (self._settled(fewer) if fewer else None) or found
        return found

    def _settled(self, moved: list[Unit]) -> Solution | None:
        """The places of all, once these have moved; None if somebody finds none."""
        mark = self.cycle.world.mark()
        self._evict_all(moved)
        holdings = self.cycle.placer.place(self.ask, "later")
        places = None if holdings is None else self._new_places(holdings, moved)
        self._undo(mark)
        return None if holdings is None or places is None else (moved, holdings, places)

    def _with_one_less(self, moved: list[Unit], _: list[Holding], places: Places) -> Solution | None:
        """Whether one of those that move can stay where it is, while the others go where they were to go."""
        for stay in _apart(moved):
            mark = self.cycle.world.mark()
            fewer = [unit for unit in moved if unit not in stay]
            self._evict_all(fewer)
            kept = self._take_places(places, {holding.pod.id for unit in stay for holding in unit.holdings})
            holdings = self.cycle.placer.place(self.ask, "later") if fewer and kept is not None else None
            is_welcome = holdings is not None and eviction.leaves_welcome(self.cycle, (), holdings)
            self._undo(mark)
            if kept is not None and holdings is not None and is_welcome:
                return fewer, holdings, kept
        return None

    def _take_places(self, places: Places, staying: set[str]) -> Places | None:
        """Take the new places but for these pods; None if one of them is not free."""
        cycle = self.cycle
        kept: Places = []
        for ask, found in places:
            going = [holding for holding in found if holding.pod.id not in staying]
            for holding in going:
                if not cycle.placer.can_hold(holding, "later"):
                    return None
                cycle.world.promise(holding)
            if len(going) < len(found):
                ask = eviction.ask_anew(cycle, ask.workload, tuple(holding.pod for holding in going))
            if going:
                kept.append((ask, going))
        return kept

    def _undo(self, mark: int) -> None:
        self.cycle.trial.clear()
        self.cycle.world.rollback(mark)

    def _moves_in(self, rows: placement.Rows | None) -> list[Unit] | None:
        """For each pod the node where the fewest moves make it fit; then all that was moved must fit elsewhere."""
        cycle, world, ask = self.cycle, self.cycle.world, self.ask
        moved: list[Unit] = []
        for pod in sorted(ask.pods, key=lambda pod: placement.size_key(pod.request)):
            lone = world.make_ask(ask.workload, ask.pool, (pod,), is_core=ask.is_core)
            found = cycle.placer.place_alone(lone, "later", rows)
            if found is None:
                units = self._best_node(lone, moved)
                if units is None:
                    return None
                for unit in units:
                    self._evict(unit)
                moved += units
                found = cycle.placer.place_alone(lone, "later", rows)
            assert found is not None, "these moves were chosen because it fits then"
            for holding in found:
                world.promise(holding)
        return moved

    def _best_node(self, lone: Ask, moved: Sequence[Unit]) -> list[Unit] | None:
        rows = self._rows
        nodes = [
            node
            for node in self.cycle.world.pools[lone.pool].nodes
            if node.is_usable and (rows is None or node.row in rows)
        ]
        nodes.sort(key=lambda node: (-sum(room.part("later") for room in node.devices), node.row))
        best: tuple[tuple[object, ...], list[Unit]] | None = None
        by_node = self._units_by_node(lone.pool, {unit.workload.id for unit in moved})
        for node in nodes[:MOST_NODES]:
            if self.cycle.is_spent:
                self.is_cut = True
                return None
            found = self._on_node(node, by_node.get(node.row, []), lone, moved)
            if found is None:
                continue
            key = (*self._cost(found), node.row)
            if best is None or key < best[0]:
                best = (key, found)
        return None if best is None else best[1]

    def _on_node(
        self, node: NodeRoom, units: Sequence[list[Unit]], lone: Ask, moved: Sequence[Unit]
    ) -> list[Unit] | None:
        """The cheapest moves off a node that make one pod fit on it, if all of them fit elsewhere; the world is left as
        it was. Small ones are tried first, then large ones."""
        request, world = lone.requests[0], self.cycle.world
        if constraints.refusal(node.node, request) is not None:
            return None
        best: list[Unit] | None = None
        for is_large_first in (False, True):
            mark, trial = world.mark(), dict(self.cycle.trial)
            chosen: list[Unit] = []
            for together in sorted(units, key=_weight, reverse=is_large_first):
                world.steps += 1
                if not self._evict_legally(together):
                    continue
                chosen += [unit for unit in together if unit not in chosen]
                if self._is_over(chosen, moved) or self.cycle.placer.fits_on(node, request, "later"):
                    break
            found = [] if self._is_over(chosen, moved) else self._spared(node, chosen, lone)
            if found and self._all_fit(lone, [*moved, *found]) and (best is None or _pods(found) < _pods(best)):
                best = found
            world.rollback(mark)
            self.cycle.trial = trial
        return best

    def _spared(self, node: NodeRoom, chosen: list[Unit], lone: Ask) -> list[Unit]:
        """Without those workloads that need not move; none if not even all of them make room."""
        if not self.cycle.placer.fits_on(node, lone.requests[0], "later") or self._is_over(chosen, ()):
            return []
        kept = list(chosen)
        for id in dict.fromkeys(unit.workload.id for unit in chosen):
            own = [unit for unit in kept if unit.workload.id == id]
            for unit in own:
                self._restore(unit)
            if self.cycle.placer.fits_on(node, lone.requests[0], "later"):
                kept = [unit for unit in kept if unit.workload.id != id]
            else:
                for unit in own:
                    self._evict(unit)
        return kept

    def _all_fit(self, lone: Ask, units: Sequence[Unit]) -> bool:
        world = self.cycle.world
        mark = world.mark()
        rows = None if self._rows is None else np.array(sorted(self._rows), np.intp)
        found = self.cycle.placer.place_alone(lone, "later", rows)
        for holding in found or ():
            world.promise(holding)
        is_there = found is not None and self._place_all(units) is not None
        world.rollback(mark)
        return is_there

    def _new_places(self, holdings: Sequence[Holding], units: Sequence[Unit]) -> Places | None:
        for holding in holdings:
            self.cycle.world.promise(holding)
        placed = self._place_all(units)
        if placed is None or not eviction.leaves_welcome(self.cycle, (), holdings):
            return None
        return placed

    def _place_all(self, units: Sequence[Unit]) -> Places | None:
        """A new place for all that moves, the largest first; taken in the world."""
        cycle = self.cycle
        by_workload: dict[str, list[Pod]] = {}
        for unit in units:
            by_workload.setdefault(unit.workload.id, []).extend(holding.pod for holding in unit.holdings)
        asks = [
            eviction.ask_anew(cycle, cycle.world.entries[id].workload, tuple(sorted(pods, key=gang.task_key)))
            for id, pods in sorted(by_workload.items())
        ]
        asks.sort(key=lambda ask: min(placement.size_key(request) for request in ask.requests))
        placed: Places = []
        for ask in asks:
            found = cycle.placer.place(ask, "later")
            if found is None or _is_in_place(found, units):
                return None
            for holding in found:
                cycle.world.promise(holding)
            placed.append((ask, found))
        return placed

    def _units_by_node(self, pool: str, taken: set[str]) -> dict[int, list[list[Unit]]]:
        """What can move off each node: lists of units that have to move together."""
        cycle = self.cycle
        found: dict[int, list[list[Unit]]] = {}
        for queue in cycle.world.holder_queues(pool):
            by_workload: dict[str, list[Unit]] = {}
            for unit in victims.units_of(cycle, pool, queue):
                if unit.is_promise or unit.workload.id in taken or unit.workload.id == self.ask.id:
                    continue
                is_whole = cycle.world.entries[unit.workload.id].is_whole
                if is_whole and eligibility.is_open(cycle.world, unit.workload, cycle.now):
                    by_workload.setdefault(unit.workload.id, []).append(unit)
            for together in (one for units in by_workload.values() for one in _sets(units)):
                for row in {one.node.row for unit in together for one in unit.holdings if one.node is not None}:
                    found.setdefault(row, []).append(together)
        return found

    def _is_over(self, chosen: Sequence[Unit], moved: Sequence[Unit]) -> bool:
        most = self.cycle.policy.max_consolidation_victims
        return most is not None and _pods(chosen) + _pods(moved) > most

    def _cost(self, units: Sequence[Unit]) -> tuple[int, timedelta, timedelta]:
        """What sets of moves are compared by, the smaller the better: pods, work lost in all, age."""
        lost = sum((victims.work_lost(self.cycle, one.workload, one.amounts[0])[0] for one in units), timedelta())
        return (_pods(units), lost, max(self.cycle.now - unit.workload.created for unit in units))

    def _evict_legally(self, units: Sequence[Unit]) -> bool:
        """Evict them all, if budgets and limits allow each beside those before it; else none."""
        mark, trial = self.cycle.world.mark(), dict(self.cycle.trial)
        for unit in units:
            if not self._may_lose(unit):
                self.cycle.world.rollback(mark)
                self.cycle.trial = trial
                return False
            self._evict(unit)
        return True

    def _may_lose(self, unit: Unit) -> bool:
        accounts = self.cycle.world.accounts_of(self.ask.pool, unit.workload.queue)
        return victims.may_lose(self.cycle, accounts, unit)

    def _evict_all(self, units: Sequence[Unit]) -> None:
        for unit in units:
            self._evict(unit)

    def _evict(self, unit: Unit) -> None:
        for holding in unit.holdings:
            if holding.pod.id in self.cycle.trial:
                continue
            self.cycle.world.evict(holding)
            self.cycle.trial[holding.pod.id] = holding

    def _restore(self, unit: Unit) -> None:
        for holding in unit.holdings:
            del self.cycle.trial[holding.pod.id]
            self.cycle.world.restore(holding)

    def _commit(self, moved: Sequence[Unit], holdings: list[Holding], places: Places) -> None:
        cycle = self.cycle
        evicted: list[Holding] = []
        eviction.strike(cycle, self.ask.pool, moved)
        for unit in moved:
            for holding in unit.holdings:
                cycle.world.evict(holding)
                evicted.append(holding)
                text = f"it moves so that {self.ask.workload.name} fits; its new place is promised"
                cycle.evict(Evict(unit.workload.id, holding.pod.id, self.ask.id, Rule.CONSOLIDATE, text), holding)
        promises.make(cycle, self.ask, holdings, evicted=evicted)
        for ask, found in places:
            promises.move(cycle, ask, found)


def _is_in_place(holdings: Sequence[Holding], units: Sequence[Unit]) -> bool:
    """Whether a pod would come back to where it is."""
    places = {one.pod.id: one.place for unit in units for one in unit.holdings}
    return any(one.place == places.get(one.pod.id) for one in holdings)


def _sets(units: Sequence[Unit]) -> list[list[Unit]]:
    """What moves together: each unit above the minimum by itself; with the core, all."""
    surplus = [[unit] for unit in units if not unit.is_core]
    core = [unit for unit in units if unit.is_core]
    return [*surplus, [*(unit for unit in units if not unit.is_core), *core]] if core else surplus


def _apart(moved: Sequence[Unit]) -> list[list[Unit]]:
    """What of the moves could be left out: a workload whose core moves; else each part above its minimum."""
    cores = {unit.workload.id for unit in moved if unit.is_core}
    whole = [[unit for unit in moved if unit.workload.id == id] for id in dict.fromkeys(u.workload.id for u in moved)]
    return [part for own in whole for part in ([own] if own[0].workload.id in cores else [[unit] for unit in own])]


def _weight(units: Sequence[Unit]) -> tuple[int, object]:
    return (sum(unit.amounts[0] for unit in units), units[0].workload.created.timestamp() * -1)


def _pods(units: Sequence[Unit]) -> int:
    return len({holding.pod.id for unit in units for holding in unit.holdings})
