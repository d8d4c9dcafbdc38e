"""The page Accuracy: figures with their intervals, states without numbers, corrupted images, and
its charts.
"""

from pathlib import Path

import pandas as pd
import pytest

from store.open.engine import connect_readonly
from store.read.queries import sweep_rows
from tests.orchestrator.vision_fixtures import job as vision_job
from tests.orchestrator.vision_fixtures import outcome as vision_outcome
from tests.webapp import simulated, stored
from tests.webapp.conftest import Open
from tests.webapp.page_elements import charts, page_text, point_tables
from tests.webapp.quality_stores import ARMS, accuracy_store
from tests.webapp.simulated import store_outcomes
from webapp.charts.points import Measure
from webapp.screens.accuracy import accuracies
from webapp.widgets.quality import beside_unmodified, with_front

PAGE = "screens/accuracy.py"
NAN = float("nan")


@pytest.fixture(scope="module")
def accurate(tmp_path_factory: pytest.TempPathFactory) -> str:
    return accuracy_store(tmp_path_factory.mktemp("accurate") / "accurate.db")


def test_speed_stands_beside_accuracy(opened: Open, accurate: str) -> None:
    """The answer in words, and a table with both conclusions of each arm as the report words
    them.
    """
    app = opened(accurate, PAGE, sweep="accurate", figure="Margin lost, logits")
    words = page_text(app)
    answer = "2 same, 2 worse: digits_vit_64 on 4\u202f000 images of digits, 32 px, against dense"
    assert answer in words
    own, counted = (table.set_index("Arm") for table in point_tables(app, "Arms"))
    assert list(own["Quality"]) == ["worse", "worse", "same", "same"]
    assert list(own["Verdict"]) == ["faster", "faster", "faster", "slower"]
    lost, ends = own.loc["topk keep_rate=0.2", "Loss"].split(" ", 1)
    assert float(lost) > float(ends.strip("[]").split(", ")[0]) > 25
    assert f"2 of 4 arms lose top-1, topk keep_rate=0.2 most: {float(lost)} points" in words
    assert "-" not in "".join(own["Loss"])
    assert "−" in own.loc["topk keep_rate=0.6", "Loss"]
    front, margins, *_ = charts(app)
    assert front["layer"][-1]["encoding"]["y"]["field"] == "top1_drop"
    assert margins["layer"][-2]["encoding"]["x"]["field"] == "value"
    assert counted.loc["topk keep_rate=0.6", "Only the baseline right"] == "2"
    assert counted.loc["topk keep_rate=0.6", "McNemar's exact p"] == "0.5"
    engine = connect_readonly(accurate)
    changes = sweep_rows(engine, "accurate", "accuracy")
    engine.dispose()
    rows = stored.read(accurate, accuracies, "accurate", *changes[["model", "weights"]].iloc[0])
    assert list(rows["margin_lost"]) == list(-changes["margin_change"])
    assert (rows["margin_lost_low"] <= rows["margin_lost_high"]).all()


def test_corrupted_images(opened: Open, accurate: str) -> None:
    """What was classified is chosen in the address, and the map of corruptions is of the arm that
    loses most.
    """
    app = opened(accurate, PAGE, sweep="accurate", images="digits with fog, severity 3, 32 px")
    assert "4\u202f000 images of digits with fog, severity 3, 32 px" in page_text(app)
    assert app.selectbox(key="arm").value == "topk keep_rate=0.2"
    words = page_text(opened(accurate, PAGE, sweep="accurate", images="digits with snow"))
    assert "=digits with snow, which is not known here" in words


def test_states_without_numbers(opened: Open, filled: str, tmp_path: Path) -> None:
    """Not requested, failed, and not yet: each with what happened and what to do."""
    words = page_text(opened(filled, PAGE, sweep="quickstart"))
    assert "This sweep requests no accuracy" in words
    assert "accuracy: {}" in words
    partly = page_text(
        opened(accuracy_store(tmp_path / "partly.db", failing=True), PAGE, sweep="accurate")
    )
    assert "1 comparison failed (out_of_memory)" in partly


def test_accuracy_without_speed(opened: Open, tmp_path: Path) -> None:
    """A sweep that times nothing has its accuracies, against the GMACs; where the filters choose a
    model that was only timed, the accuracy of one that has some is shown and named.
    """
    url, evaluated = tmp_path / "two.db", vision_outcome(vision_job("accuracy", ARMS))
    app = opened(store_outcomes(url, "alone", evaluated), PAGE, sweep="alone")
    words = page_text(app)
    assert "2 of 4 arms lose top-1" in words
    assert "Speed-up" not in point_tables(app, "Arms")[0]
    assert "The sweep requests no corrupted images." in words
    other = [simulated.outcome(simulated.job(size)) for size in (64, 224)]
    timed = vision_outcome(vision_job("latency", ARMS))
    store_outcomes(url, "both", *other, timed, evaluated)
    for model, known in (("deit_tiny_patch16_224", False), ("digits_vit_64", True)):
        app = opened(str(url), PAGE, sweep="both", model=model)
        assert app.selectbox(key="model").value == model
        assert "digits_vit_64 on 4\u202f000 images" in page_text(app)
        assert ("Speed-up" in point_tables(app, "Arms")[0]) == known


X = Measure("speedup", "Speed-up", better="higher")
Y = Measure("worse", "Lost", "lower")


def test_the_front_counts_intervals() -> None:
    """Surpassed is who is at most as good by both and clearly worse by one; overlapping intervals
    surpass nothing.
    """
    rows = [("a", 2.0, 0.1), ("b", 1.5, 0.1), ("c", 1.99, 0.1), ("d", NAN, 0.0)]
    points = pd.DataFrame(rows, columns=["arm", "speedup", "worse"])
    points = points.assign(
        speedup_low=points["speedup"] - 0.05, speedup_high=points["speedup"] + 0.05
    )
    found = with_front(beside_unmodified(points, speedup=1.0, worse=0.0), (X, Y)).set_index("arm")[
        "front"
    ]
    assert dict(found) == {"a": True, "b": False, "c": True, "d": False, "unmodified model": True}
