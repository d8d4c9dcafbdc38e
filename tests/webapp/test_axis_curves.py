"""Curves along the share of MACs saved, and charts of language models by metric."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.store.language_fixtures import a_generation, a_generation_job, larosa
from tests.webapp import stored
from tests.webapp.conftest import Open
from tests.webapp.page_elements import OPEN_TABLE, charts, page_text, point_tables
from tests.webapp.saved_macs import saving
from tests.webapp.simulated import store_outcomes
from webapp import queries
from webapp.__main__ import main
from webapp.charts import panels
from webapp.charts.scales import x_axis, x_span
from webapp.display import arm_style
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


def test_a_parameter_moves_at_one_size(url: str) -> None:
    """Each size has a curve of its own, on which the share saved is one less the MACs left, and its
    break-even.
    """
    points, break_evens = curves_along(*stored.labelled_speedups("saved", url), "gmacs_saved")
    assert set(points["arm"]) == {"topk, keep_rate varied"}
    assert set(break_evens["arm"]) == set(points["arm"])
    assert sorted(points["gmacs_saved"].round(1)) == [0.3, 0.3, 0.5, 0.5, 0.7, 0.7]
    found = list(panels.curve_panels(points, break_evens, "gmacs_saved"))
    assert [panel.about["image_size"] for panel in found] == [64, 224]
    assert [list(panel.break_evens["verdict"]) for panel in found] == [["never"], ["crossing"]]
    again = curves_along(points, break_evens, "gmacs_saved")
    assert again[0] is points


def test_the_chart_along_what_is_saved(url: str) -> None:
    """Its x is linear with ticks in per cent, and its panels name the size."""
    spec = stored.drawn_speedups(*stored.labelled_speedups("saved", url), "gmacs_saved").to_dict()
    text = str(spec)
    assert "Share of the baseline's GMACs saved" in text
    assert "'type': 'linear'" in text
    assert "64 px" in text
    assert "224 px" in text
    assert "topk, keep_rate varied: pays from " in text
    assert "% of GMACs saved" in text


def test_without_a_parameter_that_moves(filled: str) -> None:
    """Two keep rates are no curve, and the message names what would be."""
    points, break_evens = stored.labelled_speedups("quickstart", filled)
    with pytest.raises(ValueError, match="no parameter takes three values or more at one size"):
        stored.drawn_speedups(points, break_evens, "gmacs_saved")


def test_ticks_and_room_of_a_share() -> None:
    """Shares may be negative; ticks are round and enclose them."""
    axis: dict[str, Any] = x_axis("gmacs_saved", pd.Series([-0.05, 0.31]), "Saved").to_dict()
    assert axis["values"] == [-0.1, 0.0, 0.1, 0.2, 0.3, 0.4]
    assert axis["format"] == ".0%"
    low, high = x_span(pd.Series([-0.05, 0.31]), "gmacs_saved")
    assert low < -0.05 < 0.31 < high


def test_metrics_do_not_share_a_chart(url: str) -> None:
    """A frame of several metrics is refused; one of them is drawn against the prompt, and names
    itself.
    """
    with pytest.raises(ValueError, match="choose one of time_per_char, tpot, ttft"):
        stored.drawn_speedups(*stored.labelled_speedups("generation", url))

    def drawn(metric: str) -> str:
        points, break_evens = generation(url, metric)
        arm = points["arm"].iloc[0]
        chart = stored.drawn_speedups(points, break_evens, selected=arm)
        return str(chart.to_dict()).replace("', '", " ")

    text = drawn("tpot")
    assert "Dotted: if time followed the MACs of one output token" in text
    assert "Dotted: if time followed the MACs of a whole run" in drawn("time_per_char")
    assert "Dotted" not in str(stored.drawn_speedups(*generation(url, "tpot")).to_dict())
    assert "GMACs of the prompt, unmodified" in str(
        stored.drawn_speedups(*generation(url, "ttft"), "gmacs").to_dict()
    )
    assert "prompt tokens" in text.replace("\\n", " ")
    assert "Speed-up: time per output token" in text
    assert "Tokens of the prompt" in text
    assert "32 new tokens of docs, teacher_forcing" in text
    assert "dynamic cache" in text
    assert "Image size" not in text


def test_sparsity_moves_at_each_prompt(url: str) -> None:
    """Language models have curves along the MACs saved too, one for each length of the prompt."""
    points, break_evens = curves_along(*generation(url, "tpot"), "gmacs_saved")
    assert set(points["arm"]) == {"larosa, sparsity varied"}
    assert [
        panel.about["prompt_tokens"]
        for panel in panels.curve_panels(points, break_evens, "gmacs_saved")
    ] == [64, 128]
    assert "128 tokens of the prompt" in str(
        stored.drawn_speedups(points, break_evens, "gmacs_saved").to_dict()
    )


def test_macs_that_are_not_known(url: str) -> None:
    """Points without MACs are drawn against the prompt without a promise, and against MACs there is
    nothing to draw.
    """
    points, break_evens = generation(url, "tpot")
    unknown = points.assign(gmacs_baseline=np.nan, gmacs_total=np.nan)
    spec = stored.drawn_speedups(unknown, break_evens).to_dict()
    assert not [
        layer
        for layer in spec["vconcat"][0]["vconcat"][0]["layer"]
        if layer["encoding"]["y"].get("field") == "theory"
    ]
    assert "if time followed" not in str(spec)
    with pytest.raises(ValueError, match="the MACs are not known"):
        stored.drawn_speedups(unknown, break_evens, "gmacs")


def test_caches_tell_arms_apart(url: str) -> None:
    """Where caches differ they are part of an arm's name."""
    points = (
        generation(url, "tpot")[0]
        .head(2)
        .assign(kv_cache=["dynamic", "virtual"], params='{"sparsity":0.5}')
    )
    names = list(
        arm_style.label_arms(points, stored.read(url, queries.view_rows, "none", "break_even"))[0][
            "arm"
        ]
    )
    assert names == ["larosa sparsity=0.5, dynamic cache", "larosa sparsity=0.5, virtual cache"]


