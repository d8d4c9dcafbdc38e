"""Opening a store: where it is, the messages when it cannot be opened, and a mark of its contents."""

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event, text

from store.errors import StoreError, StoreOutageError
from store.open.engine import close_watches, connect, connect_readonly, disposing, state_mark
from store.read.queries import sweep_summaries
from store.read.user_sql import run_query
from store.rows.location import location, network_file_system
from store.rows.transactions import writing
from store.write import record
from tests.store.conftest import a_job, an_outcome, submit, table

MOUNTS = {"/": "ext4", "/home": "nfs4", "/home/me/local disk": "xfs"}


@pytest.fixture(autouse=True)
def watches() -> Iterator[None]:
    """What marks of stores were read from is closed."""
    yield
    close_watches()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that any user may enter, but only its owner may write to."""
    folder = Path(tempfile.mkdtemp(prefix="breakeven-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def as_nobody(action: Callable[[], Any]) -> str:
    """What `action` raises when a user without rights runs it, in a process of its own."""
    import alembic.command  # noqa: F401 - the other user may not be allowed to read the program's files

    reading, writing_end = os.pipe()
    child = os.fork()
    if child == 0:
        raised = b"nothing was raised"
        try:
            if os.geteuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            action()
        except BaseException as error:
            raised = f"{type(error).__name__}: {error}".encode()
        os.write(writing_end, raised)
        os._exit(0)
    os.close(writing_end)
    with os.fdopen(reading) as pipe:
        outcome = pipe.read()
    os.waitpid(child, 0)
    return outcome


def test_location(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The argument wins over the variable, the variable over the current folder; a plain path is an
    SQLite file.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BREAKEVEN_DB", raising=False)
    assert location(None) == f"sqlite:///{tmp_path}/breakeven.db"
    monkeypatch.setenv("BREAKEVEN_DB", "/data/x.db")
    assert location(None) == "sqlite:////data/x.db"
    assert location("other.db") == f"sqlite:///{tmp_path}/other.db"
    assert location("postgres://me@host/db") == "postgresql://me@host/db"


def test_strange_places(tmp_path: Path) -> None:
    """Characters that mean something in a URL are plain characters in a path; a store in memory
    works like one in a file; the reader's engine refuses to write.
    """
    path = tmp_path / "a ?b%20c#d.db"
    for place in (str(path), "sqlite://"):
        with disposing(connect(place)) as engine, writing(engine) as connection:
            assert connection.execute(text("SELECT count(*) FROM break_even")).scalar() == 0
    assert path.is_file()
    with (
        disposing(connect_readonly(str(path))) as reader,
        pytest.raises(StoreError, match="cannot be written"),
        writing(reader) as connection,
    ):
        connection.execute(text("DELETE FROM sweep"))


def test_what_is_no_store_is_refused_and_kept(engine: Engine, path: Path, tmp_path: Path) -> None:
    """A missing store names the command to run; a file that is no database, another program's, a
    damaged one and a folder are each named, and stay as they were.
    """
    engine.dispose()
    content = path.read_bytes()
    (folder := tmp_path / "folder").mkdir()
    notes, photos, damaged = (folder / name for name in ("notes.txt", "photos.db", "damaged.db"))
    notes.write_text("Not a database, but long enough to look like one. " * 50)
    with closing(sqlite3.connect(photos)) as other:
        other.execute("CREATE TABLE photos (id INTEGER)")
    damaged.write_bytes(content[:100] + b"\xff" * (len(content) - 100))
    before = {file: file.read_bytes() for file in folder.iterdir()}
    for place, message in {
        notes: r"notes\.txt is not an SQLite database",
        photos: r"photos\.db belongs to another program \(tables: photos\)",
        damaged: "is damaged",
    }.items():
        for opening in (connect, connect_readonly):
            with pytest.raises(StoreError, match=message):
                opening(str(place))
    nowhere = r"nowhere\.db does not exist; .*run a sweep first: breakeven run quickstart --db"
    with pytest.raises(StoreError, match=nowhere):
        connect_readonly(str(folder / "nowhere.db"))
    assert not (folder / "nowhere.db").exists()
    assert {file: file.read_bytes() for file in before} == before
    with pytest.raises(StoreError, match="is a folder; the store is a file"):
        connect(str(folder))
    with pytest.raises(StoreError, match="no does not exist; create it"):
        connect(str(folder / "no" / "store.db"))


def test_read_only_folder(open_folder: Path) -> None:
    """A folder that cannot be written to is named when a store is to be created there."""
    if os.geteuid() != 0:
        open_folder.chmod(0o555)
    error = as_nobody(lambda: connect(str(open_folder / "x.db")))
    assert error.startswith(f"StoreError: {open_folder}/x.db cannot be")
    open_folder.chmod(0o755)
    assert list(open_folder.iterdir()) == []


def test_read_only_file(open_folder: Path) -> None:
    """A store that cannot be written is named before anything is measured, and stays as it was."""
    path = open_folder / "x.db"
    connect(str(path)).dispose()
    path.chmod(0o444)
    before = path.read_bytes()

    def write() -> None:
        with writing(connect(str(path))) as connection:
            connection.execute(text("DELETE FROM sweep"))

    assert as_nobody(write).startswith(f"StoreError: {path} cannot be")
    assert path.read_bytes() == before


def test_full_disk_loses_nothing(engine: Engine, path: Path) -> None:
    """When the file cannot grow the error states it, by the whole path; what was stored stays, and
    recording goes on once there is room.
    """
    room = {"pages": 130}
    limit = "PRAGMA max_page_count = {pages}"
    event.listen(engine, "checkout", lambda raw, *_: raw.execute(limit.format(**room)))
    outcomes = [an_outcome(a_job(16 * size), pairs=600, seed=size) for size in range(2, 40)]
    stored = 0
    with pytest.raises(StoreError, match=f"^{path} .*disk is full"):  # noqa: PT012 - the loop finds out when it is full
        for outcome in outcomes:
            record.record(engine, None, None, outcome)
            stored += 1
    assert stored > 0
    counts = [
        table(engine, f"SELECT count(*) FROM {of}") for of in ("attempt", "sample", "speedup")
    ]
    assert counts == [[(stored,)]] * 3
    room["pages"] = 100_000
    assert record.record(engine, None, None, outcomes[stored])


def test_locked_by_another_program(
    engine: Engine, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock that is not given up ends in a message that names the whole path, however the store
    was given, not in a wait for ever.
    """
    engine.dispose()
    monkeypatch.chdir(path.parent)
    monkeypatch.setattr("store.open.engine.BUSY_S", 0.1)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with (
            disposing(connect(path.name)) as mine,
            pytest.raises(StoreOutageError, match=f"^{path} .*kept locked by another program"),
        ):
            writing(mine).__enter__()


