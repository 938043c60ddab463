"""Migrations build exactly what the schema says, and can be undone."""

import asyncio
import pathlib
from collections.abc import Iterator

import alembic.autogenerate
import alembic.migration
import pytest
import sqlalchemy as sa

from aliquot.core import errors
from aliquot.db import dialect, migrate, schema, store
from aliquot.service import records


@pytest.fixture
def engine(tmp_path: pathlib.Path) -> Iterator[sa.Engine]:
    made = dialect.engine(tmp_path / "one.db")
    yield made
    made.dispose()


def test_the_migrations_build_what_the_schema_says(engine: sa.Engine) -> None:
    migrate.upgrade(engine)

    with engine.connect() as connection:
        context = alembic.migration.MigrationContext.configure(connection, opts={"compare_type": True})
        assert alembic.autogenerate.compare_metadata(context, schema.metadata) == []


def test_the_migrations_write_the_same_sql_as_the_schema(engine: sa.Engine, tmp_path: pathlib.Path) -> None:
    # The comparison of Alembic does not look at the conditions of indices and at deferred keys.
    other = dialect.engine(tmp_path / "other.db")
    migrate.upgrade(engine)

    schema.metadata.create_all(other)

    assert written(engine) == written(other)
    other.dispose()


def test_every_migration_can_be_undone(engine: sa.Engine) -> None:
    migrate.upgrade(engine)
    before = written(engine)

    migrate.downgrade(engine, "base")
    between = written(engine)
    migrate.upgrade(engine)

    assert (between, written(engine)) == (set(), before)


def test_what_was_stored_is_kept_from_version_to_version(tmp_path: pathlib.Path, engine: sa.Engine) -> None:
    row = records.FactRow("boot", "7")
    kept = store.open_store(tmp_path / "one.db")
    asyncio.run(kept.write(lambda tx: tx.facts.put(row)))
    kept.close()

    migrate.downgrade(engine, "0001")
    migrate.upgrade(engine)

    again = store.open_store(tmp_path / "one.db")
    assert asyncio.run(again.read(lambda tx: tx.facts.get("boot"))) == row
    again.close()


def test_upgrading_twice_changes_nothing(engine: sa.Engine) -> None:
    migrate.upgrade(engine)
    before = written(engine)

    migrate.upgrade(engine)

    assert written(engine) == before


def test_a_database_of_a_newer_version_is_refused_and_left_alone(engine: sa.Engine) -> None:
    migrate.upgrade(engine)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    before = written(engine)

    with pytest.raises(errors.Conflict) as caught:
        migrate.upgrade(engine)

    assert caught.value.stable_code == "newer-data"
    assert written(engine) == before


def written(engine: sa.Engine) -> set[str]:
    """The SQL of all tables and indices, in one form of writing."""
    with engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").scalars()
        ours = [sql for sql in found if "alembic_version" not in sql and "sqlite_sequence" not in sql]
    return {" ".join(sql.replace('"', "").replace("_alembic_tmp_", "").split()) for sql in ours}
