"""A queue's terms, between what people write and what is planned with. Pure, and exact both ways."""

from collections.abc import Mapping
from dataclasses import replace

from aliquot.core import errors, quantities
from aliquot.core.model import RESOURCES, Amounts, Claim, PoolTerms, ResourceName
from aliquot.wire import projects as shapes

_UNITS = (("Pi", 2**50), ("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))


def read(pools: Mapping[str, shapes.PoolTerms]) -> dict[str, PoolTerms]:
    """Terms by pool. Raises InvalidInput that names the amount at fault."""
    return {
        pool: PoolTerms(
            gpu=_claim(given.gpu, "gpu", f"pools.{pool}.gpu"),
            cpu=_claim(given.cpu, "cpu", f"pools.{pool}.cpu"),
            memory=_claim(given.memory, "memory", f"pools.{pool}.memory"),
            priority=given.priority,
        )
        for pool, given in pools.items()
    }


def changed(before: Mapping[str, PoolTerms], pools: Mapping[str, shapes.PoolTermsUpdate]) -> dict[str, PoolTerms]:
    """Terms after a change: a resource that is given is replaced whole, one that is left out stays."""
    after = dict(before)
    for pool, given in pools.items():
        terms = after.get(pool, PoolTerms())
        for resource in RESOURCES:
            claim: shapes.Claim | None = getattr(given, resource)
            if claim is not None:
                terms = with_claim(terms, resource, _claim(claim, resource, f"pools.{pool}.{resource}"))
        after[pool] = terms if given.priority is None else replace(terms, priority=given.priority)
    return after


def show(terms: PoolTerms) -> shapes.PoolTerms:
    """Terms as people write them."""
    return shapes.PoolTerms(
        gpu=show_claim(terms.gpu, "gpu"),
        cpu=show_claim(terms.cpu, "cpu"),
        memory=show_claim(terms.memory, "memory"),
        priority=terms.priority,
    )


def show_claim(claim: Claim, resource: ResourceName) -> shapes.Claim:
    """One claim as people write it."""
    return shapes.Claim(
        quota=None if claim.quota is None else show_amount(claim.quota, resource),
        weight=claim.weight,
        limit=None if claim.limit is None else show_amount(claim.limit, resource),
    )


def show_amount(amount: int, resource: ResourceName) -> str:
    """An amount in the unit of its resource, such that reading it gives the same again."""
    if resource != "memory":
        return quantities.format_milli(amount)
    unit = next(((suffix, size) for suffix, size in _UNITS if amount >= size and amount % size == 0), ("", 1))
    return f"{amount // unit[1]}{unit[0]}"


def show_amounts(amounts: Amounts) -> dict[str, str]:
    """Amounts by resource."""
    return {resource: show_amount(amounts.of(resource), resource) for resource in RESOURCES}


def with_claim(terms: PoolTerms, resource: ResourceName, claim: Claim) -> PoolTerms:
    """Terms with one claim replaced."""
    if resource == "gpu":
        return replace(terms, gpu=claim)
    return replace(terms, cpu=claim) if resource == "cpu" else replace(terms, memory=claim)


def _claim(given: shapes.Claim, resource: ResourceName, field: str) -> Claim:
    parse = quantities.parse_bytes if resource == "memory" else quantities.parse_milli
    quota = None if given.quota is None else parse(given.quota, f"{field}.quota")
    limit = None if given.limit is None else parse(given.limit, f"{field}.limit")
    if quota is not None and limit is not None and limit < quota:
        raise errors.InvalidInput(
            f"{field}.limit: {given.limit} is less than the quota of {given.quota}, which could then never be had",
            field=f"{field}.limit",
            valid=(f"at least {given.quota}", "null: no limit"),
        )
    return Claim(quota=quota, weight=given.weight, limit=limit)
