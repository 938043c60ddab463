"""What the doctor says of a machine, apart from its GPUs (tests/local/test_real_devices.py has those)."""

import pathlib
import shutil

import pytest

from aliquot.local import doctor, limits

MOUNTS = "20 1 0:20 / {point} rw - {kind} source rw\n"
GIB = 2**30


def rooted(folder: pathlib.Path, kind: str) -> pathlib.Path:
    """A machine whose whole disk is of one kind."""
    (folder / "proc" / "self").mkdir(parents=True)
    (folder / "proc" / "self" / "mountinfo").write_text(MOUNTS.format(point="/", kind=kind))
    return folder


def test_all_checks_end_in_a_sentence_and_what_is_not_well_says_what_to_do(tmp_path: pathlib.Path) -> None:
    checks = doctor.examine(tmp_path / "data", means=limits.Limits())

    assert {"python", "driver", "limits", "file system", "disk", "permissions"} <= {check.name for check in checks}
    assert all(check.sentence for check in checks)
    assert all(check.advice for check in checks if check.state != "ok")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(("version", "state"), [((3, 10), "problem"), ((3, 11), "ok"), ((4, 0), "ok")])
def test_a_python_that_is_too_old_is_a_problem(version: tuple[int, int], state: str) -> None:
    assert doctor.check_python(version).state == state


@pytest.mark.parametrize(
    ("means", "state"),
    [(limits.Limits(), "warning"), (limits.Limits(1, {"cpu": "/c", "memory": "/m"}), "ok")],
    ids=["none", "version 1"],
)
def test_limits_without_cgroups_are_weaker_and_it_says_how(means: limits.Limits, state: str) -> None:
    check = doctor.check_limits(means)

    assert (check.state, check.sentence) == (state, means.describe())


@pytest.mark.parametrize(("kind", "state"), [("ext4", "ok"), ("nfs4", "problem"), ("tmpfs", "warning")])
def test_the_file_system_of_the_data_folder_is_judged_by_its_kind(
    tmp_path: pathlib.Path, kind: str, state: str
) -> None:
    check = doctor.check_file_system(tmp_path / "data", root=rooted(tmp_path / "root", kind))

    assert check.state == state
    assert f"lies on {kind}" in check.sentence


@pytest.mark.parametrize(("free", "state"), [(100 * GIB, "ok"), (9 * GIB, "warning"), (GIB // 2, "problem")])
def test_a_disk_that_is_nearly_full_is_told_before_it_is(free: int, state: str) -> None:
    assert doctor.check_disk(free).state == state


@pytest.mark.parametrize(("mode", "state"), [(0o700, "ok"), (0o750, "warning"), (0o701, "warning")])
def test_a_data_folder_that_others_can_enter_is_a_warning(tmp_path: pathlib.Path, mode: int, state: str) -> None:
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "data").chmod(mode)

    assert doctor.check_permissions(tmp_path / "data").state == state


def test_a_data_folder_that_is_a_file_is_a_problem(tmp_path: pathlib.Path) -> None:
    (tmp_path / "data").touch()

    assert doctor.check_permissions(tmp_path / "data").state == "problem"


def test_a_data_folder_of_another_user_is_a_problem(tmp_path: pathlib.Path) -> None:
    (tmp_path / "data").mkdir()
    try:
        shutil.chown(tmp_path / "data", 65_534)
    except PermissionError:
        pytest.skip("only root can give a folder away")

    assert doctor.check_permissions(tmp_path / "data").state == "problem"
