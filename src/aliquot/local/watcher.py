"""Notices within moments that a pod changed: by what supervisors say, and by the kernel's word when one of them ends.

One thread, asleep unless something happens. Nothing depends on a message that is lost: the end of a supervisor is seen
by its pidfd, and what is unsettled is looked at again until it is settled.
"""

import contextlib
import os
import select
import socket
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from aliquot.local import records
from aliquot.local.launch import Change

_AGAIN_SECONDS = 0.05
_PACKET_BYTES = 1024


class Watcher:
    """Calls `look_after(pod)` when a pod's supervisor ended, again until it says True, and tells changes to `on_change`
    and to whoever waits."""

    def __init__(
        self, root: Path, look_after: Callable[[str], bool], on_change: Callable[[Change], None] | None
    ) -> None:
        self._look_after = look_after
        self._on_change = on_change
        self._news = threading.Condition()
        self._changes: dict[Change, None] = {}
        self._followed: Counter[str] = Counter()
        self._watched: dict[str, int] = {}
        self._pods: dict[int, str] = {}
        self._unsettled: set[str] = set()
        self._poller = select.epoll()
        self._socket = _bind(root)
        self._wake, self._woken = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._poller.register(self._socket.fileno(), select.EPOLLIN)
        self._poller.register(self._wake, select.EPOLLIN)
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="aliquot-watcher", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the thread and let go of everything."""
        if self._is_closed:
            return
        self._is_closed = True
        os.write(self._woken, b"x")  # the pipe is not full: bytes go in when it is empty
        self._thread.join()
        self._poller.close()
        self._socket.close()
        for descriptor in (self._wake, self._woken, *self._pods):
            os.close(descriptor)
        self._pods.clear()
        self._watched.clear()

    def watch(self, pod: str, supervisor: int) -> None:
        """Notice the end of this process, the pod's supervisor. The last one named counts."""
        with self._news:
            if self._watched.get(pod) == supervisor or self._is_closed:
                return
            try:
                descriptor = os.pidfd_open(supervisor)
            except ProcessLookupError:
                self.look_at(pod)
                return
            self._watched[pod] = supervisor
            self._pods[descriptor] = pod
            self._poller.register(descriptor, select.EPOLLIN)

    def look_at(self, pod: str) -> None:
        """Have the pod looked after in a moment, and again until it is settled."""
        with self._news:
            is_new = pod not in self._unsettled
            self._unsettled.add(pod)
            if is_new and threading.current_thread() is not self._thread:
                self._stir()

    def _stir(self) -> None:
        if not self._is_closed:
            with contextlib.suppress(BlockingIOError):
                os.write(self._woken, b"x")

    @contextlib.contextmanager
    def follow(self, pod: str) -> Iterator[None]:
        """Tell of the growth of the pod's log too, while this is open."""
        with self._news:
            self._followed[pod] += 1
        try:
            yield
        finally:
            with self._news:
                self._followed[pod] -= 1
                self._followed += Counter()

    def wait(self, seconds: float) -> Collection[Change]:
        """Block until there are changes since the last call, or the time is over."""
        with self._news:
            self._news.wait_for(lambda: self._changes, seconds)
            changes, self._changes = self._changes, {}
        return changes.keys()

    def _run(self) -> None:
        while not self._is_closed:
            timeout = _AGAIN_SECONDS if self._unsettled else None
            for descriptor, _ in self._poller.poll(timeout):
                self._take(descriptor)
            if not self._is_closed:
                self._look_after_unsettled()

    def _take(self, descriptor: int) -> None:
        if descriptor == self._socket.fileno():
            self._hear()
        elif descriptor == self._wake:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake, 4096)
        else:
            self._notice_end(descriptor)

    def _look_after_unsettled(self) -> None:
        with self._news:
            unsettled, self._unsettled = sorted(self._unsettled), set()
        for pod in unsettled:
            if self._look_after(pod):
                self._tell(Change(pod, "state"))
            else:
                self.look_at(pod)

    def _hear(self) -> None:
        """Take what supervisors said."""
        while True:
            try:
                data = self._socket.recv(_PACKET_BYTES)
            except BlockingIOError:
                return
            kind, _, pod = data.decode(errors="replace").partition(" ")
            if kind == "state":
                self._tell(Change(pod, "state"))
            elif kind == "log" and self._followed[pod]:
                self._tell(Change(pod, "log"))

    def _notice_end(self, descriptor: int) -> None:
        with self._news:
            pod = self._pods.pop(descriptor)
            self._watched.pop(pod, None)
            self._poller.unregister(descriptor)
            os.close(descriptor)
            self._unsettled.add(pod)

    def _tell(self, change: Change) -> None:
        with self._news:
            self._changes[change] = None
            self._news.notify_all()
        if self._on_change is not None:
            self._on_change(change)


def _bind(root: Path) -> socket.socket:
    """The socket on which supervisors speak; an old one is replaced."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listener.setblocking(False)
    with contextlib.suppress(FileNotFoundError):
        (root / records.NOTIFY).unlink()
    folder = os.open(root, os.O_PATH | os.O_CLOEXEC)
    try:
        # By way of /proc, because a socket's path may have no more than 107 bytes.
        listener.bind(f"/proc/self/fd/{folder}/{records.NOTIFY}")
    finally:
        os.close(folder)
    return listener
