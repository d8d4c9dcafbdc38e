"""Sweeps by name: those that ship, those of the store, and a file beside; with the commands that
are printed about them.
"""

from pathlib import Path

import pytest

from orchestrator.plan.planning import command_options, find_source
from store.open.engine import connect
from store.write.submission import NewSweep, submit_sweep
from sweeps.language.yaml_reader import SweepError, shipped_sweeps
from tests.orchestrator.commands import SWEEP, breakeven


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BREAKEVEN_DB", raising=False)
    return tmp_path


def test_a_shipped_sweep_is_found_without_a_checkout(folder: Path) -> None:
    """By its name, in an empty folder; a name that is near to one is suggested."""
    assert find_source(Path("quickstart"), None) == (shipped_sweeps()["quickstart"], None)
    done = breakeven("plan", "quickstart", folder=folder)
    assert (done.returncode, "36 comparisons" in done.stdout) == (0, True)
    with pytest.raises(SweepError, match="did you mean 'quickstart'"):
        find_source(Path("quikstart"), None)
    with pytest.raises(SweepError, match="no such file"):
        find_source(Path("elsewhere/quickstart.yaml"), None)


def test_a_sweep_of_the_store_comes_before_one_that_ships_and_a_file_before_both(
    folder: Path,
) -> None:
    """What was run under a name goes on under it."""
    engine = connect(None)
    submit_sweep(engine, NewSweep("quickstart", SWEEP, "Is it mine?"), [], [])
    engine.dispose()
    assert find_source(Path("quickstart"), None).text == SWEEP
    (folder / "quickstart.yaml").write_text(SWEEP)
    assert find_source(Path("quickstart"), None) == (Path("quickstart.yaml"), None)


def test_printed_commands_name_the_store_and_the_machine(folder: Path) -> None:
    """What the given command had besides; no password, and nothing where the default store is
    meant.
    """
    assert command_options(None) == command_options("breakeven.db") == ""
    assert (
        command_options("other.db", "cpu", "head:6379")
        == " --db other.db --device cpu --ray-address head:6379"
    )
    assert command_options("postgresql://me:secret@host/name") == ""
    assert command_options("my store.db") == " --db 'my store.db'"
