"""`aliquot list`, `get`, `update`, `suspend`, `resume`, `stop`, `delete`: show workloads and change them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import click

from aliquot.cli import connection, output, pages, words
from aliquot.core import errors, guarantees, lifecycle, priorities, quantities
from aliquot.wire import faults
from aliquot.wire import workloads as shapes

COLUMNS = (
    output.Column("NAME"),
    output.Column("PROJECT"),
    output.Column("PHASE"),
    output.Column("GPU"),
    output.Column("RAN", is_right=True),
    output.Column("AGE", is_right=True),
    output.Column("NOTE"),
    output.Column("KIND", is_wide=True),
    output.Column("PRIORITY", is_wide=True),
    output.Column("REPLICAS", is_wide=True, is_right=True),
    output.Column("DEVICES", is_wide=True),
    output.Column("EVICTIONS", is_wide=True, is_right=True),
    output.Column("ACTOR", is_wide=True),
    output.Column("ID", is_wide=True),
)


@click.command("list")
@click.option("--project", help="Of this project only.")
@click.option("--department", help="Of this department only.")
@click.option("--phase", help="In these phases, separated by commas; also: unfinished, finished.")
@click.option("--kind", help="Of this kind: training or workspace.")
@click.option("--label", "-l", multiple=True, metavar="KEY=VALUE", help="With this label.")
@click.option("--match", metavar="TEXT", help="With this text in the name.")
@pages.options(sort="-created")
@output.option
def list_(layout: output.Format, **asked: Any) -> None:  # Any: click's values
    """List workloads, the newest first."""
    labels = dict(_label(text) for text in asked.pop("label"))
    filters = {"q": asked.pop("match"), **{f"label.{key}": value for key, value in labels.items()}}
    listing = pages.Listing.taken_from(asked)
    client = connection.open_client()
    page = pages.collect(client.list_workloads, listing, {**asked, **filters})
    known = _models(client, page.items) if layout in {output.Format.TABLE, output.Format.WIDE} else {}
    output.write(page, layout, lambda shown: table(page.items, shown, now=datetime.now(UTC), models=known))
    pages.say_rest(page, layout)


@click.command()
@connection.target
@output.option
def get(target: connection.Target, layout: output.Format) -> None:
    """Show one workload: what it asks for, its pods, how limits are enforced, how it ended."""
    client = connection.open_client()
    detail = client.get_workload(target.ref, project=target.project)
    output.write(detail, layout, lambda _: describe(detail, now=datetime.now(UTC)))


@click.command()
@connection.target
@click.option("--gpu", help="GPU per pod: 1, 0.5, 20Gi, 2x0.5.")
@click.option("--cpu", help="CPU cores per pod.")
@click.option("--memory", help="Memory per pod.")
@click.option("--replicas", type=int, help="Pods that start together.")
@click.option("--priority", help="0 to 1000, or very-low, low, medium, high, very-high.")
@click.option("--preemptible/--not-preemptible", default=None, help="Whether others may take its place.")
@click.option("--dry-run", "is_dry", is_flag=True, help="Only say what would happen.")
@output.option
def update(
    target: connection.Target, layout: output.Format, *, is_dry: bool, **asked: Any
) -> None:  # Any: click's values
    """Change what a waiting or suspended workload asks for; of one that runs, its priority."""
    given = {name: value for name, value in asked.items() if value is not None}
    if not given:
        raise errors.InvalidInput("nothing to change was given", valid=[f"--{name}" for name in asked])
    _check_amounts(given)
    change = faults.read(shapes.WorkloadUpdate, given)
    client = connection.open_client()
    if is_dry:
        answer = client.preview_workload(target.ref, change, project=target.project)
        output.write(answer, layout, lambda _: words.foresee(answer, "changed"))
        return
    detail = client.update_workload(target.ref, change, project=target.project)
    output.write(detail, layout, lambda _: f"{detail.name} changed: it is {detail.phase}")


@click.command()
@connection.target
@output.option
def suspend(target: connection.Target, layout: output.Format) -> None:
    """End a workload's processes for now and free its devices, until it is resumed."""
    client = connection.open_client()
    detail = client.suspend_workload(target.ref, project=target.project)
    output.write(
        detail, layout, lambda _: f"{detail.name} is {detail.phase}; `aliquot resume {detail.name}` lets it go on"
    )


@click.command()
@connection.target
@output.option
def resume(target: connection.Target, layout: output.Format) -> None:
    """Let a suspended workload wait for a place again."""
    client = connection.open_client()
    detail = client.resume_workload(target.ref, project=target.project)
    output.write(detail, layout, lambda _: f"{detail.name} is {detail.phase}")


@click.command()
@connection.target
@output.option
def stop(target: connection.Target, layout: output.Format) -> None:
    """End a workload for good; it stays in the list with its logs."""
    client = connection.open_client()
    detail = client.stop_workload(target.ref, project=target.project)
    output.write(detail, layout, lambda _: f"{detail.name} is {detail.phase}")


@click.command()
@connection.target
def delete(target: connection.Target) -> None:
    """End a workload and remove it with its folder and logs; usage, events and receipts stay."""
    client = connection.open_client()
    left = client.delete_workload(target.ref, project=target.project)
    if left is None:
        print(f"{target.ref} is deleted")
    else:
        print(f"{target.ref} is {left.phase}; it is deleted when its processes have ended")


def table(views: list[shapes.WorkloadView], layout: output.Format, *, now: datetime, models: Mapping[str, str]) -> str:
    """One line for each workload."""
    if not views:
        return "no workloads; `aliquot run -- COMMAND` starts one"
    return output.table(COLUMNS, [_row(view, now, models) for view in views], layout)


