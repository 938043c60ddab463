"""The settings of the server."""

import pathlib

from aliquot.app import settings


def test_two_data_folders_of_one_name_have_logs_of_their_own(tmp_path: pathlib.Path) -> None:
    one, other = (settings.read(data=tmp_path / place / "data", state=tmp_path) for place in ("one", "other"))

    assert one.log_file != other.log_file
    assert settings.read(data=one.data, state=tmp_path).log_file == one.log_file
