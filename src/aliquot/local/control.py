"""The supervisor's door: other processes inside the pod, and the pod's own standard input and screen.

A sequenced-packet socket in the pod's folder. A request is one JSON packet. `exec` brings three descriptors, which
become the new process's standard input, output and error (the asker makes, keeps and resizes a terminal). `attach` gets
the pod's own standard input as a descriptor, and from then on all output, in packets that begin with `o` or `e`; the
first one to attach to a terminal also gets what was written before, the last EARLY_BYTES of it.
`close-stdin` ends the input. An asker that hangs up takes its process with it, as a lost terminal does. An attached one
that does not keep up is let go: the log has everything. A terminal is kept back by a slow screen, as any is, but not by
one that stands still for STILL_SECONDS.

Imported by the supervisor, which must start fast: nothing here may import `typing`, `dataclasses` or `pathlib`.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket

from aliquot.local import processes, records, spawn

TYPE_CHECKING = False  # see aliquot.local.records
if TYPE_CHECKING:
    from aliquot.local.records import Record
    from aliquot.local.supervisor import Supervisor

PACKET_BYTES = 131_072
_BACKLOG = 16
# What a program can write before whoever started it has attached, on a busy machine; held in memory until then.
EARLY_BYTES = 1 << 20
_EARLY_PIECE = 65_536
_EARLY_LOST = b"[earlier output is in the log]\r\n"
STILL_SECONDS = 1.0


class _Asker:
    __slots__ = ("connection", "is_attached", "pid")

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.is_attached = False
        self.pid = 0


class Control:
    """Listens from its making on; the supervisor's loop hands it what is ready."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._askers: dict[int, _Asker] = {}
        # Whoever is to be a pod's terminal attaches a moment after its start, and must not miss the first prompt.
        self._has_terminal = supervisor.launch["stdin"] == "pty"
        self._early: bytearray | None = bytearray() if self._has_terminal else None
        self._has_lost_early = False
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.setblocking(False)
        folder = os.open(supervisor.folder, os.O_PATH | os.O_CLOEXEC)
        try:
            # By way of /proc, because a socket's path may have no more than 107 bytes.
            self._listener.bind(f"/proc/self/fd/{folder}/{records.CONTROL}")
        finally:
            os.close(folder)
        self._listener.listen(_BACKLOG)
        supervisor.poller.register(self._listener.fileno(), select.POLLIN)

    def take(self, descriptor: int) -> None:
        """Deal with what came on one of our sockets."""
        if descriptor == self._listener.fileno():
            with contextlib.suppress(OSError):
                connection, _ = self._listener.accept()
                connection.setblocking(False)
                self._askers[connection.fileno()] = _Asker(connection)
                self._supervisor.poller.register(connection.fileno(), select.POLLIN)
            return
        asker = self._askers.get(descriptor)
        if asker is None:
            return
        try:
            data, descriptors, _, _ = socket.recv_fds(asker.connection, PACKET_BYTES, 3)
        except BlockingIOError:
            return
        except OSError:
            data, descriptors = b"", []
        if not data:
            self._let_go(asker)
            return
        try:
            self._answer(asker, data, descriptors)
        finally:
            for received in descriptors:
                os.close(received)

    def show(self, stream: str, data: bytes) -> None:
        """Pass output on to those who are attached."""
        packet = (b"e" if stream == "stderr" else b"o") + data
        if self._early is not None:
            self._early += data
            if len(self._early) > EARLY_BYTES:
                self._has_lost_early = True
                del self._early[:-EARLY_BYTES]
        for asker in [asker for asker in self._askers.values() if asker.is_attached]:
            self._pass_on(asker, packet)

    def ended(self, pid: int, status: int) -> None:
        """A child ended; if it was started for somebody, they are told how."""
        code = os.waitstatus_to_exitcode(status)
        for asker in self._askers.values():
            if asker.pid == pid:
                asker.pid = 0
                self._tell(asker, {"code": code} if code >= 0 else {"signal": -code})

    def close(self) -> None:
        """Hang up on everybody."""
        self._listener.close()
        for asker in self._askers.values():
            asker.connection.close()
        with contextlib.suppress(OSError):
            os.unlink(f"{self._supervisor.folder}/{records.CONTROL}")

    def _answer(self, asker: _Asker, data: bytes, descriptors: list[int]) -> None:
        request = json.loads(data)
        if request["do"] == "exec" and len(descriptors) == 3:
            self._start(asker, request, (descriptors[0], descriptors[1], descriptors[2]))
        elif request["do"] == "attach":
            stdin = self._supervisor.stdin
            asker.is_attached = True
            self._tell(asker, {"has_stdin": stdin is not None}, [] if stdin is None else [stdin])
            self._pass_on_early(asker)
        elif request["do"] == "close-stdin":
            self._supervisor.close_stdin()

    def _pass_on_early(self, asker: _Asker) -> None:
        early, self._early = self._early or bytearray(), None
        if self._has_lost_early:
            early[:0] = _EARLY_LOST
            self._has_lost_early = False
        for start in range(0, len(early), _EARLY_PIECE):
            if asker.connection.fileno() in self._askers:
                self._pass_on(asker, b"o" + early[start : start + _EARLY_PIECE])

    def _pass_on(self, asker: _Asker, packet: bytes) -> None:
        try:
            if self._has_terminal:
                select.select([], [asker.connection], [], STILL_SECONDS)
            asker.connection.send(packet)
        except OSError:
            self._let_go(asker)

    def _start(self, asker: _Asker, request: Record, descriptors: tuple[int, int, int]) -> None:
        if self._supervisor.end_due is not None:
            self._tell(asker, {"failed": spawn.NOT_EXECUTABLE_CODE, "message": "the pod is being ended"})
            return
        command = self._supervisor.command(request["argv"], has_terminal=request["has_terminal"])
        command.environment.update(request["environment"])
        try:
            asker.pid = spawn.start(command, descriptors)
        except spawn.Failure as failure:
            self._tell(asker, {"failed": failure.code, "message": failure.message})
            return
        self._tell(asker, {"pid": asker.pid})

    def _tell(self, asker: _Asker, answer: Record, descriptors: list[int] | None = None) -> None:
        with contextlib.suppress(OSError):
            socket.send_fds(asker.connection, [json.dumps(answer).encode()], descriptors or [])

    def _let_go(self, asker: _Asker) -> None:
        self._supervisor.poller.unregister(asker.connection.fileno())
        del self._askers[asker.connection.fileno()]
        asker.connection.close()
        if not asker.pid:
            return
        for process in self._supervisor.tree():
            if process.session == asker.pid:
                processes.send(process, signal.SIGHUP)
                processes.send(process, signal.SIGCONT)
