"""Language models in the store: speed by three metrics, break-evens, quality, memory, and what
counts as answered.
"""

import numpy as np
import pytest
from sqlalchemy import Engine

from store.read.answers import answers
from store.write import queue
from store.write.record import record_imported
from store.write.submission import stricter
from sweeps.geometry.llm_geometry import languages
from sweeps.model.job import DENSE, Protocol
from sweeps.model.outcome import Failure, Outcome
from sweeps.stats.quality import compare_texts
from sweeps.stats.visits import Visit, pool_visits
from tests.fixtures.sql_rows import rows
from tests.store.conftest import keep, submit, table, with_samples
from tests.store.language_fixtures import (
    CPU,
    NOW,
    a_generation,
    a_generation_job,
    a_quality_job,
    a_reading,
    generation_visits,
    larosa,
    stacked,
)

DAY = 86_400.0
METRICS = {"ttft", "tpot", "time_per_char"}


def answered(engine: Engine, comparison: str, **protocol: object) -> bool:
    """Whether a comparison is answered as a protocol requests."""
    found = answers(engine, {comparison: Protocol(**protocol)}, [CPU.environment_id]).answered
    return found == {(comparison, 0)}


def with_series(outcome: Outcome, **series: object) -> Outcome:
    assert outcome.samples is not None
    return with_samples(outcome, series={**outcome.samples.series, **series})


def test_speed_has_three_metrics_with_the_macs_of_what_they_time(engine: Engine) -> None:
    """First token, output token and character have a row each, equal to the statistics of their
    series; latency has none. The first token has the MACs of the prompt, a character those of all.
    """
    outcome = a_generation(a_generation_job())
    keep(engine, outcome)
    found = {row["metric"]: row for row in rows(engine, "SELECT * FROM speedup")}
    assert set(found) == METRICS
    assert outcome.samples is not None
    for metric, row in found.items():
        times = np.asarray(outcome.samples.series[metric])
        ratio = pool_visits([Visit(times[:, :1], times[:, 1:])], [0]).speedup
        ends = tuple(row[f"speedup{end}"] for end in ("", "_low", "_high"))
        assert ends == pytest.approx((ratio.value, ratio.low, ratio.high))
        assert row["arm_ms"] == pytest.approx(1e3 * np.median(times[:, 1]))
        assert row["verdict"] == ("unclear" if metric == "ttft" else "faster")
    of = [
        "tokens",
        "prompt_tokens",
        "new_tokens",
        "kv_cache",
        "image_size",
        "decoding",
        "data",
        "baseline_id",
    ]
    expected = (64, 64, 32, "dynamic", None, "teacher_forcing", "docs", DENSE.arm_id)
    assert {tuple(row[name] for name in of) for row in found.values()} == {expected}
    network = languages()["llama-220m"]
    first, whole = network.macs(64, 0) / 1e9, network.macs(64, 31) / 1e9
    assert found["ttft"]["gmacs_baseline"] == found["ttft"]["gmacs"] == pytest.approx(first)
    assert found["tpot"]["gmacs_baseline"] == pytest.approx((whole - first) / 31)
    assert found["tpot"]["gmacs"] == pytest.approx(0.75 * found["tpot"]["gmacs_baseline"])
    assert found["time_per_char"]["gmacs_baseline"] == pytest.approx(whole)
    assert [found[name]["gmacs_overhead"] for name in ("ttft", "tpot")] == [0.01, 0.0]


def test_break_even_along_the_prompt(engine: Engine) -> None:
    """Each metric has its own curve along the tokens of the prompt: here decoding gains from
    between 64 and 256 on.
    """
    gains = {a_generation_job(size): gain for size, gain in ((16, 0.8), (64, 0.9), (256, 1.3))}
    submit(engine, gains)
    record_imported(
        engine, [one for job, gain in gains.items() for one in generation_visits(job, (1.0, gain))]
    )
    wanted = "metric, verdict, x_low, x_high FROM break_even WHERE axis = 'tokens'"
    *crossing, first = table(engine, f"SELECT {wanted} ORDER BY metric")
    assert crossing == [(name, "crossing", 64, 256) for name in ("time_per_char", "tpot")]
    assert first[:2] == ("ttft", "same")


