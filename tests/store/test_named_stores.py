"""Which file a message about a full or a locked store names."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Engine, event, text

from store.errors import StoreOutageError
from store.open.engine import connect
from store.rows.transactions import writing
from store.write import record
from tests.store.conftest import a_job, an_outcome


@pytest.mark.parametrize("relative", [True, False])
def test_a_locked_store_is_named(
    engine: Engine, path: Path, monkeypatch: pytest.MonkeyPatch, relative: bool
) -> None:
    """By its whole path, however it was given."""
    engine.dispose()
    monkeypatch.chdir(path.parent)
    monkeypatch.setattr("store.open.engine.BUSY_S", 0.1)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with (
            pytest.raises(StoreOutageError) as refused,
            writing(connect(path.name if relative else str(path))),
        ):
            pass
    assert str(refused.value).startswith(f"{path} ")


def test_a_full_store_is_named(engine: Engine, path: Path) -> None:
    """By its whole path, also while an outcome is recorded."""
    event.listen(engine, "checkout", lambda raw, *_: raw.execute("PRAGMA max_page_count = 1"))
    with pytest.raises(StoreOutageError) as refused:
        record.record(engine, None, None, an_outcome(a_job(), pairs=3000))
    assert str(refused.value).startswith(f"{path} ")
    with pytest.raises(StoreOutageError) as refused, writing(engine) as connection:
        connection.execute(text("CREATE TABLE more AS SELECT zeroblob(1000000) AS x"))
    assert str(refused.value).startswith(f"{path} ")
