"""A store whose sweep has speed-ups and profiles of the same arms, and a trace of nsys that cannot
be true.
"""

import hashlib
from pathlib import Path

from store.open.engine import connect
from store.write.record import record_imported
from store.write.traces import StatedTie, TraceFile, record_traces
from sweeps.importers.nsys import nsys_profiles
from sweeps.model.job import DENSE, Arm, Job, Step
from tests.fixtures.device_traces import a_trace
from tests.store.profile_fixtures import Classes, a_profile_job, a_profiled_outcome, with_changes
from tests.webapp import simulated
from tests.webapp.simulated import ENVIRONMENT, store_outcomes, tome, topk

FREE = Arm(stack=(Step(method="truncate", params={"keep_rate": 0.5, "layers": [3, 6, 9]}),))
ARMS = (DENSE, topk(0.5), tome(0.06))
SIZES = (64, 224)
TIMES: dict[int, list[Classes]] = {
    64: [{"device": 0.6, "host": 0.2}, {"device": 0.5, "host": 0.4}, {"device": 0.7, "host": 0.3}],
    224: [{"device": 3.4, "host": 0.2}, {"device": 2.0, "host": 0.4}, {"device": 2.8, "host": 0.3}],
}
"""Classes of time in ms by image size, of the three arms."""


def profile_job(size: int) -> Job:
    return a_profile_job(ARMS[1:], image_size=size, threads=2)


def explained_store(path: Path, *, rounds: bool = False) -> str:
    """Sweep `explained`: dense, topk and tome at two sizes, timed and profiled; with `rounds` the
    differences of classes have intervals.
    """
    timed = [simulated.outcome(simulated.job(size, arms=ARMS)) for size in SIZES]
    profiled = [
        a_profiled_outcome(
            profile_job(size), TIMES[size], environment=ENVIRONMENT, host="simulated"
        )
        for size in SIZES
    ]
    if rounds:
        profiled = [with_changes(each, half=0.2) for each in profiled]
    return store_outcomes(path, "explained", *timed, *profiled)


def import_impossible_trace(url: str) -> None:
    """A timeline of nsys with more kernel time in a forward than topk takes at 64 pixels."""
    engine = connect(url)
    profiles = nsys_profiles(a_trace(4, ("gemm",) * 333))
    comparison = profile_job(64).comparison_ids()[0]
    trace = TraceFile("trace.sqlite", hashlib.sha256(b"trace").hexdigest(), profiles)
    record_imported(
        engine,
        [],
        lambda connection: record_traces(
            connection, [trace], StatedTie(comparison=comparison, arm="arm")
        ),
    )
    engine.dispose()
