"""What is, as the scheduler would see it, for questions: why does it wait, what if I submit this.

Promises: it only reads. The cluster's own `snapshot` belongs to the loop, because it acts on what it finds.
"""

from collections.abc import Sequence

from aliquot.core import lifecycle
from aliquot.core.model import Node, Queue, Snapshot
from aliquot.service import demand, ports, records


async def snapshot(store: ports.Store, cluster: ports.Cluster) -> Snapshot:
    """The whole cluster at this instant."""
    nodes = await cluster.nodes()
    return await store.read(lambda tx: _snapshot(tx, nodes))


def queues(tx: ports.Transaction) -> tuple[Queue, ...]:
    """The queue tree."""
    return tuple(Queue(row.id, row.name, row.created, row.department, row.terms) for row in tx.queues.find())


def _snapshot(tx: ports.Transaction, nodes: Sequence[Node]) -> Snapshot:
    rows = [row for row in tx.workloads.find(finished=None, deleted=None) if row.phase not in demand.UNSEEN]
    placed = [row.id for row in rows if row.phase is not lifecycle.Phase.PENDING]
    pods: dict[str, list[records.PodRow]] = {}
    for pod in tx.pods.find(ports.Where("workload", "in", placed)):
        pods.setdefault(pod.workload, []).append(pod)
    workloads = tuple(demand.demand(row, pods.get(row.id, ())) for row in rows)
    promises = demand.promises(tx.promises.find(), rows)
    return Snapshot(nodes=tuple(nodes), queues=queues(tx), workloads=workloads, promises=promises)
