"""Submitted sweeps: their order, their leases, and what may become of each."""

import pytest
from sqlalchemy import update

from store.errors import StoreError
from store.open.engine import Engine
from store.schema.tables import SUBMISSION
from store.write import submissions
from tests.store.conftest import check_order_of_submissions, queued


def test_order(engine: Engine) -> None:
    check_order_of_submissions(engine)


def test_what_may_become_of_one(engine: Engine) -> None:
    """Open ones are paused, resumed and cancelled; ended ones are not, and each refusal names the
    state. Only a queued one of a larger priority is seen as more urgent, and only the end of a long
    log is kept.
    """
    (number,) = queued(engine, 3)
    assert [submissions.waits_above(engine, priority) for priority in (2, 3)] == [True, False]
    with pytest.raises(StoreError, match=rf"submission {number} \(sweep 0\) is queued"):
        submissions.change_state(engine, number, "queued")
    assert submissions.change_state(engine, number, "paused", "by me").why == "by me"
    assert not submissions.waits_above(engine, 2)
    assert submissions.take_next(engine) is None
    submissions.change_state(engine, number, "queued")
    assert submissions.take_next(engine) is not None
    submissions.keep_running(engine, number, "x" * 30_000 + "the end")
    log = submissions.find_submission(engine, number).log
    assert (len(log), log[-7:]) == (submissions.LOG_CHARACTERS, "the end")
    submissions.end_run(engine, number, "answered", "", "all of it")
    assert submissions.find_submission(engine, number).log == "all of it"
    for wish in ("paused", "queued", "cancelled"):
        with pytest.raises(StoreError, match="is answered"):
            submissions.change_state(engine, number, wish)
    with pytest.raises(StoreError, match="has no submission 99"):
        submissions.change_state(engine, 99, "paused")


@pytest.mark.parametrize("wish", ["cancelled", "paused"])
def test_a_running_one_is_stopped(engine: Engine, wish: str) -> None:
    """Its server notices at its next sign of life, and how the run ends does not undo the wish."""
    (number,) = queued(engine, 0)
    submissions.take_next(engine)
    assert submissions.keep_running(engine, number, "so far")
    submissions.change_state(engine, number, wish)
    assert not submissions.keep_running(engine, number, "more")
    submissions.end_run(engine, number, "queued", "its server was stopped", "the end")
    found = submissions.find_submission(engine, number)
    assert (found.state, found.log) == (wish, "the end")


def test_one_of_a_dead_server_is_taken_again(engine: Engine) -> None:
    """A server that ended without a word loses its submission, one that lives does not."""
    number, other = queued(engine, 1, 0)
    assert submissions.take_next(engine) is not None
    assert submissions.take_next(engine) is not None
    assert submissions.take_next(engine) is None
    with engine.begin() as connection:
        ended = update(SUBMISSION).where(SUBMISSION.c.id == number)
        connection.execute(ended.values(owner="elsewhere:1:1", renewed_at=1.0))
    again = submissions.take_next(engine)
    assert again is not None
    assert again.id == number
    assert submissions.find_submission(engine, other).state == "running"
