"""The mark of a store's contents: it changes with every commit of another process, and only
then.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import Engine

from store.errors import StoreError
from store.open.engine import state_mark
from tests.store.conftest import submit

WRITE = """
import sys
from store.open.engine import connect
from store.write.submission import NewSweep, submit_sweep
for name in sys.stdin:
    submit_sweep(connect(sys.argv[1]), NewSweep(name, "text", "?"), [], [])
    print(flush=True)
"""


def test_commits_change_the_mark(engine: Engine, path: Path, empty_store: Path) -> None:
    """Each commit of another process or connection does, also where it stays in the write-ahead
    log; reading does not. A store that was replaced by another one has another mark.
    """
    url = str(path)
    marks = [state_mark(url)]
    with subprocess.Popen(
        [sys.executable, "-c", WRITE, url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        for name in ("first", "second"):
            assert state_mark(url) == marks[-1]
            print(name, file=other.stdin, flush=True)
            other.stdout.readline()
            marks.append(state_mark(url))
    submit(engine, [], "third")
    engine.dispose()
    marks.append(state_mark(url))
    shutil.copy(empty_store, path.with_name("other.db"))
    shutil.move(path.with_name("other.db"), path)
    marks.append(state_mark(url))
    assert len(set(marks)) == len(marks) == 5
    path.unlink()
    with pytest.raises(StoreError, match="does not exist"):
        state_mark(url)
