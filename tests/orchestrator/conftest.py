"""One Ray for all tests of this folder, stores of their own, and jobs made by hand."""

import contextlib
import gc
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
import pytest

from orchestrator.cluster.cluster import Cluster
from orchestrator.loop.dispatcher import Event, Summary, dispatch
from store.open.engine import Engine, connect
from store.write.submission import NewSweep, submit_sweep
from sweeps.language.file_schema import Retry
from sweeps.model.condition import Condition
from sweeps.model.job import DENSE, Arm, Job, Pair, Protocol, Step
from tests.webapp import simulated

FAILING_METHODS = Path(__file__).parents[1] / "faults" / "methods"
MEMORY_BYTES = 3_000_000_000
"""More than torch and a tiny model need, far less than this machine has: a hog must not trouble its
neighbours."""


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A local Ray whose workers run `tests/orchestrator/worker_entrypoints.py`, and know the
    methods of `tests/faults/methods`.
    """
    # workers remember what was set when the cluster started
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BREAKEVEN_METHODS", str(FAILING_METHODS))
        started = Cluster.start(
            entry="tests.orchestrator.worker_entrypoints:run", memory_bytes=MEMORY_BYTES
        )
    with started:
        yield started


@pytest.fixture
def shared_ray(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """`in_process("run", ...)` takes the cluster of all tests, and leaves it as it is."""
    monkeypatch.setattr(Cluster, "start", lambda *_, **__: cluster)
    monkeypatch.setattr(Cluster, "close", lambda _: None)


class Store:
    """A store in a file, with what the tests query."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.engine: Engine = connect(str(path))

    def submit(self, jobs: Sequence[Job], name: str = "sweep") -> int:
        comparisons = [comparison for job in jobs for comparison in job.comparisons()]
        return submit_sweep(self.engine, NewSweep(name, "text", "Does it pay?"), comparisons, jobs)

    def dispatch(
        self, sweep: int, cluster: Cluster, *, max_attempts: int = 2
    ) -> tuple[Summary, list[Event]]:
        events: list[Event] = []
        return (
            dispatch(
                self.engine,
                sweep,
                cluster,
                retry=Retry(max_attempts=max_attempts),
                observer=events.append,
            ),
            events,
        )

    def table(self, sql: str) -> pd.DataFrame:
        with contextlib.closing(sqlite3.connect(self.path)) as connection:
            return pd.read_sql(sql, connection)

    def states(self) -> dict[str, int]:
        counted = self.table("SELECT state, count(*) AS n FROM job GROUP BY state")
        return dict(zip(counted["state"], counted["n"], strict=True))

    def answers(self) -> dict[str, str]:
        """For each method that was compared, `measured` or the reason of its failure; fails if one
        has two answers.
        """
        sql = """SELECT c.method, coalesce(f.reason, 'measured') AS answer FROM comparison_attempt AS p
                 JOIN comparison AS c ON c.comparison_id = p.comparison_id LEFT JOIN failure AS f ON f.id = p.failure"""
        rows = self.table(sql)
        assert rows["method"].is_unique, rows
        return dict(zip(rows["method"], rows["answer"], strict=True))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "store.db")
    yield made
    made.engine.dispose()


def job(
    *methods: str,
    model: str = "noop",
    image_size: int = 32,
    baseline: Arm = DENSE,
    **protocol: float,
) -> Job:
    """A job that compares one arm for each name in `methods` with the baseline."""
    arms = (baseline, *(Arm(stack=(Step(method=name),)) for name in methods))
    condition = Condition(model=model, image_size=image_size)
    pairs = tuple(Pair(0, index) for index in range(1, len(arms)))
    return Job(
        condition=condition,
        arms=arms,
        pairs=pairs,
        protocol=Protocol(**{"timeout_s": 20.0, **protocol}),
    )


@pytest.fixture(scope="module")
def without_garbage() -> None:
    """Collections of garbage, which come before each visit, look at what comes from now on."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def simulated_sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose `breakeven.db` holds a sweep with simulated timings, for `stored` to copy."""
    folder = tmp_path_factory.mktemp("simulated")
    jobs = [simulated.job(size) for size in simulated.SIZES]
    simulated.store_sweep(
        str(folder / "breakeven.db"), "quickstart", jobs, simulated.quickstart_answer
    )
    return folder


@pytest.fixture(scope="module")
def stored(simulated_sweep: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the module's own with the store of `simulated_sweep`."""
    return shutil.copytree(simulated_sweep, tmp_path_factory.mktemp("stored") / "folder")
