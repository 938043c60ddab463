"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("verb", sa.Text(), nullable=False),
        sa.Column("noun", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", "tenant", "cluster", name=op.f("pk_audit")),
    )
    op.create_index(op.f("ix_audit_subject_tenant_cluster"), "audit", ["subject", "tenant", "cluster"], unique=False)
    op.create_index(op.f("ix_audit_time_tenant_cluster"), "audit", ["time", "tenant", "cluster"], unique=False)

    op.create_table(
        "cordons",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", "tenant", "cluster", name=op.f("pk_cordons")),
    )
    op.create_table(
        "credentials",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("expires", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", "tenant", "cluster", name=op.f("pk_credentials")),
    )
    op.create_table(
        "devices",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("index", sa.BigInteger(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("memory_mib", sa.BigInteger(), nullable=False),
        sa.Column("is_simulated", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", "tenant", "cluster", name=op.f("pk_devices")),
    )
    op.create_table(
        "events",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("noun", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("subject_name", sa.Text(), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=True),
        sa.Column("sequence", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.PrimaryKeyConstraint("sequence", name=op.f("pk_events")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        op.f("ix_events_noun_code_tenant_cluster"), "events", ["noun", "code", "tenant", "cluster"], unique=False
    )
    op.create_index(op.f("ix_events_project_tenant_cluster"), "events", ["project", "tenant", "cluster"], unique=False)
    op.create_index(op.f("ix_events_subject_tenant_cluster"), "events", ["subject", "tenant", "cluster"], unique=False)

    op.create_table(
        "facts",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", "tenant", "cluster", name=op.f("pk_facts")),
    )
    op.create_table(
        "ledger",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("workload", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("pod", sa.Text(), nullable=False),
        sa.Column("device", sa.Text(), nullable=False),
        sa.Column("milli", sa.BigInteger(), nullable=False),
        sa.Column("mib", sa.BigInteger(), nullable=False),
        sa.Column("opened", sa.BigInteger(), nullable=False),
        sa.Column("closed", sa.BigInteger(), nullable=True),
        sa.Column("used_milli_seconds", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", "tenant", "cluster", name=op.f("pk_ledger")),
    )
    op.create_index(
        "ix_ledger_open",
        "ledger",
        ["id", "tenant", "cluster"],
        unique=False,
        sqlite_where=sa.text("closed IS NULL"),
        postgresql_where=sa.text("closed IS NULL"),
    )
    op.create_index(op.f("ix_ledger_project_tenant_cluster"), "ledger", ["project", "tenant", "cluster"], unique=False)
    op.create_index(
        op.f("ix_ledger_workload_tenant_cluster"), "ledger", ["workload", "tenant", "cluster"], unique=False
    )
    op.create_index(
        "uq_ledger_open",
        "ledger",
        ["pod", "device", "tenant", "cluster"],
        unique=True,
        sqlite_where=sa.text("closed IS NULL"),
        postgresql_where=sa.text("closed IS NULL"),
    )

    op.create_table(
        "promises",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("places", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("made", sa.BigInteger(), nullable=False),
        sa.Column("due", sa.BigInteger(), nullable=False),
        sa.Column("expires", sa.BigInteger(), nullable=False),
        sa.Column("waits_for", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("may_evict", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", "tenant", "cluster", name=op.f("pk_promises")),
    )
    op.create_table(
        "queues",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("department", sa.Text(), nullable=True),
        sa.Column("terms", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("follows_machine", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["department", "tenant", "cluster"],
            ["queues.id", "queues.tenant", "queues.cluster"],
            name=op.f("fk_queues_department"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", "tenant", "cluster", name=op.f("pk_queues")),
    )
    op.create_index(
        op.f("ix_queues_department_tenant_cluster"), "queues", ["department", "tenant", "cluster"], unique=False
    )
    op.create_index(
        "uq_queues_department",
        "queues",
        ["name", "tenant", "cluster"],
        unique=True,
        sqlite_where=sa.text("department IS NULL"),
        postgresql_where=sa.text("department IS NULL"),
    )
    op.create_index(
        "uq_queues_project",
        "queues",
        ["name", "tenant", "cluster"],
        unique=True,
        sqlite_where=sa.text("department IS NOT NULL"),
        postgresql_where=sa.text("department IS NOT NULL"),
    )

    op.create_table(
        "receipts",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("workload", sa.Text(), nullable=False),
        sa.Column("workload_name", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("pod", sa.Text(), nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("explanation", sa.Text(), nullable=False),
        sa.Column("evicted", sa.BigInteger(), nullable=False),
        sa.Column("ran", sa.BigInteger(), nullable=False),
        sa.Column("milli_gpus", sa.BigInteger(), nullable=False),
        sa.Column("beneficiary", sa.Text(), nullable=True),
        sa.Column("beneficiary_name", sa.Text(), nullable=True),
        sa.Column("rejected", sa.JSON(none_as_null=True), nullable=False),
        sa.PrimaryKeyConstraint("id", "tenant", "cluster", name=op.f("pk_receipts")),
    )
    op.create_index(
        op.f("ix_receipts_evicted_tenant_cluster"), "receipts", ["evicted", "tenant", "cluster"], unique=False
    )
    op.create_index(
        op.f("ix_receipts_project_tenant_cluster"), "receipts", ["project", "tenant", "cluster"], unique=False
    )
    op.create_index(
        op.f("ix_receipts_workload_tenant_cluster"), "receipts", ["workload", "tenant", "cluster"], unique=False
    )

    op.create_table(
        "workloads",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("definition", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("request", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("priority", sa.BigInteger(), nullable=False),
        sa.Column("is_preemptible", sa.Boolean(), nullable=False),
        sa.Column("grace", sa.BigInteger(), nullable=False),
        sa.Column("back_off", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("waiting_since", sa.BigInteger(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("max_run_time", sa.BigInteger(), nullable=True),
        sa.Column("ttl", sa.BigInteger(), nullable=True),
        sa.Column("key", sa.Text(), nullable=True),
        sa.Column("body_hash", sa.Text(), nullable=True),
        sa.Column("attempt", sa.BigInteger(), nullable=False),
        sa.Column("failures", sa.BigInteger(), nullable=False),
        sa.Column("evictions", sa.BigInteger(), nullable=False),
        sa.Column("ran", sa.BigInteger(), nullable=False),
        sa.Column("running_since", sa.BigInteger(), nullable=True),
        sa.Column("first_started", sa.BigInteger(), nullable=True),
        sa.Column("finished", sa.BigInteger(), nullable=True),
        sa.Column("not_before", sa.BigInteger(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("exit_code", sa.BigInteger(), nullable=True),
        sa.Column("exit_signal", sa.BigInteger(), nullable=True),
        sa.Column("reason", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("is_deleting", sa.Boolean(), nullable=False),
        sa.Column("deleted", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", "tenant", "cluster", name=op.f("pk_workloads")),
    )
    op.create_index(
        op.f("ix_workloads_created_tenant_cluster"), "workloads", ["created", "tenant", "cluster"], unique=False
    )
    op.create_index(
        "ix_workloads_deleting",
        "workloads",
        ["is_deleting", "tenant", "cluster"],
        unique=False,
        sqlite_where=sa.text("deleted IS NULL"),
        postgresql_where=sa.text("deleted IS NULL"),
    )
    op.create_index(op.f("ix_workloads_name_tenant_cluster"), "workloads", ["name", "tenant", "cluster"], unique=False)
    op.create_index(
        "ix_workloads_open",
        "workloads",
        ["id", "tenant", "cluster"],
        unique=False,
        sqlite_where=sa.text("finished IS NULL"),
        postgresql_where=sa.text("finished IS NULL"),
    )
    op.create_index(
        op.f("ix_workloads_phase_tenant_cluster"), "workloads", ["phase", "tenant", "cluster"], unique=False
    )
    op.create_index(
        op.f("ix_workloads_project_created_tenant_cluster"),
        "workloads",
        ["project", "created", "tenant", "cluster"],
        unique=False,
    )
    op.create_index(
        "ix_workloads_ttl",
        "workloads",
        ["id", "tenant", "cluster"],
        unique=False,
        sqlite_where=sa.text("ttl IS NOT NULL AND deleted IS NULL"),
        postgresql_where=sa.text("ttl IS NOT NULL AND deleted IS NULL"),
    )
    op.create_index(
        "uq_workloads_key",
        "workloads",
        ["actor", "key", "tenant", "cluster"],
        unique=True,
        sqlite_where=sa.text("key IS NOT NULL"),
        postgresql_where=sa.text("key IS NOT NULL"),
    )
    op.create_index(
        "uq_workloads_unfinished",
        "workloads",
        ["project", "name", "tenant", "cluster"],
        unique=True,
        sqlite_where=sa.text("finished IS NULL"),
        postgresql_where=sa.text("finished IS NULL"),
    )

    op.create_table(
        "pods",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("workload", sa.Text(), nullable=False),
        sa.Column("index", sa.BigInteger(), nullable=False),
        sa.Column("attempt", sa.BigInteger(), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("bound", sa.BigInteger(), nullable=False),
        sa.Column("shares", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("milli_cpus", sa.BigInteger(), nullable=False),
        sa.Column("memory_bytes", sa.BigInteger(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("port", sa.BigInteger(), nullable=True),
        sa.Column("pid", sa.BigInteger(), nullable=True),
        sa.Column("started", sa.BigInteger(), nullable=True),
        sa.Column("ending_since", sa.BigInteger(), nullable=True),
        sa.Column("ended", sa.BigInteger(), nullable=True),
        sa.Column("exit_kind", sa.Text(), nullable=True),
        sa.Column("exit_code", sa.BigInteger(), nullable=True),
        sa.Column("exit_signal", sa.BigInteger(), nullable=True),
        sa.Column("exit_message", sa.Text(), nullable=True),
        sa.Column("limits", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["workload", "tenant", "cluster"],
            ["workloads.id", "workloads.tenant", "workloads.cluster"],
            name=op.f("fk_pods_workload"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", "tenant", "cluster", name=op.f("pk_pods")),
    )
    op.create_index(
        "ix_pods_open",
        "pods",
        ["id", "tenant", "cluster"],
        unique=False,
        sqlite_where=sa.text("ended IS NULL"),
        postgresql_where=sa.text("ended IS NULL"),
    )
    op.create_index(op.f("ix_pods_phase_tenant_cluster"), "pods", ["phase", "tenant", "cluster"], unique=False)
    op.create_index(
        op.f("ix_pods_workload_attempt_index_tenant_cluster"),
        "pods",
        ["workload", "attempt", "index", "tenant", "cluster"],
        unique=False,
    )


def downgrade() -> None:
    op.drop_index(op.f("ix_pods_workload_attempt_index_tenant_cluster"), "pods")
    op.drop_index(op.f("ix_pods_phase_tenant_cluster"), "pods")
    op.drop_index(
        "ix_pods_open", "pods", sqlite_where=sa.text("ended IS NULL"), postgresql_where=sa.text("ended IS NULL")
    )

    op.drop_table("pods")
    op.drop_index(
        "uq_workloads_unfinished",
        "workloads",
        sqlite_where=sa.text("finished IS NULL"),
        postgresql_where=sa.text("finished IS NULL"),
    )
    op.drop_index(
        "uq_workloads_key",
        "workloads",
        sqlite_where=sa.text("key IS NOT NULL"),
        postgresql_where=sa.text("key IS NOT NULL"),
    )
    op.drop_index(
        "ix_workloads_ttl",
        "workloads",
        sqlite_where=sa.text("ttl IS NOT NULL AND deleted IS NULL"),
        postgresql_where=sa.text("ttl IS NOT NULL AND deleted IS NULL"),
    )
    op.drop_index(op.f("ix_workloads_project_created_tenant_cluster"), "workloads")
    op.drop_index(op.f("ix_workloads_phase_tenant_cluster"), "workloads")
    op.drop_index(
        "ix_workloads_open",
        "workloads",
        sqlite_where=sa.text("finished IS NULL"),
        postgresql_where=sa.text("finished IS NULL"),
    )
    op.drop_index(op.f("ix_workloads_name_tenant_cluster"), "workloads")
    op.drop_index(
        "ix_workloads_deleting",
        "workloads",
        sqlite_where=sa.text("deleted IS NULL"),
        postgresql_where=sa.text("deleted IS NULL"),
    )
    op.drop_index(op.f("ix_workloads_created_tenant_cluster"), "workloads")

    op.drop_table("workloads")
    op.drop_index(op.f("ix_receipts_workload_tenant_cluster"), "receipts")
    op.drop_index(op.f("ix_receipts_project_tenant_cluster"), "receipts")
    op.drop_index(op.f("ix_receipts_evicted_tenant_cluster"), "receipts")

    op.drop_table("receipts")
    op.drop_index(
        "uq_queues_project",
        "queues",
        sqlite_where=sa.text("department IS NOT NULL"),
        postgresql_where=sa.text("department IS NOT NULL"),
    )
    op.drop_index(
        "uq_queues_department",
        "queues",
        sqlite_where=sa.text("department IS NULL"),
        postgresql_where=sa.text("department IS NULL"),
    )
    op.drop_index(op.f("ix_queues_department_tenant_cluster"), "queues")

    op.drop_table("queues")
    op.drop_table("promises")
    op.drop_index(
        "uq_ledger_open", "ledger", sqlite_where=sa.text("closed IS NULL"), postgresql_where=sa.text("closed IS NULL")
    )
    op.drop_index(op.f("ix_ledger_workload_tenant_cluster"), "ledger")
    op.drop_index(op.f("ix_ledger_project_tenant_cluster"), "ledger")
    op.drop_index(
        "ix_ledger_open", "ledger", sqlite_where=sa.text("closed IS NULL"), postgresql_where=sa.text("closed IS NULL")
    )

    op.drop_table("ledger")
    op.drop_table("facts")
    op.drop_index(op.f("ix_events_subject_tenant_cluster"), "events")
    op.drop_index(op.f("ix_events_project_tenant_cluster"), "events")
    op.drop_index(op.f("ix_events_noun_code_tenant_cluster"), "events")

    op.drop_table("events")
    op.drop_table("devices")
    op.drop_table("credentials")
    op.drop_table("cordons")
    op.drop_index(op.f("ix_audit_time_tenant_cluster"), "audit")
    op.drop_index(op.f("ix_audit_subject_tenant_cluster"), "audit")

    op.drop_table("audit")
