"""The pages, run by Streamlit's own test harness on a real store."""

import functools
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest
from sqlalchemy import event

from store.open.engine import connect, connect_readonly, disposing
from store.rows.frames import rows_of
from store.write.submission import NewSweep, submit_sweep
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
from webapp.widgets import address
from webapp.widgets.answers import overviews
from webapp.widgets.filters import FilterPlan, plan_choices

SCREENS = Path(__file__).parents[2] / "webapp" / "screens"
PAGES = ["", *(f"screens/{file.name}" for file in SCREENS.glob("[!_]*.py"))]
# The page Answer is the default one, ""; Submit exists with --allow-submit alone.
PAGES = [page for page in PAGES if page not in {"screens/answer.py", "screens/submit.py"}]


def test_headlines(opened: Open, filled: str) -> None:
    """The page opens with the answer in at most twelve words, and a row for each arm."""
    app = opened(filled, sweep="quickstart")
    words = page_text(app)
    assert "From how many tokens on does token reduction pay on this machine?" in words
    (first,) = [text for text in html_texts(app) if re.fullmatch(r"topk .* likely from \d+", text)]
    assert re.match(r"topk keep_rate=0\.5 pays at \d+ to \d+ tokens, likely", first)
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
    assert "No arm was timed" in page_text(opened(empty, "screens/choose.py"))


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
        assert {"sweep", "panels", "arm"} <= {control.key for control in app.selectbox}


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


def test_all_contended(opened: Open, filled: str, tmp_path: Path) -> None:
    """If every point was measured beside other programs the headline has it below, else it does not."""
    url = str(tmp_path / "loud.db")
    loud = functools.partial(outcome, flags=("contended",))
    store_sweep(url, "loud", [job(64), job(96)], loud)
    text = "easured beside other programs"
    words = page_text(opened(url))
    assert words.count(text) == 2  # also among how to read the page
    assert f"M{text}: 10 of 10 speed-ups" in words
    assert page_text(opened(filled, sweep="quickstart")).count(text) == 1


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


@pytest.fixture(scope="module")
def counts(filled: str) -> pd.DataFrame:
    return stored.read(filled, queries.panels, "batches")


def chosen(plan: FilterPlan) -> dict[str, str]:
    return {choice.key: choice.value for choice in plan.choices}


def test_the_fullest_panel_is_the_default(counts: pd.DataFrame) -> None:
    """Batch 1 is measured at all sizes, batch 2 lacks one; a column with one value offers no
    choice.
    """
    plan = plan_choices("batches", counts, {})
    assert chosen(plan) == {"panels": "one panel", "batch": "1"}
    assert plan.scope.fixed["batch_size"] == 1
    assert plan.scope.fixed["new_tokens"] is None


def test_a_facet_leaves_its_column_free(counts: pd.DataFrame, filled: str) -> None:
    """With a panel for each batch the batch is not fixed, and the points of both are read."""
    plan = plan_choices("batches", counts, {"panels": ["batch"]})
    assert plan.scope.facet == "batch_size"
    assert "batch_size" not in plan.scope.fixed
    points, break_evens = stored.read(filled, queries.scope_points, plan.scope)
    assert set(points["batch_size"]) == set(break_evens["batch_size"]) == {1, 2}


def test_rows_of_a_scope(counts: pd.DataFrame, filled: str) -> None:
    """Values of the address are taken where they exist; rows of views are those of the conditions
    and arms.
    """
    requested = {"batch": ["2"], "method": ["topk", "magic"], "model": ["resnet"]}
    plan = plan_choices("batches", counts, requested)
    scope = plan.scope
    assert chosen(plan)["batch"] == "2"
    assert scope.chosen["method"] == ("topk",)
    assert scope.fixed["model"] == "deit_small_patch16_224"
    points, _ = stored.read(filled, queries.scope_points, scope)
    assert set(points["batch_size"]) == {2}
    assert set(points["arm"]) == {"topk keep_rate=0.5", "topk keep_rate=0.7"}
    assert len(stored.read(filled, queries.scope_rows, scope, "effect")) == len(points)
    assert "speedup.batch_size = 2" in queries.scope_sql(scope)


def test_an_arm_of_the_address(opened: Open, filled: str) -> None:
    """An arm in the address is highlighted; one that is not there is reported, as are a sweep, a
    batch and a parameter; the newest measured sweep, which is shown instead, stands in the address.
    """
    app = opened(filled, sweep="quickstart", arm="topk keep_rate=0.7")
    assert app.selectbox(key="arm").value == "topk keep_rate=0.7"
    assert "jobs ended" not in page_text(app)
    app = opened(filled, sweep="qickstart", batch="77", bacth="1", arm="nothing")
    words = page_text(app)
    for reported in (
        "The address has sweep=qickstart, which is not known here; batches is shown.",
        "The address has batch=77, which is not known here; 1 is shown.",
        "The address has bacth, which this page does not take.",
        "The address has arm=nothing, which is not known here.",
        "batches on cpu: 15 of 16 jobs ended",
    ):
        assert reported in words
    assert app.query_params["sweep"] == "batches"


@pytest.mark.parametrize("page", PAGES)
def test_hostile_addresses(opened: Open, filled: str, page: str) -> None:
    """No name and no empty one, a NUL, names of Python and of the session, numbers that are none:
    no page fails, and each still shows something.
    """
    strange = ["", "\0", "nan", "-1", "1e999", "9" * 400, "<b>", "[x](y)", "__class__", "../../x"]
    others = {"": "true", "=": "&", "__class__": "x", "address": "1", "x" * 5000: "y" * 5000}
    for values in ([], strange, ["true"]):
        given = {name: values for name in address.NAMES if values and name != "sql"}
        app = opened(filled, page, **{**given, **others})
        assert app.main.children
        assert "Traceback" not in page_text(app)


HOME = "screens/home.py"


def test_every_sweep_has_its_answer(opened: Open, large: str) -> None:
    """The headline is that of the page Answer of the sweep; it has its age, and whether it is
    new.
    """
    names = tuple(row["name"] for row in stored.read(large, queries.measured_sweeps))
    known = stored.read(large, overviews, names)
    words = " ".join(html_texts(opened(large, HOME)))
    assert f"{len(names)} of {len(names)} sweeps new in the last seven days" in words
    for name in ("large", "language"):
        assert f"{known[name].headline} " in words
        assert known[name].headline in html_texts(opened(large, sweep=name))
        assert any(value for _, points in known[name].curves for _, value in points)


def test_a_sweep_without_a_speedup(opened: Open, tmp_path: Path) -> None:
    url = str(tmp_path / "waiting.db")
    with disposing(connect(url)) as engine:
        submit_sweep(engine, NewSweep("trial", "text", "What pays?"), [], [])
    assert "No speed-up was measured" in " ".join(html_texts(opened(url, HOME)))


def test_one_query_for_all_sweeps(large: str) -> None:
    """Its number does not grow with the sweeps."""
    counted = []
    for names in (("large",), ("large", "repeated", "language", "running")):
        engine = connect_readonly(large)
        statements: list[str] = []
        event.listen(
            engine, "before_cursor_execute", lambda *given, kept=statements: kept.append(given[2])
        )
        assert set(overviews.__wrapped__(engine, names)) == set(names)
        counted.append(sum("FROM" in text for text in statements))
        engine.dispose()
    assert counted[0] == counted[1] == 3
