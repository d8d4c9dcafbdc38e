"""Accuracy in the report in every format, in lines of progress, and in the estimate of a plan."""

from pathlib import Path

from orchestrator.loop.progress import comparison_lines
from orchestrator.plan import planning, time_budget
from orchestrator.plan.sites import Site
from sweeps.analysis import job_estimate
from sweeps.model.job import Protocol
from sweeps.model.outcome import Failure
from tests.orchestrator.vision_fixtures import CPU, RATES, job, outcome, printed, report_of, topk

SWEEP = """\
schema: 1
name: digits
question: What does speed cost?
defaults: {model: digits_vit_64, image_size: 32, weights: trained}
axes: {batch_size: [1, 8]}
methods: [{method: topk, keep_rate: [0.2, 0.5], layers: {list: [3, 6, 9]}}]
jobs: {latency: {budget: 1s}, accuracy: {images: 1000, timeout: 10m}}
"""


def test_a_section_for_people(tmp_path: Path) -> None:
    """Terminal and Markdown show top-1, drop with interval and verdict, KL, margin change, and the
    speed-up beside them.
    """
    arms = [topk(rate) for rate in RATES]
    timed = job("latency", [*arms[:1], topk(RATES[0], runtime="compile"), *arms[2:]])
    report = report_of(tmp_path / "s.db", outcome(job("accuracy", arms)), outcome(timed))
    text = printed(report)
    assert (
        "digits_vit_64 (weights trained), 32 px, 4000 images of digits, float32, sdpa"
        " attention, on Imaginary CPU" in text
    )
    (worst,) = [line for line in text.splitlines() if "keep_rate=0.2" in line and " worse " in line]
    found = report.accuracies.iloc[0]
    assert (
        f"{found.top1_drop:+.2f} [{found.top1_drop_low:+.2f}, {found.top1_drop_high:+.2f}]" in worst
    )
    assert f"{found.top1_baseline:.2f} → {found.top1:.2f}" in worst
    assert f"{found.kl:.4g} [{found.kl_low:.4g}, {found.kl_high:.4g}]" in worst
    assert f"{found.margin_change:.4g} [" in worst
    assert "1.50x to 2.00x" in worst
    assert any("keep_rate=0.8" in line and " same " in line for line in text.splitlines())
    assert "KL and margin are over the 10 outputs that stand for the classes of the data" in text


def test_progress_shows_the_drop() -> None:
    """A line for each arm has top-1, drop and verdict; that of a failed arm the reason."""
    failure = Failure(arm=2, reason="not_a_number", message="logits are not finite")
    worse, failed = comparison_lines(
        outcome(job("accuracy", [topk(0.2), topk(0.4)]), failures=[failure])
    )
    assert worse.plain.startswith("  topk keep_rate=0.2: top-1 9")
    assert " %, drop +2" in worse.plain
    assert worse.plain.endswith("] points worse")
    assert failed.plain == "  topk keep_rate=0.4: not_a_number: logits are not finite"


def test_a_plan_of_both_kinds(tmp_path: Path) -> None:
    """One accuracy job for all batch sizes, with the recipe's and the data's hashes; training and
    images are in the estimate.
    """
    expansion = planning.load_sweep(tmp_path / "digits.yaml", auto="cpu", text=SWEEP)
    assert [job.kind for job in expansion.jobs] == ["latency", "latency", "accuracy"]
    assert [set(job.content_hashes) for job in expansion.jobs] == [
        {"recipe"},
        {"recipe"},
        {"recipe", "data"},
    ]
    plan = planning.make_plan(expansion, None, [Site("here", {"cpu": CPU})])
    latency = 2 * (job_estimate.WARM_UP_SECONDS + 1 + 3 * 0.5)
    known = (
        job_estimate.START_SECONDS
        + latency
        + time_budget.OTHER_TRAINING_SECONDS
        + 3 * job_estimate.WARM_UP_SECONDS
        + 360 * job_estimate.IMAGE_SECONDS
    )
    assert known < plan.upper_bound_s < known + 20
    folder = expansion.jobs[2].model_copy(update={"protocol": Protocol(timeout_s=77)})
    unknown = folder.model_copy(
        update={"condition": folder.condition.model_copy(update={"data": "imagefolder:x"})}
    )
    assert time_budget.job_seconds(unknown) == 77
