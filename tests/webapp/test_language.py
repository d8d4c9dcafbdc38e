"""Sweeps of language models with one prompt: a row per arm, what one point does not show, and what speed costs in quality."""

import re
from pathlib import Path

import pandas as pd
import pytest

from sweeps.job import Arm, Overrides, Step
from tests.store.language_fixtures import a_generation, a_generation_job, a_quality_job, a_reading, larosa, stacked
from tests.webapp.conftest import Open
from tests.webapp.page_elements import html_texts, page_text
from tests.webapp.simulated import store_outcomes
from webapp import arm_style, queries
from webapp.charts import curves
from workers.methods.language import adaptivocab

STACK = 'adaptivocab tokens=500 + larosa sparsity=0.5 [kv_cache="virtual"]'
VIRTUAL = Arm(overrides=Overrides(kv_cache="virtual"))
ARMS = (larosa(0.5), stacked(0.5, kv_cache="virtual"), VIRTUAL)
SPEEDS = (1.0, 1.4, 1.6, 1.0)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A sweep of three arms, two of which have a quality, one of these with a vocabulary of its own; and one all flagged."""
    path = tmp_path_factory.mktemp("one") / "one.db"
    timed = a_generation(a_generation_job(128, ARMS), SPEEDS)
    read = a_reading(a_quality_job((larosa(0.5), stacked(0.5))), (0.0, 0.01, 0.05), tokens=(100, 100, 80))
    store_outcomes(path, "flagged", a_generation(a_generation_job(64, ARMS), SPEEDS, flags=("contended", "throttled")))
    return store_outcomes(path, "one", timed, read)


def test_one_size_is_drawn_as_rows(url: str) -> None:
    """Points at one place along the axis stand one below the other, along the speed-up, and there is no strip of break-evens."""
    points = queries.view_rows("one", "speedup", url)
    points, break_evens = arm_style.label_arms(points[points["metric"] == "tpot"], queries.view_rows("one", "break_even", url))
    spec = curves.speedup_chart(points, break_evens).to_dict()
    (panel,) = spec["vconcat"]
    assert "vconcat" not in panel
    marks = next(layer for layer in panel["layer"] if "shape" in layer["encoding"])
    assert marks["encoding"]["x"]["field"] == "speedup"
    assert marks["encoding"]["x"]["axis"]["title"] == "Speed-up: time per output token, at 128 prompt tokens"
    rows = marks["encoding"]["y"]["scale"]["domain"]
    assert [row.split(": ")[0] for row in rows] == [
        STACK,
        "larosa sparsity=0.5",
        'dense kv_cache="virtual"',
    ]
    drawn = spec["datasets"][marks["data"]["name"]]
    assert {row["row"] for row in drawn} == set(rows)
    assert "prompt_tokens" in {tip["field"] for tip in marks["encoding"]["tooltip"]}


def test_the_page_of_one_prompt(opened: Open, url: str) -> None:
    """Sentences give each arm's speed-up instead of a break-even, notes name what one point and a small model do not show."""
    app = opened(url, sweep="one", metric="time per output token")
    words = page_text(app)
    assert "larosa sparsity=0.5 is faster: 1.4" in words
    assert re.search(r'dense kv_cache="virtual" is [a-z0-9 %]+: (0\.99|1\.00)\d×', words)
    assert "128 tokens of the prompt" in words
    assert "32 new tokens" in words
    notes = [line for text in html_texts(app) for line in text.splitlines()]
    assert "One length of the prompt was measured; a break-even needs several." in notes
    (warning,) = [note for note in notes if "ranks methods" in note]
    assert (
        warning
        == "llama-220m of 222 M parameters ranks methods; it does not predict speed-ups or losses of models of 7B parameters."
    )
    assert "metric" in {control.key for control in app.selectbox}


def test_speed_stands_beside_quality(opened: Open, url: str) -> None:
    """A table gives bits per byte beside the speed-up, for a stack with another cache too; what was not requested is named so."""
    app = opened(url, sweep="one")
    costs = app.dataframe[0].value.set_index("arm")
    evaluated = costs.loc[STACK]
    assert evaluated["bits_per_byte"] == pytest.approx(2.25, abs=0.1)
    assert evaluated["change"].startswith("+0.0")
    assert evaluated["quality_verdict"] == "worse"
    assert costs.loc["larosa sparsity=0.5", ["kl", "top1_agreement"]].notna().all()
    assert costs.loc[STACK, ["kl", "top1_agreement"]].isna().all()
    assert pd.isna(costs.loc['dense kv_cache="virtual"', "bits_per_byte"])
    assert costs.loc['dense kv_cache="virtual"', "quality_verdict"] == "not requested"
    assert "against" not in costs.columns


def test_flagged_speeds_are_marked(opened: Open, url: str, tmp_path: Path) -> None:
    """A flagged point is named in its sentence; its chart, its table and its speed beside the quality wait for the switch."""
    words = page_text(opened(url, sweep="flagged"))
    assert "; flagged: contended, throttled" in words
    assert "flagged and hidden" in words
    assert "Points" not in words
    timed = a_generation(a_generation_job(128, ARMS), SPEEDS, flags=("throttled",))
    both = store_outcomes(tmp_path / "both.db", "both", timed, a_reading(a_quality_job()))
    costs = opened(both, sweep="both").dataframe[0].value
    assert costs["speedup"].isna().all()
    assert costs["bits_per_byte"].notna().any()
    assert opened(both, sweep="both", flagged="true").dataframe[0].value["speedup"].notna().all()


def test_noisy_speeds_are_shown(opened: Open, tmp_path: Path) -> None:
    """A flag that only means noise is named in the sentence and in the table, and hides nothing."""
    timed = a_generation(a_generation_job(128, ARMS), SPEEDS, flags=("contended", "warmup_not_converged"))
    app = opened(store_outcomes(tmp_path / "noisy.db", "noisy", timed, a_reading(a_quality_job())), sweep="noisy")
    words = page_text(app)
    assert "; flagged: contended, warmup_not_converged" in words
    assert "hidden" not in words
    costs, points = (element.value for element in app.dataframe)
    assert costs["speedup"].notna().all()
    assert len(points) == len(ARMS)


def test_a_tuned_arm_stands_beside_its_control(opened: Open, tmp_path: Path) -> None:
    """The table has the change against the same tuning without the method, for the arm that tunes alone."""
    tuned, control = (
        Arm(
            stack=(
                Step(
                    method="adaptivocab",
                    params=adaptivocab.Params(ngrams=ngrams, finetune_steps=40).model_dump(mode="json"),
                    version=adaptivocab.VERSION,
                ),
            )
        )
        for ngrams in (500, 0)
    )
    timed = a_generation(a_generation_job(128, (tuned, control)), (1.0, 1.2, 1.0))
    read = a_reading(a_quality_job((tuned, control)), (0.0, -0.47, -0.5), tokens=(100, 80, 100), noise=0.002)
    app = opened(store_outcomes(tmp_path / "tuned.db", "tuned", timed, read), sweep="tuned")
    costs = app.dataframe[0].value.set_index("arm")
    assert list(costs["quality_verdict"]) == ["better", "better"]
    (change,) = costs["control_change"].dropna()
    assert re.fullmatch(r"worse by 0\.03\d\d \[0\.\d+, 0\.\d+\] bits per byte", change)
