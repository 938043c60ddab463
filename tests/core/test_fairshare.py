"""Fair share: exact values, and the laws it holds against the plainest division there is."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.core import fairshare
from aliquot.core.fairshare import Claimant
from aliquot.core.model import Amounts, Claim, PoolTerms, Usage
from tests import builders

DEPARTMENTS = ("d1", "d2")


def shares(total: int, *claimants: Claimant) -> dict[str, int]:
    return {id: portion.share for id, portion in fairshare.divide(total, claimants).items()}


@pytest.mark.parametrize(
    ("total", "claimants", "expected"),
    [
        pytest.param(
            8000, [Claimant("a", 8000, 4000), Claimant("b", 8000, 4000)], {"a": 4000, "b": 4000}, id="two equal quotas"
        ),
        pytest.param(
            8000, [Claimant("a", 8000, 4000), Claimant("b", 0, 4000)], {"a": 8000, "b": 0}, id="an idle quota is lent"
        ),
        pytest.param(
            8000,
            [Claimant("a", 6000, 2000, 1), Claimant("b", 6000, 2000, 3)],
            {"a": 3000, "b": 5000},
            id="what is left goes by weight",
        ),
        pytest.param(
            8000,
            [Claimant("a", 8000, 0, 1, None, 200), Claimant("b", 8000, 0, 9, None, 100)],
            {"a": 8000, "b": 0},
            id="a higher priority comes before any weight",
        ),
        pytest.param(
            8000,
            [Claimant("a", 8000, 0, 1, 1000), Claimant("b", 8000, 0, 1)],
            {"a": 1000, "b": 7000},
            id="what a limit keeps from one goes to the other",
        ),
        pytest.param(
            8000,
            [Claimant("a", 8000, 8000), Claimant("b", 8000, 8000)],
            {"a": 4000, "b": 4000},
            id="quotas beyond the total are cut in proportion",
        ),
        pytest.param(
            9000,
            [Claimant("a", 8000, 8000), Claimant("b", 4000, 4000)],
            {"a": 6000, "b": 3000},
            id="the larger quota is cut by more",
        ),
        pytest.param(
            8000,
            [Claimant("a", 8000, 6000, 1, None, 200), Claimant("b", 8000, 6000, 1, None, 100)],
            {"a": 6000, "b": 2000},
            id="a quota of higher priority is cut last",
        ),
        pytest.param(
            8000,
            [Claimant("a", 6000, None), Claimant("b", 6000, 2000)],
            {"a": 6000, "b": 2000},
            id="an unlimited quota counts as the request",
        ),
        pytest.param(
            1000,
            [Claimant("a", 600, 0), Claimant("b", 600, 0)],
            {"a": 500, "b": 500},
            id="the last device is divided, not given away whole",
        ),
        pytest.param(
            8000,
            [Claimant("a", 8000, 0, 0), Claimant("b", 2000, 0, 1)],
            {"a": 0, "b": 2000},
            id="weight 0 gets nothing beyond the quota",
        ),
        pytest.param(
            8000,
            [Claimant("a", 9000, 0), Claimant("b", 9000, 0), Claimant("c", 9000, 0)],
            {"a": 2666, "b": 2666, "c": 2666},
            id="thirds are rounded down to a thousandth of a device",
        ),
        pytest.param(0, [Claimant("a", 1000, 1000)], {"a": 0}, id="nothing to divide"),
    ],
)
def test_siblings_get_exactly(total: int, claimants: list[Claimant], expected: dict[str, int]) -> None:
    assert shares(total, *claimants) == expected


def test_a_quota_that_is_cut_is_guaranteed_as_cut() -> None:
    divided = fairshare.divide(8000, [Claimant("a", 8000, 8000), Claimant("b", 8000, 8000)])

    assert divided["a"] == fairshare.Portion(guaranteed=4000, share=4000)


def test_projects_divide_what_their_department_gets() -> None:
    queues = [
        builders.queue("d1", "6"),
        builders.queue("d2", "2"),
        builders.queue("a", "0", parent="d1", weight=1),
        builders.queue("b", "0", parent="d1", weight=2),
        builders.queue("c", "0", parent="d2"),
    ]
    requests = dict.fromkeys(("a", "b", "c"), Amounts(milli_gpus=8000))

    divided = fairshare.divide_tree(Amounts(milli_gpus=8000), queues, pool="default", requests=requests)

    assert {id: one.milli_gpus for id, one in divided.share.items()} == {
        "d1": 6000, "d2": 2000, "a": 2000, "b": 4000, "c": 2000,
    }  # fmt: skip


def test_a_parent_asks_for_no_more_than_its_children_may_have() -> None:
    queues = [
        builders.queue("d1", "0"),
        builders.queue("d2", "0"),
        builders.queue("a", "0", parent="d1", limit="1"),
        builders.queue("c", "0", parent="d2"),
    ]
    requests = dict.fromkeys(("a", "c"), Amounts(milli_gpus=8000))

    divided = fairshare.divide_tree(Amounts(milli_gpus=8000), queues, pool="default", requests=requests)

    assert divided.share["d1"].milli_gpus == 1000
    assert divided.share["d2"].milli_gpus == 7000


def test_queues_that_are_each_others_parents_still_divide() -> None:
    queues = [builders.queue("a", "4", parent="b"), builders.queue("b", "4", parent="a")]

    divided = fairshare.divide_tree(
        Amounts(milli_gpus=8000), queues, pool="default", requests={"b": Amounts(milli_gpus=2000)}
    )

    assert divided.share["b"].milli_gpus == 2000


def oracle(total: int, claimants: list[Claimant]) -> dict[str, Fraction]:
    """Water poured a drop at a time is exact in the limit; here it is poured from one event to the next."""
    share = {one.id: Fraction(0) for one in claimants}
    left = Fraction(total)
    priorities = sorted({one.priority for one in claimants}, reverse=True)
    guaranteed = {one.id: one.wanted if one.quota is None else min(one.wanted, one.quota) for one in claimants}
    for priority in priorities:
        members = [one for one in claimants if one.priority == priority]
        asked = sum(guaranteed[one.id] for one in members)
        part = min(Fraction(1), left / asked) if asked else Fraction(1)
        for one in members:
            share[one.id] = guaranteed[one.id] * part
        left -= asked * part
    for priority in priorities:
        thirsty = [one for one in claimants if one.priority == priority and one.weight > 0]
        while left > 0 and any(share[one.id] < one.wanted for one in thirsty):
            open_now = [one for one in thirsty if share[one.id] < one.wanted]
            weights = sum(one.weight for one in open_now)
            level = min(left / weights, *((one.wanted - share[one.id]) / one.weight for one in open_now))
            for one in open_now:
                share[one.id] += level * one.weight
            left -= level * weights
    return share


claimants_of_a_level = st.lists(
    st.builds(
        Claimant,
        id=st.sampled_from("abcdefgh"),
        request=st.integers(0, 5000),
        quota=st.none() | st.integers(0, 5000),
        weight=st.integers(0, 4),
        limit=st.none() | st.integers(0, 5000),
        priority=st.sampled_from([50, 100, 200]),
    ),
    max_size=8,
    unique_by=lambda one: one.id,
)


@given(total=st.integers(0, 10_000), claimants=claimants_of_a_level)
def test_shares_are_the_oracles_rounded_down(total: int, claimants: list[Claimant]) -> None:
    divided = shares(total, *claimants)

    exact = oracle(total, claimants)
    assert divided == {id: int(amount) for id, amount in exact.items()}


@given(total=st.integers(0, 10_000), claimants=claimants_of_a_level, data=st.data())
def test_shares_do_not_depend_on_the_order(total: int, claimants: list[Claimant], data: st.DataObject) -> None:
    other_order = data.draw(st.permutations(claimants))

    assert shares(total, *claimants) == shares(total, *other_order)


@given(total=st.integers(0, 10_000), claimants=claimants_of_a_level)
def test_no_one_gets_more_than_it_wants_or_less_than_is_guaranteed(total: int, claimants: list[Claimant]) -> None:
    divided = fairshare.divide(total, claimants)

    for one in claimants:
        assert 0 <= divided[one.id].guaranteed <= divided[one.id].share <= one.wanted


trees = st.dictionaries(
    st.sampled_from("abcdef"),
    st.tuples(
        st.sampled_from(DEPARTMENTS),
        st.none() | st.integers(0, 8000),
        st.integers(0, 3),
        st.none() | st.integers(0, 8000),
        st.integers(0, 8000),
    ),
)


@given(total=st.integers(0, 16_000), projects=trees, quotas=st.tuples(st.integers(0, 9000), st.integers(0, 9000)))
def test_children_never_add_up_to_more_than_their_parent(
    total: int, projects: dict[str, tuple[str, int | None, int, int | None, int]], quotas: tuple[int, int]
) -> None:
    def terms(quota: int | None, weight: int = 1, limit: int | None = None) -> dict[str, PoolTerms]:
        return {"default": PoolTerms(gpu=Claim(quota, weight, limit))}

    plain = builders.queue("x")
    queues = [
        type(plain)(id, id, plain.created, None, terms(quota)) for id, quota in zip(DEPARTMENTS, quotas, strict=True)
    ]
    queues += [
        type(plain)(id, id, plain.created, parent, terms(quota, weight, limit))
        for id, (parent, quota, weight, limit, _) in projects.items()
    ]
    requests = {id: Amounts(milli_gpus=asked) for id, (*_, asked) in projects.items()}

    divided = fairshare.divide_tree(Amounts(milli_gpus=total), queues, pool="default", requests=requests).share

    assert sum(divided[id].milli_gpus for id in DEPARTMENTS) <= total
    for department in DEPARTMENTS:
        below = [divided[id].milli_gpus for id, (parent, *_) in projects.items() if parent == department]
        assert sum(below) <= divided[department].milli_gpus


# Worked by hand. With w and u the parts of the weights and of the use of those who still want more, each weighs
# max(0, w + k·(w - u)). 10,000 milli-GPU are divided.
USAGE = {
    # w 1/2 1/2, u 0.8 0.2: 0.5 - 0.3 = 0.2 and 0.5 + 0.3 = 0.8.
    "what was used counts in full": ((1, 1), ((1, 800_000), (1, 200_000)), (2_000, 8_000)),
    # 0.5 - 0.15 = 0.35 and 0.65.
    "it counts half": ((1, 2), ((1, 800_000), (1, 200_000)), (3_500, 6_500)),
    # 0.5 - 0.6 < 0, so 0, and 1.1.
    "who used far more gets nothing of the rest": ((2, 1), ((1, 800_000), (1, 200_000)), (0, 10_000)),
    # w 3/4 1/4, u 1/2 1/2: 0.75 + 0.25 = 1 and 0.25 - 0.25 = 0.
    "by weight the first had too little": ((1, 1), ((3, 500_000), (1, 500_000)), (10_000, 0)),
    # Nobody used anything: the plain weights.
    "nothing was used": ((1, 1), ((3, 0), (1, 0)), (7_500, 2_500)),
}


@pytest.mark.parametrize(("k", "claims", "expected"), USAGE.values(), ids=USAGE.keys())
def test_past_use_lowers_a_claim_on_what_is_left(
    k: tuple[int, int], claims: tuple[tuple[int, int], ...], expected: tuple[int, ...]
) -> None:
    claimants = [
        Claimant(str(index), 100_000, quota=0, weight=weight, usage=usage)
        for index, (weight, usage) in enumerate(claims)
    ]

    found = fairshare.divide(10_000, claimants, usage_weight=k)

    assert tuple(found[one.id].share for one in claimants) == expected


def test_use_is_compared_anew_among_those_who_still_want_more() -> None:
    # First w 1/3 each, u 0 0.6 0.4, so 2/3 1/15 4/15: a is satisfied with 1,000, b gets 666 2/3 and c 2,666 2/3. Then
    # w 1/2 1/2, u 0.6 0.4, so 0.4 and 0.6 of the 5,666 2/3 that are left.
    claimants = [
        Claimant("a", 1_000, quota=0),
        Claimant("b", 100_000, quota=0, usage=600_000),
        Claimant("c", 100_000, quota=0, usage=400_000),
    ]

    found = fairshare.divide(10_000, claimants, usage_weight=(1, 1))

    assert [found[id].share for id in "abc"] == [1_000, 2_933, 6_066]


def test_when_who_used_some_is_satisfied_the_plain_weights_are_left() -> None:
    # First w 1/5 1/5 3/5, u 1 0 0, k 1/8, so 0.1, 0.225 and 0.675: a is satisfied with 400 of its 1,000, b gets 2,250
    # and c 6,750. Of the other two nobody used anything: the 600 that are left go 1 to 3.
    claimants = [
        Claimant("a", 400, quota=0, usage=500_000),
        Claimant("b", 100_000, quota=0),
        Claimant("c", 100_000, quota=0, weight=3),
    ]

    found = fairshare.divide(10_000, claimants, usage_weight=(1, 8))

    assert [found[id].share for id in "abc"] == [400, 2_400, 7_200]


def test_past_use_is_read_by_resource_and_pool_at_every_level_of_the_tree() -> None:
    used = {"default": Usage(gpu=800_000), "other": Usage(gpu=10)}
    rarely = {"default": Usage(gpu=200_000, cpu=900_000)}
    queues = [
        replace(builders.queue("d1"), usage=used),
        replace(builders.queue("d2"), usage=rarely),
        replace(builders.queue("a", parent="d2"), usage=rarely),
        replace(builders.queue("b", parent="d2"), usage=used),
        builders.queue("c", parent="d1"),
    ]
    requests = dict.fromkeys(("a", "b", "c"), Amounts(milli_gpus=100_000))

    divided = fairshare.divide_tree(
        Amounts(milli_gpus=10_000), queues, pool="default", requests=requests, usage_weight=(1, 1)
    )

    # As in the first vector, at both levels: 2 to 8, and of the 8 again 2 to 8.
    assert {id: one.milli_gpus for id, one in divided.share.items()} == {
        "d1": 2_000, "d2": 8_000, "a": 6_400, "b": 1_600, "c": 2_000,
    }  # fmt: skip


def test_nothing_is_rounded_on_the_way_down() -> None:
    queues = [builders.queue(id) for id in ("d1", "d2", "d3")]
    queues += [builders.queue("a", parent="d1", weight=3), builders.queue("b", parent="d1", weight=2)]
    requests = dict.fromkeys(("a", "b", "d2", "d3"), Amounts(milli_gpus=9))

    divided = fairshare.divide_tree(Amounts(milli_gpus=5), queues, pool="default", requests=requests)

    # Each department has 5/3, of which a has 3/5: a whole unit, which 3/5 of one unit would not be.
    assert divided.share["a"].milli_gpus == 1
    assert divided.share["d1"].milli_gpus == 1


def test_a_pool_of_which_others_hold_more_than_there_is_gives_nothing() -> None:
    assert shares(-1000, Claimant("a", 1000, 500), Claimant("b", 1000, None)) == {"a": 0, "b": 0}


@given(total=st.integers(0, 10_000), claimants=claimants_of_a_level, data=st.data())
def test_with_past_use_all_is_given_as_long_as_somebody_may_have_more(
    total: int, claimants: list[Claimant], data: st.DataObject
) -> None:
    k = data.draw(st.sampled_from([(1, 1), (1, 3), (5, 1)]))
    used = [replace(one, usage=data.draw(st.integers(0, 1_000_000))) for one in claimants]

    found = fairshare.divide(total, used, usage_weight=k)

    left = total - sum(portion.share for portion in found.values())
    assert left >= 0
    open_still = [one for one in used if one.weight > 0 and found[one.id].share < one.wanted]
    assert not open_still or left < len(used)  # What is left then was rounded away, less than a unit from each.


def test_who_is_satisfied_leaves_the_rest_to_the_others_by_their_weights() -> None:
    claimants = [Claimant("a", 100, 0, 1), Claimant("b", 2000, 0, 2), Claimant("c", 9000, 0, 3)]

    assert shares(6100, *claimants) == {"a": 100, "b": 2000, "c": 4000}
    assert shares(3100, *claimants) == {"a": 100, "b": 1200, "c": 1800}


def test_a_single_thousandth_is_given_too() -> None:
    assert shares(10, Claimant("a", 1, 0)) == {"a": 1}


def test_a_queue_whose_department_is_not_there_has_no_one_above_it() -> None:
    orphan = builders.queue("a", parent="ghost")

    assert fairshare.path_of("a", {"a": orphan}) == [orphan]
    assert fairshare.path_of("b", {"a": orphan}) == []


def test_a_ring_of_departments_is_cut_above_the_smallest_id() -> None:
    ring = {
        id: builders.queue(id, parent=parent) for id, parent in (("a", "d2"), ("d1", "d3"), ("d2", "d1"), ("d3", "d2"))
    }

    assert [one.id for one in fairshare.path_of("a", ring)] == ["a", "d2", "d1"]
    assert [one.id for one in fairshare.path_of("d3", ring)] == ["d3", "d2", "d1"]


def test_what_quotas_that_are_cut_take_leaves_nothing_to_a_lower_priority() -> None:
    high = [Claimant(id, 5000, 3000, priority=200) for id in "ab"]

    assert shares(5000, *high, Claimant("c", 3000, 3000)) == {"a": 2500, "b": 2500, "c": 0}
    assert shares(7001, *high, Claimant("c", 3000, 3000), Claimant("d", 3000, 3000)) == {
        "a": 3000, "b": 3000, "c": 500, "d": 500,
    }  # fmt: skip
