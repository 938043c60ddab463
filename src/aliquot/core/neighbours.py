"""Which pods may be near each other: affinity, anti-affinity in both directions, and spread, as Kubernetes means them.

Only pods with labels or with rules of their own are known here.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from aliquot.core import constraints
from aliquot.core.model import Affinity, Node, PodRequest, Spread


class Neighbours:
    """How many pods of each kind are on which node."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = {node.id: node for node in nodes}
        self._pods: dict[str, Counter[PodRequest]] = {}
        self._rules = 0

    @property
    def has_terms(self) -> bool:
        """Whether a pod that is here keeps others away."""
        return self._rules > 0

    def add(self, node: str, request: PodRequest) -> None:
        """A pod is there now."""
        self._pods.setdefault(node, Counter())[request] += 1
        self._rules += bool(request.anti_affinity)

    def remove(self, node: str, request: PodRequest) -> None:
        """It is gone."""
        here = self._pods.setdefault(node, Counter())
        here[request] -= 1
        if not here[request]:
            del here[request]
        self._rules -= bool(request.anti_affinity)

    def refusal(self, node: Node, request: PodRequest) -> str | None:
        """Which rule keeps a pod off the node, or None."""
        if not request.is_social and not (self._rules and request.labels):
            return None
        if any(not self._attracts(node, request, term) for term in request.affinity):
            return "affinity"
        if any(self._count(node, term, request.namespace) for term in request.anti_affinity):
            return "anti-affinity"
        if self._rules and self._is_kept_away(node, request):
            return "anti-affinity"
        if any(not self._is_even(node, request, spread) for spread in request.spread):
            return "spread"
        return None

    def _attracts(self, node: Node, request: PodRequest, term: Affinity) -> bool:
        if term.topology_key not in node.labels:
            return False
        if self._count(node, term, request.namespace):
            return True
        # The first of a group that is drawn to itself may go anywhere.
        is_anywhere = any(
            term.topology_key in self._nodes[id].labels and self._matching(id, term.labels, request.namespace)
            for id in self._pods
        )
        return not is_anywhere and _matches(request, term.labels, request.namespace)

    def _is_kept_away(self, node: Node, request: PodRequest) -> bool:
        return any(
            _same(self._nodes[id].labels, node.labels, term.topology_key)
            and _matches(request, term.labels, other.namespace)
            for id, pods in self._pods.items()
            for other in pods
            for term in other.anti_affinity
        )

    def _is_even(self, node: Node, request: PodRequest, spread: Spread) -> bool:
        if spread.topology_key not in node.labels:
            return False
        counts: Counter[str] = Counter()
        for one in self._nodes.values():  # Nodes that it may not choose do not count.
            if spread.topology_key in one.labels and constraints.refusal(one, request) != "selector":
                counts[one.labels[spread.topology_key]] += self._matching(one.id, spread.labels, request.namespace)
        if node.labels[spread.topology_key] not in counts:
            return False
        own = int(_matches(request, spread.labels, request.namespace))
        return counts[node.labels[spread.topology_key]] + own - min(counts.values()) <= spread.max_skew

    def _count(self, node: Node, term: Affinity, namespace: str) -> int:
        return sum(
            self._matching(id, term.labels, namespace)
            for id in self._pods
            if _same(self._nodes[id].labels, node.labels, term.topology_key)
        )

    def _matching(self, node: str, labels: tuple[tuple[str, str], ...], namespace: str) -> int:
        pods: Counter[PodRequest] = self._pods.get(node, Counter())
        return sum(count for request, count in pods.items() if _matches(request, labels, namespace))


def _matches(request: PodRequest, labels: tuple[tuple[str, str], ...], namespace: str) -> bool:
    return request.namespace == namespace and set(labels) <= set(request.labels)


def _same(one: Mapping[str, str], other: Mapping[str, str], key: str) -> bool:
    return key in one and key in other and one[key] == other[key]
