"""From a stored intent to a launch: the command, the folder and the environment of a pod."""

import pwd
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from aliquot.core.model import Share
from aliquot.local.folders import Folders
from aliquot.local.launch import Launch
from aliquot.service.records import PodRow, WorkloadRow

CLEAN_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_OURS = frozenset({"ALIQUOT_TOKEN", "ALIQUOT_URL"})
"""Never passed on: a workload gets no access to the server that runs it."""


@dataclass(frozen=True, slots=True)
class Person:
    """The Unix user whose work this is."""

    name: str
    home: str
    shell: str

    @classmethod
    def of(cls, uid: int) -> "Person":
        """The user of this id, also where the machine has no name for it."""
        try:
            entry = pwd.getpwuid(uid)
        except KeyError:
            return cls(str(uid), "/", "/bin/sh")
        return cls(entry.pw_name, entry.pw_dir, entry.pw_shell or "/bin/sh")


def launch(row: WorkloadRow, pod: PodRow, project: str, *, folders: Folders, person: Person) -> Launch:
    """What the runner is told to start for this pod."""
    return Launch(
        pod=pod.id,
        workload=row.id,
        argv=_argv(row, folders),
        folder=Path(row.definition.working_directory or folders.work(row.id)),
        environment=_environment(row, pod, project, folders=folders, person=person),
        milli_cpus=pod.milli_cpus or None,
        memory_bytes=pod.memory_bytes or None,
        grace=row.grace,
        stdin={"none": "none", "pipe": "pipe", "terminal": "pty"}[row.definition.stdin],  # type: ignore[arg-type]  # the values are the literals
    )


def prepare(row: WorkloadRow, folders: Folders) -> None:
    """Make the folders that the workload owns, and write its script. Harmless to repeat."""
    for folder in (folders.work(row.id), folders.checkpoint(row.id)):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    script = folders.script(row.id)
    if row.definition.script is not None and not script.exists():
        draft = script.with_suffix(".draft")
        draft.write_text(row.definition.script, encoding="utf-8")
        draft.chmod(0o700)
        draft.rename(script)


def _argv(row: WorkloadRow, folders: Folders) -> tuple[str, ...]:
    if row.definition.command is not None:
        return tuple(row.definition.command)
    path = str(folders.script(row.id))
    return (path,) if (row.definition.script or "").startswith("#!") else ("/bin/sh", path)


def _environment(row: WorkloadRow, pod: PodRow, project: str, *, folders: Folders, person: Person) -> Mapping[str, str]:
    given = {key: value for key, value in row.definition.environment.items() if key not in _OURS}
    clean = {
        "PATH": CLEAN_PATH,
        "HOME": person.home,
        "USER": person.name,
        "LOGNAME": person.name,
        "SHELL": person.shell,
        "LANG": "C.UTF-8",
        # Output goes through a pipe; without this a Python program would show nothing until it has written 8 KiB.
        "PYTHONUNBUFFERED": "1",
    }
    ours = {
        "ALIQUOT_WORKLOAD_ID": row.id,
        "ALIQUOT_WORKLOAD_NAME": row.name,
        "ALIQUOT_PROJECT": project,
        "ALIQUOT_POD_ID": pod.id,
        "ALIQUOT_REPLICA": str(pod.index),
        "ALIQUOT_REPLICAS": str(row.definition.replicas),
        "ALIQUOT_ATTEMPT": str(pod.attempt),
        "ALIQUOT_CHECKPOINT_DIR": str(folders.checkpoint(row.id)),
        **({"ALIQUOT_PORT": str(pod.port)} if pod.port is not None else {}),
        **_devices(pod.shares),
    }
    return {**clean, **given, **ours}


def _devices(shares: tuple[Share, ...]) -> dict[str, str]:
    """Only what it holds is visible, so a pod without a GPU sees none, whatever its program asks for."""
    ids = ",".join(share.device for share in shares)
    return {
        "CUDA_VISIBLE_DEVICES": ids,
        "NVIDIA_VISIBLE_DEVICES": ids or "void",
        "ALIQUOT_DEVICES": ids,
        "ALIQUOT_GPU_MILLI": ",".join(str(share.milli) for share in shares),
        "ALIQUOT_GPU_MIB": ",".join(str(share.mib) for share in shares),
    }
