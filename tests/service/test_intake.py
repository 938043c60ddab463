"""Definitions, read once: whatever is written, it is read exactly or refused with the field at fault."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.core import errors
from aliquot.core.model import Claim, GpuRequest, PodRequest, PoolTerms
from aliquot.service import intake, terms
from aliquot.wire import projects
from aliquot.wire import workloads as shapes

LIKE_AMOUNTS = st.text("0123456789.xeGMiKk-+m nadNT", max_size=8) | st.text(max_size=8)
FIELDS = {
    "gpu": "gpu",
    "cpu": "cpu",
    "memory": "memory",
    "priority": "priority",
    "max_run_time": "maxRunTime",
    "grace_period": "gracePeriod",
}


@given(field=st.sampled_from(sorted(FIELDS)), text=LIKE_AMOUNTS)
def test_any_text_is_read_or_refused_with_its_field(field: str, text: str) -> None:
    given: dict[str, Any] = {field: text}
    taken, fault = None, None
    try:
        taken = intake.read(shapes.Definition(command=["true"], **given))
    except errors.InvalidInput as error:
        fault = error.field
    assert (fault == FIELDS[field]) is (taken is None)
    assert taken is None or (0 <= taken.priority <= 1000 and taken.grace > timedelta(0))


def test_everything_is_read_into_exact_values() -> None:
    definition = shapes.Definition(
        script="echo",
        kind=shapes.Kind.WORKSPACE,
        gpu="2x0.5",
        cpu="1.5",
        memory="1.5Gi",
        priority="medium",
        preemptible=True,
        max_run_time="1h30m",
        retry_back_off="5s",
        grace_period="2m",
        ttl_after_finish="7d",
    )

    taken = intake.read(definition)

    assert taken == intake.Intake(
        definition=definition,
        request=PodRequest(GpuRequest(devices=2, milli=500), milli_cpus=1500, memory_bytes=3 * 2**29),
        priority=50,
        is_preemptible=True,
        grace=timedelta(minutes=2),
        back_off=timedelta(seconds=5),
        max_run_time=timedelta(minutes=90),
        ttl=timedelta(days=7),
    )


@pytest.mark.parametrize("other", [{"name": "b"}, {"gpu": "2"}, {"environment": {"A": "2"}}, {"project": "b"}])
def test_another_body_has_another_hash(other: dict[str, Any]) -> None:
    plain = {"name": "a", "command": ["true"], "gpu": "1", "environment": {"A": "1"}}

    hashes = {intake.body_hash(shapes.Definition(**given)) for given in (plain, plain | other)}

    assert len(hashes) == 2


def test_a_made_up_name_is_a_valid_one() -> None:
    name = intake.make_name(shapes.Kind.TRAINING, "0192F0C1-2B3C-7abc-8def-0123456789AB")

    assert shapes.Definition(name=name, command=["true"]).name == "training-456789ab"


AMOUNTS = st.integers(0, 10**15)


@given(quota=st.none() | AMOUNTS, limit=st.none() | AMOUNTS, resource=st.sampled_from(("gpu", "cpu", "memory")))
def test_terms_come_back_exactly_as_they_were_shown(quota: int | None, limit: int | None, resource: Any) -> None:
    claim = Claim(quota=quota, limit=limit if limit is None or quota is None else max(quota, limit))
    core = terms.with_claim(PoolTerms(), resource, claim)

    shown = terms.show(core)

    assert terms.read({"default": shown}) == {"default": core}
    assert isinstance(shown, projects.PoolTerms)
