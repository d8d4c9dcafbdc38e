"""The page with the evidence of a point: whole for every kind of answer, and helpful where there is
none.
"""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from orchestrator.plan import planning
from store.open.engine import connect, disposing
from store.write.submission import NewSweep, submit_sweep
from tests.webapp import stored
from tests.webapp.conftest import Open
from tests.webapp.page_elements import charts, page_text, point_tables
from tests.webapp.point_address import point_query
from tests.webapp.quality_stores import language_store
from tests.webapp.simulated import job, outcome, store_outcomes
from webapp.charts.evidence import PairFrames, pair_chart, reading_chart
from webapp.screens.point import read_point, single_sweep

PAGE = "screens/point.py"
SERIES = {
    "seconds": (1.0, 2.0),
    "rounds": (20.0, 40.0),
    "cpu_mhz": (2000.0, 1500.0),
    "load": (1.0, 1.0),
}


@pytest.mark.parametrize("verdict", ["faster", "unclear"])
def test_a_measured_point(filled: str, opened: Open, verdict: str) -> None:
    """The answer, the rule that ends in it, the checks, counts, provenance and the sweep file to
    measure it again.
    """
    where = f"compared = 'ratio' AND verdict = '{verdict}' AND flags = ''"
    app = opened(filled, PAGE, **point_query(filled, where))
    text = page_text(app)
    tabs = ["Is it noise?", "The rule", "Times", "Counts", "Where it comes from", "Readings"]
    assert [tab.label for tab in app.tabs] == [*tabs, "Measure it again"]
    assert "Pairs in the order of time" in str(charts(app)[0])
    assert ("! Interval" in text) == (verdict == "unclear")
    for part in (
        "mean times of each column in that state",
        "1 % over all runs ever",
        "Baseline against itself",
        "breakeven run point-",
        "leave the last block, as the method promises",
    ):
        assert part in text
    assert len(app.get("vega_lite_chart")) == 3


def test_points_of_other_kinds(filled: str, large: str, opened: Open) -> None:
    """A failure instead of numbers; what a flag means, and whether the figures stand; a language
    model has a metric to choose; of an unknown point the nearest.
    """
    text = page_text(opened(filled, PAGE, **point_query(filled, "failure IS NOT NULL")))
    assert "unsupported: nothing left to drop below 9 tokens" in text
    assert "mean of the lowest" not in text
    app = opened(filled, PAGE, **point_query(filled, "compared = 'ratio' AND flags = 'contended'"))
    (chips,) = [each.proto.body for each in app.get("html") if "✓ contended" in each.proto.body]
    assert "other processes used the cores or the GPU" in chips
    assert "the figures stand" in chips
    query = point_query(large, "metric = 'ttft' AND effect IS NOT NULL")
    text = page_text(opened(large, PAGE, of="time to the first token", **query))
    assert "Time to the first token: " in text
    assert "Time per character" in text
    known = point_query(filled)["id"]
    text = page_text(opened(filled, PAGE, id=known[:-2] + "zz"))
    assert "No evidence" in text
    assert f"nearest: {known}" in text
    text = page_text(opened(filled, PAGE, id=known, host="elsewhere"))
    assert "has no answer on host elsewhere" in text


def test_the_sweep_file_measures_the_same_question(filled: str) -> None:
    """Expanded as the command line does, it requests this question and no other."""
    query = point_query(filled)
    found = stored.read(filled, read_point, query["id"], None, None)
    (comparison,) = planning.load_sweep(
        "point.yaml", auto="cpu", text=single_sweep(found)
    ).comparisons
    assert comparison.question_id == found.question_id


def test_the_page_without_a_point(filled: str, empty: str, opened: Open) -> None:
    """A field finds points by words, and names what it does not find; of a store whose sweep only
    waits the list is empty for another reason than the words.
    """
    app = opened(filled, PAGE)
    app.text_input(key="find").set_value("topk deit_tiny").run()
    assert re.search(r"topk keep_rate=0.5 .* faster: 1\.\d+× \[.*\] faster –", page_text(app))
    ranked = page_text(opened(filled, PAGE, sort="largest speed-up"))
    values = [float(text) for text in re.findall(r": (\d\.\d+)× \[", ranked)]
    assert len(values) > 10
    assert values == sorted(values, reverse=True)
    app.text_input(key="find").set_value("unheard").run()
    assert "hold each: unheard" in page_text(app)
    with disposing(connect(empty)) as engine:
        submit_sweep(engine, NewSweep("trial", "text", "What pays?"), [], [])
    assert "No comparison of this store has an answer yet." in page_text(opened(empty, PAGE))


def test_pooled_attempts_with_readings(tmp_path: Path, opened: Open) -> None:
    """Readings that change are drawn below the pairs, constant ones written; each attempt has a row
    in the chart.
    """
    requested = job(64)
    first = outcome(requested).model_copy(update={"system_series": SERIES, "process": "a"})
    later = {"process": "b", "started_at": first.started_at + 100, "ended_at": first.ended_at + 100}
    url = store_outcomes(tmp_path / "pooled.db", "pooled", first, first.model_copy(update=later))
    app = opened(url, PAGE, **point_query(url))
    assert len(app.get("vega_lite_chart")) == 4
    text = page_text(app)
    assert "Throughout: load, processes that run or wait 1" in text
    assert "2 visits" in text


def test_outliers_stay_visible() -> None:
    """A pair far beyond the others is drawn at the edge as a triangle, with its own ratio in the
    data; none is dropped. Readings lie below the pairs on the same axis.
    """
    ratios = [1.1, 1.12, 1.08] * 60 + [40.0, 0.01]
    numbers = range(1, len(ratios) + 1)
    pairs = pd.DataFrame({"number": numbers, "round": numbers, "ratio": ratios})
    pairs = pairs.assign(attempt=1, outlying=False, baseline_ms=2.0, arm_ms=1.0)
    running = pd.DataFrame({"number": [6, 182], "low": [np.nan, 1.05], "high": [np.nan, 1.2]})
    made = PairFrames(pairs, running.assign(attempt=1, speedup=1.1), 0.02)
    spec = json.loads(pair_chart(made).to_json())
    data = next(rows for rows in spec["datasets"].values() if "drawn" in rows[0])
    assert len(data) == len(made.drawn) == 182
    assert list(made.drawn["place"][-2:]) == ["above", "below"]
    assert list(made.drawn["ratio"][-2:]) == [40.0, 0.01]
    assert made.span.low < 1
    assert 1.2 < made.span.high < 2
    readings = pd.DataFrame({"number": [5, 10], "attempt": 1, "value": [1.0, 2.0]})
    below = json.loads(reading_chart(readings, "load", made).to_json())
    for each in (spec, below):
        along = [layer["encoding"]["x"] for layer in each["layer"] if "x" in layer["encoding"]]
        assert along[0]["scale"] == {"domain": [0, 183], "nice": False}


def test_the_list_names_metric_and_baseline(opened: Open, tmp_path: Path) -> None:
    """A language model has several times: the list of answers names the one that it shows, and the
    arm that it is compared with.
    """
    url = language_store(tmp_path / "lengths.db")
    (table,) = point_tables(opened(url, PAGE), "Answers")
    timed = table[table["condition"].str.endswith("64 tokens, time to the first token")]
    assert len(timed) == 3
    assert set(table["against"]) == {"dense"}
    assert table["condition"].str.endswith(("time to the first token", "bits per byte")).all()
