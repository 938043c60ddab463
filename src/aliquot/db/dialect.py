"""All that is SQLite's own: how a connection is set up, how a write begins, and what its errors mean.

Promises: a committed write survives the loss of power (`synchronous=FULL`), because the ledger and the intents of pods
are only worth something if they were on the disk before the effect. (A `kill -9` alone would be survived with NORMAL,
too: what was written is in the kernel. FULL adds one fsync of the log to each commit.)
"""

import re
import sqlite3
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from aliquot.core import errors

# Readers never wait in WAL mode; a second process (a backup, a shell) may hold the write lock for this long.
BUSY_MILLISECONDS = 10_000
READERS = 4


def engine(target: str | Path, *, busy_milliseconds: int = BUSY_MILLISECONDS) -> sa.Engine:
    """An engine for the file at a path (`:memory:` for none) or for the database at a URL."""
    is_url = "://" in str(target)
    url = sa.make_url(str(target)) if is_url else sa.URL.create("sqlite", database=str(target))
    if url.get_backend_name() != "sqlite":
        return sa.create_engine(url, pool_size=READERS + 1)
    # Connections are handed from thread to thread by the pool, but never used by two at once. The one database in
    # memory has one connection, which the store uses from its one writing thread.
    pool: dict[str, Any] = {"poolclass": sa.StaticPool} if is_in_memory(url) else {"pool_size": READERS + 1}
    made = sa.create_engine(url, connect_args={"check_same_thread": False, "timeout": busy_milliseconds / 1000}, **pool)
    sa.event.listen(made, "connect", _set_up)
    sa.event.listen(made, "begin", _begin)
    return made


def is_in_memory(url: sa.URL) -> bool:
    """Whether this database is gone with its connection."""
    return url.get_backend_name() == "sqlite" and url.database in {None, "", ":memory:"}


def writing(connection: sa.Connection) -> sa.Connection:
    """The connection, whose transactions take the write lock at once: a later upgrade could fail without waiting."""
    return connection.execution_options(aliquot_is_writing=True)


def broken_columns(error: sa.exc.IntegrityError) -> set[str]:
    """The columns of the unique rule that was broken, as far as the database says."""
    text = str(error.orig)
    if text.startswith("UNIQUE constraint failed: "):
        return {name.strip().rpartition(".")[2] for name in text.partition(": ")[2].split(",")}
    named = re.search(r"Key \(([^)]*)\)=", text)
    return {name.strip() for name in named.group(1).split(",")} if named else set()


def unavailable(error: sa.exc.DBAPIError) -> errors.Unavailable:
    """What a failure of the database itself is to a user."""
    code = getattr(error.orig, "sqlite_errorcode", None)
    primary = None if code is None else code & 0xFF
    if primary == sqlite3.SQLITE_FULL or (primary == sqlite3.SQLITE_IOERR and "full" in str(error.orig)):
        return errors.Unavailable(
            "the disk of the database is full; free some space", code="disk-full", retry_after_seconds=10
        )
    if primary in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return errors.Unavailable("another program keeps the database locked", code="store-busy")
    return errors.Unavailable(f"the database does not answer: {error.orig}", code="store", retry_after_seconds=5)


def _set_up(connection: Any, _record: object) -> None:  # Any: the driver's own connection
    # We write BEGIN ourselves: the driver would begin too late, and only for some statements.
    connection.isolation_level = None
    for setting in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {setting}").close()


def _begin(connection: sa.Connection) -> None:
    is_writing = connection.get_execution_options().get("aliquot_is_writing", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if is_writing else "BEGIN")
