"""Who may be near whom, against an oracle that counts all pods anew for each question."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.core import neighbours
from aliquot.core.model import Affinity, Node, PodRequest, Spread, Taint
from tests import builders

ZONED = [
    replace(builders.node(f"node-{index}", 0), labels={"zone": zone, "host": f"node-{index}"})
    for index, zone in enumerate("aabbc")
]
APP = (("app", "web"),)
WEB = PodRequest(labels=APP)


def among(*there: tuple[str, PodRequest], nodes: list[Node] = ZONED) -> neighbours.Neighbours:
    found = neighbours.Neighbours(nodes)
    for node, request in there:
        found.add(node, request)
    return found


def allowed(found: neighbours.Neighbours, request: PodRequest, nodes: list[Node] = ZONED) -> list[str]:
    return [node.id for node in nodes if found.refusal(node, request) is None]


def test_who_is_drawn_goes_where_the_others_are() -> None:
    drawn = PodRequest(affinity=(Affinity(APP, "zone"),))

    assert allowed(among(("node-2", WEB)), drawn) == ["node-2", "node-3"]


def test_who_is_drawn_to_others_waits_for_the_first_of_them() -> None:
    drawn = PodRequest(affinity=(Affinity(APP, "zone"),))

    assert among().refusal(ZONED[0], drawn) == "affinity"


def test_the_first_of_a_group_that_is_drawn_to_itself_may_go_anywhere() -> None:
    drawn = PodRequest(labels=APP, affinity=(Affinity(APP, "zone"),))

    assert len(allowed(among(), drawn)) == len(ZONED)
    assert allowed(among(("node-4", drawn)), drawn) == ["node-4"]


def test_who_keeps_apart_goes_where_no_other_is() -> None:
    shy = PodRequest(anti_affinity=(Affinity(APP, "zone"),))

    assert allowed(among(("node-2", WEB)), shy) == ["node-0", "node-1", "node-4"]
    assert among(("node-2", WEB)).refusal(ZONED[3], shy) == "anti-affinity"


def test_who_keeps_apart_is_left_alone_by_those_it_means() -> None:
    shy = PodRequest(anti_affinity=(Affinity(APP, "host"),))
    found = among(("node-2", shy))

    assert found.has_terms
    assert allowed(found, WEB) == ["node-0", "node-1", "node-3", "node-4"]
    assert len(allowed(found, PodRequest(labels=(("app", "db"),)))) == len(ZONED)


def test_when_it_is_gone_nobody_is_kept_away() -> None:
    shy = PodRequest(anti_affinity=(Affinity(APP, "host"),))
    found = among(("node-2", shy))

    found.remove("node-2", shy)

    assert not found.has_terms
    assert len(allowed(found, WEB)) == len(ZONED)


@pytest.mark.parametrize("other", [PodRequest(labels=APP, namespace="other"), PodRequest(labels=(("app", "db"),))])
def test_pods_of_other_namespaces_and_labels_do_not_count(other: PodRequest) -> None:
    shy = PodRequest(anti_affinity=(Affinity(APP, "zone"),))

    assert len(allowed(among(("node-2", other)), shy)) == len(ZONED)


def test_pods_are_spread_evenly_over_domains() -> None:
    even = PodRequest(labels=APP, spread=(Spread(APP, "zone"),))
    found = among(("node-0", even), ("node-2", even))

    assert allowed(found, even) == ["node-4"]
    assert found.refusal(ZONED[0], even) == "spread"


def test_a_larger_skew_allows_more() -> None:
    even = PodRequest(labels=APP, spread=(Spread(APP, "zone", max_skew=2),))

    assert len(allowed(among(("node-0", even), ("node-2", even)), even)) == len(ZONED)


def test_domains_that_it_may_not_choose_need_no_pods() -> None:
    even = PodRequest(labels=APP, spread=(Spread(APP, "zone"),), node_labels=(("zone", ("a", "b")),))

    assert allowed(among(("node-0", even), ("node-2", even)), even) == ["node-0", "node-1", "node-2", "node-3"]


def test_a_taint_takes_no_domain_out_of_the_spread() -> None:
    nodes = [*ZONED[:4], replace(ZONED[4], taints=(Taint("spot"),))]
    even = PodRequest(labels=APP, spread=(Spread(APP, "zone"),))

    assert allowed(among(("node-0", even), ("node-2", even), nodes=nodes), even, nodes) == ["node-4"]


def test_a_tainted_node_of_a_domain_that_it_may_not_choose_does_not_count_either() -> None:
    nodes = [*ZONED[:4], replace(ZONED[4], taints=(Taint("spot"),))]
    even = PodRequest(labels=APP, spread=(Spread(APP, "zone"),), node_labels=(("zone", ("a", "b")),))

    assert "node-0" in allowed(among(("node-0", even), ("node-2", even), nodes=nodes), even, nodes)


def test_a_node_without_the_label_is_in_no_domain() -> None:
    bare = builders.node("bare", 0)
    found = among(("bare", WEB), nodes=[*ZONED, bare])

    assert found.refusal(bare, PodRequest(labels=APP, affinity=(Affinity(APP, "zone"),))) == "affinity"
    assert found.refusal(bare, PodRequest(anti_affinity=(Affinity(APP, "zone"),))) is None
    assert found.refusal(bare, PodRequest(labels=APP, spread=(Spread(APP, "zone"),))) == "spread"


def test_more_rules_than_are_remembered_are_counted_anew() -> None:
    found = among(("node-0", WEB))
    for number in range(20_000):
        found.refusal(ZONED[0], PodRequest(affinity=(Affinity((("job", str(number)),), "zone"),)))

    found.add("node-2", WEB)

    assert allowed(found, PodRequest(affinity=(Affinity(APP, "host"),))) == ["node-0", "node-2"]


# The oracle: Kubernetes' words, read plainly, for a list of pods.


@dataclass
class Oracle:
    nodes: list[Node]
    pods: list[tuple[Node, PodRequest]]

    def refusal(self, node: Node, request: PodRequest) -> str | None:
        if not all(self.attracts(node, request, term) for term in request.affinity):
            return "affinity"
        mine = any(self.near(node, term, request.namespace) for term in request.anti_affinity)
        if mine or any(self.repels(where, other, node, request) for where, other in self.pods):
            return "anti-affinity"
        return None if all(self.is_even(node, request, one) for one in request.spread) else "spread"

    def attracts(self, node: Node, request: PodRequest, term: Affinity) -> bool:
        if term.topology_key not in node.labels:
            return False
        if self.near(node, term, request.namespace):
            return True
        somewhere = any(self.near(other, term, request.namespace) for other in self.nodes)
        return not somewhere and has(request, term.labels)

    def near(self, node: Node, term: Affinity, namespace: str) -> bool:
        return any(
            other.namespace == namespace and has(other, term.labels) and share(node, where, term.topology_key)
            for where, other in self.pods
        )

    def repels(self, where: Node, other: PodRequest, node: Node, request: PodRequest) -> bool:
        return any(
            other.namespace == request.namespace and has(request, term.labels) and share(node, where, term.topology_key)
            for term in other.anti_affinity
        )

    def is_even(self, node: Node, request: PodRequest, spread: Spread) -> bool:
        able = [one for one in self.nodes if spread.topology_key in one.labels and may_choose(request, one)]
        if node not in able:
            return False
        counts = dict.fromkeys((one.labels[spread.topology_key] for one in able), 0)
        for where, other in self.pods:
            if where in able and other.namespace == request.namespace and has(other, spread.labels):
                counts[where.labels[spread.topology_key]] += 1
        here = counts[node.labels[spread.topology_key]] + has(request, spread.labels)
        return here - min(counts.values()) <= spread.max_skew


def has(request: PodRequest, labels: tuple[tuple[str, str], ...]) -> bool:
    return all(label in request.labels for label in labels)


def share(one: Node, other: Node, key: str) -> bool:
    return key in one.labels and one.labels[key] == other.labels.get(key)


def may_choose(request: PodRequest, node: Node) -> bool:
    named = request.nodes is None or node.id in request.nodes
    return named and all(node.labels.get(key) in values for key, values in request.node_labels)


KEYS = st.sampled_from(["zone", "host"])
SOME = [("app", "web"), ("job", "one"), ("tier", "back")]
LABELS = st.sets(st.sampled_from(SOME), max_size=2).map(lambda labels: tuple(sorted(labels)))
MEANT = LABELS.filter(bool)
TERMS = st.lists(st.builds(Affinity, MEANT, KEYS), max_size=2).map(tuple)
REQUESTS = st.builds(
    PodRequest,
    namespace=st.sampled_from(["default", "other"]),
    labels=LABELS,
    affinity=TERMS,
    anti_affinity=TERMS,
    spread=st.lists(st.builds(Spread, MEANT, KEYS, st.integers(1, 2)), max_size=1).map(tuple),
    nodes=st.none() | st.sets(st.sampled_from(["node-0", "node-1", "node-2"])).map(lambda ids: tuple(sorted(ids))),
    node_labels=st.just(()) | st.just((("zone", ("a", "b")),)),
)
PLACES = st.lists(
    st.fixed_dictionaries({}, optional={"zone": st.sampled_from("abc"), "host": st.sampled_from("xyz")}),
    min_size=1,
    max_size=4,
)


@given(places=PLACES, requests=st.lists(REQUESTS, min_size=1, max_size=4), data=st.data())
def test_after_any_coming_and_going_the_answers_are_the_oracles(
    places: list[dict[str, str]], requests: list[PodRequest], data: st.DataObject
) -> None:
    nodes = [replace(builders.node(f"node-{index}", 0), labels=labels) for index, labels in enumerate(places)]
    found, oracle = neighbours.Neighbours(nodes), Oracle(nodes, [])
    for _ in range(data.draw(st.integers(0, 8))):
        is_leaving = bool(oracle.pods) and data.draw(st.booleans())
        if is_leaving:
            node, request = oracle.pods.pop(data.draw(st.integers(0, len(oracle.pods) - 1)))
            found.remove(node.id, request)
        else:
            node, request = data.draw(st.sampled_from(nodes)), data.draw(st.sampled_from(requests))
            oracle.pods.append((node, request))
            found.add(node.id, request)
        for node in nodes:
            for request in requests:
                assert found.refusal(node, request) == oracle.refusal(node, request)
