"""What always holds. Random clusters are judged by these (`tests/laws`); here each has a small case that shows it."""

from collections.abc import Collection, Sequence
from typing import Any

from aliquot.core import fitting, gang, quota, schedule, snapshot, victims
from aliquot.core.asks import Ask
from aliquot.core.cycle import Cycle
from aliquot.core.eviction import Search
from aliquot.core.model import Pod, Workload
from aliquot.core.order import Turns
from aliquot.core.plan import Rule
from aliquot.core.rooms import DeviceRoom, View
from aliquot.core.victims import Giver
from tests.scenarios.rule import rule, together, without


def _all_of_it(room: DeviceRoom, view: View) -> tuple[int, int]:
    return room.device.memory_mib, 1000


def _never_over(accounts: Sequence[Any], amounts: Any, *, counting: str) -> None:
    return None


def _one_by_one(workload: Workload, *, active: Collection[str], waiting: Sequence[Pod]) -> list[tuple[Pod, ...]]:
    return [(pod,) for pod in sorted(waiting, key=gang.task_key)[:1]]


def _pod_by_pod(workload: Workload, placed: Sequence[Pod]) -> list[gang.Unit]:
    return [gang.Unit((pod,), is_core=False) for pod in reversed(placed)]


def _all_are_dropped(turns: Turns, ask: Ask) -> None:
    for queue in turns._leaves:
        turns._keep(queue, [])


def _equals_too(cycle: Cycle, ask: Ask, rule: Rule) -> list[Giver]:
    accounts = cycle.world.accounts_of(ask.pool, ask.workload.queue)
    units = victims.units_of(cycle, ask.pool, ask.workload.queue)
    able = [unit for unit in units if unit.workload.priority <= ask.workload.priority]
    return [Giver(accounts, (), able)] if able else []


RULES = (
    rule(
        "No device, node, quota or limit is ever over-used.",
        "shares-add-up room-for-cpu fixed-work-uses-the-quota limit",
        without(DeviceRoom, "free", _all_of_it),
        without(fitting, "has_node_room", lambda node, request, view: True),
        without(quota, "over_quota", _never_over),
        without(quota, "over_limit", _never_over),
    ),
    rule(
        "A gang starts whole or not at all, and no move takes it below its minimum.",
        "all-or-none a-gang-moves-whole",
        without(gang, "choices", _one_by_one),
        without(gang, "units", _pod_by_pod),
    ),
    rule(
        "The same input has the same plan, in whatever order it is listed.",
        "listed-otherwise",
        without(snapshot, "sorted", lambda found, **_: list(found)),
    ),
    rule(
        "After a cycle nothing waits that would fit.",
        "a-blocked-head",
        without(Turns, "drop_like", _all_are_dropped),
        without(schedule, "ACTIONS", tuple(one for one in schedule.ACTIONS if one[0] != "allocate")),
    ),
    rule(
        "Every eviction was legal and needed; at rest nothing is evicted any more.",
        "not-from-who-is-within spared inside-a-project",
        together(
            without(victims, "_is_over", lambda giver, asked, basis: True),
            without(Search, "_could_help", lambda search, givers: True),
            without(victims, "_stays", lambda cycle, giver, unit, *, basis, ground, may_cross: True),
        ),
        together(
            without(Search, "_shrunk", lambda search, chosen, holdings: chosen),
            without(Search, "_local", lambda search, givers: None),
        ),
        without(victims, "_preemptible", _equals_too),
    ),
)
