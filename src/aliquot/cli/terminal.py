"""The person's own terminal: what kind of input there is, raw mode, the window's size, and talking to a remote program.

Promises: whatever happens, the terminal is left as it was found.
"""

import contextlib
import os
import pathlib
import select
import signal
import sys
import termios
import threading
import tty
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Literal

from aliquot.cli import connection

Stdin = Literal["none", "pipe", "terminal"]
CHUNK = 32_768


def kind_of_stdin() -> Stdin:
    """What our own input is: a terminal (with output on one too), something to read, or nothing."""
    try:
        status = os.fstat(0)
    except OSError:
        return "none"
    if os.path.samestat(status, pathlib.Path(os.devnull).stat()):
        return "none"
    if not os.isatty(0):
        return "pipe"
    # In the background a read would stop us.
    if os.tcgetpgrp(0) != os.getpgrp():
        return "none"
    return "terminal" if os.isatty(1) else "pipe"


def size() -> tuple[int, int]:
    """Rows and columns of the window."""
    try:
        found = os.get_terminal_size(1)
    except OSError:
        return 24, 80
    return found.lines or 24, found.columns or 80


@contextlib.contextmanager
def raw() -> Iterator[None]:
    """Every key goes to the program, none is acted upon here."""
    before = termios.tcgetattr(0)
    try:
        # What was typed before is for the program: it is not thrown away.
        tty.setraw(0, termios.TCSADRAIN)
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


def write(stream: str, data: bytes) -> None:
    """Bytes of a program to where they belong."""
    target = sys.stderr.buffer if stream == "stderr" else sys.stdout.buffer
    target.write(data)
    target.flush()


class Keyboard:
    """Passes our input to a session in a thread of its own, until it is closed.

    `sieve` sees the bytes first and returns those to pass on; None lets go of the session.
    """

    def __init__(
        self, session: connection.Session, *, sieve: Callable[[bytes], bytes | None] | None = None, is_terminal: bool
    ) -> None:
        self._session = session
        self._filter = sieve
        self._is_terminal = is_terminal
        self._door, self._bell = os.pipe()
        self._is_open = True
        self.has_left = False
        self._before: object = None
        self._thread = threading.Thread(target=self._pass_on, name="keyboard", daemon=True)

    def __enter__(self) -> "Keyboard":
        if self._is_terminal:
            self._session.resize(*size())
            self._before = signal.signal(signal.SIGWINCH, self._ring)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_open = False
        os.write(self._bell, b".")
        # A thread that is sending to a program that does not read may not end; it is left behind.
        self._thread.join(timeout=1)
        if self._is_terminal:
            signal.signal(signal.SIGWINCH, self._before)  # type: ignore[arg-type]  # what signal.signal gave
        if not self._thread.is_alive():
            os.close(self._door)
            os.close(self._bell)

    def _ring(self, _signal: int, _frame: FrameType | None) -> None:
        os.write(self._bell, b".")

    def _pass_on(self) -> None:
        while True:
            ready, _, _ = select.select([0, self._door], [], [])
            if not self._is_open:
                return
            if self._door in ready:
                os.read(self._door, CHUNK)
                self._session.resize(*size())
            if 0 in ready and not self._take():
                return

    def _take(self) -> bool:
        """Pass on what there is. False: there is no more."""
        try:
            data = os.read(0, CHUNK)
        except OSError:
            data = b""
        if not data:
            self._session.end_input()
            return False
        passed = self._filter(data) if self._filter else data
        if passed is None:
            self.has_left = True
            self._session.close()
            return False
        self._session.write(passed)
        return True
