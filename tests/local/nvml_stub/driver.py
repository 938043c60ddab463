"""Compiles the stub library, and starts the program that has it for its driver."""

import ctypes
import json
import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any

import pynvml
import pytest

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[2]
STRUCTURES = (
    "c_nvmlMemory_t",
    "c_nvmlMemory_v2_t",
    "c_nvmlProcessInfo_v3_t",
    "c_nvmlEventData_t",
    "c_nvmlUtilization_t",
    "c_nvmlFieldValue_t",
)
CONSTANTS = ("nvmlMemory_v2", "nvmlEventTypeXidCriticalError", "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION")


def facts() -> str:
    """Error codes, sizes and offsets, as the bindings have them, as a C header."""
    names = [name for name in dir(pynvml) if name.startswith(("NVML_ERROR_", "NVML_SUCCESS", "NVML_VALUE_TYPE_"))]
    lines = [f"#define {name} {getattr(pynvml, name)}" for name in (*names, *CONSTANTS)]
    for name in STRUCTURES:
        structure = getattr(pynvml, name)
        lines.append(f"#define SIZE_{name} {ctypes.sizeof(structure)}")
        lines += [
            f"#define OFFSET_{name}_{field[0]} {getattr(structure, field[0]).offset}" for field in structure._fields_
        ]
    return "\n".join(lines) + "\n"


def build(folder: pathlib.Path, *flags: str) -> pathlib.Path:
    """Compile the stub into a folder, under the name by which the bindings look for the driver's library."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    folder.mkdir(exist_ok=True)
    (folder / "facts.h").write_text(facts())
    library = folder / "libnvidia-ml.so.1"
    subprocess.run(
        [
            compiler,
            "-shared",
            "-fPIC",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-I",
            folder,
            *flags,
            "-o",
            library,
            HERE / "stub.c",
        ],
        check=True,
    )
    return folder


class Machine:
    """A machine whose driver is the library in `folder` and whose cards are what `cards` says."""

    def __init__(self, folder: pathlib.Path, script: pathlib.Path) -> None:
        self._script = script
        self._program = subprocess.Popen(
            [sys.executable, "-m", "tests.local.nvml_stub.asked"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=os.environ | {"LD_LIBRARY_PATH": str(folder), "NVML_STUB_SCRIPT": str(script)},
        )

    def cards(self, *lines: str) -> None:
        """From now on the driver answers this."""
        new = self._script.with_suffix(".new")
        new.write_text("\n".join(lines) + "\n")
        new.replace(self._script)

    def ask(self, name: str, **arguments: object) -> Any:  # Any: JSON
        """What the program answers."""
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        self._program.stdin.write(json.dumps([name, arguments]) + "\n")
        self._program.stdin.flush()
        return json.loads(self._program.stdout.readline())

    def close(self) -> None:
        """End the program, as it ends by itself when nobody asks any more."""
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        self._program.stdin.close()
        self._program.wait()
        self._program.stdout.close()
