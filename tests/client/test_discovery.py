"""Where a client looks for the server."""

import json
import pathlib

import pytest

from aliquot.client import discovery
from aliquot.core import errors


def running(folder: pathlib.Path, *, url: str = "http://127.0.0.1:8265", token: str = "secret") -> pathlib.Path:
    """A data folder in which a server says that it runs."""
    folder.mkdir(parents=True)
    (folder / "server.json").write_text(json.dumps({"url": url, "pid": 1}))
    (folder / "token").write_text(f"{token}\n")
    return folder


def test_the_environment_names_the_server_before_any_folder_does(tmp_path: pathlib.Path) -> None:
    folder = running(tmp_path / "data")
    environ = {"ALIQUOT_URL": "http://far:1", "ALIQUOT_TOKEN": "t", "ALIQUOT_DATA": str(folder)}

    assert discovery.find(environ) == discovery.Server("http://far:1", "t")


@pytest.mark.parametrize("variable", ["ALIQUOT_DATA", "XDG_DATA_HOME", "HOME"])
def test_else_the_data_folder_does(tmp_path: pathlib.Path, variable: str) -> None:
    below = {"ALIQUOT_DATA": "", "XDG_DATA_HOME": "aliquot", "HOME": ".local/share/aliquot"}[variable]
    running(tmp_path / "base" / below)

    found = discovery.find({variable: str(tmp_path / "base")})

    assert found == discovery.Server("http://127.0.0.1:8265", "secret")


def test_an_address_without_a_token_is_an_error_that_names_the_variable() -> None:
    with pytest.raises(errors.InvalidInput, match="ALIQUOT_TOKEN is not set") as caught:
        discovery.find({"ALIQUOT_URL": "http://far:1"})

    assert caught.value.field == "ALIQUOT_TOKEN"


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(errors.InvalidInput, match="'far' is no address"):
        discovery.find({"ALIQUOT_URL": "far", "ALIQUOT_TOKEN": "t"})


def test_without_a_server_the_error_says_where_it_looked(tmp_path: pathlib.Path) -> None:
    with pytest.raises(errors.Unavailable, match=r"server\.json does not exist") as caught:
        discovery.find({"ALIQUOT_DATA": str(tmp_path)})

    assert caught.value.stable_code == "no-server"


@pytest.mark.parametrize("text", ["", "[]", "{}", "{", '"x"'])
def test_an_address_file_that_cannot_be_understood_is_an_error(tmp_path: pathlib.Path, text: str) -> None:
    folder = running(tmp_path / "data")
    (folder / "server.json").write_text(text)

    with pytest.raises(errors.Unavailable, match="cannot be understood"):
        discovery.find({"ALIQUOT_DATA": str(folder)})


def test_a_token_is_not_shown_where_a_server_is_printed() -> None:
    assert "secret" not in repr(discovery.Server("http://far:1", "secret"))


def test_a_copy_of_a_data_folder_does_not_lead_to_the_server_of_the_other(tmp_path: pathlib.Path) -> None:
    original, copy = running(tmp_path / "data"), running(tmp_path / "copy")
    address = json.dumps({"url": "http://127.0.0.1:8265", "dataDirectory": str(original)})
    for folder in (original, copy):
        (folder / "server.json").write_text(address)

    with pytest.raises(errors.Unavailable, match="was copied from"):
        discovery.find({"ALIQUOT_DATA": str(copy)})
    assert discovery.find({"ALIQUOT_DATA": str(original)}).token == "secret"


def test_another_path_to_the_same_data_folder_leads_to_its_server(tmp_path: pathlib.Path) -> None:
    original, link = running(tmp_path / "data"), tmp_path / "link"
    (original / "server.json").write_text(json.dumps({"url": "http://127.0.0.1:1", "dataDirectory": str(original)}))
    link.symlink_to(original)

    assert discovery.find({"ALIQUOT_DATA": str(link)}).url == "http://127.0.0.1:1"


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\xfe", b"two\nlines"])
def test_a_token_file_that_holds_no_token_is_an_error_that_names_it(tmp_path: pathlib.Path, content: bytes) -> None:
    folder = running(tmp_path / "data")
    (folder / "token").write_bytes(content)

    with pytest.raises(errors.Unavailable, match="holds no token"):
        discovery.find({"ALIQUOT_DATA": str(folder)})
