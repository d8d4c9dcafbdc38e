"""Stale answers: what has changed since a question was measured, named with both values."""

from pathlib import Path

from store.open.engine import connect
from store.read.answers import Change, stale_answers
from store.write.submission import NewSweep, submit_sweep
from sweeps.model.job import Job
from sweeps.model.outcome import Environment
from tests.store.conftest import a_job, an_outcome, keep

OLD, NEW = (
    Environment(device="cpu", device_name="Imaginary", facts={"torch": version})
    for version in ("2.8", "2.9")
)


def with_version(job: Job, version: int) -> Job:
    """The job with another version of each method."""
    arms = [
        arm.model_copy(
            update={
                "stack": tuple(step.model_copy(update={"version": version}) for step in arm.stack)
            }
        )
        for arm in job.arms
    ]
    return Job.model_validate({**job.model_dump(), "arms": [arm.model_dump() for arm in arms]})


def test_what_has_changed_is_named(tmp_path: Path) -> None:
    """An answer that counts is not stale; another library, method or content is named, and how many
    comparisons it concerns.
    """
    engine = connect(str(tmp_path / "store.db"))
    job = a_job(64)
    submit_sweep(engine, NewSweep("sweep", "text", "Is it stale?"), job.comparisons(), [])
    assert not stale_answers(engine, [job], [OLD])
    keep(engine, an_outcome(job, speedups=(1.5,) * len(job.pairs), environment=OLD))
    pairs = len(job.pairs)
    assert not stale_answers(engine, [job], [OLD])
    assert stale_answers(engine, [job], [NEW]) == {Change("torch", "2.8", "2.9"): pairs}
    version = max(step.version for arm in job.arms for step in arm.stack)
    changed = stale_answers(engine, [with_version(job, version + 1)], [OLD])
    assert {(change.before, change.now) for change in changed} == {
        (f"version {version}", f"version {version + 1}")
    }
    other = job.model_copy(update={"content_hashes": {"weights": "0" * 64}})
    assert stale_answers(engine, [Job.model_validate(other.model_dump())], [OLD]) == {
        Change("weights"): pairs
    }
    engine.dispose()
