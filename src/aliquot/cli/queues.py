"""What projects and departments share: the options of their terms, and how these are shown."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from aliquot.cli import output, words
from aliquot.core import errors, quantities
from aliquot.core.model import DEFAULT_POOL, RESOURCES
from aliquot.wire import projects as shapes
from aliquot.wire import queue as queue_shapes

Command = TypeVar("Command", bound=Callable[..., object])

_UNITS = {"gpu": "devices: 4, 0.5", "cpu": "cores: 16", "memory": "64Gi"}
UNLIMITED = "unlimited"
_COUNT = click.IntRange(0, 1_000_000)
NONE = "none"


def options(command: Command) -> Command:
    """Give a command the options of a queue's terms in one pool."""
    command = click.option(
        "--pool", default=DEFAULT_POOL, show_default=True, help="The node pool that the terms are for."
    )(command)
    command = click.option("--priority", type=_COUNT, help="Who is served first from what is left over.")(command)
    for resource in reversed(RESOURCES):
        unit = _UNITS[resource]
        command = click.option(f"--{resource}-limit", help=f"The most it may hold at once ({unit}), or none.")(command)
        command = click.option(f"--{resource}-weight", type=_COUNT, help="Its claim on what is left over.")(command)
        command = click.option(f"--{resource}-quota", help=f"What it is guaranteed ({unit}), or unlimited.")(command)
    return command


def changed(
    asked: Mapping[str, Any],
    before: shapes.PoolTerms,  # Any: click's values
) -> shapes.PoolTermsUpdate:
    """The terms that were given, each resource filled up from how it was: the API replaces a resource whole."""
    update: dict[str, object] = {}
    for resource in RESOURCES:
        given = {
            part: _amount(f"{resource}-{part}", asked[f"{resource}_{part}"])
            for part in ("quota", "weight", "limit")
            if asked.get(f"{resource}_{part}") is not None
        }
        if given:
            update[resource] = shapes.Claim(**{**before.model_dump()[resource], **given})
    if asked.get("priority") is not None:
        update["priority"] = asked["priority"]
    return shapes.PoolTermsUpdate.model_validate(update)


def created(asked: Mapping[str, Any]) -> dict[str, shapes.PoolTerms]:  # Any: click's values
    """The terms of a new queue: what was not given is as for any new one."""
    update = changed(asked, shapes.PoolTerms())
    given = {name: getattr(update, name) for name in update.model_fields_set}
    return {asked["pool"]: shapes.PoolTerms(**given)}


def demand_change(update: shapes.PoolTermsUpdate) -> None:
    """Raises InvalidInput if nothing would change."""
    if not update.model_fields_set:
        valid = [f"--{resource}-{part}" for resource in RESOURCES for part in ("quota", "weight", "limit")]
        raise errors.InvalidInput("nothing to change was given", valid=[*valid, "--priority"])


def foresee(preview: queue_shapes.QueuePreview) -> str:
    """What other terms would do, in words. Nothing was changed."""
    lines = [
        *(f"{one.name} ({one.project}) would start: {one.gpu} GPU on {_places(one.places)}" for one in preview.starts),
        *(
            f"{one.name} ({one.project}) would be evicted, {one.gpu} GPU"
            + (f", for {one.for_name}" if one.for_name else "")
            for one in preview.evicts
        ),
        *(
            f"the fair share of {one.queue} in pool {one.pool} would go from "
            f"{quantities.format_milli(one.before_milli_gpus)} to {quantities.format_milli(one.after_milli_gpus)} GPU"
            for one in preview.fair_shares
        ),
    ]
    if preview.waits_before != preview.waits_after:
        lines.append(f"{preview.waits_after} would wait, where {preview.waits_before} would without it")
    if not preview.is_complete:
        lines.append("and more would follow than a preview looks at")
    return "\n".join([*(lines or ["Nobody would start, and nobody would be evicted."]), "Nothing was changed."])


def _places(places: Sequence[str]) -> str:
    return ", ".join(places) or "any node"


def _amount(option: str, value: str | int) -> str | int | None:
    """Reads an amount, so that a bad one is refused before anything is sent."""
    if isinstance(value, int):
        return value
    resource, _, part = option.partition("-")
    if value.lower() in {UNLIMITED, NONE}:
        return None
    try:
        if resource == "memory":
            quantities.parse_bytes(value, option)
        else:
            quantities.parse_milli(value, option)
    except errors.InvalidInput as error:
        word = UNLIMITED if part == "quota" else NONE
        forms = ("64Gi", "512Mi") if resource == "memory" else ("4", "0.5")
        raise errors.InvalidInput(error.message, field=option, valid=(*forms, word)) from error
    return value


def standing(pools: Mapping[str, shapes.PoolStanding], pool: str) -> shapes.PoolStanding:
    """Where it stands in a pool; a pool it has no terms in has those of a new queue."""
    return pools.get(pool) or shapes.PoolStanding(terms=shapes.PoolTerms())


COLUMNS = (
    output.Column("GPU QUOTA", is_right=True),
    output.Column("FAIR SHARE", is_right=True),
    output.Column("HELD", is_right=True),
    output.Column("ASKED", is_right=True),
    output.Column("LIMIT", is_right=True),
)


def cells(pools: Mapping[str, shapes.PoolStanding], pool: str, *, follows_machine: bool) -> list[str]:
    """The cells under COLUMNS, all of GPU."""
    one = standing(pools, pool)
    mark = " (the machine)" if follows_machine else ""
    return [
        words.quota(one.terms.gpu.quota) + mark,
        one.fair_share.get("gpu", words.NOTHING),
        one.held.get("gpu", words.NOTHING),
        one.asked.get("gpu", words.NOTHING),
        words.limit(one.terms.gpu.limit),
    ]


def terms_table(pools: Mapping[str, shapes.PoolStanding]) -> str:
    """All terms and standings, one line for each resource of each pool."""
    rows: list[Sequence[str]] = []
    for pool, one in sorted(pools.items()):
        for resource in RESOURCES:
            claim: shapes.Claim = getattr(one.terms, resource)
            rows.append(
                [
                    pool,
                    resource,
                    words.quota(claim.quota),
                    str(claim.weight),
                    words.limit(claim.limit),
                    *(part.get(resource, words.NOTHING) for part in (one.fair_share, one.held, one.asked)),
                ]
            )
    titles = ("POOL", "RESOURCE", "QUOTA", "WEIGHT", "LIMIT", "FAIR SHARE", "HELD", "ASKED")
    return output.table([output.Column(title, is_right=at > 1) for at, title in enumerate(titles)], rows)
