"""Every setting of the server, with its default and its unit. Nothing else reads the environment.

Each is an option of `aliquot up` or a variable `ALIQUOT_SERVER_<NAME>`; the data folder is `ALIQUOT_DATA`, as for
clients.
"""

import hashlib
import os
from datetime import timedelta
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from aliquot.client import discovery
from aliquot.core import errors
from aliquot.core.model import Policy

DEFAULT_PORT = 8265
PREFIX = "ALIQUOT_SERVER_"
"""Of the variables; ALIQUOT_PORT and ALIQUOT_DEVICES mean something else inside a job."""


def default_data() -> Path:
    """Where clients look for the server: `$ALIQUOT_DATA`, else `$XDG_DATA_HOME/aliquot`."""
    return discovery.data_folder(os.environ)


def default_state() -> Path:
    """`$XDG_STATE_HOME/aliquot`, by default below `~/.local/state`."""
    shared = os.environ.get("XDG_STATE_HOME", "")
    # A relative value is to be ignored: https://specifications.freedesktop.org/basedir-spec/latest/
    return (Path(shared) if shared.startswith("/") else Path.home() / ".local/state") / "aliquot"


class Settings(BaseSettings):
    """The server's settings."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore")

    data: Path = Field(default_factory=default_data, description="Folder of the database, logs and work.")
    state: Path = Field(default_factory=default_state, description="Folder of the server's own log.")
    host: str = Field("127.0.0.1", description="Address to listen on; anything but loopback is an explicit choice.")
    port: int = Field(DEFAULT_PORT, ge=0, le=65535, description="TCP port; 0 takes a free one.")
    devices: str | None = Field(None, description="Simulated devices, `8xH100`; not beside real ones.")
    only: str | None = Field(None, description="Offer these devices only: indexes or ids, `0,2`.")
    foreign: Literal["withhold", "shrink"] = Field(
        "withhold", description="A device that others use: withhold it, or offer what memory is left."
    )
    least_free_mib: int = Field(256, ge=1, description="With less free MiB on the disk nothing new starts.")
    release_grace_seconds: int = Field(30, ge=1, description="Seconds after which an eviction's place is due.")
    step_budget: int = Field(2_000_000, ge=1_000, description="Steps of search in one cycle.")
    max_moved_pods: int = Field(16, ge=0, description="Pods that may be moved for one workload; 0 moves none.")

    @field_validator("data", "state")
    @classmethod
    def _absolute(cls, path: Path) -> Path:
        return path.expanduser().absolute()

    @property
    def policy(self) -> Policy:
        """The rules by which it schedules."""
        return Policy(
            step_budget=self.step_budget,
            release_grace=timedelta(seconds=self.release_grace_seconds),
            max_consolidation_victims=self.max_moved_pods,
        )

    @property
    def log_file(self) -> Path:
        """Where a server in the background writes its log; one for each data folder."""
        mark = hashlib.sha256(os.fsencode(self.data)).hexdigest()[:8]
        return self.state / f"server-{self.data.name}-{mark}.log"


def read(**given: object) -> Settings:
    """The settings: what is given (None counts as not given), else the environment, else the default.

    Raises InvalidInput, naming the setting.
    """
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]  # checked by pydantic
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        valid = Settings.model_fields[field].description if field in Settings.model_fields else None
        raise errors.InvalidInput(f"{field}: {first['msg']}", field=field, valid=(valid,) if valid else ()) from error
