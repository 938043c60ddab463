"""Near each other, parts of a device, and node pools."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from aliquot.core import constraints, fitting, mig, topology
from aliquot.core.asks import Ask
from aliquot.core.cycle import Cycle
from aliquot.core.model import (
    Device,
    GpuRequest,
    Group,
    MigProfile,
    Pod,
    PoolTerms,
    Queue,
    Share,
    Sharing,
    Topology,
    Workload,
)
from aliquot.core.placement import Placer, _Gang
from aliquot.core.rooms import DeviceRoom, Holding, NodeRoom, Slot, Tally, View
from aliquot.core.topology import Domains
from tests.scenarios.rule import around, rule, without

ShareOf = Callable[[GpuRequest, Device], Share | None]
Candidates = Callable[[_Gang, Group, Sequence[Pod], Any], Iterable[Any]]


def _backwards(known: Callable[..., Domains]) -> Any:
    def of(cls: type[Domains], topologies: Iterable[Topology], labels: Sequence[Mapping[str, str]]) -> Domains:
        return known([replace(one, levels=one.levels[::-1]) for one in topologies], labels)

    return classmethod(of)


def _by_name_alone(known: Callable[..., Domains]) -> Any:
    def of(cls: type[Domains], topologies: Iterable[Topology], labels: Sequence[Mapping[str, str]]) -> Domains:
        made = known(topologies, labels)
        for key, domains in made.rows.items():
            merged: dict[topology.Domain, list[int]] = {}
            for domain, rows in domains.items():
                merged.setdefault(domain[-1:], []).extend(rows)
            made.rows[key] = merged
        return made

    return classmethod(of)


def _anywhere(known: Candidates) -> Candidates:
    return lambda gang, group, pods, rows: [rows]


def _prefers_nothing(known: property) -> property:
    def root(workload: Workload) -> Group:
        found: Group = known.__get__(workload)
        return found if found.near is None else replace(found, near=replace(found.near, preferred=None))

    return property(root)


def _not_for_groups(known: Candidates) -> Candidates:
    def candidates(gang: _Gang, group: Group, pods: Sequence[Pod], rows: Any) -> Iterable[Any]:
        return known(gang, group, pods, rows) if group.name == "" else [rows]

    return candidates


def _levels(*, is_first_kept: bool) -> Callable[..., Callable[..., list[str | None]]]:
    def wrap(known: Callable[..., list[str | None]]) -> Callable[..., list[str | None]]:
        def levels_from(domains: Domains, name: str, **near: str | None) -> list[str | None]:
            found = known(domains, name, **near)
            return [found[0], found[-1]] if is_first_kept else found[-1:]

        return levels_from

    return wrap


def _emptiest(known: Callable[..., Iterable[Any]]) -> Callable[..., Iterable[Any]]:
    return lambda *args, **more: reversed(list(known(*args, **more)))


def _by_charge(known: ShareOf) -> ShareOf:
    def share_of(gpu: GpuRequest, device: Device) -> Share | None:
        share = known(gpu, device)
        return None if share is None else replace(share, mib=-(-share.milli * device.memory_mib // 1000))

    return share_of


def _by_memory_alone(known: ShareOf) -> ShareOf:
    def share_of(gpu: GpuRequest, device: Device) -> Share | None:
        share = known(gpu, device)
        return share if share is None or gpu.milli is None else replace(share, milli=gpu.milli)

    return share_of


def _also_by_memory(gpu: GpuRequest) -> int:
    return (gpu.milli or gpu.mib or 0) and (gpu.milli or 1000) if gpu.compute_milli is None else gpu.compute_milli


def _unless_by_memory(gpu: GpuRequest) -> int:
    return (gpu.milli or 0) if gpu.compute_milli is None or gpu.mib is not None else gpu.compute_milli


def _as_much_as_the_limit(gpu: GpuRequest) -> int:
    return gpu.compute_limit_milli or gpu.milli or 0


def _all_of_it(room: DeviceRoom, view: View) -> tuple[int, int]:
    return room.device.memory_mib, 1000


def _whatever_it_prefers(room: DeviceRoom, gpu: GpuRequest) -> Sharing:
    own = gpu.sharing if gpu.is_sharing_required else None
    return own or room.mode() or Sharing.TIME_SLICING


def _required_though_preferred(room: DeviceRoom, gpu: GpuRequest) -> Sharing:
    return gpu.sharing or room.mode() or Sharing.TIME_SLICING


def _preferred_though_required(room: DeviceRoom, gpu: GpuRequest) -> Sharing:
    return room.mode() or gpu.sharing or Sharing.TIME_SLICING


def _whatever_the_pool_says(known: Callable[..., bool]) -> Callable[..., bool]:
    def allows(room: DeviceRoom, mode: Sharing, view: View) -> bool:
        return known(replace(room, device=replace(room.device, sharing=None)), mode, view)

    return allows


def _on_one_device(known: Callable[..., list[Slot] | None]) -> Callable[..., list[Slot] | None]:
    def fit_devices(node: NodeRoom, gpu: GpuRequest, view: View, *, order: fitting.Order = "tight") -> Any:
        one = replace(gpu, devices=1, milli=(gpu.milli or 0) * gpu.devices)
        slots = known(node, one, view, order=order)
        return slots and [replace(slots[0], milli=gpu.milli or 0, compute=gpu.compute)] * gpu.devices

    return fit_devices


def _first_share_alone(known: Callable[..., Holding]) -> Callable[..., Holding]:
    def at(placer: Placer, ask: Ask, pod: Pod, **where: Any) -> Holding:
        found = known(placer, ask, pod, **where)
        return replace(found, charge=(sum(slot.milli for slot in found.slots[:1]), *found.charge[1:]))

    return at


def _whole_as_well(device: Device, gpu: GpuRequest) -> bool:
    return gpu.profile is None or any(profile.name == gpu.profile for profile in device.profiles)


def _wherever_it_is_free(profile: MigProfile, taken: int, profiles: tuple[MigProfile, ...]) -> int | None:
    starts = range(9 - profile.memory_slices)
    return next((start for start in starts if not mig.mask(profile, start) & taken), None)


def _though_taken(profile: MigProfile, taken: int, profiles: tuple[MigProfile, ...]) -> int | None:
    return profile.starts[0]


def _the_first_that_is_free(profile: MigProfile, taken: int, profiles: tuple[MigProfile, ...]) -> int | None:
    return next((start for start in profile.starts if not mig.mask(profile, start) & taken), None)


def _by_memory_slices(profile: MigProfile, slices: int) -> int:
    return 1000 * profile.memory_slices // 8


def _in_the_first_alone(cycle: Cycle, ask: Ask, rank: int) -> str | None:
    return None


def _the_last_first(known: Callable[..., str | None]) -> Callable[..., str | None]:
    def fallback(cycle: Cycle, ask: Ask, rank: int) -> str | None:
        pools = ask.workload.fallback_pools
        return known(cycle, ask, len(pools) + 1 - rank) if rank <= len(pools) else None

    return fallback


def _same_in_all_pools(queue: Queue, pool: str) -> PoolTerms:
    return queue.terms[min(queue.terms)]


NEAR = (
    rule(
        "Nodes have labels, and a topology says which of them are levels, from the widest to the narrowest: zone, "
        "block, rack.",
        "levels-from-wide-to-narrow",
        around(Domains, "of", _backwards),
    ),
    rule(
        "A gang, or each group of it, may **require** a level: all its pods are in one domain of it, or it waits.",
        "required-level required-by-a-group",
        around(_Gang, "_candidates", _anywhere),
        around(_Gang, "_candidates", _not_for_groups),
    ),
    rule(
        "It may **prefer** a level: it is tried there first, then one level wider and wider.",
        "preferred-level preferred-level-wider",
        around(Workload, "root", _prefers_nothing),
        around(Domains, "levels_from", _levels(is_first_kept=False)),
        around(Domains, "levels_from", _levels(is_first_kept=True)),
    ),
    rule(
        "Of the domains that hold it the fullest is taken, so that large ones stay free.",
        "fullest-domain",
        around(_Gang, "_domains", _emptiest),
    ),
    rule(
        "Where a level is required, later pods of the gang go to the domain in which it runs.",
        "later-pods-join",
        without(_Gang, "_rows_of_running", lambda gang, group: set()),
    ),
    rule(
        "Two racks of one name in two zones are two racks.",
        "racks-of-one-name",
        around(Domains, "of", _by_name_alone),
    ),
)

PARTS = (
    rule(
        "Memory and compute of a share are two amounts.", "memory-and-compute", around(fitting, "share_of", _by_charge)
    ),
    rule(
        "A portion asks for the same part of both.",
        "portion-is-of-both",
        without(GpuRequest, "compute", property(lambda gpu: gpu.compute_milli or 0)),
    ),
    rule(
        "A request by memory asks for no compute unless it says so.",
        "memory-asks-for-no-compute",
        without(GpuRequest, "compute", property(_also_by_memory)),
        without(GpuRequest, "compute", property(_unless_by_memory)),
    ),
    rule(
        "Both may be asked apart.", "both-apart", without(GpuRequest, "compute", property(lambda gpu: gpu.milli or 0))
    ),
    rule(
        "The larger of the two is charged.",
        "the-larger-is-charged",
        around(fitting, "share_of", _by_memory_alone),
    ),
    rule(
        "On a device the requests add up to what it offers at most.",
        "shares-add-up",
        without(DeviceRoom, "free", _all_of_it),
    ),
    rule(
        "A *limit* of a share says what it may borrow while that is idle; nothing is placed by it.",
        "a-limit-places-nothing",
        without(GpuRequest, "compute", property(_as_much_as_the_limit)),
    ),
    rule(
        "A device is shared in one way at a time: by taking turns (`time-slicing`) or side by side (`sm-sharing`).",
        "one-way-at-a-time",
        without(Tally, "allows", lambda tally, mode: True),
    ),
    rule(
        "A share may prefer one way, or require it; a pool may fix it.",
        "a-way-is-preferred a-way-is-required a-pool-fixes-the-way",
        without(fitting, "mode_on", _whatever_it_prefers),
        without(fitting, "mode_on", _required_though_preferred),
        without(fitting, "mode_on", _preferred_though_required),
        around(DeviceRoom, "allows", _whatever_the_pool_says),
    ),
    rule(
        "Several shares of one pod lie on different devices, and each is charged.",
        "shares-on-different-devices one-device-is-not-enough",
        around(fitting, "fit_devices", _on_one_device),
        around(Placer, "at", _first_share_alone),
    ),
    rule(
        "A device in MIG mode is cut into instances.",
        "instances-alone",
        without(constraints, "suits", _whole_as_well),
    ),
    rule(
        "An instance begins only where the card allows it, and never overlaps another.",
        "instances-begin-where-they-may instances-do-not-overlap",
        without(mig, "start_for", _wherever_it_is_free),
        without(mig, "start_for", _though_taken),
    ),
    rule(
        "Of the legal places the one is taken that leaves room for the most sets of other instances.",
        "instances-leave-room",
        without(mig, "start_for", _the_first_that_is_free),
    ),
    rule(
        "An instance is charged its part of the compute slices: `1g.10gb` on a card with seven slices is 142 "
        "thousandths.",
        "instances-are-charged",
        without(mig, "charge", _by_memory_slices),
    ),
)

POOLS = (
    rule(
        "A workload names a pool, and may name others that are tried in turn if it finds no room in the first.",
        "pools-in-turn",
        without(Cycle, "_fallback", _in_the_first_alone),
        around(Cycle, "_fallback", _the_last_first),
    ),
    rule(
        "Each pool has quotas and fair shares of its own.",
        "pools-by-themselves",
        without(Queue, "terms_in", _same_in_all_pools),
    ),
)

RULES = (*NEAR, *PARTS, *POOLS)
