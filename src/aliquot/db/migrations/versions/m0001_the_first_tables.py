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
        sa.PrimaryKeyConstraint("tenant", "cluster", "id", name=op.f("pk_audit")),
    )
    op.create_index(op.f("ix_audit_tenant_cluster_subject"), "audit", ["tenant", "cluster", "subject"], unique=False)
    op.create_index(op.f("ix_audit_tenant_cluster_time"), "audit", ["tenant", "cluster", "time"], unique=False)

    op.create_table(
        "cordons",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "cluster", "id", name=op.f("pk_cordons")),
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
        sa.PrimaryKeyConstraint("tenant", "cluster", "id", name=op.f("pk_credentials")),
    )
    op.create_index(
        op.f("ix_credentials_tenant_cluster_expires"), "credentials", ["tenant", "cluster", "expires"], unique=False
    )
    op.create_index(
        op.f("ix_credentials_tenant_cluster_kind"), "credentials", ["tenant", "cluster", "kind"], unique=False
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
        sa.PrimaryKeyConstraint("tenant", "cluster", "id", name=op.f("pk_devices")),
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
    op.create_index(op.f("ix_events_tenant_cluster_project"), "events", ["tenant", "cluster", "project"], unique=False)
    op.create_index(op.f("ix_events_tenant_cluster_subject"), "events", ["tenant", "cluster", "subject"], unique=False)

    op.create_table(
        "facts",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "cluster", "id", name=op.f("pk_facts")),
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
        sa.PrimaryKeyConstraint("tenant", "cluster", "id", name=op.f("pk_ledger")),
    )
    op.create_index(op.f("ix_ledger_tenant_cluster_closed"), "ledger", ["tenant", "cluster", "closed"], unique=False)
    op.create_index(op.f("ix_ledger_tenant_cluster_project"), "ledger", ["tenant", "cluster", "project"], unique=False)
    op.create_index(
        op.f("ix_ledger_tenant_cluster_workload"), "ledger", ["tenant", "cluster", "workload"], unique=False
    )
    op.create_index(
        "uq_ledger_open",
        "ledger",
        ["tenant", "cluster", "pod", "device"],
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
        sa.PrimaryKeyConstraint("tenant", "cluster", "id", name=op.f("pk_promises")),
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
            ["tenant", "cluster", "department"],
            ["queues.tenant", "queues.cluster", "queues.id"],
            name=op.f("fk_queues_tenant"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("tenant", "cluster", "id", name=op.f("pk_queues")),
    )
    op.create_index(
        op.f("ix_queues_tenant_cluster_department"), "queues", ["tenant", "cluster", "department"], unique=False
    )
    op.create_index(
        "uq_queues_department",
        "queues",
        ["tenant", "cluster", "name"],
        unique=True,
        sqlite_where=sa.text("department IS NULL"),
        postgresql_where=sa.text("department IS NULL"),
    )
    op.create_index(
        "uq_queues_project",
        "queues",
        ["tenant", "cluster", "name"],
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
        sa.PrimaryKeyConstraint("tenant", "cluster", "id", name=op.f("pk_receipts")),
    )
    op.create_index(
        op.f("ix_receipts_tenant_cluster_evicted"), "receipts", ["tenant", "cluster", "evicted"], unique=False
    )
    op.create_index(
        op.f("ix_receipts_tenant_cluster_project"), "receipts", ["tenant", "cluster", "project"], unique=False
    )
    op.create_index(
        op.f("ix_receipts_tenant_cluster_workload"), "receipts", ["tenant", "cluster", "workload"], unique=False
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
        sa.PrimaryKeyConstraint("tenant", "cluster", "id", name=op.f("pk_workloads")),
    )
    op.create_index(
        op.f("ix_workloads_tenant_cluster_created"), "workloads", ["tenant", "cluster", "created"], unique=False
    )
    op.create_index(
        op.f("ix_workloads_tenant_cluster_is_deleting"), "workloads", ["tenant", "cluster", "is_deleting"], unique=False
    )
    op.create_index(op.f("ix_workloads_tenant_cluster_name"), "workloads", ["tenant", "cluster", "name"], unique=False)
    op.create_index(
        op.f("ix_workloads_tenant_cluster_phase"), "workloads", ["tenant", "cluster", "phase"], unique=False
    )
    op.create_index(
        op.f("ix_workloads_tenant_cluster_project_created"),
        "workloads",
        ["tenant", "cluster", "project", "created"],
        unique=False,
    )
    op.create_index(
        "uq_workloads_key",
        "workloads",
        ["tenant", "cluster", "actor", "key"],
        unique=True,
        sqlite_where=sa.text("key IS NOT NULL"),
        postgresql_where=sa.text("key IS NOT NULL"),
    )
    op.create_index(
        "uq_workloads_unfinished",
        "workloads",
        ["tenant", "cluster", "project", "name"],
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
            ["tenant", "cluster", "workload"],
            ["workloads.tenant", "workloads.cluster", "workloads.id"],
            name=op.f("fk_pods_tenant"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("tenant", "cluster", "id", name=op.f("pk_pods")),
    )
    op.create_index(op.f("ix_pods_tenant_cluster_phase"), "pods", ["tenant", "cluster", "phase"], unique=False)
    op.create_index(
        op.f("ix_pods_tenant_cluster_workload_attempt_index"),
        "pods",
        ["tenant", "cluster", "workload", "attempt", "index"],
        unique=False,
    )


def downgrade() -> None:
    op.drop_index(op.f("ix_pods_tenant_cluster_workload_attempt_index"), "pods")
    op.drop_index(op.f("ix_pods_tenant_cluster_phase"), "pods")

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
    op.drop_index(op.f("ix_workloads_tenant_cluster_project_created"), "workloads")
    op.drop_index(op.f("ix_workloads_tenant_cluster_phase"), "workloads")
    op.drop_index(op.f("ix_workloads_tenant_cluster_name"), "workloads")
    op.drop_index(op.f("ix_workloads_tenant_cluster_is_deleting"), "workloads")
    op.drop_index(op.f("ix_workloads_tenant_cluster_created"), "workloads")

    op.drop_table("workloads")
    op.drop_index(op.f("ix_receipts_tenant_cluster_workload"), "receipts")
    op.drop_index(op.f("ix_receipts_tenant_cluster_project"), "receipts")
    op.drop_index(op.f("ix_receipts_tenant_cluster_evicted"), "receipts")

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
    op.drop_index(op.f("ix_queues_tenant_cluster_department"), "queues")

    op.drop_table("queues")
    op.drop_table("promises")
    op.drop_index(
        "uq_ledger_open", "ledger", sqlite_where=sa.text("closed IS NULL"), postgresql_where=sa.text("closed IS NULL")
    )
    op.drop_index(op.f("ix_ledger_tenant_cluster_workload"), "ledger")
    op.drop_index(op.f("ix_ledger_tenant_cluster_project"), "ledger")
    op.drop_index(op.f("ix_ledger_tenant_cluster_closed"), "ledger")

    op.drop_table("ledger")
    op.drop_table("facts")
    op.drop_index(op.f("ix_events_tenant_cluster_subject"), "events")
    op.drop_index(op.f("ix_events_tenant_cluster_project"), "events")

    op.drop_table("events")
    op.drop_table("devices")
    op.drop_index(op.f("ix_credentials_tenant_cluster_kind"), "credentials")
    op.drop_index(op.f("ix_credentials_tenant_cluster_expires"), "credentials")

    op.drop_table("credentials")
    op.drop_table("cordons")
    op.drop_index(op.f("ix_audit_tenant_cluster_time"), "audit")
    op.drop_index(op.f("ix_audit_tenant_cluster_subject"), "audit")

    op.drop_table("audit")