@pytest.mark.parametrize("replaced", [False, True])
def test_a_store_that_is_deleted_while_it_is_open(
    engine: Engine, path: Path, empty_store: Path, replaced: bool
) -> None:
    """The next write names the file and what to do; what is put in its place gets nothing of it.
    A file that is put back goes on.
    """
    assert record.record(engine, None, None, an_outcome(a_job(64)))
    kept = path.rename(path.with_name("kept.db"))
    if replaced:
        shutil.copy(empty_store, path)
    with pytest.raises(StoreOutageError, match=f"^{path} was deleted, moved or replaced"):
        record.record(engine, None, None, an_outcome(a_job(128)))
    assert path.exists() == replaced
    kept.rename(path)
    assert record.record(engine, None, None, an_outcome(a_job(128)))
    assert table(engine, "SELECT count(*) FROM attempt") == [(2,)]


def test_network_file_system() -> None:
    """The mount that contains a path decides, and only network file systems are refused."""
    for path, kind in {
        "/home/me/x.db": "nfs4",
        "/home/me/local disk/x.db": None,
        "/var/x.db": None,
        "/homework/x.db": None,
    }.items():
        assert network_file_system(Path(path), MOUNTS) == kind


def test_store_in_a_read_only_folder_is_read(engine: Engine, path: Path, open_folder: Path) -> None:
    """Where SQLite can make no files beside it, as on a read-only mount, a store is read all the
    same, and stays as it is.
    """
    record.record(engine, None, None, an_outcome(a_job()))
    engine.dispose()
    closed = open_folder / "store.db"
    shutil.copy(path, closed)
    closed.chmod(0o444)
    open_folder.chmod(0o555)

    def read(store: Path) -> None:
        reader = connect_readonly(str(store))
        found = sweep_summaries(reader), run_query(str(store), "SELECT count(*) FROM speedup").rows
        reader.dispose()
        raise StoreError(str(found))

    with pytest.raises(StoreError):
        read(path)  # imports all that reading needs, which another user may not
    assert as_nobody(lambda: read(closed)) == "StoreError: ([], [(1,)])"
    assert [each.name for each in open_folder.iterdir()] == ["store.db"]
    open_folder.chmod(0o755)