def test_break_even_along_what_is_saved(engine: Engine) -> None:
    """Where sparsity moves at one length, what it saves of a token or of a run is an axis; of the
    first token it saves nothing.
    """
    arms = [larosa(share) for share in (0.25, 0.4, 0.5)]
    jobs = [a_generation_job(size, arms) for size in (64, 128)]
    submit(engine, jobs)
    record_imported(engine, [a_generation(job, (1.0, 0.9, 1.2, 1.4)) for job in jobs])
    found = rows(engine, "SELECT * FROM break_even WHERE axis = 'gmacs_saved' ORDER BY metric")
    assert [row["metric"] for row in found] == ["time_per_char"] * 2 + ["tpot"] * 2
    assert {(row["varied_parameter"], row["points"]) for row in found} == {("sparsity", 3)}
    assert all(0.1 < row["x_low"] < row["x_high"] <= 0.2 for row in found[2:4])
    assert len({row["curve_id"] for row in found}) == 4


def test_series_that_are_not_there_or_no_times(engine: Engine) -> None:
    """A single new token has no time per output token, and is answered; one wrong time in one
    series, and the pair has a failure instead of speed-ups.
    """
    single = a_generation(a_generation_job(new_tokens=1))
    assert single.samples is not None
    series = {name: times for name, times in single.samples.series.items() if name != "tpot"}
    keep(engine, with_samples(single, series=series))
    found = table(engine, "SELECT metric FROM speedup ORDER BY 1")
    assert found == [("time_per_char",), ("ttft",)]
    assert table(engine, "SELECT * FROM failures") == []
    wrong = a_generation(a_generation_job(128))
    assert wrong.samples is not None
    broken = ((0.1, float("nan")), *wrong.samples.series["ttft"][1:])
    keep(engine, with_series(wrong, ttft=broken))
    assert len(table(engine, "SELECT * FROM speedup")) == 2
    ((why,),) = table(engine, "SELECT message FROM failures")
    assert "not positive and finite" in why


def test_a_failure_is_listed_once(engine: Engine) -> None:
    """An arm that ran out of memory has one row among the failures, though no metric has an answer;
    the sweep counts it once.
    """
    job = a_generation_job(arms=[larosa(0.5), larosa(0.25)])
    sweep = submit(engine, [job])
    full = Failure(arm=1, reason="out_of_memory", message="prefill")
    keep(engine, a_generation(job, (1.0, 1.0, 1.2), failures=[full]))
    failed = "SELECT kind, reason, prompt_tokens, image_size FROM failures"
    assert table(engine, failed) == [("generation", "out_of_memory", 64, None)]
    assert {method for (method,) in table(engine, "SELECT method FROM speedup")} == {"larosa"}
    assert queue.progress(engine, sweep)[2:] == (2, 1, 1)


def test_the_view_language_shows_each_arm_once(engine: Engine) -> None:
    """Metrics side by side in fixed units, baselines included; of the newest attempt that no flag
    marks as wrong.
    """
    job = a_generation_job(arms=[larosa(0.5, kv_cache="virtual")], baselines=[DENSE, larosa(0.0)])
    for day, flags in enumerate(([], [], ["thermal_slowdown"])):
        speedups = (1.0, 1.1, 1.5 + 0.5 * day)
        keep(engine, a_generation(job, speedups, ended_at=NOW + day * DAY, flags=flags))
    found = {row["arm_id"]: row for row in rows(engine, "SELECT * FROM generation")}
    assert set(found) == {arm.arm_id for arm in job.arms}
    sparse, dense = found[job.arms[2].arm_id], found[DENSE.arm_id]
    times = (sparse["tpot_ms"], sparse["ttft_ms"], sparse["tpot_p95_ms"])
    assert times == pytest.approx((15.0, 200.0, 16.5))
    names = ("kv_cache", "achieved_sparsity", "method", "job_flags")
    assert [sparse[name] for name in names] == ["virtual", 0.5, "larosa", ""]
    assert [dense[name] for name in names] == ["dynamic", None, "dense", ""]
    assert sparse["peak_rss_isolated_bytes"] == 2**30
    assert dense["kv_bytes_resident"] - dense["kv_bytes_needed"] == 4096
    keep(engine, a_generation(a_generation_job(128), flags=["thermal_slowdown"]))
    alone = "SELECT DISTINCT job_flags FROM generation WHERE prompt_tokens = 128"
    assert table(engine, alone) == [("thermal_slowdown",)]


def test_quality_is_what_the_scores_say(engine: Engine) -> None:
    """The view equals the mathematics on the raw scores."""
    outcome = a_reading(a_quality_job(weights="trained"), (0.0, 0.05))
    keep(engine, outcome)
    (row,) = rows(engine, "SELECT * FROM quality")
    assert outcome.text_scores is not None
    found = compare_texts(outcome.text_scores, 0, 1)
    assert found.agreement is not None
    change = tuple(row[f"bits_per_byte_change{end}"] for end in ("", "_low", "_high"))
    assert change == found.change[:3]
    expected = {
        "bits_per_byte_baseline": found.bits_per_byte_baseline,
        "bits_per_byte": found.bits_per_byte,
        "top1_agreement": found.agreement.value,
        "verdict": "worse",
        "windows": 200,
        "weights": "trained",
        "data": "docs",
        "dtype": "float32",
    }
    assert {name: row[name] for name in expected} == expected


