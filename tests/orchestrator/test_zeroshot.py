"""Zero-shot tasks in a report: rows from a store, a line for each arm."""

from pathlib import Path

from orchestrator.report import differences
from orchestrator.report.data import load_report
from store.open.engine import connect
from store.write.record import record
from store.write.submission import NewSweep, submit_sweep
from sweeps.model.job import DENSE
from sweeps.model.outcome import MetricValue, Outcome
from tests.store.language_fixtures import NOW, a_quality_job, a_reading, larosa

JOB = a_quality_job(arms=[larosa(0.4), larosa(0.5)], baselines=[DENSE, larosa(0.0)])
ACCURACIES = (0.6, 0.6, 0.59, 0.4)
DROPS = (None, (0.0, -0.05, 0.05), (0.01, -0.02, 0.04), (0.2, 0.15, 0.25))


def answered(ended_at: float, task: str = "piqa", shift: float = 0.0) -> Outcome:
    """A reading whose arms have answered a task besides."""
    outcome = a_reading(JOB, (0.0, 0.0, 0.01, 0.05), ended_at=ended_at)
    arms = []
    for arm, accuracy, drop in zip(outcome.arms, ACCURACIES, DROPS, strict=True):
        rows = [MetricValue(name=f"zeroshot_{task}_acc", value=accuracy + shift, unit="1", n=200)]
        if drop is not None:
            value, low, high = drop
            rows.append(
                MetricValue(
                    name=f"zeroshot_{task}_acc_drop",
                    value=value,
                    low=low,
                    high=high,
                    unit="1",
                    n=200,
                )
            )
        arms.append(arm.model_copy(update={"metrics": tuple(rows)}))
    return outcome.model_copy(update={"arms": tuple(arms)})


def test_each_arm_has_a_line_against_its_first_baseline(tmp_path: Path) -> None:
    """Of two attempts the newer counts; what is lost stands once, against the baseline that it was
    measured against.
    """
    path = str(tmp_path / "store.db")
    engine = connect(path)
    submit_sweep(engine, NewSweep("requested", "text", "Does it pay?"), JOB.comparisons(), [JOB])
    assert list(differences.zeroshot_sections(load_report(path, "requested"))) == []
    for outcome in (answered(NOW, shift=-0.1), answered(NOW + 1)):
        record(engine, None, None, outcome)
    engine.dispose()
    (section,) = differences.zeroshot_sections(load_report(path, "requested"))
    lines = [line.text for line in section.lines]
    assert (
        section.title
        == "Zero-shot tasks of llama-220m (random weights), on Imaginary CPU, against dense"
    )
    assert [line.partition(": ")[2] for line in lines] == [
        "piqa_acc 0.600 → 0.600, drop +0.000 [-0.050, +0.050] on 200 documents: unclear",
        "piqa_acc 0.600 → 0.590, drop +0.010 [-0.020, +0.040] on 200 documents: unclear",
        "piqa_acc 0.600 → 0.400, drop +0.200 [+0.150, +0.250] on 200 documents: worse",
    ]
    assert lines[-1].startswith("larosa ")
    assert "sparsity=0.5" in lines[-1]
