"""`cp`: what goes where, and that nothing a workload sends lands outside the destination."""

import io
import pathlib
import tarfile
from collections.abc import Iterator

import pytest

from aliquot.cli import files
from aliquot.core import errors


def packed(*members: tuple[str, bytes | None]) -> Iterator[bytes]:
    """A tar stream in small pieces; None is a folder."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.type = tarfile.DIRTYPE if content is None else tarfile.REGTYPE
            member.mode = 0o755 if content is None else 0o644
            member.size = len(content or b"")
            archive.addfile(member, io.BytesIO(content or b""))
    data = buffer.getvalue()
    return (data[at : at + 1000] for at in range(0, len(data), 1000))


def tree(folder: pathlib.Path) -> dict[str, bytes | None]:
    """All that is in a folder."""
    return {str(p.relative_to(folder)): None if p.is_dir() else p.read_bytes() for p in sorted(folder.rglob("*"))}


@pytest.mark.parametrize(
    ("text", "remote"),
    [
        ("job:out/model", files.Remote("job", "out/model")),
        ("job:", files.Remote("job", ".")),
        ("job:a:b", files.Remote("job", "a:b")),
        ("./like:this", None),
        ("/tmp/a:b", None),
        ("plain", None),
        (":x", None),
    ],
)
def test_a_side_with_a_colon_is_a_workload_s(text: str, remote: files.Remote | None) -> None:
    assert files.remote(text) == remote


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("d/", ("d/", "f")),
        (".", (".", "f")),
        ("d/new", ("d", "new")),
        ("new", (".", "new")),
        ("/new", ("/", "new")),
        ("..", ("..", "f")),
    ],
)
def test_an_upload_goes_into_a_folder_or_gets_a_new_name(path: str, place: tuple[str, str]) -> None:
    assert files.split(path, "f") == place


def test_a_file_is_copied_under_the_name_that_is_given(tmp_path: pathlib.Path) -> None:
    files.download(packed(("model", b"m" * 5000)), tmp_path / "mine")

    assert tree(tmp_path) == {"mine": b"m" * 5000}


def test_a_file_is_copied_into_a_folder_that_is_there(tmp_path: pathlib.Path) -> None:
    files.download(packed(("model", b"m")), tmp_path)

    assert tree(tmp_path) == {"model": b"m"}


@pytest.mark.parametrize("head", ["out", "."])
def test_a_folder_is_copied_under_the_name_that_is_given(tmp_path: pathlib.Path, head: str) -> None:
    files.download(packed((head, None), (f"{head}/d", None), (f"{head}/d/f", b"f")), tmp_path / "mine")

    assert tree(tmp_path) == {"mine": None, "mine/d": None, "mine/d/f": b"f"}


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/../evil"])
def test_nothing_lands_outside_the_destination(tmp_path: pathlib.Path, name: str) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()

    with pytest.raises(errors.InvalidInput):
        files.download(packed((name, b"x")), inside)

    assert tree(tmp_path) == {"inside": None}


def test_what_is_packed_is_what_was_there(tmp_path: pathlib.Path) -> None:
    source = tmp_path / "source"
    (source / "d").mkdir(parents=True)
    (source / "d" / "big").write_bytes(b"b" * 1_000_000)

    files.download(iter(files.upload(source, "named")), tmp_path / "copy")

    assert tree(tmp_path / "copy") == tree(source)
