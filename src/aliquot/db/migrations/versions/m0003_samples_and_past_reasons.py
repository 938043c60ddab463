"""Samples for series, and for which reasons a workload waited since when."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "past_reasons",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("workload", sa.Text(), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", "tenant", "cluster", name=op.f("pk_past_reasons")),
    )
    op.create_index(
        op.f("ix_past_reasons_workload_since_tenant_cluster"),
        "past_reasons",
        ["workload", "since", "tenant", "cluster"],
        unique=False,
    )
    op.create_table(
        "samples",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("grain", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("values", sa.JSON(none_as_null=True), nullable=False),
        sa.PrimaryKeyConstraint("id", "tenant", "cluster", name=op.f("pk_samples")),
    )
    op.create_index(
        op.f("ix_samples_grain_kind_time_tenant_cluster"),
        "samples",
        ["grain", "kind", "time", "tenant", "cluster"],
        unique=False,
    )


def downgrade() -> None:
    op.drop_index(op.f("ix_samples_grain_kind_time_tenant_cluster"), "samples")
    op.drop_table("samples")
    op.drop_index(op.f("ix_past_reasons_workload_since_tenant_cluster"), "past_reasons")
    op.drop_table("past_reasons")
