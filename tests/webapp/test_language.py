"""Sweeps of language models with one prompt: a row per arm, what one point does not show, and what
speed costs in quality.
"""

import re

import pytest

from sweeps.model.condition import Overrides
from sweeps.model.job import Arm
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
from tests.webapp.page_elements import OPEN_TABLE, html_texts, page_text, point_tables
from tests.webapp.simulated import store_outcomes

STACK = 'adaptivocab tokens=500 + larosa sparsity=0.5 [kv_cache="virtual"]'
VIRTUAL = Arm(overrides=Overrides(kv_cache="virtual"))
ARMS = (larosa(0.5), stacked(0.5, kv_cache="virtual"), VIRTUAL)
SPEEDS = (1.0, 1.4, 1.6, 1.0)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A sweep of three arms, two of which have a quality, one of these with a vocabulary of its
    own; and one all flagged.
    """
    path = tmp_path_factory.mktemp("one") / "one.db"
    timed = a_generation(a_generation_job(128, ARMS), SPEEDS)
    read = a_reading(
        a_quality_job((larosa(0.5), stacked(0.5))), (0.0, 0.01, 0.05), tokens=(100, 100, 80)
    )
    store_outcomes(
        path,
        "flagged",
        a_generation(a_generation_job(64, ARMS), SPEEDS, flags=("contended", "thermal_slowdown")),
    )
    return store_outcomes(path, "one", timed, read)


def test_one_size_is_drawn_as_rows(url: str) -> None:
    """Points at one place along the axis stand one below the other, along the speed-up, and there
    is no strip of break-evens.
    """
    points, break_evens = stored.labelled_speedups("one", url)
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


def test_the_page_of_one_prompt(opened: Open, url: str) -> None:
    """Sentences give each arm's speed-up instead of a break-even, with its quality where one was
    measured; notes name what one point and a small model do not show.
    """
    app = opened(url, sweep="one", metric="time per output token")
    words = page_text(app)
    assert "larosa sparsity=0.5 is faster: 1.4" in words
    assert re.search(r'dense kv_cache="virtual" is [a-z0-9 %]+: (0\.99|1\.00)\d×', words)
    assert re.search(r"bits per byte worse by 0\.0\d+ \[", words)
    assert "not measured" in words
    notes = [line for text in html_texts(app) for line in text.splitlines()]
    assert "One length of the prompt was measured; a break-even needs several." in notes
    (warning,) = [note for note in notes if "ranks methods" in note]
    assert warning.startswith("llama-220m of 222 M parameters ranks methods; it does not predict")


def test_flagged_speeds_are_marked(opened: Open, url: str) -> None:
    """A flagged point is named in its sentence; its chart and its table wait for the switch."""
    words = page_text(opened(url, sweep="flagged"))
    assert "; flagged: contended, thermal_slowdown" in words
    assert "flagged and hidden" in words
    (table,) = point_tables(opened(url, sweep="flagged", flagged="true", **OPEN_TABLE))
    assert len(table) == len(ARMS)
