"""The world that every test of the use cases starts from."""

from collections.abc import AsyncIterator

import pytest

from tests.service import world as worlds


@pytest.fixture
async def world() -> AsyncIterator[worlds.World]:
    with worlds.opened() as one:
        yield await one.prepare()
