"""Where things lie on this machine: one data folder, and in it a place for each kind of thing."""

import shutil
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Folders:
    """The layout of the data folder. Only its owner can enter it."""

    data: Path

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return self.data / "aliquot.db"

    @property
    def token(self) -> Path:
        """The administrator's token, readable by its owner alone."""
        return self.data / "token"

    @property
    def server(self) -> Path:
        """Where the running server is: its url and pid, for clients."""
        return self.data / "server.json"

    @property
    def lock(self) -> Path:
        """Locked by the one server that uses this folder."""
        return self.data / "lock"

    @property
    def pods(self) -> Path:
        """The runner's root: a folder for each pod."""
        return self.data / "pods"

    def workload(self, workload: str) -> Path:
        """What belongs to a workload over all its attempts."""
        return self.data / "workloads" / workload

    def work(self, workload: str) -> Path:
        """Where a workload runs that names no folder."""
        return self.workload(workload) / "work"

    def checkpoint(self, workload: str) -> Path:
        """What stays from attempt to attempt (ALIQUOT_CHECKPOINT_DIR)."""
        return self.workload(workload) / "checkpoint"

    def script(self, workload: str) -> Path:
        """The text of its script, if it was submitted as one."""
        return self.workload(workload) / "script"

    def prepare(self) -> None:
        """Make what is missing."""
        self.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.data.chmod(0o700)
        self.pods.mkdir(exist_ok=True, mode=0o700)

    def erase(self, workload: str) -> None:
        """Remove what belongs to a workload. A folder that it named itself is not ours and stays."""
        shutil.rmtree(self.workload(workload), ignore_errors=True)
