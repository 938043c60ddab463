"""The real clock and real ids."""

import asyncio
import secrets
from datetime import UTC, datetime, timedelta

import uuid_utils


class RealClock:
    """The time of this machine, in UTC."""

    def now(self) -> datetime:
        """The present instant."""
        return datetime.now(UTC)

    async def sleep(self, span: timedelta) -> None:
        """Return after this long."""
        await asyncio.sleep(span.total_seconds())


class RandomIds:
    """UUIDs of version 7, which sort by the time of their making, and secrets from the system's random source."""

    def new(self) -> str:
        """A new id."""
        return str(uuid_utils.uuid7())

    def secret(self) -> str:
        """256 random bits, URL-safe."""
        return secrets.token_urlsafe(32)
