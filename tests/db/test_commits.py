"""What was written lately: nothing is left out, and what is forgotten is said to be."""

import pytest

from aliquot.db import commits
from aliquot.db import store as db
from aliquot.service import ports, records
from tests import builders

DEPARTMENT = records.QueueRow("d", "d", builders.NOW)


def noted(*sequences: int, most_ids: int = 100) -> commits.Commits:
    """Commits at which these were the newest events; each touched a workload that is called by its number."""
    made = commits.Commits(10, most_ids=most_ids)
    for number, sequence in enumerate(sequences, start=1):
        made.note(sequence, {"workloads": {str(number)}})
    return made


@pytest.mark.parametrize(
    ("after", "expected"),
    [(0, {"1", "2", "3"}), (1, {"2", "3"}), (2, {"3"}), (3, set())],
)
def test_what_was_written_after_a_commit_is_told_once(after: int, expected: set[str]) -> None:
    found = noted(11, 11, 12).after(after)

    assert found is not None
    assert found.of("workloads") == expected
    assert (found.commit, found.sequence) == (3, 12)


@pytest.mark.parametrize("commit", [-1, 4])
def test_a_commit_that_is_not_of_this_process_is_not_known(commit: int) -> None:
    assert noted(11, 11, 12).after(commit) is None


@pytest.mark.parametrize(
    ("sequence", "before"),
    [
        (13, 4),  # the newest event: what was written without an event since then is still told
        (12, 2),
        (11, 0),
        (10, None),  # before this process
        (14, None),  # not of this database
    ],
)
def test_who_has_seen_an_event_is_told_all_that_was_written_since(sequence: int, before: int | None) -> None:
    assert noted(11, 11, 12, 12, 13, 13).before(sequence) == before


def test_what_is_forgotten_is_said_to_be() -> None:
    made = noted(11, 12, 13, most_ids=2)

    assert made.after(0) is None
    assert made.before(11) is None
    kept = made.after(1)
    assert kept is not None
    assert kept.of("workloads") == {"2", "3"}


@pytest.mark.anyio
async def test_the_store_notes_what_is_put_and_deleted_by_table_and_the_nouns_of_events() -> None:
    store = db.open_store(":memory:")
    try:
        await store.write(lambda tx: tx.queues.put(DEPARTMENT))
        event = records.EventRow(builders.NOW, "department", "d", "d", "created", "was created")

        def delete(tx: ports.Transaction) -> None:
            tx.queues.delete("d")
            tx.events.put(event)

        await store.write(delete)

        found = store.touched(0)
        assert found is not None
        assert found.rows == {"queues": {"d"}, "events": {"department"}}
        assert (found.commit, found.sequence) == (2, 1)
        last = store.touched(1)
        assert last is not None
        assert last.of("queues") == {"d"}
    finally:
        store.close()


@pytest.mark.anyio
async def test_a_write_that_is_undone_is_not_noted() -> None:
    store = db.open_store(":memory:")
    try:

        def fail(tx: ports.Transaction) -> None:
            tx.queues.put(DEPARTMENT)
            raise ValueError("not now")

        with pytest.raises(ValueError, match="not now"):
            await store.write(fail)

        found = store.touched(0)
        assert found is not None
        assert found.rows == {}
    finally:
        store.close()
