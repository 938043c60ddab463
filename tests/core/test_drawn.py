"""Gangs whose pods are drawn to each other: they go where there is room for all of them."""

from dataclasses import replace

import pytest

from aliquot.core.model import Affinity, PlacementStrategy, Policy
from tests import builders
from tests.builders import asking, job, node, queue, snapshot
from tests.core.outcomes import plan


def test_of_a_gang_who_is_drawn_to_others_of_it_is_placed_after_them() -> None:
    crew = job("crew", "a", pods=3)
    labels = ((), (("app", "a"),), (("app", "b"),))
    wanted = ("a", "b", None)
    asks = [
        replace(builders.request("2" if app else "1"), labels=own, affinity=_drawn_to(app))
        for own, app in zip(labels, wanted, strict=True)
    ]
    crew = replace(crew, pods=tuple(replace(pod, request=ask) for pod, ask in zip(crew.pods, asks, strict=True)))
    one, two = (replace(node(f"node-{host}", 5), labels={"host": host}) for host in ("1", "2"))

    made = plan(snapshot(one, two, queue("a", "8"), crew))

    assert len({one.place.node for one in made.binds}) == 1
    assert [one.place.pod for one in made.binds] == ["crew-0", "crew-1", "crew-2"]


@pytest.mark.parametrize("strategy", ["fragmentation", "pack", "spread"])
def test_pods_that_are_drawn_to_each_other_go_where_there_is_room_for_all(strategy: PlacementStrategy) -> None:
    crew = asking(job("crew", "a", pods=2), labels=(("app", "a"),), affinity=_drawn_to("a"))
    sizes = {"1": 1, "2": 2, "3": 1}
    nodes = [replace(node(f"node-{host}", size), labels={"host": host}) for host, size in sizes.items()]
    plain = replace(node("node-4", 5), labels={})

    made = plan(snapshot(*nodes, plain, queue("a", "8"), crew), policy=Policy(gpu_placement=strategy))

    assert [one.place.node for one in made.binds] == ["node-2", "node-2"]


def test_where_unlike_pods_that_are_drawn_to_each_other_do_not_all_fit_the_next_place_is_tried() -> None:
    crew = asking(job("crew", "a", pods=2), labels=(("app", "a"),), affinity=_drawn_to("a"))
    large = replace(crew.pods[0], request=replace(crew.pods[0].request, gpu=builders.request("2").gpu))
    crew = replace(crew, pods=(large, crew.pods[1]))
    nodes = [replace(node(f"node-{size}", size), labels={"host": f"{size}"}) for size in (2, 3)]

    made = plan(snapshot(*nodes, queue("a", "8"), crew), policy=Policy(gpu_placement="pack"))

    assert [one.place.node for one in made.binds] == ["node-3", "node-3"]


def _drawn_to(app: str | None) -> tuple[Affinity, ...]:
    return () if app is None else (Affinity((("app", app),), "host"),)
