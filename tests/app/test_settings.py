"""The settings of the server."""

import pathlib
from datetime import timedelta

import pytest

from aliquot.app import settings
from aliquot.core import errors
from aliquot.core.model import Policy


def test_the_rules_are_those_of_the_scheduler_but_for_what_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    # The environment is where the settings come from.
    monkeypatch.setenv("ALIQUOT_SERVER_MAX_MOVED_PODS", "0")
    monkeypatch.setenv("ALIQUOT_SERVER_RELEASE_GRACE_SECONDS", "5")

    assert settings.Settings().policy == Policy(max_consolidation_victims=0, release_grace=timedelta(seconds=5))
    monkeypatch.setenv("ALIQUOT_SERVER_MAX_MOVED_PODS", "-1")
    with pytest.raises(errors.InvalidInput, match="max_moved_pods"):
        settings.read()


def test_two_data_folders_of_one_name_have_logs_of_their_own(tmp_path: pathlib.Path) -> None:
    one, other = (settings.read(data=tmp_path / place / "data", state=tmp_path) for place in ("one", "other"))

    assert one.log_file != other.log_file
    assert settings.read(data=one.data, state=tmp_path).log_file == one.log_file
