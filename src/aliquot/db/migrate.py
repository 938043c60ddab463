"""Brings the tables of a database to what this version needs, and back.

Promises: a migration is one transaction; a database that a newer version wrote is refused, never changed.
"""

from pathlib import Path

import alembic.command
import alembic.config
import alembic.util
import sqlalchemy as sa

from aliquot.core import errors
from aliquot.db import dialect

FOLDER = Path(__file__).parent / "migrations"


def upgrade(engine: sa.Engine, revision: str = "head") -> None:
    """Run the migrations that are missing."""
    try:
        with dialect.writing(engine.connect()) as connection, connection.begin():
            alembic.command.upgrade(config(connection), revision)
    except alembic.util.CommandError as error:
        raise errors.Conflict(
            f"the database was written by another version of Aliquot ({error}); use that one, or a newer",
            code="newer-data",
        ) from error
    except sa.exc.DBAPIError as error:
        raise dialect.unavailable(error) from error


def downgrade(engine: sa.Engine, revision: str) -> None:
    """Undo the migrations after `revision` (`base`: all)."""
    with dialect.writing(engine.connect()) as connection, connection.begin():
        alembic.command.downgrade(config(connection), revision)


def config(connection: sa.Connection) -> alembic.config.Config:
    """Alembic's settings, for this connection; there is no file of them."""
    made = alembic.config.Config()
    made.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    made.attributes["connection"] = connection
    return made
