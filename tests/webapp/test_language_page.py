"""The page Language: figures along the length, quality against speed, stacks beside their parts,
and tuned arms.
"""

import re
from pathlib import Path

import pytest

from sweeps.model.condition import Overrides
from sweeps.model.job import Arm, Step
from tests.store.language_fixtures import (
    a_generation,
    a_generation_job,
    a_quality_job,
    a_reading,
    larosa,
    stacked,
)
from tests.webapp import stored
from tests.webapp.conftest import Open
from tests.webapp.page_elements import charts, html_texts, page_text, point_tables
from tests.webapp.quality_stores import language_store
from tests.webapp.simulated import store_outcomes
from workers.methods.language import adaptivocab

PAGE = "screens/language.py"


@pytest.fixture(scope="module")
def lengths(tmp_path_factory: pytest.TempPathFactory) -> str:
    return language_store(tmp_path_factory.mktemp("lengths") / "lengths.db")


def test_the_page(opened: Open, lengths: str) -> None:
    """What was measured at the longest prompt, in words and as a table with quality; figures by
    choice.
    """
    app = opened(lengths, PAGE, sweep="lengths")
    words = page_text(app)
    assert "Time per character at 512 tokens of the prompt, against dense: 3 faster." in words
    assert "Quality: 3 measured." in words
    table = point_tables(app, "Arms")[0].set_index("Arm")
    stack = "adaptivocab tokens=500 + larosa sparsity=0.5"
    most = float(table.loc[stack, "Loss"].split()[0])
    assert f"2 of 3 arms lose quality, {stack} most: {most} bits per byte" in words
    assert charts(app)[0]["layer"][-1]["encoding"]["y"]["field"] == "worse"
    assert table.loc["larosa sparsity=0.5", "Quality"] == "worse"
    assert app.selectbox(key="figure").value == "Tokens per second of decoding"
    figures = app.selectbox(key="figure").options
    assert {
        "Time to the first token, ms",
        "Time per output token, ms",
        "Characters per second",
        "KV cache needed, B",
    } <= set(figures)


def test_choices_of_the_address(opened: Open, lengths: str, filled: str) -> None:
    """Prompt and figure are in the address; stacks stand beside their parts; a vision sweep names
    the page of its quality.
    """
    query = {"prompt": "64 tokens", "figure": "Characters per second"}
    app = opened(lengths, PAGE, sweep="lengths", metric="time per output token", **query)
    words = page_text(app)
    assert "at 64 tokens of the prompt" in words
    assert app.selectbox(key="figure").value == "Characters per second"
    assert re.search(r"larosa sparsity=0\.5 alone 1\.\d+× \[.*\]; all together 1\.\d+× \[", words)
    assert "was not measured alone" in words
    assert "These are no language models" in page_text(opened(filled, PAGE, sweep="quickstart"))


def test_tuned_arms_against_their_controls(opened: Open, tmp_path: Path) -> None:
    """What tuning alone changes is subtracted, with an interval, and named."""

    def tuned(ngrams: int) -> Arm:
        params = adaptivocab.Params(ngrams=ngrams, finetune_steps=40).model_dump(mode="json")
        step = Step(method="adaptivocab", params=params, version=adaptivocab.VERSION)
        return Arm(stack=(step,))

    arms, tokens = (tuned(500), tuned(0)), (100, 80, 100)
    timed = a_generation(a_generation_job(128, arms), (1.0, 1.2, 1.0))
    read = a_reading(a_quality_job(arms), (0.0, -0.47, -0.5), tokens=tokens, noise=0.002)
    url = store_outcomes(tmp_path / "tuned.db", "tuned", timed, read)
    words = page_text(opened(url, PAGE, sweep="tuned"))
    worse = r": worse by 0\.03\d\d \[0\.\d+, 0\.\d+\] bits per byte against adaptivocab"
    assert re.search(worse, words)


STACK = 'adaptivocab tokens=500 + larosa sparsity=0.5 [kv_cache="virtual"]'
VIRTUAL = Arm(overrides=Overrides(kv_cache="virtual"))
ONE_PROMPT = (larosa(0.5), stacked(0.5, kv_cache="virtual"), VIRTUAL)
SPEEDS = (1.0, 1.4, 1.6, 1.0)


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A sweep of three arms, two of which have a quality, one of these with a vocabulary of its
    own; and one all flagged.
    """
    path = tmp_path_factory.mktemp("one") / "one.db"
    timed = a_generation(a_generation_job(128, ONE_PROMPT), SPEEDS)
    read = a_reading(
        a_quality_job((larosa(0.5), stacked(0.5))), (0.0, 0.01, 0.05), tokens=(100, 100, 80)
    )
    store_outcomes(
        path,
        "flagged",
        a_generation(
            a_generation_job(64, ONE_PROMPT), SPEEDS, flags=("contended", "thermal_slowdown")
        ),
    )
    return store_outcomes(path, "one", timed, read)


def test_one_size_is_drawn_as_rows(single: str) -> None:
    """Points at one place along the axis stand one below the other, along the speed-up, and there
    is no strip of break-evens.
    """
    points, break_evens = stored.labelled_speedups("one", single)
    spec = stored.drawn_speedups(points[points["metric"] == "tpot"], break_evens).to_dict()
    (panel,) = spec["vconcat"]
    assert "vconcat" not in panel
    marks = next(layer for layer in panel["layer"] if "shape" in layer["encoding"])
    x, y = (marks["encoding"][name] for name in "xy")
    title = "Speed-up: time per output token, at 128 prompt tokens"
    assert (x["field"], x["axis"]["title"]) == ("speedup", title)
    rows = y["scale"]["domain"]
    arms = [STACK, "larosa sparsity=0.5", 'dense kv_cache="virtual"']
    assert [row.split(": ")[0] for row in rows] == arms
    assert {row["row"] for row in spec["datasets"][marks["data"]["name"]]} == set(rows)


def test_the_page_of_one_prompt(opened: Open, single: str) -> None:
    """Sentences give each arm's speed-up instead of a break-even, with its quality where one was
    measured; notes name what one point and a small model do not show.
    """
    app = opened(single, sweep="one", metric="time per output token")
    words = page_text(app)
    assert "larosa sparsity=0.5 is faster: 1.4" in words
    assert re.search(r'dense kv_cache="virtual" is [a-z0-9 %]+: (0\.99|1\.00)\d×', words)
    assert re.search(r"bits per byte worse by 0\.0\d+ \[", words)
    assert "not measured" in words
    notes = [line for text in html_texts(app) for line in text.splitlines()]
    assert "One length of the prompt was measured; a break-even needs several." in notes
    (warning,) = [note for note in notes if "ranks methods" in note]
    assert warning.startswith("llama-220m of 222 M parameters ranks methods; it does not predict")
