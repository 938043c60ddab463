"""The Store: transactions in threads, one writer, and news for those who follow.

Promises: writes are done one after the other, each whole or not at all; reads never wait for a write; a queue of
writers that is too long is answered at once with Unavailable, not by letting them time out.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from concurrent import futures
from pathlib import Path
from typing import TypeVar

import sqlalchemy as sa

from aliquot.core import errors
from aliquot.db import commits, dialect, migrate, table
from aliquot.service import ports, records

Result = TypeVar("Result")

# A write takes about a millisecond, so this many are some tenths of a second of waiting.
MOST_WAITING = 256


def open_store(
    target: str | Path, *, scope: records.Scope | None = None, most_waiting: int = MOST_WAITING
) -> "SqlStore":
    """Open the database at a path (`:memory:`: a new one that is not kept) or URL, and bring its tables up to date."""
    engine = dialect.engine(target)
    try:
        migrate.upgrade(engine)
    except BaseException:
        engine.dispose()
        raise
    return SqlStore(engine, scope or records.Scope(), most_waiting=most_waiting)


class SqlStore:
    """Implements `ports.Store`. Close it when done."""

    def __init__(self, engine: sa.Engine, scope: records.Scope, *, most_waiting: int = MOST_WAITING) -> None:
        self._engine = engine
        self._scope = scope
        self._most_waiting = most_waiting
        self._waiting = 0
        self._memory = table.Memory()
        self._writer = futures.ThreadPoolExecutor(1, "store-writer")
        is_shared = dialect.is_in_memory(engine.url)
        self._readers = self._writer if is_shared else futures.ThreadPoolExecutor(dialect.READERS, "store-reader")
        self._news = _News()
        self._newest = self._read(_newest)
        self._commits = commits.Commits(self._newest)

    async def read(self, work: Callable[[ports.Transaction], Result]) -> Result:
        """Run `work` on a consistent view."""
        return await asyncio.wrap_future(self._readers.submit(self._read, work))

    async def write(self, work: Callable[[ports.Transaction], Result]) -> Result:
        """Run `work`, one writer at a time; commit when it returns, undo when it raises."""
        if self._waiting >= self._most_waiting:
            raise errors.Unavailable(f"{self._waiting} changes are waiting to be written; try again soon")
        return await self._write_later(work)

    @property
    def patient(self) -> "PatientStore":
        """The same store for the cluster: what has happened must be written, however many are waiting."""
        return PatientStore(self)

    def newest(self) -> ports.Touched:
        """The last commit, without what it wrote."""
        return self._commits.newest()

    def touched(self, commit: int) -> ports.Touched | None:
        """What was written after a commit of this process; None: it was too long ago."""
        return self._commits.after(commit)

    def commit_before(self, sequence: int) -> int | None:
        """A commit after which is everything that was written since this event was; None: nobody knows any more."""
        return self._commits.before(sequence)

    async def changes(self) -> AsyncIterator[int]:
        """Yields the newest event sequence: at once, and whenever something was written."""
        with self._news.subscribe() as news:
            while True:
                news.clear()
                yield self._newest
                await news.wait()

    def close(self) -> None:
        """Wait for the writes that have begun, and let go of the database."""
        self._writer.shutdown(cancel_futures=True)
        self._readers.shutdown(cancel_futures=True)
        self._engine.dispose()

    async def _write_later(self, work: Callable[[ports.Transaction], Result]) -> Result:
        self._waiting += 1
        try:
            return await asyncio.wrap_future(self._writer.submit(self._write, work))
        finally:
            self._waiting -= 1

    def _read(self, work: Callable[[ports.Transaction], Result]) -> Result:
        try:
            with self._engine.connect() as connection:
                return work(table.SqlTransaction(connection, self._scope, self._memory))
        except sa.exc.DBAPIError as error:
            raise dialect.unavailable(error) from error

    def _write(self, work: Callable[[ports.Transaction], Result]) -> Result:
        try:
            with dialect.writing(self._engine.connect()) as connection, connection.begin():
                transaction = table.SqlTransaction(connection, self._scope, self._memory)
                result = work(transaction)
        except sa.exc.IntegrityError as error:
            # What is checked at the end of a transaction only: a parent that is not there.
            raise errors.Conflict(f"a row names another that is not there: {error.orig}", code="no-parent") from error
        except sa.exc.DBAPIError as error:
            raise dialect.unavailable(error) from error
        self._newest = max(self._newest, transaction.events.newest)
        if self._commits.note(self._newest, transaction.touched):
            self._news.publish()
        return result


class PatientStore:
    """Implements `ports.Store` on a store whose queue of writers it may pass by."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    async def read(self, work: Callable[[ports.Transaction], Result]) -> Result:
        """As the store's."""
        return await self._store.read(work)

    async def write(self, work: Callable[[ports.Transaction], Result]) -> Result:
        """As the store's, but never refused for the length of the queue."""
        return await self._store._write_later(work)

    async def changes(self) -> AsyncIterator[int]:
        """As the store's."""
        async for newest in self._store.changes():
            yield newest

    def newest(self) -> ports.Touched:
        """As the store's."""
        return self._store.newest()

    def touched(self, commit: int) -> ports.Touched | None:
        """As the store's."""
        return self._store.touched(commit)

    def commit_before(self, sequence: int) -> int | None:
        """As the store's."""
        return self._store.commit_before(sequence)


class _News:
    """Wakes followers in the threads of their own event loops."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._followers: set[_Follower] = set()

    def subscribe(self) -> "_Follower":
        return _Follower(self)

    def publish(self) -> None:
        with self._lock:
            for follower in self._followers:
                follower.wake()

    def add(self, follower: "_Follower") -> None:
        with self._lock:
            self._followers.add(follower)

    def discard(self, follower: "_Follower") -> None:
        with self._lock:
            self._followers.discard(follower)


class _Follower:
    """One follower, from the moment it listens until it stops."""

    def __init__(self, news: _News) -> None:
        self._news = news
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()

    def __enter__(self) -> asyncio.Event:
        self._news.add(self)
        return self._event

    def __exit__(self, *_: object) -> None:
        self._news.discard(self)

    def wake(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._event.set)


def _newest(tx: ports.Transaction) -> int:
    rows, _ = tx.events.page(ports.Query(sort=("-sequence",), limit=1))
    return rows[0].sequence if rows else 0
