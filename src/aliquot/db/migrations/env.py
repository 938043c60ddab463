"""How Alembic runs the migrations: on the connection it is given, in the transaction that is open there."""

from alembic import context

from aliquot.db import schema

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=schema.metadata,
    # SQLite cannot alter most of a table: batch mode makes a new one and copies.
    render_as_batch=True,
    compare_type=True,
)
context.run_migrations()
