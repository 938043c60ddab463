"""Trains a small network to read handwritten digits, and goes on where it stopped when its place was taken.

The data is real: 1,797 scans that scikit-learn ships, each also moved by one pixel in eight directions. After every
epoch the model is written to $ALIQUOT_CHECKPOINT_DIR, which stays from attempt to attempt. On SIGTERM (an eviction,
`aliquot suspend`, `aliquot stop`) it finishes the batch, writes the model and ends by that signal, so that the record
says how it ended.

    aliquot run --gpu 0.5 -- .venv/bin/python examples/train_digits.py

scikit-learn computes on the CPU: the share of the GPU is held here, not used. Put your own training in its place.
"""

import argparse
import os
import pathlib
import pickle
import signal
import time
from dataclasses import dataclass

import numpy as np
import threadpoolctl
from sklearn import datasets, model_selection, neural_network

SEED = 7
CHECKPOINT = "train_digits.pickle"
BATCH = 128


@dataclass
class Progress:
    """What a checkpoint holds: the model, the epoch it stands in, and the batches of that epoch it has seen."""

    model: neural_network.MLPClassifier
    epoch: int = 0
    batch: int = 0


class Wish:
    """Whether we were asked to end. A handler may come at any moment, so it only takes a note."""

    def __init__(self) -> None:
        self.is_to_end = False
        signal.signal(signal.SIGTERM, self._note)

    def _note(self, _signal: int, _frame: object) -> None:
        self.is_to_end = True


def main() -> None:
    """Train until all epochs are done."""
    # The matrices are small: more threads would only wait for each other, most of all on a busy machine.
    threadpoolctl.threadpool_limits(limits=1)
    options = read_options()
    wish = Wish()
    train, test = load()
    path = options.checkpoint / CHECKPOINT if options.checkpoint else None
    progress = restore(path) or Progress(new_model(options.hidden, options.learning_rate))
    describe(options, progress, path)

    while progress.epoch < options.epochs:
        began = time.monotonic()
        is_whole = run_epoch(progress, train, wish)
        save(progress, path)
        if not is_whole:
            print(f"asked to end: saved in epoch {progress.epoch + 1} after batch {progress.batch}", flush=True)
            end_by_signal()
        accuracy = progress.model.score(*test)
        took = time.monotonic() - began
        print(
            f"epoch {progress.epoch:>3}/{options.epochs}  loss {progress.model.loss_:.4f}  "
            f"accuracy {accuracy:.4f}  {took:.2f} s",
            flush=True,
        )
    print(f"done: accuracy {progress.model.score(*test):.4f} on {len(test[1])} digits it has never seen", flush=True)


def read_options() -> argparse.Namespace:
    """The options, with the folder that Aliquot keeps for us as the default for checkpoints."""
    parser = argparse.ArgumentParser(description="Train a network on handwritten digits, with checkpoints.")
    parser.add_argument("--epochs", type=int, default=30, help="passes over the data (30)")
    parser.add_argument("--learning-rate", type=float, default=0.001, help="step of the optimiser (0.001)")
    parser.add_argument("--hidden", type=int, default=128, help="width of the hidden layer (128)")
    parser.add_argument(
        "--checkpoint",
        type=pathlib.Path,
        default=os.environ.get("ALIQUOT_CHECKPOINT_DIR"),
        help="folder for the checkpoint ($ALIQUOT_CHECKPOINT_DIR; without one nothing is kept)",
    )
    return parser.parse_args()


def load() -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """The digits to learn from, moved about, and those to test with, as they are."""
    digits = datasets.load_digits()
    images, labels = digits.images / 16.0, digits.target
    seen, unseen, known, answers = model_selection.train_test_split(
        images, labels, test_size=0.25, random_state=SEED, stratify=labels
    )
    moves = [(down, right) for down in (-1, 0, 1) for right in (-1, 0, 1)]
    moved = np.concatenate([np.roll(seen, move, axis=(1, 2)) for move in moves])
    return (moved.reshape(len(moved), -1), np.tile(known, len(moves))), (unseen.reshape(len(unseen), -1), answers)


def new_model(hidden: int, learning_rate: float) -> neural_network.MLPClassifier:
    """A network that has learned nothing yet."""
    return neural_network.MLPClassifier((hidden, 64), learning_rate_init=learning_rate, random_state=SEED)


def run_epoch(progress: Progress, train: tuple[np.ndarray, np.ndarray], wish: Wish) -> bool:
    """One pass over the data, from the batch where the last one stopped. False: we were asked to end before its end."""
    images, labels = train
    # The order depends on the epoch alone: a run that was interrupted sees the batches that it would have seen.
    order = np.random.default_rng([SEED, progress.epoch]).permutation(len(labels))
    batches = np.array_split(order, range(BATCH, len(order), BATCH))
    for batch in batches[progress.batch :]:
        progress.model.partial_fit(images[batch], labels[batch], classes=range(10))
        progress.batch += 1
        if wish.is_to_end:
            return False
    progress.epoch, progress.batch = progress.epoch + 1, 0
    return True


def restore(path: pathlib.Path | None) -> Progress | None:
    """What an earlier attempt wrote, None if there is nothing."""
    if path is None or not path.exists():
        return None
    # A pickle runs code when it is read: only ever read your own.
    model, epoch, batch = pickle.loads(path.read_bytes())
    return Progress(model, epoch, batch)


def save(progress: Progress, path: pathlib.Path | None) -> None:
    """Write a checkpoint: whole or not at all, whenever we are killed."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    with draft.open("wb") as file:
        pickle.dump((progress.model, progress.epoch, progress.batch), file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def describe(options: argparse.Namespace, progress: Progress, path: pathlib.Path | None) -> None:
    """Say where we run, with what, and where we begin."""
    name, devices = os.environ.get("ALIQUOT_WORKLOAD_NAME"), os.environ.get("CUDA_VISIBLE_DEVICES")
    if name:
        print(f"{name}: attempt {os.environ.get('ALIQUOT_ATTEMPT', '?')}, devices: {devices or 'none'}", flush=True)
    if progress.epoch or progress.batch:
        print(f"resuming in epoch {progress.epoch + 1} after batch {progress.batch}, from {path}", flush=True)
    else:
        print(f"training for {options.epochs} epochs; checkpoint: {path or 'none'}", flush=True)


def end_by_signal() -> None:
    """End as one who was told to, so that the record says how it ended."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
