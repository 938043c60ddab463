"""Everything that routes may call, in one value, so that an app is built from services and from nothing else."""

from dataclasses import dataclass

from aliquot.service import (
    access,
    audit,
    changes,
    departments,
    device_map,
    events,
    ledger,
    logs,
    nodes,
    overview,
    previews,
    projects,
    queue,
    receipts,
    series,
    server,
    terminals,
    timelines,
    usage,
    workloads,
)


@dataclass(frozen=True, slots=True)
class Services:
    """One object for each noun."""

    access: access.Access
    audit: audit.Audit
    changes: changes.Changes
    departments: departments.Departments
    device_map: device_map.DeviceMap
    events: events.Events
    ledger: ledger.Ledger
    logs: logs.Logs
    nodes: nodes.Nodes
    overview: overview.Overview
    previews: previews.Previews
    projects: projects.Projects
    queue: queue.Queue
    receipts: receipts.Receipts
    series: series.Series
    server: server.Server
    terminals: terminals.Terminals
    timelines: timelines.Timelines
    usage: usage.Usage
    workloads: workloads.Workloads
