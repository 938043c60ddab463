"""Holds the reference pages to the code: what they list is all that there is, and what they say is what it does."""

import inspect
import pathlib
import re
import typing
from datetime import UTC, datetime, timedelta
from enum import StrEnum

import pytest

from aliquot.app import settings
from aliquot.core import fairshare, guarantees, lifecycle, plan, quantities
from aliquot.core.model import Guarantee, PodRequest, Share
from aliquot.local import launch, processes, profiles, records, starting
from aliquot.local.folders import Folders
from aliquot.service.records import PodRow, WorkloadRow
from aliquot.wire import workloads
from aliquot.wire.scenario import expectation, fields, nodes, pods, policy, queues, reader, standing, steps
from aliquot.wire.scenario import workloads as scenario_workloads
from tests.house import sources

DOCS = sources.ROOT / "docs"
NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


def page(name: str) -> str:
    """The text of a page."""
    return (DOCS / name).read_text(encoding="utf-8")


def tables(name: str) -> list[list[list[str]]]:
    """The tables of a page, each a list of rows of cells without backticks, the heading first."""
    found: list[list[list[str]]] = []
    is_inside = False
    for line in page(name).splitlines():
        if not line.startswith("|"):
            is_inside = False
            continue
        if not is_inside:
            found.append([])
        is_inside = True
        cells = [cell.strip().replace("`", "") for cell in line.strip("|").split("|")]
        if set("".join(cells)) != {"-"}:
            found[-1].append(cells)
    return found


def rows_under(name: str, *heading: str) -> list[list[str]]:
    """The rows of all tables of a page whose heading begins so."""
    return [row for table in tables(name) if table[0][: len(heading)] == list(heading) for row in table[1:]]


def first_words(rows: list[list[str]]) -> list[str]:
    """The names in the first cells; a cell may list several, separated by commas."""
    return [name.strip() for row in rows for name in row[0].split(",")]


def test_the_transitions_in_the_docs_are_those_of_the_code() -> None:
    documented = {
        (before, signal): after for before, signal, after in rows_under("reference/lifecycle.md", "phase", "signal")
    }

    assert documented == {(str(a), str(s)): str(b) for (a, s), b in lifecycle.TABLE.items()}


@pytest.mark.parametrize(
    ("heading", "known"),
    [
        (("phase", "meaning", "holds devices"), lifecycle.Phase),
        (("signal", "what happened"), lifecycle.Signal),
        (("exit kind", "meaning"), launch.ExitKind),
    ],
)
def test_the_lifecycle_page_lists_all(heading: tuple[str, ...], known: type[StrEnum]) -> None:
    assert first_words(rows_under("reference/lifecycle.md", *heading)) == [str(one) for one in known]


def test_the_phases_of_pods_are_documented() -> None:
    documented = [
        row[0] for table in tables("reference/lifecycle.md") if table[0] == ["phase", "meaning"] for row in table[1:]
    ]

    assert documented == [str(one) for one in workloads.PodPhase]


def test_the_outcomes_are_documented() -> None:
    said = workloads.WorkloadView.model_fields["outcome"].description or ""
    known = re.findall(r"[a-z-]+", said.replace(" or ", ", "))

    assert first_words(rows_under("reference/lifecycle.md", "outcome", "meaning")) == known


def test_every_reason_is_documented_with_who_can_change_it() -> None:
    documented = rows_under("reference/reasons.md", "code")

    assert [row[0] for row in documented] == [str(code) for code in plan.Code]
    assert all(len(row) == 4 and all(row) for row in documented)


def test_every_setting_is_documented_with_its_default() -> None:
    documented = {row[0]: row for row in rows_under("reference/configuration.md", "setting", "variable")}

    assert list(documented) == list(settings.Settings.model_fields)
    for name, field in settings.Settings.model_fields.items():
        assert documented[name][1] == ("ALIQUOT_DATA" if name == "data" else f"{settings.PREFIX}{name.upper()}")
        if field.default_factory is None and field.default is not None:
            assert documented[name][3] == str(field.default)


def test_every_simulated_card_is_documented() -> None:
    assert [name for name in profiles.NAMES if f"`{name}`" not in page("reference/configuration.md")] == []


def test_every_variable_of_a_job_is_documented() -> None:
    documented = set(first_words(rows_under("reference/environment.md", "variable", "value")))

    assert documented == set(environment_of_a_job()) | {processes.MARKER}


