"""The mark of a store's contents: it changes with every commit of another process, and only
then.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from store.errors import StoreError
from store.open.engine import connect, state_mark
from store.write.submission import NewSweep, submit_sweep

WRITE = """
import sys
from store.open.engine import connect
from store.write.submission import NewSweep, submit_sweep
submit_sweep(connect(sys.argv[1]), NewSweep(sys.argv[2], "text", "?"), [], [])
"""


def write(url: str, name: str) -> None:
    """Another process commits a sweep."""
    subprocess.run(
        [sys.executable, "-c", WRITE, url, name], check=True, cwd=Path(__file__).parents[2]
    )


def test_commits_of_other_processes_change_the_mark(tmp_path: Path) -> None:
    """Each commit does, also where it stays in the write-ahead log; reading does not."""
    url = str(tmp_path / "store.db")
    engine = connect(url)
    marks = [state_mark(url)]
    assert state_mark(url) == marks[0]
    for name in ("first", "second"):
        write(url, name)
        marks.append(state_mark(url))
        assert state_mark(url) == marks[-1]
    # this process, by another connection
    submit_sweep(engine, NewSweep("third", "text", "?"), [], [])
    marks.append(state_mark(url))
    engine.dispose()
    assert len(set(marks)) == len(marks)


def test_another_file_at_the_same_place(tmp_path: Path) -> None:
    """A store that was replaced by another one has another mark; one that is gone is reported."""
    url, other = (str(tmp_path / name) for name in ("store.db", "other.db"))
    for path in (url, other):
        connect(path).dispose()
    before = state_mark(url)
    shutil.move(other, url)
    assert state_mark(url) != before
    Path(url).unlink()
    with pytest.raises(StoreError, match="does not exist"):
        state_mark(url)
