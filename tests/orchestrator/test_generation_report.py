"""Language models: the report in every format, the parts of stacks, lines of progress, and the
time_budget.
"""

from pathlib import Path

import pytest

from orchestrator.loop.progress import comparison_lines
from orchestrator.plan import time_budget
from orchestrator.report.data import Report
from orchestrator.report.differences import difference_sections
from sweeps.analysis import job_estimate
from sweeps.model.condition import Overrides
from sweeps.model.job import DENSE, Arm, Protocol, Step
from sweeps.model.outcome import Failure
from tests.orchestrator.vision_fixtures import printed, report_of
from tests.store.language_fixtures import (
    a_generation,
    a_generation_job,
    a_quality_job,
    a_reading,
    larosa,
    stacked,
)
from workers.methods.arm_labels import params_label

VOCABULARY = Arm(stack=(Step(method="adaptivocab", params={"tokens": 500}),))
VIRTUAL = Arm(overrides=Overrides(kv_cache="virtual"))
ARMS = [larosa(0.5), VOCABULARY, VIRTUAL, stacked(0.5, "virtual")]
SPEEDUPS = (1.0, 1.1, 1.5, 1.2, 1.0, 1.6)
BASELINES = [DENSE, larosa(0.0)]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A sweep with each method alone and all together, timed against two baselines, with quality
    against dense.
    """
    timed = a_generation(a_generation_job(arms=ARMS, baselines=BASELINES), SPEEDUPS)
    arms = [larosa(0.5), VOCABULARY, stacked(0.5)]
    evaluated = a_reading(
        a_quality_job(arms), (0.0, 0.04, 0.0, 0.05), tokens=(100, 100, 80, 80), noise=0.002
    )
    return report_of(tmp_path_factory.mktemp("llm") / "store.db", timed, evaluated)


def test_each_method_opens_with_its_gain_and_cost(report: Report) -> None:
    """Speed-ups by three metrics, bits per byte and its verdict stand in one sentence, and other
    baselines in their tables.
    """
    text = printed(report)
    sentence = next(line for line in text.splitlines() if line.startswith("  larosa sparsity=0.5:"))
    assert "in time to the first token (unclear)" in sentence
    assert "in time per output token (faster)" in sentence
    assert sentence.endswith(
        "quality worse by 0.0401 [0.0399, 0.0404] bits per byte against dense; 1 more comparison"
        " below"
    )
    beside = text.partition("against larosa sparsity=0.0\n")[2].partition("\n\n")[0]
    assert "larosa sparsity=0.5 " in beside
    gained = next(
        line for line in text.splitlines() if line.startswith("  adaptivocab tokens=500: ")
    )
    assert "quality the same within 0.005 bits per byte: -0.0002 [" in gained
    (requested,) = (
        line for line in text.splitlines() if line.startswith('  dense kv_cache="virtual": ')
    )
    assert "quality not requested against dense" in requested
    assert 'sparsity=0.5 [kv_cache="virtual"]  ' in text
    assert "MACs promise of each" in text


def test_quality_stands_beside_speed_ups_over_the_same_baseline(report: Report) -> None:
    """An arm that was timed against two baselines has in a table of quality the speed-up over the
    baseline of that table.
    """
    (section,) = difference_sections(report)
    shown = {params_label(arm.row.method, arm.row.params): arm.speedups for arm in section.rows}
    decoding = 31 * 0.030
    for arm, faster in {"larosa sparsity=0.5": 1.5, "adaptivocab tokens=500": 1.2}.items():
        assert float(shown[arm].removesuffix("x")) == pytest.approx(
            (0.2 + decoding) / (0.2 + decoding / faster), abs=0.015
        )


def test_memory_and_counters_beside_the_times(report: Report) -> None:
    """Bytes of the cache and peak memory stand beside the times; sparsity reached and kernel calls
    are in the table of the arms.
    """
    text = printed(report, "markdown")
    heading = next(line for line in text.splitlines() if line.startswith("| arm |"))
    assert "KV resident, MiB | virtual | sparsity | kernel calls | to dense" in heading
    dense = next(line for line in text.splitlines() if line.startswith("| dense |"))
    assert dense.endswith("| - | - | - |")
    sparse = next(
        line for line in text.splitlines() if line.startswith("| larosa sparsity=0.5 | 200.0 |")
    )
    assert sparse.endswith("| 0.500 | 28 | 0 |")
    compared = next(line for line in text.splitlines() if line.startswith("| method |"))
    assert "KV needed, MiB | peak RSS, MiB | bits per byte [95 %]" in compared
    assert any(
        " | 1024 → 1024 | " in line
        for line in text.splitlines()
        if line.startswith("| larosa sparsity=0.5 |")
    )


def test_the_attention_that_ran_is_named(tmp_path: Path) -> None:
    """Where transformers has no SDPA for a model, the headline has the attention that it ran
    with.
    """
    outcome = a_generation(a_generation_job(), (1.0, 1.5))
    eager = outcome.model_copy(
        update={
            "arms": tuple(
                arm.model_copy(update={"implementation": "eager attention"}) for arm in outcome.arms
            )
        }
    )
    for found, settings in (
        (outcome, "float32, sdpa attention, eager"),
        (eager, "float32, eager attention, eager"),
    ):
        path = tmp_path / f"{found.arms[0].implementation}.db"
        assert settings in printed(report_of(path, found), "markdown")


def test_quality_alone_is_a_report(tmp_path: Path) -> None:
    """A sweep that requests quality only shows its table, and a failed arm its reason."""
    job = a_quality_job([larosa(0.5), larosa(0.25)], weights="trained", model="tiny_lm")
    failed = Failure(arm=2, reason="not_a_number", message="7 logits are not finite")
    reading = a_reading(job, (0.0, 0.1, 0.0), failures=[failed])
    text = printed(report_of(tmp_path / "x.db", reading))
    assert "Quality of tiny_lm (weights trained), 80976 characters of docs in 200 windows" in text
    assert "worse" in text
    assert "7 logits are not finite" in text
    assert "tiny_lm ranks methods" in text


def test_break_even_by_metric(tmp_path: Path) -> None:
    """Each metric has its own sentence along the tokens of the prompt."""
    gains = ((16, 0.8), (64, 0.9), (256, 1.3))
    outcomes = [a_generation(a_generation_job(size), (1.0, gain)) for size, gain in gains]
    text = printed(report_of(tmp_path / "x.db", *outcomes))
    assert "Break-even in tokens, by time per output token" in text
    assert "against dense: pays at 256 prompt tokens (slower at 64)" in text
    assert "Break-even in tokens, by time to the first token" in text


def test_progress_shows_metrics_and_bits_per_byte() -> None:
    """A line of progress has every metric of a generation job, and the bits per byte of a quality
    job.
    """
    timed = [str(line) for line in comparison_lines(a_generation(a_generation_job()))]
    assert len(timed) == 1
    assert all(f"{metric} " in timed[0] for metric in ("ttft", "tpot", "time_per_char"))
    assert timed[0].endswith("faster")
    (scored,) = [str(line) for line in comparison_lines(a_reading(a_quality_job()))]
    assert "bits per byte, change +0.0" in scored
    assert scored.endswith("worse")


def test_the_estimate_grows_with_the_work() -> None:
    """More tokens and a compiled arm take longer; what is not known takes the time-out; training is
    counted once.
    """
    job = a_generation_job(new_tokens=4)
    assert time_budget.job_seconds(job) < time_budget.job_seconds(a_generation_job(new_tokens=512))
    compiled = a_generation_job(new_tokens=4, runtime="compile")
    assert time_budget.job_seconds(compiled) == pytest.approx(
        time_budget.job_seconds(job) + 2 * job_estimate.COMPILE_SECONDS
    )
    assert time_budget.job_seconds(a_quality_job()) == Protocol().timeout_s
    assert time_budget.job_seconds(a_quality_job(characters=10_000)) < Protocol().timeout_s
    jobs = {
        weights: [
            a_quality_job(model="tiny_lm", weights=weights, characters=1000, seed=seed)
            for seed in (0, 1)
        ]
        for weights in ("random", "trained")
    }
    whole = {weights: time_budget.upper_bound_seconds(each) for weights, each in jobs.items()}
    training = time_budget.TRAINING_SECONDS["tiny_lm"]
    assert whole["trained"] - whole["random"] == pytest.approx(training)
