"""Tokens, sign-in links and sessions."""

from datetime import timedelta

import pytest

from aliquot.core import errors
from tests.service import world as worlds

pytestmark = pytest.mark.anyio


async def test_the_token_makes_its_bearer_the_administrator(world: worlds.World) -> None:
    await world.access.ensure_token("right")

    actor = await world.access.authenticate_token("right", origin="127.0.0.1")

    assert (actor.name, actor.origin) == ("admin", "127.0.0.1")
    for wrong in ("wrong", "", "Right"):
        with pytest.raises(errors.Unauthenticated):
            await world.access.authenticate_token(wrong)


async def test_a_new_token_replaces_the_old_one(world: worlds.World) -> None:
    await world.access.ensure_token("old")
    await world.access.ensure_token("new")

    with pytest.raises(errors.Unauthenticated):
        await world.access.authenticate_token("old")
    assert (await world.access.authenticate_token("new")).name == "admin"


async def test_secrets_are_not_stored(world: worlds.World) -> None:
    await world.access.ensure_token("the-token")
    code, _ = await world.access.open_link(worlds.ANN)
    session = await world.access.redeem_link(code)

    rows = await world.store.read(lambda tx: tx.credentials.find())

    assert len(rows) == 2
    for secret in ("the-token", code, session):
        assert secret not in repr(rows)


async def test_a_link_signs_in_once(world: worlds.World) -> None:
    code, expires = await world.access.open_link(worlds.ANN)

    session = await world.access.redeem_link(code)

    assert (await world.access.authenticate_session(session)).name == "ann"
    assert expires == world.clock.now() + timedelta(minutes=15)
    with pytest.raises(errors.Unauthenticated):
        await world.access.redeem_link(code)


async def test_a_link_expires(world: worlds.World) -> None:
    code, _ = await world.access.open_link(worlds.ANN)
    world.clock.advance(timedelta(minutes=15))

    with pytest.raises(errors.Unauthenticated):
        await world.access.redeem_link(code)


async def test_a_session_ends_by_signing_out_or_in_time(world: worlds.World) -> None:
    first = await world.access.redeem_link((await world.access.open_link(worlds.ANN))[0])
    second = await world.access.redeem_link((await world.access.open_link(worlds.ANN))[0])

    await world.access.sign_out(first)
    with pytest.raises(errors.Unauthenticated):
        await world.access.authenticate_session(first)
    await world.access.authenticate_session(second)
    world.clock.advance(timedelta(days=31))

    with pytest.raises(errors.Unauthenticated):
        await world.access.authenticate_session(second)


async def test_a_token_is_no_session_and_a_code_is_neither(world: worlds.World) -> None:
    await world.access.ensure_token("token")
    code, _ = await world.access.open_link(worlds.ANN)

    for attempt in (
        world.access.authenticate_session("token"),
        world.access.authenticate_session(code),
        world.access.authenticate_token(code),
    ):
        with pytest.raises(errors.Unauthenticated):
            await attempt
