"""The page Runs: sweeps, what is in progress, failures with their logs, and the health of nodes."""

import re
import time
from typing import Any

import pytest

from store.open.engine import connect
from store.rows.owners import LEASE_S, owner
from store.write.queue import claim
from store.write.record import record
from store.write.submission import NewSweep, submit_sweep
from tests.webapp import stored
from tests.webapp.conftest import Open
from tests.webapp.page_elements import html_texts, page_text, point_tables, states
from tests.webapp.simulated import SIZES, job, outcome, quickstart_answer, store_sweep
from webapp.widgets.words import progress_words, run_progress

PAGE = "screens/runs.py"


def test_every_store_has_its_runs(opened: Open, large: str) -> None:
    """Counts and states of all sweeps, and the nodes that measured them."""
    engine = connect(large)
    # its dispatcher gives a sign now, however long ago the store was made
    with engine.begin() as connection:
        sign = "UPDATE job SET renewed_at = ? WHERE state = 'running'"
        connection.exec_driver_sql(sign, (time.time(),))
    engine.dispose()
    app = opened(large, PAGE)
    (nodes,) = point_tables(app, "Nodes")
    expected = {"large": "done", "repeated": "done", "language": "done", "running": "running"}
    assert states(app) == expected
    assert (nodes["attempts"] != "0").all()
    assert set(nodes["host"]) == {"node-cpu", "here"}
    assert nodes["flags"].str.contains("thermal_slowdown").any()


def test_comparisons_without_an_answer(opened: Open, tmp_path: Any) -> None:
    """The bar of a sweep counts what its points decide; what no job waits for is unanswered."""
    url = str(tmp_path / "open.db")
    store_sweep(url, "ended", [job(size) for size in SIZES], quickstart_answer)
    engine = connect(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE panel_progress SET comparisons = comparisons + 6")
    engine.dispose()
    app = opened(url, PAGE)
    assert states(app) == {"ended": "incomplete"}
    known = "25 answered 9 unclear 5 insufficient 1 failed"
    assert f"{known} 18 unanswered" in page_text(app)


def test_failures_have_their_reason_log_and_command(opened: Open, large: str) -> None:
    """Of the sweep in the address; a hostile message stays text, and the log is a block of its
    own.
    """
    app = opened(large, PAGE, sweep="large")
    words = page_text(app)
    assert "out_of_memory: " in words
    assert re.search(r"\w+=[\d.]+ · \S+ · \d+ px · batch \d+ · ", words)
    assert [
        block
        for block in app.get("html")
        if "simulated failure in &lt;b&gt;the&lt;/b&gt; arm" in block.proto.body
    ]
    command = "breakeven run large --remeasure --only failed"
    assert len([text for text in html_texts(app) if text.startswith(command)]) == 1
    assert any("Traceback" in code.value for code in app.code)
    app.selectbox(key="sweep").set_value("running").run()
    assert "No comparison of running failed" in page_text(app)


def test_a_sweep_at_work(opened: Open, tmp_path: Any) -> None:
    """Jobs that run and wait, with the time left by those that ended; without any nothing is
    claimed.
    """
    url = str(tmp_path / "work.db")
    engine = connect(url)
    jobs = [job(size) for size in (32, 64, 96, 128)]
    row = submit_sweep(engine, NewSweep("at work", "name: at work", "Does it pay?"), jobs, jobs)
    app = opened(url, PAGE)
    assert "at work on cpu: 0 of 4 jobs ended · 0 running, 4 waiting · no job runs" in page_text(
        app
    )
    (first,) = claim(engine, row, owner=owner(), limit=1)
    ended = outcome(first.job)
    record(
        engine, first.row, owner(), ended.model_copy(update={"ended_at": ended.started_at + 36_000})
    )
    claim(engine, row, owner=owner(), limit=1)
    words = page_text(opened(url, PAGE))
    assert "1 of 4 jobs ended · 1 running, 2 waiting · process " in words
    assert re.search(r" · about 3[01]\.\d h left", words)  # three jobs, of larger images
    assert "deit_tiny_patch16_224 32 px, batch 1, cpu, 10.0 h" in words
    engine.dispose()


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


def test_a_silent_run(opened: Open, halted: str) -> None:
    """Answer has the strip of the chosen sweep alone, without a time left once its dispatcher is
    silent; Runs calls it interrupted, names who held the host, and counts no time that is left.
    """
    assert not [text for text in html_texts(opened(halted, sweep="done")) if "jobs ended" in text]
    (own,) = [text for text in html_texts(opened(halted, sweep="halted")) if "jobs ended" in text]
    assert own.startswith("halted on cpu: 1 of 4 jobs ended")
    app = opened(halted, PAGE)
    assert states(app) == {"done": "done", "halted": "interrupted"}
    cards = " ".join(html_texts(app))
    assert "process 1 holds elsewhere since " in cards
    for words in (own, cards):
        assert " left" not in words
        assert "no sign for 8 min" in words
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
