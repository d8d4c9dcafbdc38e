"""A run that gives no sign any more: it is no progress of another sweep, it has no time left, and
it does not run.
"""

import pytest

from store.open.engine import connect
from store.rows.owners import LEASE_S
from store.write.queue import claim
from store.write.record import record
from store.write.submission import NewSweep, submit_sweep
from tests.webapp import stored
from tests.webapp.conftest import Open
from tests.webapp.page_elements import html_texts, states
from tests.webapp.simulated import job, outcome, store_sweep
from webapp.widgets.words import progress_words, run_progress

OWNER = "elsewhere:1:1"
SILENT_S = 500.0


@pytest.fixture(scope="module")
def halted(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Sweep `done`, and sweep `halted`: of four jobs one is done and one is held by a process last
    heard of 500 s ago.
    """
    url = str(tmp_path_factory.mktemp("halted") / "halted.db")
    store_sweep(url, "done", [job(size) for size in (160, 192)], outcome)
    engine = connect(url)
    jobs = [job(size) for size in (32, 64, 96, 128)]
    row = submit_sweep(engine, NewSweep("halted", "name: halted", "Does it pay?"), jobs, jobs)
    (first,) = claim(engine, row, owner=OWNER, limit=1)
    record(engine, first.row, OWNER, outcome(first.job))
    claim(engine, row, owner=OWNER, limit=1)
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "UPDATE job SET renewed_at = renewed_at - ? WHERE state = 'running'", (SILENT_S,)
        )
    engine.dispose()
    return url


def test_other_sweeps_are_not_progress_of_this_one(opened: Open, halted: str) -> None:
    """Answer has the strip of the chosen sweep alone, without a time left once its dispatcher is
    silent.
    """
    assert not [text for text in html_texts(opened(halted, sweep="done")) if "jobs ended" in text]
    (own,) = [text for text in html_texts(opened(halted, sweep="halted")) if "jobs ended" in text]
    assert own.startswith("halted on cpu: 1 of 4 jobs ended")
    assert " left" not in own
    assert "no sign for 8 min" in own


def test_a_silent_run_does_not_run(opened: Open, halted: str) -> None:
    """Runs calls it interrupted, names who held the host, and counts no time that is left."""
    app = opened(halted, "screens/runs.py")
    assert states(app) == {"done": "done", "halted": "interrupted"}
    cards = " ".join(html_texts(app))
    assert " left" not in cards
    assert "process 1 holds elsewhere since " in cards
    assert "no sign for 8 min" in cards
    assert SILENT_S > LEASE_S


def test_silence_grows_while_nothing_is_committed(halted: str) -> None:
    """What pages keep of a store that nobody writes to does not stand still."""
    (kept,) = stored.read(halted, run_progress)
    (again,) = stored.read(halted, run_progress)
    assert again is kept
    assert kept.heard_at is not None
    assert [kept.silent_s(kept.heard_at + later) for later in (1.0, 7200.0)] == [1.0, 7200.0]
    words = [
        " ".join(progress_words(kept, kept.heard_at + later)) for later in (1.0, SILENT_S, 7200.0)
    ]
    assert [" left" in text for text in words] == [True, False, False]
    assert len(set(words)) == 3
