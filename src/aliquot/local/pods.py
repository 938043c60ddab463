"""What can be asked of a pod on this machine: its log, a program beside it, its terminal, its files."""

import asyncio
import contextlib
import os
import tarfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Literal

from aliquot.core import errors
from aliquot.local import logs, records, sessions
from aliquot.local.launch import Exit, ExitKind
from aliquot.local.runner import Runner
from aliquot.service.ports import ExecRequest, Terminal
from aliquot.wire import workloads as shapes

CHUNK_BYTES = 65_536
_POLL_SECONDS = 0.1
"""A pod's end is looked for this often while somebody waits for its exit code."""
Piece = tuple[Literal["stdout", "stderr"], bytes]


class LocalPods:
    """The Pods port over the runner."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    async def logs(self, pod: str, *, offset: int, limit: int) -> shapes.LogChunk:
        """Lines from `offset`, or that many from the end where it is negative."""
        folder = self._runner.folder(pod)
        if not folder.is_dir():
            raise errors.NotFound(f"the log of pod {pod} is gone")
        return await asyncio.to_thread(_read_log, folder, pod, offset=offset, limit=limit)

    async def exec(self, pod: str, request: ExecRequest) -> Terminal:
        """A program beside the pod, in a terminal where that is asked for."""
        session = await asyncio.to_thread(self._runner.exec, pod, request.argv, has_terminal=request.is_terminal)
        session.resize(request.rows, request.columns)
        return _Beside(session)

    async def attach(self, pod: str) -> Terminal:
        """The pod's own input and output."""
        return _Own(await asyncio.to_thread(self._runner.attach, pod), lambda: self._exit_of(pod))

    async def read_archive(self, pod: str, path: str) -> AsyncIterator[bytes]:
        """A tar stream of what lies at `path`."""
        place = self._place(pod, path)
        if not place.exists():
            raise errors.NotFound(f"there is no {path} in the folder of pod {pod}", field="path")
        reader, writer = os.pipe()
        packing = asyncio.create_task(asyncio.to_thread(_pack, place, writer))
        try:
            while chunk := await asyncio.to_thread(os.read, reader, CHUNK_BYTES):
                yield chunk
        finally:
            os.close(reader)
            with contextlib.suppress(BrokenPipeError):
                await packing

    async def write_archive(self, pod: str, path: str, data: AsyncIterator[bytes]) -> None:
        """Unpack a tar stream into the folder `path`, which is made where it is missing."""
        place = self._place(pod, path)
        reader, writer = os.pipe()
        unpacking = asyncio.create_task(asyncio.to_thread(_unpack, place, reader))
        try:
            async for chunk in data:
                if unpacking.done():
                    break
                await asyncio.to_thread(_write_all, writer, chunk)
        except BrokenPipeError:
            pass  # the other end stopped reading: it says why
        finally:
            os.close(writer)
        await unpacking

    def _place(self, pod: str, path: str) -> Path:
        launch = records.read(str(self._runner.folder(pod)), records.LAUNCH)
        if launch is None:
            raise errors.NotFound(f"nothing is left of pod {pod}")
        return Path(launch["folder"]) / path

    def _exit_of(self, pod: str) -> Exit | None:
        observation = self._runner.observe().get(pod)
        if observation is None:
            raise errors.NotFound(f"nothing is left of pod {pod}")
        return observation.exit


