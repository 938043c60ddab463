"""The policy of a scenario, and which actions may act. What is left out has the format's default, not the product's."""

from collections.abc import Mapping
from typing import Literal, get_args

from aliquot.core.model import ACTION_NAMES, ActionName, PlacementStrategy, Policy
from aliquot.wire.scenario import fields
from aliquot.wire.scenario.fields import Fields, Version

POLICY = fields.keys(
    "gpuPlacement cpuPlacement maxConsolidationVictims staleGangGrace",
    "stepBudget releaseGrace placementByPool usageWeight serviceQuantum serviceThreshold serviceClasses",
)
GpuWord = Literal["binpack", "spread", "fragmentation"]
CpuWord = Literal["binpack", "spread"]
_GPU: Mapping[GpuWord, PlacementStrategy] = {"binpack": "pack", "spread": "spread", "fragmentation": "fragmentation"}
_CPU: Mapping[CpuWord, Literal["pack", "spread"]] = {"binpack": "pack", "spread": "spread"}
_PRODUCT = Policy()
_MILLI_SECONDS = 1000


def read(top: Fields, version: Version) -> Policy:
    """The policy."""
    data = top.data.get("policy")
    one = Fields({} if data is None else data, top.at("policy"), POLICY, version)
    words: tuple[GpuWord, ...] = get_args(GpuWord) if version > 1 else ("binpack", "spread")
    by_pool = {
        pool: _GPU[fields.as_choice(value, words, f"{one.at('placementByPool')}.{pool}")]
        for pool, value in one.pairs("placementByPool")
    }
    weight = fields.as_fraction(one.data["usageWeight"], one.at("usageWeight")) if one.has("usageWeight") else None
    victims = one.whole("maxConsolidationVictims", 0) if one.has("maxConsolidationVictims") else None
    threshold = one.span("serviceThreshold").total_seconds() if one.has("serviceThreshold") else None
    return Policy(
        step_budget=one.whole("stepBudget", _PRODUCT.step_budget),
        release_grace=one.span("releaseGrace", _PRODUCT.release_grace),
        gpu_placement=_GPU[one.choice("gpuPlacement", words, "binpack")],
        cpu_placement=_CPU[one.choice("cpuPlacement", tuple(_CPU), "binpack")],
        placement_by_pool=by_pool,
        actions=_actions(top),
        max_consolidation_victims=victims,
        stale_grace=one.offset("staleGangGrace", _PRODUCT.stale_grace),
        usage_weight=(weight.numerator, weight.denominator) if weight is not None else _PRODUCT.usage_weight,
        service_quantum=one.span("serviceQuantum", _PRODUCT.service_quantum),
        service_threshold=_PRODUCT.service_threshold if threshold is None else int(threshold * _MILLI_SECONDS),
        service_classes=one.whole("serviceClasses", _PRODUCT.service_classes, least=1),
    )


def _actions(top: Fields) -> tuple[ActionName, ...]:
    if top.data.get("actions") is None:
        return ACTION_NAMES
    named = {fields.as_choice(data, ACTION_NAMES, path) for data, path in top.items("actions")}
    return tuple(action for action in ACTION_NAMES if action in named)