def test_another_vocabulary_has_no_agreement(engine: Engine) -> None:
    """Where two arms read other tokens, positions are not comparable: bits per byte are, and the
    rest is NULL.
    """
    keep(engine, a_reading(a_quality_job([stacked(0.5)]), tokens=(100, 78)))
    (row,) = rows(engine, "SELECT * FROM quality")
    names = ("tokens_baseline", "tokens", "top1_agreement", "kl")
    assert [row[name] for name in names] == [20_000, 15_600, None, None]
    assert row["perplexity"] > row["perplexity_baseline"]


def test_quality_is_answered_by_as_many_characters(engine: Engine) -> None:
    """More characters are measured again, fewer are not, and a text that has no more answers for
    any number.
    """
    job = a_quality_job(characters=1000)
    keep(engine, a_reading(job))
    (comparison,) = job.comparison_ids()
    assert answered(engine, comparison, characters=500)
    assert not answered(engine, comparison, characters=10_000)
    ended = a_quality_job(characters=10_000_000, seed=1)
    keep(engine, a_reading(ended, complete=True))
    assert answered(engine, ended.comparison_ids()[0])


def test_quality_is_answered_by_the_tasks_that_were_requested(engine: Engine) -> None:
    """An answer without a requested task is not enough; one that was requested more is, and a
    time-out only for as many.
    """
    job, tasks = a_quality_job(characters=1000), ("piqa", "./a.yaml")
    both = Protocol(characters=1000, tasks=tasks)
    requested = job.model_copy(update={"protocol": both})
    (comparison,) = requested.comparison_ids()
    assert job.comparison_ids() == (comparison,)

    def enough(*tasks: str) -> bool:
        return answered(engine, comparison, characters=1000, tasks=tasks)

    keep(engine, a_reading(job))
    assert not enough(*tasks)
    late = Failure(arm=None, reason="timeout", message="slow")
    keep(engine, a_reading(requested, ended_at=NOW + 1, failures=[late]))
    assert (enough(*tasks), enough("./a.yaml")) == (True, False)
    keep(engine, a_reading(requested, ended_at=NOW + 2))
    assert (enough("./a.yaml"), enough("hellaswag")) == (True, False)


def test_the_stricter_protocol_has_all_tasks_and_most_documents() -> None:
    """Documents count only where tasks are requested; `None` stands for all of them."""
    one = Protocol(characters=1000, tasks=("./a.yaml",))
    both = stricter(one, Protocol(characters=5, tasks=("piqa", "./a.yaml")))
    assert both.tasks == ("./a.yaml", "piqa")
    some, more = (one.model_copy(update={"documents": documents}) for documents in (50, 80))
    assert stricter(some, more).documents == stricter(more, Protocol()).documents == 80
    assert stricter(some, one).documents is None
    assert stricter(Protocol(), Protocol()).tasks is None


def test_every_metric_must_be_narrow(engine: Engine) -> None:
    """A comparison is precise enough when all its metrics are; one wide series leaves it open under
    a finer protocol.
    """
    narrow, wide = (a_generation(a_generation_job(size), noise=0.001) for size in (64, 128))
    assert wide.samples is not None
    noise = np.exp(np.random.default_rng(2).normal(0, 0.2, (40, 2)))
    spoilt = np.asarray(wide.samples.series["ttft"]) * noise
    wide = with_series(wide, ttft=tuple(map(tuple, spoilt.tolist())))
    for outcome, enough in ((narrow, True), (wide, False)):
        keep(engine, outcome)
        (comparison,) = outcome.job.comparison_ids()
        assert answered(engine, comparison, pairs_max=1000, half_width=0.1) is enough


def test_a_time_out_is_tried_again_with_more_time_to_compile(engine: Engine) -> None:
    """A time-out answers for as long a compilation, not for a longer one."""
    protocol = Protocol(compile_timeout_s=60)
    job = a_generation_job(runtime="compile").model_copy(update={"protocol": protocol})
    late = Failure(arm=1, reason="timeout", message="compiling")
    keep(engine, a_generation(job, failures=[late]))
    (comparison,) = job.comparison_ids()
    assert answered(engine, comparison, compile_timeout_s=60)
    assert not answered(engine, comparison, compile_timeout_s=600)
