"""docs/gallery.md: six figures, each with the command that makes it."""

import re
from pathlib import Path

import pytest

from tests.gallery import PAGE, ROOT, figures, main
from tests.webapp.simulated import quickstart_answer, store_sweep
from webapp.__main__ import main as run_webapp


def test_each_figure_lies_beside_its_command() -> None:
    """Six are shown, each by the command above it, with its caption's text beside it."""
    shown = re.findall(r"\(gallery/(\w+\.svg)\)", PAGE.read_text(encoding="utf-8"))
    assert [f"docs/gallery/{name}" for name in shown] == list(figures())
    assert len(shown) == 6
    for file in figures():
        assert (ROOT / file).read_text(encoding="utf-8").startswith("<svg")
        assert (ROOT / file).with_suffix(".txt").is_file()


@pytest.mark.parametrize("file", figures())
def test_commands_are_right(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They go as far as a store: one that holds another sweep has not theirs."""
    url = str(tmp_path / "other.db")
    store_sweep(url, "other", [], quickstart_answer)
    assert run_webapp([*figures()[file], "--db", url]) == 2
    assert "contains no sweep called" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="none of the stores holds the sweep"):
        main([url])
