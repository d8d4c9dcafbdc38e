"""Break-evens by runtime: the table of page Answer, and the small multiples of `plot`."""

import re
from pathlib import Path

import pytest

from sweeps.model.condition import Overrides, Runtime
from sweeps.model.job import DENSE, Arm, Job, Pair
from tests.webapp import simulated, stored
from tests.webapp.simulated import job, outcome, store_sweep, tome, topk
from webapp.charts import panels
from webapp.display.axis_curves import curves_along
from webapp.plot import figure, save_plot
from webapp.screens import answer

ARMS = (DENSE, topk(0.5), tome(0.02))
SIZES = (32, 64, 128, 224)
EAGER = Arm(overrides=Overrides(runtime="eager"))


def with_runtime(size: int, runtime: Runtime) -> Job:
    requested = job(size, arms=ARMS)
    condition = requested.condition.model_copy(update={"runtime": runtime})
    return requested.model_copy(update={"condition": condition})


def table_of(url: str, name: str, runtimes: tuple[Runtime, ...]) -> list[list[str]] | None:
    """Rows of the table, each with its runtime, below the names of the columns."""
    jobs = [with_runtime(size, runtime) for runtime in runtimes for size in SIZES]
    store_sweep(url, name, jobs, outcome)
    points, break_evens = curves_along(*stored.labelled_speedups(name, url), "tokens")
    (panel,) = panels.curve_panels(points, break_evens)
    found = answer.break_evens_by_runtime(answer.answers_of_panel(panel, "tokens"))
    if found is None:
        return None
    return [["", *found.columns], *found.reset_index().to_numpy().tolist()]


def test_each_runtime_has_a_row(tmp_path: Path) -> None:
    """With bracket and likeliest place that its curve has in the view; one runtime alone needs no table."""
    url = str(tmp_path / "runtimes.db")
    assert table_of(url, "one", ("eager",)) is None
    found = table_of(url, "two", ("eager", "openvino"))
    assert found is not None
    head, *rows = found
    assert sorted(row[0] for row in rows) == ["eager float32", "openvino float32"]
    _, break_evens = stored.labelled_speedups("two", url)
    claims = break_evens[(break_evens["axis"] == "tokens") & (break_evens["method"] == "topk")]
    assert set(claims["verdict"]) == {"crossing"}
    brackets = {
        f"{row.x_low:.0f} to {row.x_high:.0f}, likely {row.x:.0f}" for row in claims.itertuples()
    }
    place = next(number for number, label in enumerate(head) if label.startswith("topk"))
    assert {row[place] for row in rows} == brackets


def test_plot_has_a_small_panel_for_each_runtime(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same axes; below each the break-evens in the view of its methods against the model
    under the same runtime, and of this model against that of the other, which takes twice as long.
    """
    truth = (simulated.SAVED, simulated.LOST, simulated.EXTRA, simulated.NOISE)
    for facts, value in zip(truth, (0.0, 1.0, 0.0, 0.01), strict=True):
        monkeypatch.setitem(facts, EAGER, value)
    url = str(tmp_path / "runtimes.db")
    jobs = [with_runtime(size, "eager") for size in SIZES]
    for size in SIZES:
        own = with_runtime(size, "openvino")
        pairs = (*own.pairs, Pair(baseline=3, arm=0), Pair(baseline=3, arm=1))
        jobs.append(own.model_copy(update={"arms": (*ARMS, EAGER), "pairs": pairs}))
    store_sweep(url, "two", jobs, outcome)
    (grid,) = figure("two", url=url).to_dict()["vconcat"]
    curves = [panel["vconcat"][0] for panel in grid["concat"]]
    assert [each["title"] for each in curves] == ["eager", "openvino"]
    domains = {
        (axis, tuple(layer["encoding"][axis]["scale"]["domain"]))
        for each in curves
        for layer in each["layer"]
        for axis in ("x", "y")
        if "domain" in (layer["encoding"].get(axis, {}).get("scale") or {})
    }
    assert sorted(axis for axis, _ in domains) == ["x", "y"]
    ((low, high),) = (span for axis, span in domains if axis == "y")
    assert 0.3 < low < 1
    assert high > 2
    out = tmp_path / "two.svg"
    save_plot("two", out, url=url)
    words = re.findall(r">([^<]+)</t", out.read_text())
    assert words.count("the runtime itself: always") == 1
    _, claims = stored.labelled_speedups("two", url)
    claims = claims[(claims["axis"] == "tokens") & (claims["baseline"] == "dense")]
    claims = claims[claims["method"] == "topk"]
    assert len(claims) == 2
    for row in claims.itertuples():
        assert f"topk keep_rate=0.5: {row.x_low:.0f} to {row.x_high:.0f}" in words
    assert sum(word.startswith("topk keep_rate=0.5: ") for word in words) == 2
