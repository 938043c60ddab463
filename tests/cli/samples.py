"""Shapes as the server would send them; a test names what matters to it."""

from datetime import UTC, datetime, timedelta
from typing import Any

from aliquot.core import lifecycle
from aliquot.core.model import Guarantee
from aliquot.core.plan import Code
from aliquot.wire import nodes, projects, records, workloads

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
AGO = NOW - timedelta(hours=2, minutes=14)


def share(index: int = 0, **more: Any) -> workloads.Share:  # Any: fields of the shape
    """Half a simulated H100."""
    fields = {
        "device": f"SIM-{index}",
        "index": index,
        "model": "H100",
        "milli_gpus": 500,
        "mib": 40_448,
        "guarantee": Guarantee.NONE,
        "is_simulated": True,
    }
    return workloads.Share(**{**fields, **more})


def pod(**more: Any) -> workloads.PodView:  # Any: fields of the shape
    """A pod that runs."""
    fields: dict[str, Any] = {
        "id": "pod-1",
        "index": 0,
        "attempt": 1,
        "phase": workloads.PodPhase.RUNNING,
        "node": "node-1",
        "shares": [share()],
        "pid": 4711,
        "bound": AGO,
        "started": AGO,
        "limits": "cpu: cgroup v1 (kernel); memory: cgroup v1 (kernel)",
    }
    return workloads.PodView(**{**fields, **more})


def workload(**more: Any) -> workloads.WorkloadDetail:  # Any: fields of the shape
    """A training that runs on half a simulated H100."""
    fields: dict[str, Any] = {
        "id": "01a",
        "name": "digits",
        "project": "default",
        "department": "default",
        "kind": workloads.Kind.TRAINING,
        "phase": lifecycle.Phase.RUNNING,
        "gpu": "0.5",
        "cpu": None,
        "memory": "8Gi",
        "replicas": 1,
        "priority": 25,
        "preemptible": True,
        "actor": "admin",
        "created": AGO,
        "started": AGO,
        "attempt": 1,
        "failures": 0,
        "evictions": 0,
        "ran_seconds": 8040,
        "devices": ["node-1/0"],
        "guarantee": Guarantee.NONE,
        "is_simulated": True,
        "definition": workloads.Definition(command=["python", "train.py"], working_directory="/home/ada/digits"),
        "pods": [pod()],
        "checkpoint_directory": "/home/ada/.local/share/aliquot/workloads/01a/checkpoint",
    }
    return workloads.WorkloadDetail(**{**fields, **more})


def reason(**more: Any) -> workloads.Reason:  # Any: fields of the shape
    """No device is free."""
    fields: dict[str, Any] = {
        "code": Code.NO_FREE_DEVICE,
        "message": "needs 1 whole GPU; none of 8 is free",
        "numbers": {"asked": 1, "free": 0},
        "blockers": [workloads.Blocker(workload="01b", description="big holds 8 GPUs")],
        "position": 1,
    }
    return workloads.Reason(**{**fields, **more})


def waiting(**more: Any) -> workloads.WorkloadDetail:  # Any: fields of the shape
    """A training that waits."""
    fields: dict[str, Any] = {
        "name": "want",
        "phase": lifecycle.Phase.PENDING,
        "gpu": "1",
        "started": None,
        "attempt": 0,
        "ran_seconds": 0,
        "devices": [],
        "guarantee": None,
        "is_simulated": False,
        "pods": [],
        "reason": reason(),
    }
    return workload(**{**fields, **more})


def suggestion(**more: Any) -> workloads.Suggestion:  # Any: fields of the shape
    """A raise of the priority, which evicts."""
    fields: dict[str, Any] = {
        "description": "raise its priority from 25 to 26",
        "command": "aliquot update want --priority 26",
        "who_can": "owner",
        "outcome": "starts-after-evictions",
        "evicts": ["big"],
        "operation": "updateWorkload",
        "target": "want",
    }
    return workloads.Suggestion(**{**fields, **more})


def device(index: int = 0, **more: Any) -> nodes.DeviceView:  # Any: fields of the shape
    """A simulated H100 that is free."""
    fields: dict[str, Any] = {
        "id": f"SIM-{index}",
        "node": "node-1",
        "index": index,
        "model": "H100",
        "memory_mib": 81_000,
        "is_simulated": True,
        "guarantee": Guarantee.NONE,
        "guarantee_description": "Nothing enforces the share.",
        "held_milli_gpus": 0,
        "held_mib": 0,
        "holders": [],
    }
    return nodes.DeviceView(**{**fields, **more})


def real_device(index: int = 0, **more: Any) -> nodes.DeviceView:  # Any: fields of the shape
    """An H200 that half of a workload uses."""
    holder = nodes.DeviceHolder(
        workload="01a",
        workload_name="digits",
        project="default",
        pod="pod-1",
        milli_gpus=500,
        mib=70_000,
        is_ending=False,
    )
    fields: dict[str, Any] = {
        "id": f"GPU-{index}",
        "model": "H200",
        "memory_mib": 143_000,
        "is_simulated": False,
        "guarantee": Guarantee.DETECTED,
        "held_milli_gpus": 500,
        "held_mib": 70_000,
        "holders": [holder],
        "use": nodes.DeviceUse(utilisation_percent=63, used_mib=20_480),
    }
    return device(index, **{**fields, **more})


def project(**more: Any) -> projects.ProjectView:  # Any: fields of the shape
    """A project with half a machine."""
    terms = projects.PoolTerms(gpu=projects.Claim(quota="4", weight=2))
    standing = projects.PoolStanding(terms=terms, fair_share={"gpu": "4"}, held={"gpu": "6.5"}, asked={"gpu": "8"})
    fields: dict[str, Any] = {
        "id": "01p",
        "name": "vision",
        "department": "default",
        "created": AGO,
        "pools": {"default": standing},
        "waiting": 1,
        "running": 3,
        "follows_machine": False,
    }
    return projects.ProjectView(**{**fields, **more})


def status(**more: Any) -> records.Status:  # Any: fields of the shape
    """A server with simulated devices."""
    fields: dict[str, Any] = {
        "version": "0.1.0",
        "url": "http://127.0.0.1:8265",
        "pid": 99,
        "data_directory": "/home/ada/.local/share/aliquot",
        "started": AGO,
        "cluster": "default",
        "node": "node-1",
        "devices": records.DeviceSummary(
            count=8, models=["H100"], is_simulated=True, guarantee=Guarantee.NONE, description="8 simulated H100"
        ),
        "limits": "cgroup v1 (kernel)",
        "user": "ada",
        "running": 1,
        "waiting": 1,
        "is_accepting": True,
    }
    return records.Status(**{**fields, **more})
