"""The working copy of a snapshot that a cycle changes: free room of nodes and devices, and what each queue holds.

Every change is journalled: `mark` and `rollback` undo a simulation at the cost of what it changed, so that no copy of
the world is ever made. A world is kept from cycle to cycle: `sync` enters only what differs from the snapshot before,
and a plan made with a kept world equals one made with a new one.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from aliquot.core import asks, comings, constraints, fairshare, fitting, gang, house, rooms, topology
from aliquot.core.asks import Ask, Entry, Holders, Unit
from aliquot.core.lines import Lines
from aliquot.core.model import (
    WHOLE_DEVICE_MILLI,
    Amounts,
    GpuRequest,
    Place,
    Pod,
    PodRequest,
    PodState,
    QueueOrder,
    Snapshot,
    Workload,
)
from aliquot.core.neighbours import Neighbours
from aliquot.core.rooms import Account, DeviceRoom, Effect, Holding, NodeRoom, Vector

_HOLDS = frozenset({PodState.RUNNING, PodState.RELEASING})


@dataclass(slots=True)
class Pool:
    """One scheduling domain: its nodes by id, the accounts of all queues in it, and what it has to divide."""

    name: str
    nodes: list[NodeRoom]
    touched: list[int]
    """The log of rows whose room changed. `forgotten` of its first entries were dropped."""
    accounts: dict[str, Account]
    domains: topology.Domains
    forgotten: int = 0
    requests: dict[str, list[int]] = field(default_factory=dict)
    """What each leaf holds and waits for."""
    capacity: Amounts = field(default_factory=Amounts)
    asked: dict[str, Amounts] = field(default_factory=dict)
    is_contended: tuple[bool, bool, bool] = (False, False, False)
    divided_by: tuple[int, int] | None = None
    """The weight of past use in the shares that stand; None if they must be worked out."""
    indexes: dict[object, object] = field(default_factory=dict)
    """What placement keeps about this pool."""

    @property
    def usable(self) -> list[NodeRoom]:
        """The nodes on which something may start."""
        return [node for node in self.nodes if node.is_usable]


class World:
    """All pools, what runs where, and the journal. Promises are added by the cycle, which leaves it as it was."""

    def __init__(self, snapshot: Snapshot, *, more_pools: Sequence[str] = ()) -> None:
        """`more_pools` are there too, even if no node or workload is in them."""
        self.snapshot = snapshot
        self._more_pools = tuple(more_pools)
        self.requests: list[PodRequest] = []
        self._kinds: dict[PodRequest, int] = {}
        self._likenesses: dict[tuple[object, ...], int] = {}
        self._numbers = itertools.count()
        self._known: dict[int, tuple[PodRequest, int]] = {}
        self.growth = 0
        """Goes up whenever room grew: a "does not fit" from before need not hold any more."""
        self.steps = 0
        self._build(snapshot)

    def sync(self, snapshot: Snapshot) -> None:
        """Become the world of this snapshot. Cheap where it shares nodes, queues and workloads with the one before."""
        self.rollback(0)
        before, entries = self.snapshot, self.entries
        gone, come = comings.differences(before.workloads, snapshot.workloads, known=entries)
        changed = [one for one in come if one.id not in entries or entries[one.id].workload != one]
        pools = {pool for one in changed for pool in _pools_of(one)}
        if not house.is_alike(before, snapshot) or not pools <= set(self.pools):
            self._build(snapshot)
            return
        self.snapshot = snapshot
        self.growth += 1
        self._refit(before)
        left = {one.id for one in gone} - {one.id for one in come}
        for id in sorted(left | {one.id for one in changed if one.id in entries}):
            self._remove(id)
        for workload in changed:
            self._add(workload)
        self._drop_pools()
        for pool in self.pools.values():
            _forget(pool)
        if len(self._known) > 10_000 + 4 * len(self._kinds) + 4 * len(self.entries):
            self._known.clear()
        if len(self._likenesses) > 10_000 + 4 * len(self.entries):
            self._likenesses.clear()  # Numbers are not given out again.

    def _refit(self, before: Snapshot) -> None:
        """Enter what of the queues and nodes is other than before."""
        for queue in house.other_queues(before, self.snapshot):
            self.queues[queue.id] = queue
            for pool in self.pools.values():
                rooms.retitle(pool.accounts[queue.id], queue, pool.name)
                pool.divided_by = None
        others = house.other_nodes(before, self.snapshot)
        for node in others:
            rooms.reopen(self.nodes[node.id], node)
        for name in {node.pool for node in others}:
            pool = self.pools[name]
            rooms.number_kinds(pool.nodes)
            for key in [key for key in pool.indexes if isinstance(key, tuple) and key[0] == "empty"]:
                del pool.indexes[key]  # All else is brought up to date by the log of what changed.
            pool.divided_by = None

    def _drop_pools(self) -> None:
        """Pools without a node are there only as long as work waits for them."""
        for name in [name for name, pool in self.pools.items() if not pool.nodes and name not in self._more_pools]:
            if any(name in _pools_of(one) for one in self.snapshot.workloads):
                continue
            del self.pools[name], self._neighbours[name]
            for key in [key for key in self._paths if key[0] == name]:
                del self._paths[key]

    def is_leaf(self, queue: str) -> bool:
        """Whether a queue is there and may hold workloads."""
        return queue in self.queues and queue not in self.parents

    def accounts_of(self, pool: str, queue: str) -> tuple[Account, ...]:
        """A queue's account in a pool and those above it, up to the root; empty if there is no such queue."""
        return self._paths.get((pool, queue), ())

    def running_of(self, workload: str) -> list[Holding]:
        """The places where its pods ran when the cycle began."""
        entry = self.entries.get(workload)
        return entry.running if entry else []

    def releasing_of(self, workload: str) -> list[Holding]:
        """The places of its pods that had been told to end."""
        entry = self.entries.get(workload)
        return entry.releasing if entry else []

    def releasing(self) -> list[Holding]:
        """All places that are being freed, by workload and pod."""
        return [one for id in sorted(self._releasing) for one in self._releasing[id].releasing]

    def holders(self, pool: str, queue: str) -> list[Entry]:
        """The workloads of a queue that run in a pool, by id."""
        found = self.held_by(pool, queue)
        return [] if found is None else found.ordered

    def held_by(self, pool: str, queue: str) -> Holders | None:
        """The same, with what is known of them; None if there are none."""
        return self._holders.get((pool, queue))

    def holder_queues(self, pool: str) -> list[str]:
        """The queues that run something in a pool, by id."""
        return sorted(queue for name, queue in self._holders if name == pool)

    def kind_of(self, request: PodRequest) -> int:
        """The number of a request: equal requests have equal numbers."""
        known = self._known.get(id(request))
        if known is not None:
            return known[1]
        kind = self._kinds.get(request)
        if kind is None:
            kind = self._kinds[request] = len(self.requests)
            self.requests.append(request)
        self._known[id(request)] = (request, kind)
        return kind

    def hold(self, holding: Holding) -> None:
        """Bind it."""
        self._do(holding, Effect.HOLD)

    def promise(self, holding: Holding) -> None:
        """Keep its place for it."""
        self._do(holding, Effect.PROMISE)

    def unpromise(self, holding: Holding) -> None:
        """Give its promised place up."""
        self._do(holding, Effect.UNPROMISE)
        self.growth += 1

    def evict(self, holding: Holding) -> None:
        """Tell it to end."""
        self._do(holding, Effect.EVICT)
        self.growth += 1

    def restore(self, holding: Holding) -> None:
        """Take an eviction of this cycle back."""
        self._do(holding, Effect.RESTORE)

    def mark(self) -> int:
        """A point to roll back to."""
        return len(self._journal)

    def reopen(self, mark: int) -> None:
        """Undo everything since the mark, which took room."""
        self.rollback(mark)
        self.growth += 1

    def rollback(self, mark: int) -> None:
        """Undo everything since the mark."""
        while len(self._journal) > mark:
            holding, effect = self._journal.pop()
            self._shift(holding, rooms.INVERSE[effect])

    def holding(self, workload: Workload, pod: Pod, place: Place, *, is_fixed: bool | None = None) -> Holding:
        """What a pod takes at a place."""
        node = self.nodes.get(place.node)
        gpu = pod.request.gpu
        known = [(self.devices[share.device], share) for share in place.shares if share.device in self.devices]
        pool = node.node.pool if node else workload.pool
        return Holding(
            workload=workload,
            pod=pod,
            node=node,
            slots=tuple(rooms.slot_for(gpu, room, share) for room, share in known),
            room=(pod.request.milli_cpus, pod.request.memory_bytes, 1),
            charge=(
                sum(share.milli for share in place.shares),
                pod.request.milli_cpus,
                pod.request.memory_bytes,
            ),
            accounts=self.accounts_of(pool, workload.queue),
            lost=tuple(share for share in place.shares if share.device not in self.devices),
            other=rooms.others_of(pod.request),
            is_fixed=not workload.is_preemptible if is_fixed is None else is_fixed,
        )

    def ask_of(self, pools: Sequence[str], pods: Iterable[Pod]) -> Vector:
        """What pods ask for, all in all; a request by memory counts by the smallest device of their pools that can hold
        it."""
        gpu = cpu = memory = 0
        for pod in pods:
            request = pod.request
            if request.gpu is not None:
                gpu += self.milli_for(request.gpu, pools)
            cpu += request.milli_cpus
            memory += request.memory_bytes
        return (gpu, cpu, memory)

    def milli_for(self, gpu: GpuRequest, pools: Sequence[str]) -> int:
        """What a request counts in milli-GPU while it waits: by the smallest device of its pools that can hold it."""
        if gpu.mib is None and gpu.profile is None:
            return gpu.devices * max(gpu.milli or 0, gpu.compute)
        key = (gpu, tuple(pools))
        if key not in self._charges:
            nodes = [node for pool in pools if pool in self.pools for node in self.pools[pool].nodes]
            devices = (room.device for node in nodes for room in node.devices)
            able = [device for device in devices if constraints.suits(device, gpu)]
            shares = [share.milli for device in able if (share := fitting.share_of(gpu, device)) is not None]
            self._charges[key] = gpu.devices * max(shares, default=WHOLE_DEVICE_MILLI)
        return self._charges[key]

    def first_ask(self, entry: Entry, pool: str) -> Ask | None:
        """What a workload waits for in a pool at the start of a cycle."""
        if pool not in entry.asks:
            entry.asks[pool] = self.next_ask(entry, pool, waiting=entry.pending, promised=())
        return entry.asks[pool]

    def next_ask(
        self, entry: Entry, pool: str, *, waiting: Sequence[Pod], promised: Iterable[str], gone: Iterable[str] = ()
    ) -> Ask | None:
        """What it waits for, with these pods bound or promised and those told to end; None if it lacks pods."""
        workload = entry.workload
        active = ({one.pod.id for one in entry.running} | set(promised)) - set(gone)
        found = gang.choices(workload, active=active, waiting=waiting)
        if not found:
            return None
        is_core = not gang.is_satisfied(workload, active)
        return self.make_ask(workload, pool, found[0], is_core=is_core, alternatives=tuple(found[1:]))

    def make_ask(
        self,
        workload: Workload,
        pool: str,
        pods: tuple[Pod, ...],
        *,
        is_core: bool,
        alternatives: tuple[tuple[Pod, ...], ...] = (),
    ) -> Ask:
        """An ask for these very pods."""
        kinds: dict[int, int] = {}
        for pod in pods:
            kind = self.kind_of(pod.request)
            kinds[kind] = kinds.get(kind, 0) + 1
        tally = tuple(sorted(kinds.items()))
        shape: tuple[object, ...] = (pool, tally)
        if workload.gang is not None or workload.near is not None:
            where = workload.id if not is_core or self.running_of(workload.id) else None
            shape = (*shape, workload.root, tuple(gang.leaf_of(workload, pod) for pod in pods), where)
        if alternatives:
            others = [[(self.kind_of(pod.request), gang.leaf_of(workload, pod)) for pod in one] for one in alternatives]
            shape = (*shape, tuple(tuple(sorted(one)) for one in others))
        amounts = self.ask_of(_pools_of(workload), pods)
        return Ask(
            id=workload.id,
            workload=workload,
            pool=pool,
            pods=pods,
            requests=tuple(pod.request for pod in pods),
            kinds=tally,
            amounts=amounts,
            shape=shape,
            is_core=is_core,
            likeness=self._likeness_of(workload, shape, amounts, is_core=is_core, is_one=not alternatives),
            alternatives=alternatives,
        )

    def _likeness_of(
        self, workload: Workload, shape: tuple[object, ...], amounts: Vector, *, is_core: bool, is_one: bool
    ) -> int:
        """The number of all who ask for the same, on the same terms. Who has other choices is like nobody else."""
        queue = self.queues.get(workload.queue)
        is_sliced = queue is not None and queue.order is QueueOrder.LEAST_ATTAINED_SERVICE
        terms = (
            workload.queue,
            workload.priority,
            workload.preemptibility,
            workload.never_preempts,
            workload.preemption_delay,
            workload.fallback_pools,
            workload.attained_milli_seconds if is_sliced else 0,
            "" if is_one else workload.id,
            shape,
            amounts,
            is_core,
        )
        if terms not in self._likenesses:
            self._likenesses[terms] = next(self._numbers)
        return self._likenesses[terms]

    def units_of(self, entry: Entry) -> list[Unit]:
        """What of a workload ends together, in the order in which it would be given up."""
        if entry.units is None:
            entry.units = asks.units_of(entry.workload, entry.running)
        return entry.units

    def divide(self, usage_weight: tuple[int, int]) -> None:
        """Work the shares of all queues out, where they do not stand already."""
        for pool in self.pools.values():
            if pool.divided_by != usage_weight:
                self._divide(pool, usage_weight)

    def neighbours(self, pool: str) -> tuple[Neighbours, Neighbours]:
        """Which pods with labels or terms are where: those that hold places, and those that will."""
        return self._neighbours[pool]

    def _build(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.queues = {queue.id: queue for queue in snapshot.queues}
        self.parents = {queue.parent for queue in snapshot.queues}
        self.nodes: dict[str, NodeRoom] = {}
        self.devices: dict[str, DeviceRoom] = {}
        self.pools: dict[str, Pool] = {}
        self.entries: dict[str, Entry] = {}
        self.waiting: dict[str, Entry] = {}
        self.lines: dict[str, Lines] = {}
        """By pool, what they wait for at the start of a cycle."""
        self.broken: dict[str, Entry] = {}
        """What runs below the minimum of its gang."""
        self._releasing: dict[str, Entry] = {}
        self._holders: dict[tuple[str, str], Holders] = {}
        self._journal: list[tuple[Holding, Effect]] = []
        self._paths: dict[tuple[str, str], tuple[Account, ...]] = {}
        self._charges: dict[tuple[GpuRequest, tuple[str, ...]], int] = {}
        self._neighbours: dict[str, tuple[Neighbours, Neighbours]] = {}
        self.growth += 1
        names = {node.pool for node in snapshot.nodes} | set(self._more_pools)
        names |= {pool for one in snapshot.workloads for pool in _pools_of(one)}
        for name in sorted(names):
            self._add_pool(name)
        for workload in snapshot.workloads:
            self._add(workload)

    def _add_pool(self, name: str) -> None:
        accounts: dict[str, Account] = {}
        for queue in sorted(self.snapshot.queues, key=lambda queue: queue.id):
            path = fairshare.path_of(queue.id, self.queues)
            is_leaf = queue.id not in self.parents
            accounts[queue.id] = rooms.account_of(queue, name, depth=len(path), is_leaf=is_leaf)
        for queue in self.snapshot.queues:
            path = fairshare.path_of(queue.id, self.queues)
            self._paths[name, queue.id] = tuple(accounts[one.id] for one in path)
        members = sorted((node for node in self.snapshot.nodes if node.pool == name), key=lambda node: node.id)
        touched: list[int] = []
        nodes = [rooms.node_room(node, row=row, touched=touched) for row, node in enumerate(members)]
        rooms.number_kinds(nodes)
        for node in nodes:
            self.nodes[node.node.id] = node
            self.devices.update({room.device.id: room for room in node.devices})
        domains = topology.Domains.of(self.snapshot.topologies, [node.labels for node in members])
        self.pools[name] = Pool(name, nodes, touched, accounts, domains)
        now = Neighbours(members)
        self._neighbours[name] = (now, Neighbours(members, now=now))

    def _add(self, workload: Workload) -> None:
        entry = Entry(workload, workload.pool)
        self.entries[workload.id] = entry
        holding = [pod for pod in workload.pods if pod.state in _HOLDS]
        core = self._core_of(workload, holding)
        for pod in holding if len(holding) < 2 else sorted(holding, key=gang.task_key):
            is_fixed = None if core is None else pod.id in core
            one = self.holding(workload, pod, Place(pod.id, pod.node or "", pod.shares), is_fixed=is_fixed)
            if pod.state is PodState.RUNNING:
                self._shift(one, Effect.HOLD.value)
                entry.running.append(one)
            else:
                self._shift(one, Effect.HOLD.value if pod.is_stuck else Effect.RELEASE.value)
                entry.releasing.append(one)
        entry.pending = gang.pending_of(workload.pods)
        self._file(entry)

    def _file(self, entry: Entry) -> None:
        workload = entry.workload
        placed = (*entry.running, *entry.releasing)
        if placed:
            entry.pool = _pool_of(placed[0])
        asked = self.ask_of(_pools_of(workload), entry.pending) if entry.pending else (0, 0, 0)
        entry.asked = rooms.plus(asked, rooms.charge_of(placed))
        if entry.running:
            self._holders.setdefault((entry.pool, workload.queue), Holders()).add(entry)
            entry.is_whole = gang.is_satisfied(workload, {one.pod.id for one in entry.running})
            if not entry.is_whole:
                self.broken[workload.id] = entry
            if workload.is_preemptible or workload.is_semi_preemptible:
                self.units_of(entry)
        if entry.releasing:
            self._releasing[workload.id] = entry
        if entry.pending:
            self._line_up(entry)
        self._count(entry, 1)

    def _line_up(self, entry: Entry) -> None:
        workload = entry.workload
        self.waiting[workload.id] = entry
        ask = self.first_ask(entry, entry.pool)
        if ask is not None:
            self.lines.setdefault(entry.pool, Lines()).add(ask)
            is_unmet = any(pod.unmet for pod in ask.pods)
            entry.is_ready = workload.not_before is None and not entry.releasing and not is_unmet

    def _remove(self, id: str) -> None:
        entry = self.entries.pop(id)
        for one in entry.running:
            self._shift(one, rooms.INVERSE[Effect.HOLD])
        for one in entry.releasing:
            effect = Effect.HOLD if one.pod.is_stuck else Effect.RELEASE
            self._shift(one, rooms.INVERSE[effect])
        key = (entry.pool, entry.workload.queue)
        if entry.running:
            self._holders[key].remove(id)
            if not self._holders[key].entries:
                del self._holders[key]
        self._releasing.pop(id, None)
        if self.waiting.pop(id, None) is not None and (ask := entry.asks[entry.pool]) is not None:
            self.lines[entry.pool].remove(ask)
        self.broken.pop(id, None)
        self._count(entry, -1)

    def _count(self, entry: Entry, sign: int) -> None:
        if entry.workload.queue not in self.queues:
            return
        pool = self.pools[entry.pool]
        total = pool.requests.setdefault(entry.workload.queue, [0, 0, 0])
        for index, amount in enumerate(entry.asked):
            total[index] += sign * amount
        pool.divided_by = None

    def _core_of(self, workload: Workload, holding: Sequence[Pod]) -> set[str] | None:
        """Of semi-preemptible work the pods that are not preemptible; None for any other."""
        if workload.is_preemptible or not workload.is_semi_preemptible:
            return None
        return {pod.id for unit in gang.units(workload, holding) if unit.is_core for pod in unit.pods}

    def _do(self, holding: Holding, effect: Effect) -> None:
        self._shift(holding, effect.value)
        self._journal.append((holding, effect))

    def _shift(self, holding: Holding, signs: tuple[int, int, int, int]) -> None:
        rooms.shift(holding, signs)
        request, node = holding.pod.request, holding.node
        if not (request.labels or request.affinity or request.anti_affinity or request.spread) or node is None:
            return
        for sign, where in zip(signs, self._neighbours[node.node.pool], strict=False):
            if sign < 0:
                where.add(node.node.id, request)
            elif sign > 0:
                where.remove(node.node.id, request)

    def _divide(self, pool: Pool, usage_weight: tuple[int, int]) -> None:
        """Capacity, requests, and the fair share of every queue."""
        pool.capacity = _capacity(pool)
        requests = {id: Amounts(*total) for id, total in sorted(pool.requests.items())}
        shares = fairshare.divide_tree(
            pool.capacity, self.snapshot.queues, pool=pool.name, requests=requests, usage_weight=usage_weight
        )
        for id, account in pool.accounts.items():
            account.share = rooms.vector(shares.share[id])
            account.guaranteed = rooms.vector(shares.guaranteed[id])
            account.version += 1
            pool.asked[id] = Amounts()
        for leaf, asked in requests.items():
            for account in self.accounts_of(pool.name, leaf):
                pool.asked[account.queue.id] += asked
        pool.is_contended = _contended(pool)
        pool.divided_by = usage_weight


def _pools_of(workload: Workload) -> tuple[str, ...]:
    return (workload.pool, *workload.fallback_pools)


def _pool_of(holding: Holding) -> str:
    return holding.node.node.pool if holding.node else holding.workload.pool


def _forget(pool: Pool) -> None:
    """Drop the older half of a long log; who has not read it looks at all nodes anew."""
    if len(pool.touched) > 20_000 + 8 * len(pool.nodes):
        half = len(pool.touched) // 2
        del pool.touched[:half]
        pool.forgotten += half


def _capacity(pool: Pool) -> Amounts:
    """What usable nodes and devices offer, and what pods hold on the others: nothing that runs becomes illegal."""
    gpus = cpus = memory = 0
    for room in pool.nodes:
        gpus += room.worth if room.worth is not None else _worth(room)
        foreign = room.node.foreign
        cpus += room.node.milli_cpus - foreign.milli_cpus - (0 if room.is_usable else room.idle[0])
        memory += room.node.memory_bytes - foreign.memory_bytes - (0 if room.is_usable else room.idle[1])
    return Amounts(gpus, cpus, memory)


def _worth(room: NodeRoom) -> int:
    """What the devices of a node count, kept where all of them take pods: then it does not change with what runs."""
    there = [one for one in room.devices if one.is_usable or one.idle_mib < one.device.memory_mib]
    worth = sum(fitting.worth(one.device) for one in there) - room.node.foreign.milli_gpus
    if all(one.is_usable for one in room.devices):
        room.worth = worth
    return worth


def _contended(pool: Pool) -> tuple[bool, bool, bool]:
    """Of which resources the queues together ask for more than there is."""
    short = [False, False, False]
    for account in pool.accounts.values():
        for index, (asked, share) in enumerate(
            zip(rooms.vector(pool.asked[account.queue.id]), account.share, strict=True)
        ):
            limit = (account.terms.gpu, account.terms.cpu, account.terms.memory)[index].limit
            short[index] |= share < (asked if limit is None else min(asked, limit))
    return (short[0], short[1], short[2])
