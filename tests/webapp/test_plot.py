"""`python -m webapp plot`: three formats without a browser or a network, and one clear line when
there is nothing to draw.
"""

import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.webapp.simulated import job, store_sweep
from webapp.__main__ import main


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
