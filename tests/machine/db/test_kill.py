"""The store under `kill -9`: what was said to be written is there, whole, and nothing else is."""

import asyncio
import pathlib
import signal
import subprocess
import sys

from aliquot.db import store

WRITER = """
import asyncio, sys
from aliquot.db import store
from aliquot.service import records

async def write() -> None:
    opened = store.open_store(sys.argv[1])
    for number in range(1_000_000):
        def work(tx):
            tx.facts.put(records.FactRow("first", str(number)))
            tx.facts.put(records.FactRow("second", str(number)))
        await opened.write(work)
        print(number, flush=True)

asyncio.run(write())
"""


def test_a_killed_server_has_lost_nothing_that_it_said_was_written(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "one.db"
    for lines in (1, 7, 40):
        command = [sys.executable, "-c", WRITER, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            said = [writer.stdout.readline() for _ in range(lines)]
            writer.send_signal(signal.SIGKILL)
            said += writer.stdout.readlines()
        last = max(int(line) for line in said if line.endswith("\n"))

        opened = store.open_store(path)
        first, second = asyncio.run(opened.read(lambda tx: (tx.facts.get("first"), tx.facts.get("second"))))
        opened.close()

        assert first is not None
        assert second is not None
        assert first.value == second.value
        assert int(first.value) in {last, last + 1}
