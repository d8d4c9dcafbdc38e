"""The folder of a Ray of our own: nothing is removed that is not marked as ours and abandoned."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.cluster import connect
from orchestrator.cluster.cluster import Cluster
from orchestrator.cluster.connect import MARKER, ClusterError, Folder
from store.rows.owners import owner


@pytest.fixture
def short(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place of its own instead of /tmp, however long its path."""
    place = tmp_path_factory.mktemp("short")
    monkeypatch.setenv("RAY_TMPDIR", str(place))
    monkeypatch.setattr(connect, "LONGEST", 1000)
    return place


def killed_owner() -> str:
    """The name of a process on this host that has ended."""
    program = "from store.rows.owners import owner; print(owner())"
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.strip()


def left(parent: Path, name: str, marker: str | None) -> Path:
    """A folder such as a run leaves that was killed."""
    made = parent / name
    (made / "session").mkdir(parents=True)
    if marker is not None:
        (made / MARKER).write_text(marker)
    return made


def test_only_marked_folders_of_dead_runs_are_removed(short: Path) -> None:
    """A user's results, another program's folder, that of a run elsewhere and that of a living run
    stay; a dead run's goes.
    """
    results = short / "breakeven-results"
    results.mkdir()
    (results / "x.db").write_text("precious")
    first = Folder()
    ours = Path(first.path).parent
    dead = left(ours, "ray-dead", killed_owner())
    kept = [
        left(ours, "ray-unmarked", None),
        left(ours, "ray-foreign", "not an owner"),
        left(ours, "ray-elsewhere", "elsewhere:1:1"),
        left(ours, "ray-alive", owner()),
        left(ours, "results", killed_owner()),
        left(short, "breakeven-old", None),
    ]
    second = Folder()
    assert not dead.exists()
    assert (results / "x.db").read_text() == "precious"
    assert [path.name for path in kept if not (path / "session").is_dir()] == []
    assert Path(first.path).exists()
    for one in (first, second):
        one.remove()
        assert not Path(one.path).exists()


WRITER = (
    "import sys, time; file = open(sys.argv[1], sys.argv[2]); print('open', flush=True);"
    " time.sleep(60)"
)


def test_what_a_killed_run_left_running_is_ended(short: Path) -> None:
    """Processes that write into the folder of a dead run end at the next start; readers, and
    writers elsewhere, go on.
    """
    first = Folder()
    dead = left(Path(first.path).parent, "ray-dead", killed_owner())
    alive = left(Path(first.path).parent, "ray-alive", owner())
    for folder_ in (dead, alive):
        (folder_ / "session" / "log").touch()
    opened = [(dead, "a"), (dead, "r"), (alive, "a")]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(place / "session" / "log"), mode],
            stdout=subprocess.PIPE,
        )
        for place, mode in opened
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == b"open\n"
        second = Folder()
        assert [process.poll() is None for process in processes] == [False, True, True]
        assert not dead.exists()
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    first.remove()
    second.remove()


def test_a_lock_protects_a_folder_whose_marker_looks_dead(short: Path) -> None:
    """What a process still holds stays, whatever its marker holds."""
    held = Folder()
    (Path(held.path) / MARKER).write_text(killed_owner())
    other = Folder()
    assert Path(held.path).exists()
    held.remove()
    other.remove()


def test_a_symlink_among_the_folders_is_not_followed(short: Path, tmp_path: Path) -> None:
    """A link to a folder elsewhere is left, and so is what it leads to."""
    first = Folder()
    elsewhere = left(tmp_path, "elsewhere", killed_owner())
    (Path(first.path).parent / "ray-link").symlink_to(elsewhere)
    second = Folder()
    assert (elsewhere / "session").is_dir()
    first.remove()
    second.remove()


def test_the_parent_is_private(short: Path) -> None:
    """Nobody else can write where Ray keeps its sockets, even where the folder was opened up."""
    made = Folder()
    parent = Path(made.path).parent
    assert parent.stat().st_mode & 0o777 == 0o700
    made.remove()
    parent.chmod(0o777)
    Folder().remove()
    assert parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("wrong", ["symlink", "other user"])
def test_a_parent_that_is_not_ours_is_refused(short: Path, tmp_path: Path, wrong: str) -> None:
    """A link or another user's folder in its place is an error in one line that names it."""
    parent = short / f"breakeven-{os.geteuid()}"
    if wrong == "symlink":
        parent.symlink_to(tmp_path)
    elif os.geteuid() == 0:
        parent.mkdir()
        os.chown(parent, 12345, 12345)
    else:
        parent.symlink_to("/")  # only root can give a folder away
    with pytest.raises(
        ClusterError, match=rf"no place for its files: {parent} is not a folder of this user"
    ):
        Cluster.start()


def test_places_that_cannot_hold_sockets_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A path too long for a Unix socket, and one that is not there, are errors in one line."""
    monkeypatch.setenv("RAY_TMPDIR", "/tmp/" + "x" * 40)
    with pytest.raises(
        ClusterError,
        match="too long a path for the sockets of Ray; name a shorter one with RAY_TMPDIR",
    ):
        Cluster.start()
    monkeypatch.setenv("RAY_TMPDIR", "/nowhere")
    with pytest.raises(ClusterError, match="No such file or directory: '/nowhere/breakeven-"):
        Cluster.start()


def test_the_usual_place_is_short_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray's sockets fit into 107 characters there, for the largest user id too."""
    monkeypatch.delenv("RAY_TMPDIR", raising=False)
    longest = connect.SOCKET_FOLDER / "breakeven-4294967294" / "ray-12345678"
    assert len(str(longest)) <= connect.LONGEST
    socket = "session_2026-11-22_07-34-00_123456_4194304/sockets/plasma_store"
    assert len(str(longest / socket)) <= 107


def test_folder_that_is_still_written_to_keeps_its_marker(short: Path) -> None:
    """Processes of a Ray that was killed may write while the folder is removed: what is left is
    removed at the next start.
    """
    made = Folder()
    writing = (
        "import pathlib, sys\nprint(flush=True)\n"
        "while pathlib.Path(sys.argv[1]).exists():\n"
        "    try: pathlib.Path(sys.argv[1], 'session').mkdir(exist_ok=True)\n"
        "    except OSError: pass"
    )
    with subprocess.Popen(
        [sys.executable, "-c", writing, made.path], stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        for number in range(3000):
            (Path(made.path) / f"log-{number}").touch()
        made.remove()
        there = Path(made.path).exists()
        marked = (Path(made.path) / MARKER).exists()
        writer.kill()
    assert not there or marked
