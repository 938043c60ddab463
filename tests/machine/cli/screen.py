"""A terminal with a command line in it, as a person sits before one."""

import contextlib
import fcntl
import os
import pathlib
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator

from tests.machine.server import served

# Becomes the leader of a session whose terminal is the one that is passed, and then the command.
LOGIN = "import os, sys; os.login_tty(int(sys.argv[1])); os.execv(sys.argv[2], sys.argv[2:])"


class Screen:
    """What is on the terminal, and the keyboard."""

    def __init__(self, terminal: int, process: subprocess.Popen[bytes]) -> None:
        self._terminal = terminal
        self._process = process
        self.text = ""

    def until(self, words: str) -> None:
        """Read until these words are there."""
        while words not in self.text:
            assert self._read(), f"{words!r} never came; there is only: {self.text!r}"

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._terminal, keys.encode())

    def end(self) -> int:
        """Read to the end; its exit code."""
        while self._read():
            pass
        return self._process.wait(served.GUARD_SECONDS)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._terminal], [], [], served.GUARD_SECONDS)
        assert ready, f"nothing happens any more; there is: {self.text!r}"
        try:
            data = os.read(self._terminal, 65_536)
        except OSError:  # EIO: nobody has the terminal open any more
            return False
        self.text += data.decode(errors="replace")
        return bool(data)


@contextlib.contextmanager
def opened(data: pathlib.Path, *words: str, rows: int = 24, columns: int = 80) -> Iterator[Screen]:
    """Run `aliquot WORDS` in a terminal of this size."""
    ours, theirs = os.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", LOGIN, str(theirs), served.ALIQUOT, *words],
        env=served.environment(data),
        pass_fds=[theirs],
    )
    os.close(theirs)
    try:
        yield Screen(ours, process)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
