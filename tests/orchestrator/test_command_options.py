"""Options of the command line: version, help of the commands of the web app, and durations as sweep
files have them.
"""

from pathlib import Path

import pytest
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from orchestrator.cli import app
from sweeps.language.file_schema import seconds, stated_seconds
from tests.orchestrator.commands import SWEEP, breakeven, in_process
from webapp.__main__ import commands


def test_the_version_is_printed() -> None:
    """With exit code 0, and the hash of the source."""
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.output.split()[:2]) == (0, ["breakeven", "0.1.0"])


def test_help_lists_all_options(tmp_path: Path) -> None:
    """Of a command of the web app: the same text as that of `python -m webapp`, with every
    option that the function has.
    """
    command = "plot"
    shown = breakeven(command, "--help", folder=tmp_path, COLUMNS="200")
    own = CliRunner().invoke(
        commands, [command, "--help"], env={"COLUMNS": "200"}, prog_name="breakeven"
    )
    assert (shown.returncode, shown.stdout) == (0, own.output)
    group = get_command(commands)
    assert isinstance(group, TyperGroup)
    options = [name for each in group.commands[command].params for name in each.opts]
    assert len(options) >= 5
    assert [
        option for option in options if option.startswith("-") and option not in own.output
    ] == []


@pytest.mark.parametrize(
    "command",
    [["plot", "x", "-o", "x.png", "--axis", "time"], ["app", "--port", "none"]],
)
def test_wrong_options_of_them_are_refused(command: list[str], tmp_path: Path) -> None:
    """Before a store is read or a server started."""
    done = in_process(*command, folder=tmp_path)
    assert done.returncode == 2
    assert "Usage: breakeven" in done.stderr


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