def test_a_log_in_a_read_only_folder_is_named(
    engine: Engine, path: Path, open_folder: Path
) -> None:
    """Without its write-ahead log a store would lack its newest rows; the message names what to
    copy.
    """
    record.record(engine, None, None, an_outcome(a_job()))
    closed = open_folder / "store.db"
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", f"{closed}{suffix}")
    assert closed.with_name("store.db-wal").stat().st_size > 0
    open_folder.chmod(0o555)
    for action in (
        lambda: connect_readonly(str(closed)),
        lambda: run_query(str(closed), "SELECT 1"),
    ):
        error = as_nobody(action)
        assert error.startswith(f"StoreError: {closed} ")
        assert "store.db-wal" in error
    open_folder.chmod(0o755)


def read_summaries(path: str) -> None:
    with disposing(connect_readonly(path)) as reader:
        sweep_summaries(reader)


READS: tuple[Callable[[str], object], ...] = (
    lambda path: connect_readonly(path).dispose(),
    read_summaries,
    lambda path: connect(path).dispose(),
    state_mark,
    *(
        partial(run_query, sql=f"SELECT * FROM {view}")
        for view in ("speedup", "arm", "metric", "job", "attempt")
    ),
)


def test_a_damaged_store_ends_in_a_line(engine: Engine, path: Path, tmp_path: Path) -> None:
    """Whatever bytes are wrong, as on a bad disk, reading works or names the file, in a line
    without the parts of a URL.
    """
    for size in (64, 128, 224):
        record.record(engine, None, None, an_outcome(a_job(size)))
    engine.dispose()
    whole, refused = path.read_bytes(), []
    for seed in range(10):
        # other bytes than those by which it is known as a database
        drawn, content = random.Random(seed), bytearray(whole)
        for _ in range(40):
            content[drawn.randrange(100, len(content))] = drawn.randrange(256)
        broken = str(tmp_path / f"{seed}.db")
        Path(broken).write_bytes(content)
        for read in READS:
            try:
                read(broken)
            except StoreError as error:
                refused.append((str(error), broken))
    assert refused
    assert all("\n" not in message and "://" not in message for message, _ in refused)
    assert all(of in message or message.startswith("query refused") for message, of in refused)


def test_wrong_urls_are_one_line_without_their_passwords() -> None:
    """Whatever is wrong with a URL, the message names it and shows no password, wherever that
    stands.
    """
    for url, message in {
        "postgresql://me:secret@127.0.0.1:abc/db": "its port is no number",
        "postgresql://me:secret@127.0.0.1:99999/db": "invalid port number",
        "postgresql://me@127.0.0.1:1/db?password=secret": "Connection refused",
        "postgresql://me@127.0.0.1:abc/db?password=secret": "its port is no number",
        "postgresql://me:p@secret@127.0.0.1/db": "a password that contains @ is written with %40",
        "nonsense://me:secret@host/db?sslpassword=secret": "no usable database URL",
    }.items():
        with pytest.raises(StoreError, match=message) as caught:
            connect_readonly(url)
        assert "secret" not in str(caught.value)
        assert "\n" not in str(caught.value)


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
