"""The page Accuracy: figures with their intervals, states without numbers, corrupted images, and
its charts.
"""

from pathlib import Path

import pandas as pd
import pytest

from store.open.engine import connect_readonly
from store.read.queries import sweep_rows
from sweeps.number_format import p_text
from tests.orchestrator.vision_fixtures import job as vision_job
from tests.orchestrator.vision_fixtures import outcome as vision_outcome
from tests.webapp import simulated, stored
from tests.webapp.conftest import Open
from tests.webapp.page_elements import charts, page_text, point_tables
from tests.webapp.quality_stores import ARMS, accuracy_store
from tests.webapp.simulated import store_outcomes
from webapp.charts.points import Measure
from webapp.charts.quality import (
    ENDS,
    bar_chart,
    corruption_chart,
    disagreement_chart,
    disagreement_rows,
)
from webapp.charts.scales import LINE_LETTERS, wrapped
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
    app = opened(accurate, PAGE, sweep="accurate")
    words = page_text(app)
    assert (
        "2 same, 2 worse: digits_vit_64 on 4\u202f000 images of digits, 32 px, against dense"
        in words
    )
    own, counted = (table.set_index("Arm") for table in point_tables(app, "Arms"))
    assert list(own["Quality"]) == ["worse", "worse", "same", "same"]
    assert list(own["Verdict"]) == ["faster", "faster", "faster", "slower"]
    lost, ends = own.loc["topk keep_rate=0.2", "Loss"].split(" ", 1)
    assert float(lost) > float(ends.strip("[]").split(", ")[0]) > 25
    assert f"2 of 4 arms lose top-1, topk keep_rate=0.2 most: {float(lost)} points" in words
    assert not any("change" in name for name in own)
    assert "-" not in "".join(own["Loss"])
    assert "−" in own.loc["topk keep_rate=0.6", "Loss"]
    y = charts(app)[0]["layer"][-1]["encoding"]["y"]
    assert y["field"] == "top1_drop"
    assert counted.loc["topk keep_rate=0.6", "Only the baseline right"] == "2"
    assert counted.loc["topk keep_rate=0.6", "McNemar's exact p"] == "0.5"


def test_a_p_value_is_never_zero() -> None:
    """It is bounded where it underflows, and has an equal sign in sentences."""
    assert [p_text(p) for p in (0.0, 1e-310, 0.04217)] == ["< 1e-300", "< 1e-300", "0.042"]
    assert [p_text(p, "= ") for p in (0.0, 0.04217)] == ["< 1e-300", "= 0.042"]


def test_a_margin_counts_as_top1(opened: Open, accurate: str) -> None:
    """Above 0 the arm loses by it, as by every figure of the page."""
    engine = connect_readonly(accurate)
    changes = sweep_rows(engine, "accurate", "accuracy")
    engine.dispose()
    rows = stored.read(accurate, accuracies, "accurate", *changes[["model", "weights"]].iloc[0])
    assert list(rows["margin_lost"]) == list(-changes["margin_change"])
    assert (rows["margin_lost_low"] <= rows["margin_lost_high"]).all()
    app = opened(accurate, PAGE, sweep="accurate", figure="Margin lost, logits")
    assert charts(app)[1]["layer"][-2]["encoding"]["x"]["field"] == "value"


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
    """A sweep that times nothing has its accuracies, against the GMACs."""
    url = store_outcomes(
        tmp_path / "alone.db", "alone", vision_outcome(vision_job("accuracy", ARMS))
    )
    app = opened(url, PAGE, sweep="alone")
    words = page_text(app)
    assert "2 of 4 arms lose top-1" in words
    assert "Speed-up" not in point_tables(app, "Arms")[0]
    assert "The sweep requests no corrupted images." in words


def test_a_filter_of_speed_beside_models_without_accuracy(opened: Open, tmp_path: Path) -> None:
    """The filters choose a model that was only timed: the accuracy shown is that of one that has
    some, and the page names it.
    """
    other = [simulated.outcome(simulated.job(size)) for size in (64, 96, 224)]
    evaluated = (vision_outcome(vision_job(kind, ARMS)) for kind in ("latency", "accuracy"))
    url = store_outcomes(tmp_path / "both.db", "both", *other, *evaluated)
    app = opened(url, PAGE, sweep="both", model="deit_tiny_patch16_224")
    assert app.selectbox(key="model").value == "deit_tiny_patch16_224"
    assert "digits_vit_64 on 4\u202f000 images" in page_text(app)
    assert "Speed-up" not in point_tables(app, "Arms")[0]
    timed = opened(url, PAGE, sweep="both", model="digits_vit_64")
    assert "Speed-up" in point_tables(timed, "Arms")[0]


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


def test_rows_of_intervals() -> None:
    """One row for each label, in order; a ratio has a logarithmic axis, and the floor is a band."""
    rows = pd.DataFrame(
        {"label": ["b", "a"], "value": [1.2, 0.9], "low": [1.1, NAN], "high": [1.3, NAN]}
    )
    ratio = Measure("value", "Speed-up", "", "ratio", ends=ENDS, none=1.0, floor=0.02)
    spec = bar_chart(rows, ratio).to_dict()
    band, _, marks, ends = spec["layer"]
    (floor,), known = (spec["datasets"][each["data"]["name"]] for each in (band, ends))
    assert sorted(floor.values()) == [1 / 1.02, 1.02]
    assert [row["label"] for row in known] == ["b"]
    assert marks["encoding"]["y"]["scale"]["domain"] == ["b", "a"]
    assert marks["encoding"]["x"]["scale"]["type"] == "log"
    with pytest.raises(ValueError, match="nothing was measured"):
        bar_chart(rows.assign(value=NAN), ratio)


def test_long_labels_wrap() -> None:
    """A parameter of 500 characters continues on further lines, whole."""
    label = "topk " + "x" * 500
    assert wrapped(label).replace("\n", "").replace(" ", "") == label.replace(" ", "")
    assert max(map(len, wrapped(label).split("\n"))) <= LINE_LETTERS


def test_a_map_of_corruptions() -> None:
    """Cells are symmetric around no loss; without a corrupted image there is no map."""
    rows = pd.DataFrame(
        {
            "corruption": ["fog", "fog", None],
            "severity": [1, 3, None],
            "top1_drop": [-1.0, 4.0, 9.0],
        }
    )
    rows = rows.assign(
        top1_baseline=90.0,
        top1=89.0,
        top1_drop_low=0.0,
        top1_drop_high=1.0,
        word="worse",
        images=10,
    )
    spec = corruption_chart(rows).to_dict()
    assert spec["layer"][0]["encoding"]["color"]["scale"]["domain"] == [-4, 4]
    assert len(next(iter(spec["datasets"].values()))) == 2
    with pytest.raises(ValueError, match="not measured"):
        corruption_chart(rows.iloc[2:])


def test_images_that_only_one_has_right() -> None:
    """Those of the baseline to the left, those of the arm to the right, both with their true
    number.
    """
    rows = pd.DataFrame(
        {
            "label": ["a"],
            "only_baseline_correct": [5.0],
            "only_arm_correct": [2.0],
            "images": [100],
            "mcnemar_p": ["0.4"],
        }
    )
    drawn = disagreement_rows(rows)
    assert list(zip(drawn["shown"], drawn["number"], strict=True)) == [(-5, 5), (2, 2)]
    assert disagreement_chart(drawn).to_dict()
