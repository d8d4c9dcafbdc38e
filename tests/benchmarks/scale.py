"""How long a sweep of many comparisons takes to be planned, submitted and resumed with nothing to
do; how fast commands start.

Run from the project's folder, on a quiet machine: uv run python -m tests.benchmarks.scale
[COMPARISONS] Each phase is a process of its own. Beside them stands a reference of the same run: an
interpreter with SQLAlchemy and pydantic.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sqlalchemy import insert, text

from orchestrator.plan import planning
from orchestrator.plan.planning import submit_plan
from orchestrator.plan.sites import local_sites
from store.open.engine import connect, disposing
from store.rows.row_mapping import environment_row, insert_new
from sweeps.model.identity import canonical

ROOT = Path(__file__).parents[2]
ARMS = 40
POINTS = (25, 10, 10)
"""Image sizes, batches and numbers of threads at 100 000 comparisons."""
SWEEP = """schema: 1
name: scale
question: How long does it take to request so much?
defaults: {{device: cpu, model: deit_tiny_patch16_224}}
axes:
  image_size: {{range: {{start: 32, stop: {largest}, step: 16}}}}
  batch_size: {{range: {{start: 1, stop: 10}}}}
  threads: {{range: {{start: 1, stop: 10}}}}
methods:
  - {{method: topk, keep_rate: {{linspace: {{start: 0.1, stop: 0.9, num: 20}}}}}}
  - {{method: tome, r: {{range: {{start: 1, stop: 20}}}}}}
limits: {{max_jobs: 100000}}
"""
ATTEMPT = text(
    """INSERT INTO attempt (digest, job, job_id, n, round, environment, host, started_at, ended_at, project_commit, source, flags,
         protocol, system_metrics, payload)
       VALUES (:digest, NULL, :job_id, 1, 0, :environment, 'scale', 1, 2, NULL, 'imported', '',
         :protocol, '{}', '{}') RETURNING id"""
)


def sweep(comparisons: int) -> str:
    """A sweep of about so many comparisons: fewer image sizes where fewer are requested."""
    sizes = max(1, round(comparisons / ARMS / POINTS[1] / POINTS[2]))
    return SWEEP.format(largest=16 * (sizes + 1))


def submitting(folder: Path) -> None:
    expansion = planning.load_sweep(folder / "scale.yaml", auto="cpu")
    with disposing(connect(str(folder / "scale.db"))) as engine:
        submit_plan(engine, planning.make_plan(expansion, engine, local_sites()))


def answering(folder: Path) -> None:
    """Every comparison answered, without a worker: an attempt for each job, and a row of derived
    figures for each of its pairs.
    """
    from store.schema.tables import EFFECT, ENVIRONMENT, PAIR

    environment = local_sites()[0].environments["cpu"]
    expansion = planning.load_sweep(folder / "scale.yaml", auto="cpu")
    pair = dict.fromkeys(PAIR.c.keys()) | {"baseline": 0, "arm": 1}
    figures = dict.fromkeys(EFFECT.c.keys())
    figures |= {
        "metric": "latency",
        "source": "imported",
        "analysis_version": 1,
        "floor": 0.01,
        "verdict": "same",
        "flags": "",
        "rounds": 1,
    }
    figures |= {
        "host": "scale",
        "n": 300,
        "effect": 1.0,
        "effect_low": 0.999,
        "effect_high": 1.001,
        "measured_at": "2026",
    }
    figures |= {"unit": "ms", "compared": "ratio", "baseline_value": 1.0, "arm_value": 1.0}
    with (
        disposing(connect(str(folder / "scale.db"))) as engine,
        engine.begin() as connection,
    ):
        insert_new(connection, ENVIRONMENT, [environment_row(environment)])
        where = environment.environment_id
        for number, job in enumerate(expansion.jobs):
            requested = {
                "digest": str(number),
                "job_id": job.job_id,
                "environment": where,
                "protocol": canonical(job.protocol),
            }
            attempt = connection.execute(ATTEMPT, requested).scalar_one()
            ids = zip(
                job.comparison_ids(),
                (comparison.question_id for comparison in job.comparisons()),
                strict=True,
            )
            rows = [(key, question, {"comparison_id": key}) for key, question in ids]
            connection.execute(
                insert(PAIR),
                [{**pair, **row, "attempt": attempt} for _, _, row in rows],
            )
            derived = [
                {**figures, **row, "environment": where, "question_id": question}
                for _, question, row in rows
            ]
            connection.execute(insert(EFFECT), derived)
        connection.execute(text("UPDATE job SET state = 'done'"))


def resuming(folder: Path) -> None:
    """What `run` does before it finds that nothing is left."""
    expansion = planning.load_sweep(folder / "scale.yaml", auto="cpu")
    with disposing(connect(str(folder / "scale.db"))) as engine:
        plan = planning.make_plan(expansion, engine, local_sites())
        assert not plan.jobs, f"{len(plan.jobs)} jobs are left"
        submit_plan(engine, plan)


def timed(command: list[str], folder: Path) -> tuple[float, float]:
    """Seconds that a process takes, by the clock and of CPU."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "BREAKEVEN_DB": str(folder / "scale.db")}
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(comparisons: int) -> None:
    phase = [
        sys.executable,
        "-c",
        (
            "import sys; from pathlib import Path; from tests.benchmarks import scale;"
            " getattr(scale, sys.argv[1])(Path(sys.argv[2]))"
        ),
    ]
    cli = [sys.executable, "-m", "orchestrator"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "scale.yaml").write_text(sweep(comparisons))
        (folder / "small.yaml").write_text((ROOT / "sweeps/quickstart.yaml").read_text())
        rows = {
            "reference: import sqlalchemy, pydantic": [
                sys.executable,
                "-c",
                "import sqlalchemy, pydantic",
            ],
            "submit": [*phase, "submitting", name],
            "(answers put in)": [*phase, "answering", name],
            "resume with nothing to do": [*phase, "resuming", name],
            "plan of this sweep": [*cli, "plan", "scale.yaml"],
            "start of plan (quickstart)": [*cli, "plan", "small.yaml"],
            "start of status": [*cli, "status"],
            "start of query": [*cli, "query", "SELECT 1"],
        }
        print(
            f"about {comparisons} comparisons; load average {os.getloadavg()[0]:.1f} on"
            f" {os.cpu_count()} cores"
        )
        for label, command in rows.items():
            took, cpu = timed(command, folder)
            print(f"{label:42} {took:7.2f} s   CPU {cpu:7.2f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