def environment_of_a_job() -> typing.Mapping[str, str]:
    """What a workspace gets that holds a share."""
    definition = workloads.Definition(kind=workloads.Kind.WORKSPACE, command=["true"])
    row = WorkloadRow(
        id="w",
        name="w",
        project="p",
        definition=definition,
        request=PodRequest(),
        priority=50,
        is_preemptible=True,
        grace=timedelta(seconds=1),
        back_off=timedelta(seconds=1),
        actor="admin",
        created=NOW,
        waiting_since=NOW,
    )
    pod = PodRow(
        id="w-1-0", workload="w", index=0, attempt=1, node="n", bound=NOW, shares=(Share("d", 500, 1),), port=1
    )
    person = starting.Person("me", "/home/me", "/bin/sh")
    return starting.launch(row, pod, "default", folders=Folders(pathlib.Path("/data")), person=person).environment


def test_every_file_of_the_data_folder_is_documented() -> None:
    folders = Folders(pathlib.Path("/data"))
    below = [folders.database, folders.token, folders.server, folders.lock, folders.pods]
    names = [path.name for path in below] + [f"workloads/ID/{part}" for part in ("work", "checkpoint", "script")]
    named = [(name, value) for name, value in inspect.getmembers(records) if name.isupper() and isinstance(value, str)]
    of_a_pod = [value for name, value in named if not name.startswith("_")]

    text = page("reference/files.md")

    assert [name for name in [*names, *of_a_pod] if f"`{name}" not in text and f"/{name}`" not in text] == []


def test_every_guarantee_is_documented_in_the_words_of_the_code() -> None:
    documented = {row[0]: row[1] for row in rows_under("reference/limits-and-guarantees.md", "guarantee", "meaning")}

    assert documented == {str(one): guarantees.describe(one) for one in Guarantee}


def test_every_field_of_a_definition_is_documented() -> None:
    fields = [field.alias or name for name, field in workloads.Definition.model_fields.items()]

    assert first_words(rows_under("how-to/submit-a-training.md", "field")) == fields


EXAMPLES = [table for table in tables("explanation/fair-share.md") if table[0][0] == "Project"]


@pytest.mark.parametrize("table", EXAMPLES)
def test_the_fair_shares_in_the_docs_are_those_of_the_engine(table: list[list[str]]) -> None:
    heading, *rows = table
    written = [dict(zip(heading, row, strict=True)) for row in rows]

    portions = fairshare.divide(8000, [claimant(row) for row in written])

    for row in written:
        portion = portions[row["Project"]]
        said = fairshare.Portion(milli(row["Guaranteed"]), milli(row["Fair share"]))
        assert portion == said, row["Project"]


def test_the_page_on_fair_share_has_examples() -> None:
    assert len(EXAMPLES) > 1


def test_the_example_of_past_use_is_that_of_the_engine() -> None:
    (heading, *rows), *_ = [one for one in tables("explanation/scheduling-rules.md") if one[0][0] == "Project"]
    written = [dict(zip(heading, row, strict=True)) for row in rows]

    portions = fairshare.divide(8000, [user(row) for row in written], usage_weight=(1, 1))

    assert len(written) > 1
    for row in written:
        assert portions[row["Project"]].share == milli(row["Fair share, with past use"])


def user(row: dict[str, str]) -> fairshare.Claimant:
    """A row of the example as one who has used some."""
    used = int(row["Used"].removesuffix(" %")) * 10_000
    return fairshare.Claimant(row["Project"], milli(row["Asks"]), milli(row["Quota"]), int(row["Weight"]), usage=used)


def claimant(row: dict[str, str]) -> fairshare.Claimant:
    """A row of the page as one among whom is divided."""
    return fairshare.Claimant(
        row["Project"],
        milli(row["Asks"]),
        milli(row["Quota"]),
        int(row["Weight"]),
        None if row["Limit"] == "none" else milli(row["Limit"]),
        int(row["Priority"]),
    )


def milli(text: str) -> int:
    """GPUs in thousandths."""
    return quantities.parse_milli(text, "gpu")


def test_every_key_of_a_scenario_is_documented() -> None:
    text = page("reference/scenario-format.md")
    readers = [expectation, nodes, pods, policy, queues, reader, standing, steps, scenario_workloads]
    known = [value for module in readers for value in vars(module).values() if isinstance(value, fields.Keys)]

    assert len(known) > len(readers)
    assert {key for keys in known for key in keys.one | keys.two if f"`{key}`" not in text} == set()
