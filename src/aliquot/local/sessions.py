"""The runner's end of a pod's door (`aliquot.local.control`): processes inside it, and its own input and output.

Both give plain descriptors, so that an event loop can serve them, and close everything that they opened.
"""

import contextlib
import fcntl
import json
import os
import socket
import struct
import termios
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from aliquot.core import errors
from aliquot.local import control, records

_LONGEST_WAIT_SECONDS = 30.0
"""For the supervisor's first answer. It answers at once, but the machine may be busy."""
_TAGS: dict[bytes, Literal["stdout", "stderr"]] = {b"o": "stdout", b"e": "stderr"}


@dataclass(frozen=True, slots=True)
class Output:
    """Bytes as the pod wrote them."""

    stream: Literal["stdout", "stderr"]
    data: bytes


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process inside a pod ended: by itself with a code, or by a signal; neither if nobody can say."""

    code: int | None
    signal: int | None
    message: str = ""


class _Line:
    """A connection to the supervisor of a pod."""

    def __init__(self, folder: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(_LONGEST_WAIT_SECONDS)
        descriptor = None
        try:
            descriptor = os.open(folder, os.O_PATH | os.O_CLOEXEC)
            # By way of /proc, because a socket's path may have no more than 107 bytes.
            self._socket.connect(f"/proc/self/fd/{descriptor}/{records.CONTROL}")
        except OSError as error:
            self._socket.close()
            raise errors.Conflict(f"pod {folder.name} does not run", code="pod-not-running") from error
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def fileno(self) -> int:
        """Readable when there is something to receive. For an event loop; do not read from it yourself."""
        return self._socket.fileno()

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def _ask(self, request: Mapping[str, object], descriptors: Sequence[int] = ()) -> tuple[records.Record, list[int]]:
        try:
            if descriptors:
                socket.send_fds(self._socket, [json.dumps(request).encode()], list(descriptors))
            else:
                self._socket.send(json.dumps(request).encode())
            data, received, _, _ = socket.recv_fds(self._socket, control.PACKET_BYTES, 1)
        except OSError as error:
            raise errors.Conflict("the pod ended just now", code="pod-not-running") from error
        if not data:
            raise errors.Conflict("the pod ended just now", code="pod-not-running")
        answer: records.Record = json.loads(data)
        return answer, received


class Session(_Line):
    """A process inside a running pod: same environment, folder and limits. It ends with the pod, or when this closes.

    With a terminal, `stdin` and `stdout` are the same descriptor and `stderr` is None. `fileno` is readable when
    `result` has an answer.
    """

    def __init__(
        self, folder: Path, argv: Sequence[str], *, environment: Mapping[str, str], has_terminal: bool
    ) -> None:
        super().__init__(folder)
        self.has_terminal = has_terminal
        self.stdin: int | None
        self.stdout: int
        self.stderr: int | None
        if has_terminal:
            ours, theirs = os.openpty()
            self.stdin, self.stdout, self.stderr = ours, ours, None
            descriptors, given = (theirs, theirs, theirs), {theirs}
        else:
            source, self.stdin = os.pipe2(os.O_CLOEXEC)
            self.stdout, out = os.pipe2(os.O_CLOEXEC)
            self.stderr, err = os.pipe2(os.O_CLOEXEC)
            descriptors, given = (source, out, err), {source, out, err}
        request = {
            "do": "exec",
            "argv": list(argv),
            "environment": dict(environment),
            "has_terminal": has_terminal,
        }
        try:
            answer, _ = self._ask(request, descriptors)
        except errors.AliquotError:
            self.close()
            raise
        finally:
            for descriptor in given:
                os.close(descriptor)
        if "failed" in answer:
            self.close()
            raise errors.InvalidInput(answer["message"], field="command", details={"code": answer["failed"]})
        self.pid = int(answer["pid"])

    def resize(self, rows: int, columns: int) -> None:
        """Tell the terminal its size."""
        if self.has_terminal:
            _resize(self.stdout, rows, columns)

    def close_stdin(self) -> None:
        """End the input of a session without terminal."""
        if self.stdin is not None and not self.has_terminal:
            os.close(self.stdin)
            self.stdin = None

    def result(self, seconds: float | None = None) -> Ended | None:
        """How it ended; None if it has not within that time (None: wait for ever)."""
        self._socket.settimeout(seconds)
        try:
            data = self._socket.recv(control.PACKET_BYTES)
        except (TimeoutError, BlockingIOError):
            return None
        except OSError:
            data = b""
        if not data:
            return Ended(None, None, "the pod ended")
        answer = json.loads(data)
        return Ended(answer.get("code"), answer.get("signal"))

    def close(self) -> None:
        """Hang up: a process that still runs gets HUP, as from a lost terminal."""
        super().close()
        for descriptor in {self.stdin, self.stdout, self.stderr} - {None}:
            if descriptor is not None:
                os.close(descriptor)
        self.stdin = self.stderr = None
        self.stdout = -1


class Attachment(_Line):
    """The pod's own standard input, and its output from now on, as raw bytes.

    `stdin` is None where the pod has none. Who does not keep up with the output is let go (`receive` gives None): the
    log has everything.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.stdin: int | None = None
        try:
            _, received = self._ask({"do": "attach"})
        except errors.AliquotError:
            self.close()
            raise
        self.stdin = received[0] if received else None

    def receive(self, seconds: float | None = None) -> Output | None:
        """The next output; None at the end, or if it was let go. Raises TimeoutError if nothing came in that time."""
        self._socket.settimeout(seconds)
        try:
            data = self._socket.recv(control.PACKET_BYTES)
        except ConnectionError:
            return None
        return Output(_TAGS[data[:1]], data[1:]) if data else None

    def resize(self, rows: int, columns: int) -> None:
        """Tell the pod's terminal its size, if it has one."""
        if self.stdin is not None and os.isatty(self.stdin):
            _resize(self.stdin, rows, columns)

    def close_stdin(self) -> None:
        """End the pod's input, where it is a pipe."""
        if self.stdin is not None:
            os.close(self.stdin)
            self.stdin = None
        with contextlib.suppress(OSError):
            self._socket.send(json.dumps({"do": "close-stdin"}).encode())

    def close(self) -> None:
        """Let go of the pod, which runs on."""
        super().close()
        if self.stdin is not None:
            os.close(self.stdin)
            self.stdin = None


def _resize(terminal: int, rows: int, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
