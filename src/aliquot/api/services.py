"""Everything that routes may call, in one value, so that an app is built from services and from nothing else."""

from dataclasses import dataclass

from aliquot.service import (
    access,
    audit,
    departments,
    events,
    ledger,
    logs,
    nodes,
    projects,
    receipts,
    server,
    terminals,
    usage,
    workloads,
)


@dataclass(frozen=True, slots=True)
class Services:
    """One object for each noun."""

    access: access.Access
    audit: audit.Audit
    departments: departments.Departments
    events: events.Events
    ledger: ledger.Ledger
    logs: logs.Logs
    nodes: nodes.Nodes
    projects: projects.Projects
    receipts: receipts.Receipts
    server: server.Server
    terminals: terminals.Terminals
    usage: usage.Usage
    workloads: workloads.Workloads
