"""Trains the digits with several settings at once, each as a job of its own, and prints which did best.

    .venv/bin/python examples/sweep.py --learning-rates 0.0003,0.001,0.003 --hidden 32,128

Shows the Python client: submit, wait, read the logs. Jobs that find no place wait in line; Ctrl-C stops them all.
"""

import argparse
import itertools
import os
import pathlib
import re
import secrets
import sys
import time
from dataclasses import dataclass

from aliquot import client
from aliquot.client import discovery
from aliquot.core import errors, lifecycle
from aliquot.wire import workloads

TRAINING = pathlib.Path(__file__).with_name("train_digits.py").resolve()
ACCURACY = re.compile(r"^done: accuracy ([0-9.]+)")
LOOK_SECONDS = 1.0


@dataclass(frozen=True)
class Trial:
    """One combination of settings, and the workload that tries it."""

    learning_rate: float
    hidden: int
    workload: str


def main() -> None:
    """Submit all, wait for all, print the table."""
    options = read_options()
    sweep = f"sweep-{secrets.token_hex(2)}"
    with client.Client.of(discovery.find(os.environ)) as aliquot:
        trials = []
        try:
            for learning_rate, hidden in itertools.product(options.learning_rates, options.hidden):
                trials.append(submit(aliquot, options, sweep, learning_rate, hidden))
            print(f"{len(trials)} jobs submitted; `aliquot list --label sweep={sweep}` shows them", flush=True)
            wait(aliquot, sweep)
        except KeyboardInterrupt:
            for trial in trials:
                aliquot.stop_workload(trial.workload)
            sys.exit("stopped all jobs of the sweep")
        print_results(aliquot, trials)


def read_options() -> argparse.Namespace:
    """The settings to try, each a list with commas."""
    parser = argparse.ArgumentParser(description="Try several settings of train_digits.py at once.")
    parser.add_argument("--learning-rates", type=floats, default=[0.0003, 0.001, 0.003], help="0.0003,0.001,0.003")
    parser.add_argument("--hidden", type=whole_numbers, default=[32, 128], help="32,128")
    parser.add_argument("--epochs", type=int, default=8, help="passes over the data in each job (8)")
    parser.add_argument("--gpu", default="0.5", help="share of a GPU for each job (0.5); none for no GPU")
    parser.add_argument("--project", default="default", help="whose quota is used (default)")
    return parser.parse_args()


def floats(text: str) -> list[float]:
    """`0.1,0.2` as numbers."""
    return [float(part) for part in text.split(",")]


def whole_numbers(text: str) -> list[int]:
    """`32,128` as numbers."""
    return [int(part) for part in text.split(",")]


def submit(aliquot: client.Client, options: argparse.Namespace, sweep: str, learning_rate: float, hidden: int) -> Trial:
    """Hand in one job."""
    definition = workloads.Definition(
        name=f"{sweep}-{learning_rate:g}-{hidden}".replace(".", "-"),
        project=options.project,
        command=[
            *(sys.executable, str(TRAINING), "--epochs", str(options.epochs)),
            *("--learning-rate", str(learning_rate), "--hidden", str(hidden)),
        ],
        # One thread each: several jobs share the machine's cores.
        environment={"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        gpu=None if options.gpu == "none" else options.gpu,
        labels={"sweep": sweep},
    )
    return Trial(learning_rate, hidden, aliquot.submit_workload(definition).id)


def wait(aliquot: client.Client, sweep: str) -> None:
    """Return when all have ended; say how many have, whenever that changes."""
    said = None
    while True:
        views = aliquot.list_workloads(label=[f"sweep={sweep}"], limit=1000).items
        phases = [view.phase for view in views]
        ended = sum(phase in lifecycle.FINISHED for phase in phases)
        counts = (ended, phases.count(lifecycle.Phase.RUNNING), phases.count(lifecycle.Phase.PENDING))
        if counts != said:
            print(f"{counts[0]} ended, {counts[1]} running, {counts[2]} waiting", flush=True)
            said = counts
        if ended == len(views):
            return
        time.sleep(LOOK_SECONDS)


def print_results(aliquot: client.Client, trials: list[Trial]) -> None:
    """A line for each trial, the best first."""
    results = sorted(((accuracy_of(aliquot, trial) or 0.0, trial) for trial in trials), key=lambda result: -result[0])
    print(f"\n{'LEARNING RATE':>13}  {'HIDDEN':>6}  {'ACCURACY':>8}")
    for accuracy, trial in results:
        print(f"{trial.learning_rate:>13g}  {trial.hidden:>6}  {f'{accuracy:.4f}' if accuracy else 'failed':>8}")


def accuracy_of(aliquot: client.Client, trial: Trial) -> float | None:
    """What the job printed at its end; None if it did not come that far."""
    try:
        lines = aliquot.read_logs(trial.workload, offset=-5).lines
    except errors.NotFound:
        return None
    found = [match for line in lines if (match := ACCURACY.match(line.text))]
    return float(found[-1].group(1)) if found else None


if __name__ == "__main__":
    main()