def _row(view: shapes.WorkloadView, now: datetime, models: Mapping[str, str]) -> list[str]:
    return [
        view.name,
        view.project,
        view.phase,
        words.gpu_of(view, models),
        words.seconds(view.ran_seconds) if view.ran_seconds or view.started else words.NOTHING,
        words.age(view.created, now),
        words.note(view, now),
        view.kind,
        priorities.describe(view.priority),
        str(view.replicas),
        ",".join(view.devices) or words.NOTHING,
        str(view.evictions),
        view.actor,
        view.id,
    ]


def describe(detail: shapes.WorkloadDetail, *, now: datetime) -> str:
    """All that is known of one workload, for people."""
    what = detail.definition
    ended = detail.phase in lifecycle.FINISHED
    facts = output.facts(
        [
            ("Name", f"{detail.name} ({detail.kind}, id {detail.id})"),
            ("Project", f"{detail.project} of department {detail.department}"),
            ("Phase", words.state(detail)),
            ("Waits for", detail.reason.message if detail.reason and not ended else ""),
            ("Not before", words.ago(detail.not_before, now) if detail.not_before and not ended else ""),
            ("Asks for", _asks(detail)),
            ("Priority", f"{priorities.describe(detail.priority)}, {_preemptible(detail)}"),
            ("Submitted", f"{words.ago(detail.created, now)} by {detail.actor}"),
            ("Ran", _ran(detail)),
            ("Ended", words.ago(detail.finished, now) if detail.finished else ""),
            ("Time limit", what.max_run_time or ""),
            ("Command", _shortened(_command(what))),
            ("Folder", what.working_directory or "its own"),
            ("Checkpoints", detail.checkpoint_directory),
            ("URL", detail.url or ""),
            ("Labels", ", ".join(f"{key}={value}" for key, value in sorted(detail.labels.items()))),
            ("Share", _guarantee(detail)),
            ("Limits", next((pod.limits for pod in reversed(detail.pods) if pod.limits), "")),
        ]
    )
    return f"{facts}\n\n{_pods(detail, now)}" if detail.pods else facts


POD_COLUMNS = (
    output.Column("POD", is_right=True),
    output.Column("ATTEMPT", is_right=True),
    output.Column("PHASE"),
    output.Column("PID", is_right=True),
    output.Column("RAN", is_right=True),
    output.Column("HOLDS"),
    output.Column("EXIT"),
)


def _pods(detail: shapes.WorkloadDetail, now: datetime) -> str:
    rows = [
        [
            str(pod.index),
            str(pod.attempt),
            pod.phase,
            words.NOTHING if pod.pid is None else str(pod.pid),
            words.age(pod.started, pod.ended or now),
            words.shares(pod.shares),
            _exit(pod),
        ]
        for pod in detail.pods
    ]
    return output.table(POD_COLUMNS, rows)


def _exit(pod: shapes.PodView) -> str:
    if pod.exit_kind is None:
        return words.NOTHING
    if pod.exit_message:
        return f"{pod.exit_kind}: {pod.exit_message}"
    if pod.exit_signal:
        return f"signal {pod.exit_signal}"
    return pod.exit_kind if pod.exit_code is None else f"code {pod.exit_code}"


def _ran(detail: shapes.WorkloadDetail) -> str:
    if not detail.attempt:
        return "not yet"
    return f"{words.seconds(detail.ran_seconds)} in {words.plural(detail.attempt, 'attempt')}{_mishaps(detail)}"


def _asks(detail: shapes.WorkloadDetail) -> str:
    last = next((held for pod in reversed(detail.pods) for held in pod.shares), None)
    gpu = words.gpu(detail.gpu, last.model if last else None, is_simulated=last is not None and last.is_simulated)
    parts = [
        "no GPU" if gpu == words.NOTHING else f"GPU {gpu}",
        f"CPU {detail.cpu or 'not limited'}",
        f"memory {detail.memory or 'not limited'}",
    ]
    each = f", for each of {detail.replicas} replicas" if detail.replicas > 1 else ""
    return ", ".join(parts) + each


def _preemptible(detail: shapes.WorkloadDetail) -> str:
    return "others may take its place" if detail.preemptible else "keeps its place until it ends"


def _mishaps(detail: shapes.WorkloadDetail) -> str:
    parts = [
        words.plural(detail.evictions, "eviction") if detail.evictions else "",
        words.plural(detail.failures, "retry", "retries") if detail.failures else "",
    ]
    return "".join(f", {part}" for part in parts if part)


def _command(definition: shapes.Definition) -> str:
    if definition.command is None:
        return f"a script of {len((definition.script or '').splitlines())} lines"
    return connection.as_command_line(definition.command)


def _shortened(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:297]}..."


def _guarantee(detail: shapes.WorkloadDetail) -> str:
    if detail.guarantee is None:
        return ""
    return f"{detail.guarantee}: {guarantees.describe(detail.guarantee)}"


def _models(client: connection.Client, views: list[shapes.WorkloadView]) -> dict[str, str]:
    """The models behind the places that workloads hold; asked for only where one holds any."""
    if not any(view.devices for view in views):
        return {}
    return words.models(pages.collect(client.list_devices, pages.Listing(), {}).items)


def _label(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator:
        raise errors.InvalidInput(f"label: {text!r} is not KEY=VALUE", field="label", valid=("KEY=VALUE",))
    return key, value


def _check_amounts(given: Mapping[str, Any]) -> None:  # Any: click's values
    if "gpu" in given:
        quantities.parse_gpu(given["gpu"], "gpu")
    if "cpu" in given:
        quantities.parse_milli(given["cpu"], "cpu")
    if "memory" in given:
        quantities.parse_bytes(given["memory"], "memory")
    if "priority" in given:
        priorities.parse(given["priority"], "priority")
