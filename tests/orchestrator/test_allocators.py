"""Comparison of `workers/kv_caches/README.md`: two runs under two allocators in one store, and one
query over both.
"""

import re
from pathlib import Path

from store.open.engine import connect, disposing
from store.read.user_sql import run_query
from store.write.record import record_imported
from sweeps.model.condition import Overrides
from sweeps.model.job import DENSE, Arm
from sweeps.model.outcome import Environment, MetricValue
from tests.store.language_fixtures import NOW, a_generation, a_generation_job
from workers.measure.environment import PROJECT

README = PROJECT / "workers" / "kv_caches" / "README.md"
RESERVED = {"default": (100.0, 90.0), "expandable_segments:True": (80.0, 90.0)}
"""MiB by allocator, of a dynamic and a virtual cache."""


def test_two_allocators_are_set_side_by_side(tmp_path: Path) -> None:
    """Outcomes of the two environments are recorded in one store, and the documented query
    distinguishes them, row by row.
    """
    job = a_generation_job(
        arms=[Arm(overrides=Overrides(kv_cache="virtual"))], baselines=[DENSE], model="llama-15m"
    )
    outcomes = []
    for number, (allocator, reserved) in enumerate(RESERVED.items()):
        facts = {"torch": "2.0"} | ({} if allocator == "default" else {"allocator": allocator})
        environment = Environment(device="cuda", device_name="Imaginary GPU", facts=facts)
        outcome = a_generation(job, ended_at=NOW + number, environment=environment)
        on_gpu = job.model_copy(
            update={"condition": job.condition.model_copy(update={"device": "cuda"})}
        )
        arms = tuple(
            arm.model_copy(
                update={
                    "metrics": (
                        *arm.metrics,
                        MetricValue(name="cuda_peak_allocated_isolated", value=70.0, unit="MiB"),
                        MetricValue(name="cuda_peak_reserved_isolated", value=value, unit="MiB"),
                    )
                }
            )
            for arm, value in zip(outcome.arms, reserved, strict=True)
        )
        outcomes.append(outcome.model_copy(update={"arms": arms, "job": on_gpu}))
    store = str(tmp_path / "both.db")
    with disposing(connect(store)) as engine:
        record_imported(engine, outcomes)
    requested = re.findall(r"```sql\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(requested) == 1
    found = run_query(store, requested[0])
    assert found.columns == ("prompt_tokens", "kv_cache", "allocator", "allocated", "reserved")
    assert found.rows == [
        (64, cache, allocator, 70.0, RESERVED[allocator][column])
        for column, cache in enumerate(("dynamic", "virtual"))
        for allocator in RESERVED
    ]
