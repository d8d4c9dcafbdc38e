"""The page Language: figures along the length, quality against speed, stacks beside their parts,
and tuned arms.
"""

import re
from pathlib import Path

import pytest

from sweeps.model.job import Arm, Step
from tests.store.language_fixtures import a_generation, a_generation_job, a_quality_job, a_reading
from tests.webapp import stored
from tests.webapp.conftest import Open
from tests.webapp.page_elements import charts, page_text, point_tables
from tests.webapp.quality_stores import LENGTHS, language_store
from tests.webapp.simulated import store_outcomes
from webapp import queries
from webapp.charts.points import draw_points
from webapp.charts.quality import length_info
from webapp.display.arm_style import arm_styles
from webapp.queries import Scope
from webapp.screens.language import generation
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


def test_lines_along_the_length(lengths: str) -> None:
    """A line for each arm, the unmodified model among them, at every length; a figure that nothing
    has is refused.
    """
    panel = stored.read(lengths, queries.panels, "lengths").iloc[0]
    fixed = {name: panel[name] for name in ("model", "weights", "environment", "host")}
    rows = stored.read(lengths, generation, Scope("lengths", "tpot", fixed, None, {}))
    assert rows["arm"].nunique() == 4
    info = length_info(rows.assign(value=rows["tpot_ms"]), "ms", arm_styles(rows), "lower")
    assert len(info.rows) == 4 * len(LENGTHS)
    title = draw_points(info).to_dict()["layer"][0]["encoding"]["y"]["axis"]["title"]
    assert title == "ms (less is better)"
    with pytest.raises(ValueError, match="not measured"):
        length_info(rows.assign(value=float("nan")), "ms", arm_styles(rows))
