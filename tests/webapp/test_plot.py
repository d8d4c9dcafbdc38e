"""`python -m webapp plot`: three formats without a browser or a network, and one clear line when
there is nothing to draw.
"""

import io
import json
import re
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import altair as alt
import pandas as pd
import pytest
from playwright.sync_api import Browser

from sweeps.model.condition import Overrides, Runtime
from sweeps.model.job import DENSE, Arm, Job, Pair
from tests.webapp import simulated, stored
from tests.webapp.simulated import job, outcome, store_sweep, tome, topk
from webapp import plot
from webapp.__main__ import main
from webapp.charts import panels
from webapp.charts.curves import draw_panel
from webapp.plot import figure, render_chart
from webapp.widgets.chart_block import bundle_files, make_bundle


def drawn(out: Path, url: str, *more: str, name: str = "quickstart") -> int:
    """Runs the command and returns its exit code."""
    return main(["plot", name, "-o", str(out), "--db", url, *more])


def test_png_and_pdf(filled: str, tmp_path: Path) -> None:
    """A PNG at twice the size of the chart, sharp, and wide enough to read; one page of vectors."""
    out = tmp_path / "tokens.png"
    assert drawn(out, filled, "--axis", "tokens") == 0
    head = out.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", head[16:24])
    assert 1600 < width < 2600
    assert 1000 < height < 1700
    assert drawn(tmp_path / "chart.pdf", filled) == 0
    content = (tmp_path / "chart.pdf").read_bytes()
    assert content.startswith(b"%PDF-")
    assert content.count(b"/Type /Page\n") + content.count(b"/Type/Page\n") == 1


def test_svg(filled: str, tmp_path: Path) -> None:
    """The SVG holds title, question, device, units and verdicts as text."""
    out = tmp_path / "chart.svg"
    assert drawn(out, filled, "--axis", "both") == 0
    words = set(re.findall(r">([^<]+)</t", out.read_text()))
    assert {
        "quickstart",
        "From how many tokens on does token reduction pay on this machine?",
        "deit_tiny_patch16_224, against dense",
    } <= words
    assert {
        "Patch tokens per image",
        "GMACs of an image, unmodified (papers: GFLOPs)",
        "196",
        "1×",
    } <= words
    assert "tome r_ratio=0.02: not shown to pay at any point measured, 4 to 196 tokens" in words


def test_html_needs_no_network(filled: str, tmp_path: Path) -> None:
    """The HTML file carries its scripts: nothing in it is loaded from elsewhere."""
    out = tmp_path / "chart.html"
    assert drawn(out, filled, "--axis", "gmacs") == 0
    text = out.read_text()
    assert "vegaEmbed" in text
    assert not re.search(r"<(script|link)[^>]+(src|href)\s*=", text)


