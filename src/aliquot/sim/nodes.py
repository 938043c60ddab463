"""The nodes of a simulated cluster, from a short text (`8x8xH100`) or from a published list of nodes.

Promises: node names sort as they are counted; text and files that are not understood are refused with what would be.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from aliquot.core.errors import InvalidInput
from aliquot.core.model import Device, Node
from aliquot.sim import lines

FIELD = "--nodes"
MOST_NODES = 20_000
MOST_DEVICES = 64
"""On one node. Larger machines do not exist; a slip of the finger should not make a million devices."""
MODEL = "GPU"
DEVICE_MIB = 81_920
"""Of every device: the traces ask for devices and for parts of them, never for an amount of their memory."""
MILLI_CPUS_PER_DEVICE = 16_000
MIB_PER_DEVICE = 131_072
_MIB = 2**20
_PART = re.compile(
    r"(?P<nodes>[0-9]{1,9})\s*[x×*]\s*(?P<devices>[0-9]{1,9})(?:\s*[x×*]\s*(?P<model>[A-Za-z][\w.-]*))?", re.A
)
VALID = ("NODESxDEVICES: 8x8", "with a model: 8x8xH100", "several: 8x8xH100,4x4xT4", "a file with a list of nodes")
_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")


@dataclass(frozen=True, slots=True)
class _Kind:
    """So many nodes, all alike."""

    count: int
    devices: int
    model: str


def read(text: str) -> tuple[Node, ...]:
    """The nodes that a text or the file of that name describes. Raises InvalidInput."""
    kinds = _parse(text)
    if kinds is not None:
        return _make(text, kinds)
    path = Path(text)
    if path.is_file():
        with lines.open_text(path) as stream:
            return parse_list(path.name, stream)
    raise InvalidInput(f"{FIELD}: {_shown(text)} is neither nodes nor a file", field=FIELD, valid=VALID)


def parse_list(name: str, stream: TextIO) -> tuple[Node, ...]:
    """The nodes of an open file in the form of Alibaba's list: name, CPU, memory, devices, model."""
    found: dict[str, Node] = {}
    row = None
    for row in lines.records(name, stream, needed=_COLUMNS):
        id = row.text("sn")
        if not id or id in found:
            why = f"{id!r} is there twice" if id else "is empty"
            row.table.refuse(f"sn: {why}", field="sn", valid=("a name that no other node has",))
        if len(found) == MOST_NODES:
            row.table.refuse(f"more than {MOST_NODES} nodes", valid=(f"at most {MOST_NODES} lines",))
        found[id] = _node(
            id,
            devices=row.whole("gpu", most=MOST_DEVICES),
            model=row.text("model") or MODEL,
            milli_cpus=row.whole("cpu_milli", most=10**9),
            memory_bytes=row.whole("memory_mib", most=10**9) * _MIB,
        )
    if row is None:
        raise InvalidInput(f"{name}:2: there is no node in the file", valid=("one line for each node",))
    return tuple(found.values())


def _parse(text: str) -> list[_Kind] | None:
    kinds: list[_Kind] = []
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None:
            return None
        kinds.append(_Kind(int(match["nodes"]), int(match["devices"]), match["model"] or MODEL))
    return kinds


def _make(text: str, kinds: list[_Kind]) -> tuple[Node, ...]:
    total = sum(kind.count for kind in kinds)
    for kind in kinds:
        if not kind.count or kind.devices > MOST_DEVICES:
            why = "no node" if not kind.count else f"more than {MOST_DEVICES} devices on a node"
            raise InvalidInput(f"{FIELD}: {_shown(text)}: {why}", field=FIELD, valid=VALID)
    if total > MOST_NODES:
        raise InvalidInput(f"{FIELD}: {_shown(text)}: {total} nodes; at most {MOST_NODES}", field=FIELD, valid=VALID)
    width = len(str(total - 1))
    alike = [kind for kind in kinds for _ in range(kind.count)]
    return tuple(
        _node(
            f"node-{index:0{width}}",
            devices=kind.devices,
            model=kind.model,
            milli_cpus=max(1, kind.devices) * MILLI_CPUS_PER_DEVICE,
            memory_bytes=max(1, kind.devices) * MIB_PER_DEVICE * _MIB,
        )
        for index, kind in enumerate(alike)
    )


def _node(id: str, *, devices: int, model: str, milli_cpus: int, memory_bytes: int) -> Node:
    width = len(str(max(0, devices - 1)))
    return Node(
        id=id,
        milli_cpus=milli_cpus,
        memory_bytes=memory_bytes,
        devices=tuple(
            Device(f"{id}/{index:0{width}}", index, model, DEVICE_MIB, is_simulated=True) for index in range(devices)
        ),
    )


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
