"""`breakeven plot` for papers: exact widths and sizes of text, panels with shared axes, no prose."""

import re
import struct
from pathlib import Path

import pytest

from sweeps.model.condition import Runtime
from tests.webapp.simulated import ARMS, SIZES, job, quickstart_answer, store_sweep
from webapp.__main__ import main

TOPK = "topk keep_rate=0.5"


@pytest.fixture(scope="module")
def panels(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with sweep `grid`: two models, two batches; and `two`: two runtimes."""
    url = str(tmp_path_factory.mktemp("papers") / "papers.db")
    models = ("deit_tiny_patch16_224", "deit_small_patch16_224")
    few = (64, 96, 160, 192)
    asked = [job(size, model, batch) for model in models for batch in (1, 8) for size in few]
    store_sweep(url, "grid", asked, quickstart_answer)
    runtimes: tuple[Runtime, ...] = ("eager", "openvino")
    conditions = [
        (each, each.condition.model_copy(update={"runtime": runtime}))
        for runtime in runtimes
        for each in map(job, SIZES[::2])
    ]
    jobs = [each.model_copy(update={"condition": condition}) for each, condition in conditions]
    store_sweep(url, "two", jobs, quickstart_answer)
    return url


def drawn(url: str, out: Path, *more: str, name: str = "grid") -> str:
    """The SVG of a figure."""
    assert main(["plot", name, "-o", str(out), "--db", url, *more]) == 0
    return out.read_text()


def words_of(svg: str) -> list[str]:
    return re.findall(r">([^<]+)</t", svg)


def geometry(svg: str) -> tuple[float, float, set[float]]:
    """Width and height in points, and the sizes of all texts in points."""
    found = re.search(r'width="([\d.]+)pt" height="([\d.]+)pt" viewBox="0 0 ([\d.]+) ', svg)
    assert found is not None
    width, height, units = map(float, found.groups())
    sizes = set(map(float, re.findall(r'font-size="([\d.]+)px"', svg)))
    return width, height, {round(size * width / units, 3) for size in sizes}


@pytest.mark.parametrize(
    ("form", "stated", "options"),
    [
        ("pdf", (234.0, 8.0), ("--for", "icml")),
        ("png", (238.11, 6.0), ("--width", "8.4cm", "--legend", "right", "--font-size", "6")),
    ],
)
def test_width_and_size_of_text(
    filled: str, tmp_path: Path, form: str, stated: tuple[float, float], options: tuple[str, ...]
) -> None:
    """As stated, in SVG, from which PDF, whose fonts are embedded, and PNG are made; every text has
    the one size.
    """
    svg = drawn(filled, tmp_path / "x.svg", *options, name="quickstart")
    (width, size), (got, height, sizes) = stated, geometry(svg)
    assert got == pytest.approx(width, abs=0.01)
    assert sizes == {size}
    drawn_width = float(re.findall(r'<rect width="([\d.]+)" height="[\d.]+" fill', svg)[0])
    assert 0 <= got * 12 / size - drawn_width < 1
    out = tmp_path / f"x.{form}"
    assert main(["plot", "quickstart", "-o", str(out), "--db", filled, *options]) == 0
    made = out.read_bytes()
    if form == "png":
        assert struct.unpack(">I", made[16:20])[0] == pytest.approx(got / 72 * 300, abs=1)
        return
    box = re.search(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", made)
    assert box is not None
    assert [float(each) for each in box.groups()] == pytest.approx([got, height], abs=0.01)
    assert made.count(b"/FontFile") >= 1


def test_stated_limits(filled: str, tmp_path: Path) -> None:
    """What lies beyond is counted, and not drawn outside the frame, nor is the rule at no
    difference. Labels at the ends of lines replace the legend where asked.
    """
    more = ("--ylim", "1.1,1.4", "--legend", "labels", "--width", "5in", "--title", "Where it pays")
    svg = drawn(filled, tmp_path / "x.svg", *more, name="quickstart")
    words = words_of(svg)
    assert "1×" not in words
    assert {"↑", "↓"} <= {word[0] for word in words if word.endswith(" beyond")}
    assert len(re.findall(r'clip-path="url', svg)) > 5
    assert "role-legend" not in svg
    assert words.count(TOPK) == words.count("Where it pays") == 1


def test_no_prose(filled: str, tmp_path: Path) -> None:
    """Arms, axes and ticks alone; what the caption needs lies in a text file beside the figure,
    which is as high as stated, for two rows of panels too.
    """
    high = ("--for", "icml", "--height", "4in", "--axis", "both")
    svg = drawn(filled, tmp_path / "x.svg", *high, name="quickstart")
    assert geometry(svg)[1] == pytest.approx(288, abs=0.01)
    words = words_of(svg)
    rest = [each for each in words if not re.fullmatch(r"[\d.]+×?", each)]
    arms = {each for each in rest if "=" in each}
    assert TOPK in arms
    assert len(arms) == len(ARMS) - 1
    assert set(rest) - arms == {
        "Speed-up: latency",
        "Patch tokens per image",
        "GMACs of an image, unmodified",
    }
    caption = (tmp_path / "x.txt").read_text()
    assert caption.startswith("From how many tokens on does token reduction pay")
    assert "2 threads" in caption
    assert re.search(rf"{TOPK}: pays at \d+ to \d+ tokens", caption)


def test_rows_and_columns(panels: str, tmp_path: Path) -> None:
    """A panel for each value of both, with the same limits; titles of axes at the left and at the
    foot alone, one legend.
    """
    options = ("--rows", "model", "--columns", "batch_size", "--for", "icml-wide")
    limits = ("--ylim", "0.5,2", "--xlim", "30,120")
    words = words_of(drawn(panels, tmp_path / "x.svg", *options, *limits))
    titles = [word for word in words if "batch" in word]
    assert titles == [
        f"{model}_patch16_224 · batch {batch}"
        for model in ("deit_small", "deit_tiny")
        for batch in (1, 8)
    ]
    assert words.count("Speed-up: latency") == 2
    assert words.count("Patch tokens per image") == 2
    assert words.count(TOPK) == 1
    assert words.count("2×") == 2
    assert "0.3×" not in words
    assert {"36", "100"} <= set(words)
    assert not {"16", "144", "196"} & set(words)


def test_methods_and_runtimes_have_panels(panels: str, tmp_path: Path) -> None:
    """Also what is no condition splits panels: each has the arms of its method; under each runtime
    arms are compared with the model there.
    """
    by = ("--rows", "runtime", "--columns", "method", "--width", "9in", "--legend", "none")
    words = words_of(drawn(panels, tmp_path / "x.svg", *by, name="two"))
    methods = ("random", "tome", "topk")
    titles = [f"{runtime} · {method}" for runtime in ("eager", "openvino") for method in methods]
    assert [word for word in words if " · " in word] == titles
    assert words.count("Speed-up: latency") == 2
    assert TOPK not in words
    one = ("--rows", "runtime", "--xlim", "60,70", "--for", "neurips")
    rows = words_of(drawn(panels, tmp_path / "y.svg", *one, name="two"))
    assert [word for word in rows if word in {"eager", "openvino"}] == ["eager", "openvino"]
    assert sum(word.startswith(f"{TOPK}: ") for word in rows) == 2


def test_wrong_values(panels: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each ends with exit code 2 and one line that says what would be right; nothing is written."""
    grid = ("--rows", "model", "--columns", "batch_size")
    for expected, *options in (
        ("write 3.3in, 84mm, 8.4cm or 241pt", "--width", "0.1in"),
        ("--height 3: no length", "--height", "3"),
        ("write two positive numbers, the lower first: 0.5,2", "--ylim", "2,1"),
        ("--xlim a,b: write two", "--xlim", "a,b"),
        ("--xlim is of one axis", "--xlim", "1,9", "--axis", "both"),
        ("--font-size 0: write points from 4 to 40", "--font-size", "0"),
        ("is not installed here", "--font", 'A"<b>'),
        ("panels are not by 'colour'; choose one of model, ", "--rows", "colour"),
        ("they also differ in batch_size", "--rows", "model"),
        ("do not fit into 3.25in x 1in at 8 pt", *grid, "--height", "1in"),
        ("no point", "--xlim", "5000,6000"),
        ("is .svg, .pdf or .png", "--for", "acm", "-o", str(tmp_path / "x.html")),
    ):
        out = ["-o", str(tmp_path / "x.svg"), "--db", panels]
        assert main(["plot", "grid", *out, *options]) == 2
        said = capsys.readouterr().err
        assert expected in said
        assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_words_of_a_panel_are_its_own(h100: str, tmp_path: Path) -> None:
    """Over panels of several batches the condition names all of them, each panel its own; ratios
    have their sign.
    """
    words = words_of(drawn(h100, tmp_path / "x.svg", name="quickstart_gpu"))
    assert "batch 32 · cudagraph" in words
    (condition,) = [text for text in words if text.startswith("NVIDIA H100")]
    assert "batch 1 and 32" in condition
    assert "1×" in words
    assert not [text for text in words if re.fullmatch(r"[\d.]+x", text)]