def test_wrong_usage(filled: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong name, extension or folder ends with exit code 2 and what would be right; so do a sweep
    that has only waited, and a store that is missing.
    """
    none, url = str(tmp_path / "none.db"), str(tmp_path / "waiting.db")
    store_sweep(url, "waiting", [job(64)], lambda _: None)
    for store, name, file, expected in (
        (filled, "quikstart", "x.png", "did you mean quickstart"),
        (filled, "quickstart", "x.tif", "use .png, .svg, .pdf or .html"),
        (filled, "quickstart", "missing/x.svg", "No such file or directory"),
        (url, "waiting", "x.png", "has no measurement yet"),
        (none, "quickstart", "x.png", "breakeven run"),
    ):
        assert drawn(tmp_path / file, store, name=name) == 2
        assert expected in capsys.readouterr().err
        assert not (tmp_path / file).exists()


def test_usage_errors_of_the_command_line() -> None:
    """Started as a program, a missing command or an unknown axis is wrong usage: exit code 2."""
    for arguments in ([], ["plot", "x", "-o", "x.png", "--axis", "flops"]):
        ended = subprocess.run(
            [sys.executable, "-m", "webapp", *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ended.returncode, "Usage: breakeven" in ended.stdout + ended.stderr) == (2, True)


ARMS = (DENSE, topk(0.5), tome(0.02))
SIZES = (32, 64, 128, 224)
EAGER = Arm(overrides=Overrides(runtime="eager"))


def with_runtime(size: int, runtime: Runtime) -> Job:
    requested = job(size, arms=ARMS)
    condition = requested.condition.model_copy(update={"runtime": runtime})
    return requested.model_copy(update={"condition": condition})


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
    chart = figure("two", url=url)
    (grid,) = chart.to_dict()["vconcat"]
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
    words = re.findall(r">([^<]+)</t", render_chart(chart, "svg").decode())
    assert words.count("the runtime itself: always") == 1
    _, claims = stored.labelled_speedups("two", url)
    claims = claims[(claims["axis"] == "tokens") & (claims["baseline"] == "dense")]
    claims = claims[claims["method"] == "topk"]
    assert len(claims) == 2
    for row in claims.itertuples():
        assert f"topk keep_rate=0.5: {row.x_low:.0f} to {row.x_high:.0f}" in words
    assert sum(word.startswith("topk keep_rate=0.5: ") for word in words) == 2


FIELDS = ("word", "none", "empty", "number", "nan")


def chart(point: int) -> alt.Chart:
    """One large mark: at point 0 two of its rows have no value, at point 1 all have."""
    columns = {
        "word": ["a", "b"],
        "none": [None, "x"],
        "empty": ["", "y"],
        "number": [0.0, 2.5],
        "nan": [float("nan"), 1.0],
    }
    rows = pd.DataFrame(columns).iloc[[point]]
    tips = [
        alt.Tooltip(f"{name}:{'Q' if name in {'number', 'nan'} else 'N'}", title=name.upper())
        for name in FIELDS
    ]
    mark: alt.Chart = (
        alt.Chart(rows, width=200, height=200).mark_rect(width=200, height=200).encode(tooltip=tips)
    )
    return mark


def test_in_the_browser(browser: Browser, tmp_path: Path) -> None:
    """In a saved file: zero is a value, `null`, NaN and an empty text are none."""
    file, page = tmp_path / "chart.html", browser.new_page()
    for point, rows in enumerate(
        ("WORD a|NUMBER 0", "WORD b|NONE x|EMPTY y|NUMBER 2.5|NAN 1"),
    ):
        file.write_bytes(render_chart(chart(point), "html"))
        page.goto(file.as_uri())
        page.locator(".mark-rect path").first.hover()
        page.locator("#vg-tooltip-element.visible").wait_for()
        shown = page.locator("#vg-tooltip-element tr").all()
        assert "|".join(" ".join(row.inner_text().split()) for row in shown) == rows
    page.close()


def test_files(filled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spec, data, SQL and sweep file; the spec is valid alone and holds no link, nor do pictures. A
    page that compares sweeps names none: its bundle has what there is.
    """
    monkeypatch.setenv("BREAKEVEN_DB", filled)
    points, break_evens = stored.labelled_speedups("quickstart", filled)
    (view,) = panels.panel_infos(points, break_evens)
    chart = draw_panel(view, links=True)
    assert "href" in json.dumps(chart.to_dict()["layer"])
    made = bundle_files(chart, points, "SELECT 1", "name: quickstart")
    with zipfile.ZipFile(io.BytesIO(made)) as archive:
        spec = json.loads(archive.read("chart.vl.json"))
        assert "href" not in json.dumps(spec["layer"])
        assert len(pd.read_csv(archive.open("data.csv"))) == len(points)
        assert archive.read("query.sql") == b"SELECT 1\n"
        assert archive.read("sweep.yaml") == b"name: quickstart"
    for name, more in (("compare", []), ("quickstart", ["sweep.yaml"])):
        with zipfile.ZipFile(io.BytesIO(make_bundle(chart, points, name))) as archive:
            assert sorted(archive.namelist()) == ["chart.vl.json", "data.csv", *more]
    assert plot.render_chart(chart, "png").startswith(b"\x89PNG")
    assert b"point?id=" not in plot.render_chart(chart, "svg")
