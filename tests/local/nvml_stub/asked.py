"""The program that the tests talk to: it has the stub for its driver, and answers a question on each line with a line.

It is a process of its own because the bindings hold on to the library that they have loaded once.
"""

import dataclasses
import json
import sys
from typing import Any

from aliquot.core import errors
from aliquot.core.model import Share
from aliquot.local import devices, doctor, watchdog


class Answers:
    """What was found by `discover`, and a watchdog beside it."""

    def __init__(self) -> None:
        self.found: devices.Devices = devices.NoDevices("not asked yet")
        self.watchdog = watchdog.Watchdog()

    def discover(self, spec: str | None = None, **options: Any) -> dict[str, object]:  # Any: from JSON
        """Look for devices; a refusal is an answer too."""
        try:
            self.found = devices.discover(spec, machine="a-machine", **options)
        except errors.AliquotError as error:
            return {"error": error.message, "field": error.field, "valid": error.valid}
        return {"described": self.found.describe(), "guarantee": self.found.guarantee}

    def read(self, owned: dict[str, str]) -> dict[str, object]:
        """One reading."""
        return self._shown(self.found.read(owned={int(pid): pod for pid, pod in owned.items()}))

    def watch(self, owned: dict[str, str], held: dict[str, list[list[Any]]]) -> list[list[object]]:  # Any: from JSON
        """What the watchdog finds at one reading."""
        reading = self.found.read(owned={int(pid): pod for pid, pod in owned.items()})
        shares = {pod: [Share(*row) for row in rows] for pod, rows in held.items()}
        return [[each.over.pod, each.action, each.sentence] for each in self.watchdog.observe(shares, reading)]

    def has(self) -> bool:
        """Whether there are real devices."""
        return devices.has_real_devices()

    def doctor(self) -> list[list[str | None]]:
        """What the doctor says of the devices."""
        return [[each.name, each.state, each.sentence] for each in doctor.check_devices()]

    def close(self) -> None:
        """Let go."""
        self.found.close()

    @staticmethod
    def _shown(reading: devices.Reading) -> dict[str, object]:
        return {
            "devices": [dataclasses.asdict(device) for device in reading.devices],
            "use": {id: use.model_dump() for id, use in reading.use.items()},
            "processes": [dataclasses.asdict(process) for process in reading.processes],
            "notes": dict(reading.notes),
            "problems": reading.problems,
        }


if __name__ == "__main__":
    answers = Answers()
    for line in sys.stdin:
        name, arguments = json.loads(line)
        print(json.dumps(getattr(answers, name)(**arguments)), flush=True)
