"""The example training is real: it learns, and an attempt that was ended goes on where it stopped."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest

from tests.house import sources

pytestmark = pytest.mark.slow  # it trains: a few seconds of computing

PROGRAM = sources.ROOT / "examples" / "train_digits.py"
GUARD_SECONDS = 240


def start(folder: pathlib.Path, epochs: int) -> subprocess.Popen[str]:
    """Start the training as Aliquot does, with a folder for checkpoints."""
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), "--epochs", str(epochs)],
        env={**os.environ, "ALIQUOT_CHECKPOINT_DIR": str(folder), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )


def finish(training: subprocess.Popen[str]) -> list[str]:
    """What it says until its end."""
    return training.communicate(timeout=GUARD_SECONDS)[0].splitlines()


def read_until(training: subprocess.Popen[str], start: str) -> None:
    """Read its output until a line begins so."""
    assert training.stdout is not None
    assert any(line.startswith(start) for line in training.stdout)


def test_a_training_that_is_ended_goes_on_from_its_checkpoint_and_comes_out_the_same(tmp_path: pathlib.Path) -> None:
    undisturbed = finish(start(tmp_path / "undisturbed", 4))

    first = start(tmp_path / "disturbed", 4)
    read_until(first, "epoch   2/4")
    first.send_signal(signal.SIGTERM)
    goodbye = finish(first)
    second = finish(start(tmp_path / "disturbed", 4))

    assert first.returncode == -signal.SIGTERM
    assert goodbye[-1].startswith("asked to end: saved in epoch 3")
    assert second[0].startswith("resuming in epoch 3 after batch ")
    assert [line for line in second if line.startswith("epoch   2")] == []
    assert second[-1] == undisturbed[-1]
    assert second[-1].startswith("done: accuracy 0.9")


def test_a_checkpoint_outlives_a_kill(tmp_path: pathlib.Path) -> None:
    first = start(tmp_path, 4)
    read_until(first, "epoch   1/4")
    first.kill()
    finish(first)

    second = finish(start(tmp_path, 2))

    assert second[0].startswith("resuming in epoch ")
    assert second[-1].startswith("done: ")
