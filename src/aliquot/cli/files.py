"""`aliquot cp SOURCE DESTINATION`: files to and from a workload's folder, one of the two written as `name:path`.

Promises: what comes from a workload is unpacked below the destination and nowhere else, whatever it says.
"""

import pathlib
import queue
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, cast

import click

from aliquot.cli import connection
from aliquot.core import errors

CHUNK = 2**18
FORMS = ("NAME:PATH LOCAL", "LOCAL NAME:PATH")


@dataclass(frozen=True, slots=True)
class Remote:
    """A path inside a workload; relative ones are in its working directory."""

    ref: str
    path: str


@click.command()
@click.argument("source")
@click.argument("destination")
@click.option("--project", help="The workload's project, where workloads of several have this name.")
@click.option("--index", type=click.IntRange(min=0), default=0, show_default=True, help="In this replica.")
def cp(source: str, destination: str, *, project: str | None, index: int) -> None:
    """Copy files to or from a workload that runs; one side is NAME:PATH, the other a path here.

    A folder is copied with all that is in it. A local path with a colon in it is written ./like:this.
    """
    there, here = remote(source), remote(destination)
    if (there is None) == (here is None):
        which = "neither side is" if there is None else "both sides are"
        raise errors.InvalidInput(f"source, destination: {which} of the form NAME:PATH", field="source", valid=FORMS)
    client = connection.open_client()
    if there is not None:
        stream = client.read_files(there.ref, there.path, project=project, index=index)
        download(stream, pathlib.Path(destination))
    elif here is not None:
        folder, name = split(here.path, pathlib.Path(source).absolute().name)
        client.write_files(here.ref, folder, upload(pathlib.Path(source), name), project=project, index=index)


def remote(text: str) -> Remote | None:
    """`name:path`, None for a local path."""
    ref, separator, path = text.partition(":")
    if not separator or "/" in ref or not ref:
        return None
    return Remote(ref, path or ".")


def split(path: str, name: str) -> tuple[str, str]:
    """The folder and the name under which a local file is put at `path`; a path that ends in `/` or `.` is a folder."""
    if path.endswith("/") or path.rpartition("/")[2] in {"", ".", ".."}:
        return path, name
    folder, _, last = path.rpartition("/")
    return folder or ("/" if path.startswith("/") else "."), last


def download(stream: Iterator[bytes], destination: pathlib.Path) -> None:
    """Unpack a tar stream. One thing goes under the name of `destination`, unless that is a folder."""
    reader = _Reader(stream)
    into_folder = destination.is_dir()
    if not into_folder and not destination.parent.is_dir():
        raise errors.InvalidInput(f"destination: there is no folder {destination.parent}", field="destination")
    with tarfile.open(fileobj=cast(IO[bytes], reader), mode="r|") as archive:  # the stream reads, and needs no more
        for member in archive:
            place = member.name.strip("/")
            if not into_folder:
                head, _, rest = place.partition("/")
                # `.` is the top of a folder that was asked for as such.
                inner = place if head == "." or not head else rest
                place = f"{destination.name}/{inner}".rstrip("/.") if inner not in {"", "."} else destination.name
            root = destination if into_folder else destination.parent
            _extract(archive, member, place, root=root)


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, place: str, *, root: pathlib.Path) -> None:
    try:
        archive.extract(member.replace(name=place or "."), root, filter="data")
    except tarfile.FilterError as error:
        raise errors.InvalidInput(f"source: {error}", field="source") from error
    except OSError as error:
        raise errors.InvalidInput(f"destination: {error}", field="destination") from error


def upload(source: pathlib.Path, name: str) -> Iterator[bytes]:
    """A file or folder as a tar stream in which it is called `name`."""
    if not source.exists():
        raise errors.InvalidInput(f"source: there is no file {source}", field="source")
    return _packed(source, name)


def _packed(source: pathlib.Path, name: str) -> Iterator[bytes]:
    writer = _Writer()
    threading.Thread(target=writer.pack, args=(source, name), name="packer", daemon=True).start()
    while (chunk := writer.chunks.get()) is not None:
        if isinstance(chunk, OSError):
            raise errors.InvalidInput(f"source: {chunk}", field="source") from chunk
        yield chunk


class _Writer:
    """A file that tarfile writes to; another thread takes what was written."""

    def __init__(self) -> None:
        self.chunks: queue.Queue[bytes | OSError | None] = queue.Queue(maxsize=16)

    def write(self, data: bytes) -> int:
        """Called by tarfile."""
        self.chunks.put(bytes(data))
        return len(data)

    def pack(self, source: pathlib.Path, name: str) -> None:
        """All of it, then the end."""
        try:
            with tarfile.open(fileobj=cast(IO[bytes], self), mode="w|", bufsize=CHUNK) as archive:  # it writes only
                archive.add(source, arcname=name)
        except OSError as error:
            self.chunks.put(error)
        self.chunks.put(None)


class _Reader:
    """A file that tarfile reads from, made of the chunks of a stream."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def read(self, count: int) -> bytes:
        """Called by tarfile."""
        while len(self._rest) < count:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            self._rest += chunk
        data, self._rest = self._rest[:count], self._rest[count:]
        return data
