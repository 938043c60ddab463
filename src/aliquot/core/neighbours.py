"""Which pods may be near each other: affinity, anti-affinity in both directions, and spread, as Kubernetes means them.

Only pods with labels or with rules of their own are known here, and a rule names at least one label. Every rule that
was asked about has a tally of the pods that it means, by domain, which is kept up to date as pods come and go: an
answer does not look at pods.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from aliquot.core import constraints
from aliquot.core.model import Affinity, Node, PodRequest, Spread

_Labels = tuple[tuple[str, str], ...]
_Choice = tuple[tuple[str, ...] | None, tuple[tuple[str, tuple[str, ...]], ...]]
"""Which nodes a pod may choose: what `PodRequest.nodes` and `.node_labels` say."""

_ANY: _Choice = (None, ())
_MOST_KNOWN = 10_000


@dataclass(frozen=True, slots=True)
class _Rule:
    """The pods with these labels in a namespace, by the values of a node label."""

    namespace: str
    labels: _Labels
    topology_key: str

    def means(self, namespace: str, labels: _Labels) -> bool:
        """Whether a pod is one of them."""
        return namespace == self.namespace and set(self.labels) <= set(labels)


@dataclass(slots=True)
class _Tally:
    """How many pods are in each domain; `domain_of` are the nodes that count."""

    domain_of: Mapping[str, str]
    pods: dict[str, int] = field(default_factory=dict)
    total: int = 0
    least: int | None = None
    """The fewest in any domain, if it is known."""

    def change(self, node: str, more: int) -> None:
        """So many pods more, or fewer, are on a node."""
        domain = self.domain_of.get(node)
        if domain is None:
            return
        before = self.pods.get(domain, 0)
        self.pods[domain] = before + more
        self.total += more
        # Only the domain with the fewest, or one that has fewer still, can change what the fewest are.
        if self.least is not None and (before == self.least or before + more < self.least):
            self.least = None

    def fewest(self) -> int:
        """The fewest pods in any domain."""
        if self.least is None:
            self.least = min((self.pods.get(domain, 0) for domain in set(self.domain_of.values())), default=0)
        return self.least


class Neighbours:
    """How many pods of each kind are on which node: now or, with `now`, when those that were told to end are gone."""

    def __init__(self, nodes: Sequence[Node], *, now: "Neighbours | None" = None) -> None:
        self._nodes = {node.id: node for node in nodes}
        self._now = now
        self._pods: dict[str, Counter[PodRequest]] = {}
        self._tallies: dict[tuple[_Rule, _Choice], _Tally] = {}
        self._keepers: dict[_Rule, _Tally] = {}
        """By rule, the pods that want none of those that it means near them."""
        self._domains: dict[tuple[str, _Choice], dict[str, str]] = {}
        self._meant: dict[tuple[str, _Labels], list[_Tally]] = {}
        """By namespace and labels of a pod, the tallies in which it counts."""
        self._rules = 0

    @property
    def has_terms(self) -> bool:
        """Whether a pod that is here keeps others away."""
        return self._rules > 0

    def add(self, node: str, request: PodRequest) -> None:
        """A pod is there now."""
        self._pods.setdefault(node, Counter())[request] += 1
        self._change(node, request, 1)

    def remove(self, node: str, request: PodRequest) -> None:
        """It is gone."""
        here = self._pods.setdefault(node, Counter())
        here[request] -= 1
        if not here[request]:
            del here[request]
        self._change(node, request, -1)

    def refusal(self, node: Node, request: PodRequest) -> str | None:
        """Which rule keeps a pod off the node, or None."""
        if not request.is_social and not (self._rules and request.labels):
            return None
        if any(not self._attracts(node, request, term) for term in request.affinity):
            return "affinity"
        if any(self._count(node, term, request) for term in request.anti_affinity):
            return "anti-affinity"
        if self._rules and self._is_kept_away(node, request):
            return "anti-affinity"
        if any(not self._is_even(node, request, spread) for spread in request.spread):
            return "spread"
        return None

    def _attracts(self, node: Node, request: PodRequest, term: Affinity) -> bool:
        if term.topology_key not in node.labels:
            return False
        if self._count(node, term, request):
            return True
        # The first of a group that is drawn to itself may go anywhere; while others of it are still ending, only near
        # these: it must not evict them in order to be the first elsewhere.
        rule = _Rule(request.namespace, term.labels, term.topology_key)
        if not rule.means(request.namespace, request.labels) or self._tally(rule, _ANY).total:
            return False
        return (
            self._now is None or not self._now._tally(rule, _ANY).total or bool(self._now._count(node, term, request))
        )

    def _is_kept_away(self, node: Node, request: PodRequest) -> bool:
        return any(
            tally.pods.get(node.labels[rule.topology_key], 0)
            for rule, tally in self._keepers.items()
            if rule.topology_key in node.labels and rule.means(request.namespace, request.labels)
        )

    def _is_even(self, node: Node, request: PodRequest, spread: Spread) -> bool:
        rule = _Rule(request.namespace, spread.labels, spread.topology_key)
        tally = self._tally(rule, (request.nodes, request.node_labels))
        # Nodes that it may not choose do not count, and are not chosen.
        if node.id not in tally.domain_of:
            return False
        here = tally.pods.get(tally.domain_of[node.id], 0)
        return here + int(rule.means(request.namespace, request.labels)) - tally.fewest() <= spread.max_skew

    def _count(self, node: Node, term: Affinity, request: PodRequest) -> int:
        if term.topology_key not in node.labels:
            return 0
        tally = self._tally(_Rule(request.namespace, term.labels, term.topology_key), _ANY)
        return tally.pods.get(node.labels[term.topology_key], 0)

    def _change(self, node: str, request: PodRequest, more: int) -> None:
        self._rules += more * bool(request.anti_affinity)
        for term in request.anti_affinity:
            rule = _Rule(request.namespace, term.labels, term.topology_key)
            if rule not in self._keepers:
                self._keepers[rule] = _Tally(self._domains_of(rule.topology_key, _ANY))
            self._keepers[rule].change(node, more)
            if not self._keepers[rule].total:
                del self._keepers[rule]
        for tally in self._tallies_of(request):
            tally.change(node, more)

    def _tallies_of(self, request: PodRequest) -> list[_Tally]:
        key = (request.namespace, request.labels)
        if key not in self._meant:
            self._meant[key] = [tally for (rule, _), tally in self._tallies.items() if rule.means(*key)]
        return self._meant[key]

    def _tally(self, rule: _Rule, choice: _Choice) -> _Tally:
        """The tally of a rule among these nodes; counted once, when it is first asked for."""
        key = (rule, choice)
        if key not in self._tallies:
            self._forget()
            tally = self._tallies[key] = _Tally(self._domains_of(rule.topology_key, choice))
            for pods, tallies in self._meant.items():
                if rule.means(*pods):
                    tallies.append(tally)
            for node, request, count in self._everybody():
                if rule.means(request.namespace, request.labels):
                    tally.change(node, count)
        return self._tallies[key]

    def _forget(self) -> None:
        """Rules come and go with the work of many days: now and then all tallies are begun anew."""
        if len(self._tallies) + len(self._meant) + len(self._domains) > _MOST_KNOWN:
            self._tallies.clear()
            self._meant.clear()
            self._domains.clear()

    def _everybody(self) -> Iterator[tuple[str, PodRequest, int]]:
        for node, pods in self._pods.items():
            for request, count in pods.items():
                yield node, request, count

    def _domains_of(self, key: str, choice: _Choice) -> Mapping[str, str]:
        """The value of a label on each node that has it and may be chosen."""
        if (key, choice) not in self._domains:
            self._domains[key, choice] = {
                id: node.labels[key]
                for id, node in self._nodes.items()
                if key in node.labels and constraints.is_selected(node, *choice)
            }
        return self._domains[key, choice]
