"""One queue of two users on three nodes of Ray and PostgreSQL: a node is lost, the server is killed
and started again, the database is restarted; nothing is lost or double, and the order is kept.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import text

from store.open.engine import connect_readonly
from store.write import submissions
from tests.orchestrator.commands import SWEEP, in_process
from tests.orchestrator.machines import clean_environment, free_port, kill, started
from tests.store import postgresql

PROGRAMS = postgresql.programs()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.ray,
    pytest.mark.skipif(PROGRAMS is None, reason="needs PostgreSQL: apt-get install postgresql"),
]
SIZES = {"first": "[32, 48, 64, 80, 96, 112]", "second": "[32, 48]", "urgent": "[64, 80]"}
RATES = {"first": "0.5", "second": "0.6", "urgent": "0.7"}


class Lab:
    """The store of a lab, and what its members do there."""

    def __init__(self, url: str, folder: Path, address: str) -> None:
        self.url, self.folder, self.address = url, folder, address

    def submit(self, name: str, user: str, priority: int) -> None:
        sweep = SWEEP.replace("name: tiny", f"name: {name}").replace("0.5", RATES[name])
        (self.folder / f"{name}.yaml").write_text(sweep.replace("[32, 48, 64]", SIZES[name]))
        options = ("--priority", str(priority), "--db", self.url)
        done = in_process("submit", f"{name}.yaml", *options, folder=self.folder, LOGNAME=user)
        assert done.returncode == 0, done.stderr

    @contextmanager
    def server(self) -> "Iterator[subprocess.Popen[bytes]]":
        options = ("--db", self.url, "--ray-address", self.address)
        with (self.folder / "serve.txt").open("ab") as log:
            server = subprocess.Popen(
                [sys.executable, "-m", "orchestrator", "serve", "--until-empty", *options],
                cwd=self.folder,
                env=clean_environment(self.folder),
                stdout=log,
                stderr=log,
            )
        try:
            yield server
        finally:
            server.kill()
            server.wait()

    def submissions(self) -> dict[str, submissions.Submission]:
        engine = connect_readonly(self.url)
        try:
            every = (*submissions.OPEN, "answered", "unanswered", "refused", "cancelled")
            return {each.name: each for each in submissions.submissions(engine, every)}
        finally:
            engine.dispose()

    def answers(self) -> dict[str, tuple[int, int, int]]:
        """Of each sweep its comparisons, how many are measured, and attempts beyond one of each."""
        counted = text(
            "SELECT s.name, count(DISTINCT c.comparison_id), count(DISTINCT e.comparison_id),"
            " count(a.comparison_id) - count(DISTINCT a.comparison_id)"
            " FROM sweep s JOIN sweep_comparison_row c ON c.sweep = s.id"
            " LEFT JOIN effect_row e ON e.comparison_id = c.comparison_id"
            " AND e.metric = 'latency' AND e.failure IS NULL"
            " LEFT JOIN comparison_attempt a ON a.comparison_id = c.comparison_id"
            " AND a.failure IS NULL GROUP BY s.name"
        )
        engine = connect_readonly(self.url)
        try:
            with engine.connect() as connection:
                return {name: (*numbers,) for name, *numbers in connection.execute(counted)}
        finally:
            engine.dispose()

    def wait(self, condition: Callable[[], bool], seconds: float = 200.0) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, (self.folder / "serve.txt").read_text()
            time.sleep(0.1)


def test_two_users_three_nodes_and_every_fault(tmp_path: Path) -> None:
    """Two users submit three sweeps; the urgent one ends first although it came last."""
    assert PROGRAMS is not None
    port = free_port()
    address = f"127.0.0.1:{port}"
    with ExitStack() as stack:
        data = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp")))
        head = ("--head", "--port", str(port), "--include-dashboard=false", "--num-cpus", "0")
        stack.enter_context(started(*head, home=tmp_path))
        node = ("--address", address, "--num-cpus", "1")
        lost, *_ = [stack.enter_context(started(*node, home=tmp_path)) for _ in range(2)]
        with postgresql.serving(PROGRAMS, data) as folder:
            place = postgresql.database(folder, "lab")
            lab = Lab(place.replace("postgresql:", "postgresql+psycopg:"), tmp_path, address)
            lab.submit("first", "ada", 0)
            lab.submit("second", "grace", 0)
            with lab.server():
                lab.wait(lambda: lab.answers().get("first", (0, 0, 0))[1] >= 1)
                kill(lost)
                lab.submit("urgent", "grace", 9)
                lab.wait(lambda: lab.submissions()["urgent"].state == "running")
                assert lab.submissions()["first"].state == "queued"
        with postgresql.serving(PROGRAMS, data), lab.server() as server:
            assert server.wait(400) == 0, (tmp_path / "serve.txt").read_text()
            ended = lab.submissions()
            answers = lab.answers()
    log = (tmp_path / "serve.txt").read_text()
    assert {each.state for each in ended.values()} == {"answered"}, log
    order = sorted(ended, key=lambda name: ended[name].ended_at or 0.0)
    assert order == ["urgent", "first", "second"]
    assert {name: each.submitted_by.split("@")[0] for name, each in ended.items()} == {
        "first": "ada",
        "second": "grace",
        "urgent": "grace",
    }
    assert answers == {"first": (6, 6, 0), "second": (2, 2, 0), "urgent": (2, 2, 0)}, log
