"""Options of the command line: version, help of the commands of the web app, and durations as sweep
files have them.
"""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.cli import app
from sweeps.language.file_schema import seconds, stated_seconds
from tests.orchestrator.commands import SWEEP


def test_the_version_is_printed() -> None:
    """With exit code 0, and the hash of the source."""
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.output.split()[:2]) == (0, ["breakeven", "0.1.0"])


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("plot", ("--out", "--axis", "--metric", "--flagged", "--references")),
        ("app", ("--port", "--host", "--no-browser")),
    ],
)
def test_help_lists_the_options(command: str, options: tuple[str, ...]) -> None:
    """Of the two commands that start the web app too."""
    shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).output
    assert [option for option in options if option not in shown] == []


@pytest.mark.parametrize(
    "command",
    [["plot", "x"], ["plot", "x", "-o", "x.png", "--axis", "time"], ["app", "--port", "none"]],
)
def test_wrong_options_of_them_are_refused(command: list[str]) -> None:
    """Before anything is started."""
    assert CliRunner().invoke(app, command).exit_code == 2


def test_durations_are_those_of_a_sweep_file() -> None:
    """A plain number is seconds in both, and nothing is longer than clocks can count."""
    assert (
        [stated_seconds(text) for text in ("5", "2.5", "10m")]
        == [seconds(5), seconds(2.5), seconds("10m")]
        == [5, 2.5, 600]
    )
    for text in ("99999999h", "soon", "1e99", "-1"):
        with pytest.raises(ValueError, match="h"):
            stated_seconds(text)


@pytest.mark.parametrize(
    "options", [("--wait", "5m", "--no-wait"), ("--wait", "soon"), ("--time", "0s")]
)
def test_contradicting_limits_are_refused(options: tuple[str, ...], tmp_path: Path) -> None:
    """As wrong usage."""
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    assert CliRunner().invoke(app, ["run", str(tmp_path / "sweep.yaml"), *options]).exit_code == 2