class _Beside:
    """A program beside a pod, as a Terminal."""

    def __init__(self, session: sessions.Session) -> None:
        self._session = session
        self._pieces: asyncio.Queue[Piece | None] = asyncio.Queue(maxsize=16)
        sources: list[tuple[Literal["stdout", "stderr"], int]] = [("stdout", session.stdout)]
        if session.stderr is not None:
            sources.append(("stderr", session.stderr))
        self._reading = asyncio.create_task(self._read_all(sources))

    async def read(self) -> Piece | None:
        """The next bytes, None at the end."""
        return await self._pieces.get()

    async def write(self, data: bytes) -> None:
        """Bytes for its input; none end it."""
        if self._session.stdin is None:
            return
        if data:
            await _write(self._session.stdin, data)
        elif self._session.has_terminal:
            await _write(self._session.stdin, b"\x04")
        else:
            self._session.close_stdin()

    async def resize(self, rows: int, columns: int) -> None:
        """Tell it the size of the window."""
        self._session.resize(rows, columns)

    async def wait(self) -> int:
        """Its exit code, 128 + signal."""
        await _ready(self._session.fileno())
        ended = self._session.result(0)
        if ended is None or ended.code is None:
            return 128 + (ended.signal or 9) if ended is not None else 137
        return ended.code

    async def close(self) -> None:
        """End it."""
        self._reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reading
        self._session.close()

    async def _read_all(self, sources: list[tuple[Literal["stdout", "stderr"], int]]) -> None:
        await asyncio.gather(*(self._drain(stream, descriptor) for stream, descriptor in sources))
        await self._pieces.put(None)

    async def _drain(self, stream: Literal["stdout", "stderr"], descriptor: int) -> None:
        while True:
            await _ready(descriptor)
            try:
                data = os.read(descriptor, CHUNK_BYTES)
            except OSError:  # a terminal says EIO when its last process is gone
                return
            if not data:
                return
            await self._pieces.put((stream, data))


class _Own:
    """A pod's own input and output, as a Terminal."""

    def __init__(self, attachment: sessions.Attachment, exit_of: Callable[[], Exit | None]) -> None:
        self._attachment = attachment
        self._exit_of = exit_of

    async def read(self) -> Piece | None:
        """The next bytes, None at the end."""
        await _ready(self._attachment.fileno())
        output = self._attachment.receive(0)
        return None if output is None else (output.stream, output.data)

    async def write(self, data: bytes) -> None:
        """Bytes for its input; none end it."""
        if not data:
            self._attachment.close_stdin()
        elif self._attachment.stdin is not None:
            await _write(self._attachment.stdin, data)

    async def resize(self, rows: int, columns: int) -> None:
        """Tell it the size of the window."""
        self._attachment.resize(rows, columns)

    async def wait(self) -> int:
        """The pod's exit code, 128 + signal; 1 where nobody knows it."""
        while (over := await asyncio.to_thread(self._exit_of)) is None:
            await asyncio.sleep(_POLL_SECONDS)
        if over.code is not None:
            return over.code
        return 128 + over.signal if over.kind is ExitKind.SIGNALLED and over.signal else 1

    async def close(self) -> None:
        """Let go; the pod runs on."""
        self._attachment.close()


async def _ready(descriptor: int) -> None:
    """Return when there is something to read."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)


async def _write(descriptor: int, data: bytes) -> None:
    """Write all. A reader that is gone is no error: the output ends, and that is told elsewhere."""
    with contextlib.suppress(BrokenPipeError, OSError):
        await asyncio.to_thread(_write_all, descriptor, data)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _read_log(folder: Path, pod: str, *, offset: int, limit: int) -> shapes.LogChunk:
    start = logs.tail(folder, -offset) if offset < 0 else offset
    chunk = logs.read(folder, offset=start, lines=limit)
    index = int(pod.rpartition("-")[2])
    lines = [
        shapes.LogLine(
            offset=line.offset,
            time=line.time,
            stream="marker" if line.stream == "aliquot" else line.stream,
            text=line.text,
            pod=pod,
            index=index,
            is_partial=line.is_partial,
        )
        for line in chunk.lines
    ]
    return shapes.LogChunk(lines=lines, next_offset=chunk.next_offset, is_complete=chunk.is_complete)


def _pack(place: Path, writer: int) -> None:
    with os.fdopen(writer, "wb") as pipe, tarfile.open(fileobj=pipe, mode="w|") as archive:
        archive.add(place, arcname=place.name)


def _unpack(place: Path, reader: int) -> None:
    """Whatever happens, read to the end: the sender must not be left with a full pipe."""
    with os.fdopen(reader, "rb") as pipe:
        try:
            place.mkdir(parents=True, exist_ok=True)
            with tarfile.open(fileobj=pipe, mode="r|") as archive:
                # Refuses members that would lie outside, devices, and links that lead away (PEP 706).
                archive.extractall(place, filter="data")
        except (tarfile.TarError, OSError) as error:
            raise errors.InvalidInput(f"path: the files could not be written: {error}", field="path") from error
        finally:
            while pipe.read(CHUNK_BYTES):
                pass
