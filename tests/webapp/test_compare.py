"""The page with two sides: what differs is found and named, and a store without two sides explains
itself.
"""

import math
from pathlib import Path

import pandas as pd
import pytest

from store.open.engine import connect
from tests.fixtures.sql_rows import rows
from tests.webapp import stored
from tests.webapp.conftest import Open
from tests.webapp.page_elements import page_text
from tests.webapp.simulated import job, outcome, store_outcomes
from tests.webapp.two_sides import two_sides_store
from webapp.charts.compare import side_info
from webapp.charts.points import draw_points
from webapp.screens.compare import history_frame, read_choices, read_history, side_frame, two_sides

PAGE = "screens/compare.py"


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> str:
    return two_sides_store(tmp_path_factory.mktemp("sides") / "sides.db")


def question(url: str) -> str:
    engine = connect(url)
    found = rows(
        engine,
        "SELECT question_id, COUNT(*) AS n FROM effect_row WHERE compared = 'ratio' GROUP BY 1"
        " ORDER BY n DESC, 1",
    )
    engine.dispose()
    return str(found[0]["question_id"])


def test_environments(sides: str, opened: Open) -> None:
    """The slowed arm differs at both sizes and comes first; what changed in the environment stands
    above it.
    """
    app = opened(sides, PAGE, by="environment")
    text = page_text(app)
    assert "2 of 10 common questions differ" in text
    assert "2.15" in text
    assert "not stated" in text
    assert text.index("2 of 10 common questions differ") < text.index("First over second")
    table = text[text.index("First over second") :]
    assert table.index("topk keep_rate=0.7") < table.index("topk keep_rate=0.5")
    assert len(app.get("vega_lite_chart")) == 1
    assert {name: app.query_params[name] for name in ("by", "a", "b")}.keys() == {"by", "a", "b"}


def test_sweeps_revisions_and_days(sides: str, opened: Open) -> None:
    """Sweeps at another dtype are matched by all else; revisions of equal questions have one
    answer; days by their attempts.
    """
    text = page_text(opened(sides, PAGE, by="sweep", a="first", b="half"))
    assert "bfloat16" in text
    assert "common questions" in text
    assert "have one and the same answer on both sides" in page_text(
        opened(sides, PAGE, by="revision", a="1:first", b="2:first")
    )
    days = [choice.value for choice in stored.read(sides, read_choices, "date")]
    assert "2 of 10 common questions differ" in page_text(
        opened(sides, PAGE, by="date", a=days[1], b=days[0])
    )


def test_the_history_of_a_question(sides: str, opened: Open) -> None:
    """Answers and attempts by when they were measured, above the sides; an unknown one, and unknown
    sides, are reported.
    """
    app = opened(sides, PAGE, question=question(sides))
    assert "2 answers by 2 attempts" in page_text(app)
    assert len(app.get("vega_lite_chart")) == 2
    points = history_frame(stored.read(sides, read_history, question(sides), None))
    assert list(points["what"]).count("answer") == 2
    assert pd.Series(points["at"]).is_monotonic_increasing
    assert "no measured answer to question none" in page_text(opened(sides, PAGE, question="none"))
    text = page_text(opened(sides, PAGE, by="moon", a="x"))
    assert "The address has by=moon, which is not known here; sweep is shown." in text
    assert "The address has a=x, which is not known here; " in text


def test_one_side_is_not_compared(tmp_path: Path, opened: Open) -> None:
    url = store_outcomes(tmp_path / "one.db", "one", outcome(job(64)))
    assert "nothing to compare it with" in page_text(opened(url, PAGE))


def test_the_first_two_sides_have_a_common_question(tmp_path: Path, opened: Open) -> None:
    """Not the newest two, where these measured different sizes, which have no counterparts."""
    for name, sizes in (("one", (64, 96)), ("two", (64, 96)), ("three", (128, 160))):
        url = store_outcomes(tmp_path / "three.db", name, *(outcome(job(size)) for size in sizes))
    app = opened(url, PAGE)
    assert "common questions" in page_text(app)
    assert {app.query_params[key] for key in "ab"} == {"one", "two"}
    text = page_text(opened(url, PAGE, by="sweep", a="one", b="three"))
    assert "They have no question in common" in text
    assert "10 answers of the first" in text


def test_arrows_are_sorted_by_change(sides: str) -> None:
    """Those that differ first, in both parts the largest change first; each arrow leads from the
    first side's speed-up to the second's, each end links to its own evidence.
    """
    a, b = (choice.value for choice in stored.read(sides, read_choices, "environment"))
    found = stored.read(sides, two_sides, "environment", a, b)
    frame = side_frame(found.rows)
    info = side_info(frame)
    alike = frame["group"] != "differs"
    change = frame["ratio"].map(math.log).abs()
    assert alike.is_monotonic_increasing
    assert all(own.is_monotonic_decreasing for _, own in change.groupby(alike))
    first, second = info.rows.iloc[: len(frame)], info.rows.iloc[len(frame) :]
    assert list(first["speedup"]) == list(frame["a"])
    assert list(second["speedup"]) == list(frame["b"])
    faster = second["mark"] == "second, faster"
    assert list(faster) == list(frame["b"] >= frame["a"])
    assert set(info.rows["mark"]) == set(info.shapes)
    assert (first["href"].to_numpy() != second["href"].to_numpy()).all()
    spec = draw_points(info).to_dict()
    assert spec["layer"][-1]["encoding"]["y"]["scale"]["domain"] == list(frame["label"])
    assert set(frame["group"]) == {"differs", "not clear"}