@pytest.mark.parametrize(
    ("sweep", "options", "expected"),
    [
        ("saved", ("--axis", "gmacs_saved"), "Share of the baseline's GMACs saved"),
        ("generation", (), "Speed-up: time per character"),
        (
            "generation",
            ("--metric", "ttft", "--axis", "tokens"),
            "Speed-up: time to the first token",
        ),
        (
            "generation",
            ("--metric", "tpot", "--axis", "gmacs_saved"),
            "larosa, sparsity varied: pays from 20",
        ),
    ],
)
def test_plot(
    url: str, tmp_path: Path, sweep: str, options: tuple[str, ...], expected: str
) -> None:
    """`breakeven plot` draws along any axis, by any metric that there is."""
    out = tmp_path / "chart.svg"
    assert main(["plot", sweep, "-o", str(out), "--db", url, *options]) == 0
    words = re.findall(r">([^<]+)</t", out.read_text().replace("&#39;", "'"))
    assert any(expected in word for word in words)


def test_plot_of_what_is_not_there(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A metric that the sweep has not is wrong usage, with those that it has."""
    for sweep, metric, known in (
        ("generation", "latency", "time_per_char, tpot, ttft"),
        ("saved", "tpot", "latency"),
    ):
        assert (
            main(["plot", sweep, "-o", str(tmp_path / "x.svg"), "--db", url, "--metric", metric])
            == 2
        )
        assert f"has no metric '{metric}'; choose one of {known}" in capsys.readouterr().err


def test_the_page_offers_metrics_and_what_is_saved(opened: Open, url: str) -> None:
    """The page offers the metric where there are several, and draws along the MACs saved where it
    can.
    """
    app = opened(url, sweep="generation", **OPEN_TABLE)
    assert "larosa sparsity=0.5" in page_text(app)
    assert "Speed-up: time per character" in str(charts(app))
    (table,) = point_tables(app)
    assert "Image size, px" not in table.columns
    assert {"Tokens of the prompt", "New tokens"} <= set(table.columns)
    assert "Tokens" not in table.columns
    assert "batch 1 · 32 new tokens of" in page_text(app)
    app = opened(url, sweep="generation", metric="time per output token", axis="GMACs saved")
    assert "Speed-up: time per output token" in str(charts(app))
    assert "larosa, sparsity varied pays from 20" in page_text(app)
    assert "64 tokens of the prompt" in page_text(app)


def test_the_page_of_vision_has_no_metric_to_choose(opened: Open, filled: str) -> None:
    """One metric offers no choice, and an axis without a curve is not offered."""
    app = opened(filled, sweep="quickstart")
    assert [control.key for control in app.get("button_group")] == ["axis"]
    assert "GMACs saved" not in str(app.get("button_group")[0].proto)
