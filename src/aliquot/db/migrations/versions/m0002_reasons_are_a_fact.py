"""Reasons leave the rows of workloads: all of a cycle are one fact, written once."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_column("workloads", "reason")


def downgrade() -> None:
    op.add_column("workloads", sa.Column("reason", sa.JSON(none_as_null=True), nullable=True))
