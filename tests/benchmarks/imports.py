"""How many outcomes an import stores per second, with all that is derived from them.

Run from the project's folder, on a quiet machine: uv run python -m tests.benchmarks.imports
[OUTCOMES] [URL of an empty PostgreSQL database]
"""

import resource
import sys
import tempfile
import time
from pathlib import Path

from store.open.engine import connect
from store.write.record import record_imported
from store.write.submission import NewSweep, submit_sweep
from tests.fixtures.big_outcomes import ARMS, outcome, vision_job

SIZES = range(32, 288, 32)
VISITS = 6


def main(outcomes: int, url: str | None) -> None:
    """Jobs of five arms at eight sizes, once and in six visits each."""
    for visits in (1, VISITS):
        batches = range(1, 2 + outcomes // (len(SIZES) * visits))
        jobs = [
            vision_job("latency", size, ARMS[:16:3], batch_size=batch + 1000 * visits)
            for batch in batches
            for size in SIZES
        ]
        made = [
            outcome(job.model_copy(update={"round": visit}), len(jobs) * visit + number)
            for visit in range(visits)
            for number, job in enumerate(jobs)
        ]
        with tempfile.TemporaryDirectory() as folder:
            engine = connect(url or str(Path(folder) / "imports.db"))
            submit_sweep(engine, NewSweep(f"in {visits} visits", "", ""), jobs, [])
            began, cpu = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_utime
            stored = record_imported(engine, made)
            took = time.perf_counter() - began
            cpu = resource.getrusage(resource.RUSAGE_SELF).ru_utime - cpu
            engine.dispose()
        per_s = f"{stored / took:.0f} per second, {1e3 * cpu / stored:.1f} ms of CPU each"
        print(f"{stored} outcomes in {visits} visits of a job: {per_s}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 400, sys.argv[2] if sys.argv[2:] else None)
