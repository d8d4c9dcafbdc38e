"""Arms that run out of memory from a size on: a cross beyond the end of their curve, and words."""

from pathlib import Path

import pytest

from sweeps.model.job import Job
from sweeps.model.outcome import Failure, Outcome
from tests.webapp.conftest import Open
from tests.webapp.page_elements import charts
from tests.webapp.simulated import ARMS, job, outcome, store_sweep, tome, topk
from webapp.charts.curves import curve_layers
from webapp.display.paper import paper_of
from webapp.plot import find_panels, save_plot

SIZES = (96, 128, 160, 192, 224)
FULL = {topk(0.7): 192, tome(0.02): 224}
"""The size from which on an arm does not fit."""
WORDS = {
    "topk keep_rate=0.7 does not fit from 192 px on",
    "tome r_ratio=0.02 does not fit from 224 px on",
}


def answer(requested: Job) -> Outcome:
    size = requested.condition.image_size
    failing = {
        arm: Failure(arm=ARMS.index(arm), reason="out_of_memory", message="no memory")
        for arm, first in FULL.items()
        if size >= first
    }
    return outcome(requested, failing=failing)


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = str(tmp_path_factory.mktemp("full") / "full.db")
    store_sweep(url, "full", [job(size) for size in SIZES], answer)
    return url


def test_crosses(full: str) -> None:
    """Each at the tokens or GMACs of the size that does not fit, as high as the end of its curve,
    and the arm has a colour.
    """
    ((info,),) = find_panels("full", "gmacs", url=full).panels
    (marks,) = (
        layer.data.set_index("arm")
        for layer in curve_layers(info, 330, title="")
        if "limit" in layer.data
    )
    points = info.panel.points
    assert set(marks.index) == {"topk keep_rate=0.7", "tome r_ratio=0.02"}
    assert {f"{arm} {limit}" for arm, limit in marks["limit"].items()} == WORDS
    for arm, first in (("topk keep_rate=0.7", 192), ("tome r_ratio=0.02", 224)):
        at = points.loc[points["image_size"] == first, "x"]
        assert marks.loc[arm, "limit_x"] == at.iloc[0]
        end = points[points["arm"] == arm].sort_values("x").iloc[-1]
        assert marks.loc[arm, "speedup"] == end["speedup"]
        assert arm in info.styles
    assert all(any(words in note for note in info.notes) for words in WORDS)


def test_words(full: str, opened: Open, tmp_path: Path) -> None:
    """Assistive technology reads them with the answer, and a caption has them."""
    app = opened(full, sweep="full")
    names = [chart.get("description", "") for chart in charts(app)]
    drawn = [name for name in names if name.startswith("Speed-up along")]
    assert len(drawn) == 2
    assert all(words in name for name in drawn for words in WORDS)
    save_plot("full", tmp_path / "x.svg", url=full, paper=paper_of("icml", ("", ""), (None, "")))
    caption = (tmp_path / "x.txt").read_text()
    assert all(words in caption for words in WORDS)
    assert "slanted ones are out of memory" in caption
