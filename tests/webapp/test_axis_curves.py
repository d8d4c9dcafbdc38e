"""Curves along the share of MACs saved, and charts of language models by metric."""

import re
from pathlib import Path

import pandas as pd
import pytest

from tests.store.language_fixtures import a_generation, a_generation_job, larosa
from tests.webapp import stored
from tests.webapp.conftest import Open
from tests.webapp.page_elements import OPEN_TABLE, charts, page_text, point_tables
from tests.webapp.saved_macs import saving
from tests.webapp.simulated import store_outcomes
from webapp.__main__ import main
from webapp.charts import panels
from webapp.display.axis_curves import curves_along

SHARES = (0.25, 0.4, 0.5)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A sweep of keep rates at two image sizes, and one of sparsities at two prompt lengths."""
    path = tmp_path_factory.mktemp("saved") / "saved.db"
    store_outcomes(path, "saved", saving(64, (0.7, 0.6, 0.5)), saving(224, (1.5, 1.2, 0.9)))
    jobs = [a_generation_job(size, [larosa(share) for share in SHARES]) for size in (64, 128)]
    return store_outcomes(
        path, "generation", *(a_generation(job, (1.0, 0.9, 1.2, 1.4)) for job in jobs)
    )


def generation(url: str, metric: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    points, break_evens = stored.labelled_speedups("generation", url)
    return points[points["metric"] == metric], break_evens


def test_a_parameter_moves_at_one_size(url: str, filled: str) -> None:
    """Each size has a curve of its own, on which the share saved is one less the MACs left, and its
    break-even; x is linear, panels name the size. Two keep rates are no curve.
    """
    frames = stored.labelled_speedups("saved", url)
    points, break_evens = curves_along(*frames, "gmacs_saved")
    assert set(points["arm"]) == set(break_evens["arm"]) == {"topk, keep_rate varied"}
    assert sorted(points["gmacs_saved"].round(1)) == [0.3, 0.3, 0.5, 0.5, 0.7, 0.7]
    found = list(panels.curve_panels(points, break_evens, "gmacs_saved"))
    assert [panel.about["image_size"] for panel in found] == [64, 224]
    assert [list(panel.break_evens["verdict"]) for panel in found] == [["never"], ["crossing"]]
    assert curves_along(points, break_evens, "gmacs_saved")[0] is points
    text = str(stored.drawn_speedups(*frames, "gmacs_saved").to_dict())
    for part in ("'type': 'linear'", "64 px", "224 px", "topk, keep_rate varied: pays at "):
        assert part in text
    with pytest.raises(ValueError, match="no parameter takes three values or more at one size"):
        stored.drawn_speedups(*stored.labelled_speedups("quickstart", filled), "gmacs_saved")


def test_metrics_do_not_share_a_chart(url: str) -> None:
    """A frame of several metrics is refused; one of them is drawn against the prompt, and names
    itself.
    """
    with pytest.raises(ValueError, match="choose one of time_per_char, tpot, ttft"):
        stored.drawn_speedups(*stored.labelled_speedups("generation", url))
    points, break_evens = generation(url, "tpot")
    chart = stored.drawn_speedups(points, break_evens, selected=points["arm"].iloc[0])
    text = str(chart.to_dict()).replace("', '", " ").replace("\\n", " ")
    for part in (
        "Dotted: if time followed the MACs of one output token",
        "Speed-up: time per output token",
        "Tokens of the prompt",
        "32 new tokens of docs, teacher_forcing",
        "dynamic cache",
    ):
        assert part in text
    assert "Image size" not in text
    assert "Dotted" not in str(stored.drawn_speedups(points, break_evens).to_dict())
    prompt = stored.drawn_speedups(*generation(url, "ttft"), "gmacs")
    assert "GMACs of the prompt, unmodified" in str(prompt.to_dict())


def test_plot(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`breakeven plot` draws along any axis, by any metric that there is; another is wrong usage,
    with those that there are.
    """
    out = tmp_path / "chart.svg"
    command = ["plot", "generation", "-o", str(out), "--db", url, "--metric"]
    for options, expected in (
        (["ttft", "--axis", "tokens"], "Speed-up: time to the first token"),
        (["tpot", "--axis", "gmacs_saved"], "larosa, sparsity varied: pays at 20"),
    ):
        assert main([*command, *options]) == 0
        words = re.findall(r">([^<]+)</t", out.read_text().replace("&#39;", "'"))
        assert any(expected in word for word in words)
    assert main([*command, "latency"]) == 2
    known = "has no metric 'latency'; choose one of time_per_char, tpot, ttft"
    assert known in capsys.readouterr().err


def test_the_page_offers_metrics_and_what_is_saved(opened: Open, url: str, filled: str) -> None:
    """The page offers the metric where there are several, and draws along the MACs saved where it
    can.
    """
    app = opened(url, sweep="generation", **OPEN_TABLE)
    assert "Speed-up: time per character" in str(charts(app))
    (table,) = point_tables(app)
    assert {"Tokens of the prompt", "New tokens"} <= set(table.columns)
    assert not {"Tokens", "Image size, px"} & set(table.columns)
    app = opened(url, sweep="generation", metric="time per output token", axis="GMACs saved")
    assert "Speed-up: time per output token" in str(charts(app))
    assert "larosa, sparsity varied pays at 20" in page_text(app)
    assert "64 tokens of the prompt" in page_text(app)
    (axes,) = opened(filled, sweep="quickstart").get("button_group")
    assert "GMACs saved" not in str(axes.proto)
