"""The pages, run by Streamlit's own test harness on a real store."""

import functools
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from store.rows.frames import rows_of
from sweeps.analysis.labels import conclude_speedup
from sweeps.analysis.rows import SpeedupRow
from sweeps.text.effects import effect_word
from tests.webapp import stored
from tests.webapp.conftest import Open
from tests.webapp.page_elements import (
    OPEN_TABLE,
    cells,
    charts,
    html_texts,
    page_text,
    point_tables,
)
from tests.webapp.simulated import job, outcome, store_sweep
from webapp import queries

SCREENS = Path(__file__).parents[2] / "webapp" / "screens"
PAGES = ["", *(f"screens/{file.name}" for file in SCREENS.glob("[!_]*.py"))]


def test_headlines(opened: Open, filled: str) -> None:
    """The page opens with the answer in at most twelve words, and a row for each arm."""
    app = opened(filled, sweep="quickstart")
    words = page_text(app)
    assert "From how many tokens on does token reduction pay on this machine?" in words
    (first,) = [text for text in html_texts(app) if re.fullmatch(r"topk .* likely from \d+", text)]
    assert re.match(r"topk keep_rate=0\.5 pays from \d+ tokens on, likely", first)
    assert len(first.split()) <= 12
    assert (
        "2 of 4 curves pay in at least a part of what was measured · Simulated CPU · float32"
        " · sdpa · eager · batch 1"
    ) in words
    assert "deit_tiny_patch16_224 · 4 to 196 tokens · against dense" in words
    assert re.search(r"tome r_ratio=0\.02 .*0\.[89]\d+× \[.*\], slower Why\? · Evidence", words)
    assert "random keep_rate=0.5 (a control)" in words


def test_filters_live_in_the_address(opened: Open, filled: str) -> None:
    """An address reproduces the same view, and a choice that narrows nothing is not offered; a sweep
    chosen anew starts with all its points.
    """
    query = {"axis": "GMACs", "batch": "2", "method": ["topk"], "table-speedup-gmacs": "true"}
    app = opened(filled, sweep="batches", **query)
    assert app.selectbox(key="sweep").value == "batches"
    assert {element.key: element.value for element in app.multiselect} == {"method": ["topk"]}
    assert app.selectbox(key="batch").value == "2"
    assert len(charts(app)) == 2  # along tokens and GMACs
    assert "tome" not in page_text(app)
    (table,) = point_tables(app)
    assert set(table["Arm"]) == {"topk keep_rate=0.5", "topk keep_rate=0.7"}
    app.selectbox(key="sweep").set_value("quickstart").run()
    assert "deit_tiny_patch16_224" in page_text(app)


def test_the_table_of_points(opened: Open, filled: str) -> None:
    """It has the word and the interval of each point as the terminal's report prints them, and is
    made when it is opened; flagged points on request, which are counted.
    """
    assert not point_tables(opened(filled, sweep="quickstart"))
    app = opened(filled, sweep="quickstart", **OPEN_TABLE)
    (table,) = point_tables(app)
    found = stored.read(filled, queries.view_rows, "quickstart", "speedup")
    rows = [row for row in rows_of(found, SpeedupRow) if row.flags != "thermal_slowdown"]
    printed = {(effect_word(each), each.interval) for each in map(conclude_speedup, rows)}
    assert set(zip(table["Verdict"], table["99.5 % interval"], strict=True)) == printed
    assert app.toggle(key="flagged").label == "Show 5 flagged points"
    app.toggle(key="flagged").set_value(True).run()
    assert len(point_tables(app)[0]) == len(table) + 5


def test_nothing_to_show(opened: Open, empty: str, tmp_path: Path) -> None:
    """An empty store, a missing one, and a file that is none: a friendly page with the one command
    to run; a sweep without a measurement shows that, and where to look.
    """
    strange = tmp_path / "strange.db"
    strange.write_text("This is a letter, not a database. " * 10)
    for url, reason, command in (
        (empty, "holds no sweep", True),
        (str(tmp_path / "none.db"), "does not exist", True),
        (str(strange), "not an SQLite database; name another file", False),
    ):
        for page in ("", "screens/runs.py"):
            words = page_text(opened(url, page))
            assert reason in words
            assert ("Nothing to show yet" in words) == command
            assert ("Measure your first break-even" in words) == command
            assert ("This store cannot be shown" in words) != command
    store_sweep(empty, "waiting", [job(64)], lambda _: None)
    assert "has no measurement of a speed-up yet" in page_text(opened(empty))


@pytest.mark.parametrize("page", PAGES)
def test_a_large_store_comes_up(opened: Open, large: str, page: str) -> None:
    """Without a traceback, on a sweep of many arms: of its panels the fullest, with the choices that
    lead to the others.
    """
    app = opened(large, page, sweep="large")
    words = page_text(app)
    assert words
    if not page:
        assert words.count(" · against ") == 1
        assert {"sweep", "batch", "arm"} <= {control.key for control in app.selectbox}


def test_all_flagged(opened: Open, tmp_path: Path) -> None:
    """If every point is flagged the page reports it instead of drawing nothing, and the switch
    shows them again.
    """
    url = str(tmp_path / "flagged.db")
    flagged = functools.partial(outcome, flags=("thermal_slowdown",))
    store_sweep(url, "noisy", [job(64), job(96)], flagged)
    app = opened(url)
    assert "10 measured, 10 of them flagged and hidden" in page_text(app)
    reason = "cannot tell; a flag marks every point as wrong"
    assert cells(app)["topk keep_rate=0.5"].startswith(reason)
    app.toggle(key="flagged").set_value(True).run()
    assert len(charts(app)) == 2


@pytest.mark.parametrize("schema", ["0000", "9999"])
def test_other_schemas(opened: Open, filled: str, tmp_path: Path, schema: str) -> None:
    """A store of another version is explained, with what to do."""
    url = str(tmp_path / "other.db")
    shutil.copy(filled, url)
    with closing(sqlite3.connect(url)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", [schema])
        connection.commit()
    words = page_text(opened(url, "screens/runs.py"))
    assert "This store cannot be shown" in words
    assert "--db" in words


def test_a_store_that_is_moved_while_open(opened: Open, filled: str, tmp_path: Path) -> None:
    """The next run of a page states that the store is gone; when it is back, the page is too."""
    url, elsewhere = tmp_path / "open.db", tmp_path / "moved.db"
    shutil.copy(filled, url)
    app = opened(str(url), sweep="quickstart")
    url.rename(elsewhere)
    assert "does not exist" in page_text(app.run())
    assert not app.exception
    elsewhere.rename(url)
    assert "Simulated CPU · float32" in page_text(app.run())
