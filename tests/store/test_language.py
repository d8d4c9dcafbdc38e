"""Language models in the store: speed by three metrics, break-evens, quality, memory, and what
counts as answered.
"""

import zlib

import numpy as np
import pytest
from sqlalchemy import Engine

from store.derive.payloads import TextScoreStore
from store.errors import StoreError
from store.read.answers import answers
from store.write import queue
from store.write.reanalysis import reanalyse
from store.write.submission import NewSweep, stricter, submit_sweep
from sweeps.geometry.llm_geometry import languages
from sweeps.model.job import DENSE, Pair, Protocol
from sweeps.model.outcome import Failure, Outcome
from sweeps.stats.quality import compare_texts
from sweeps.stats.visits import Visit, pool_visits
from tests.fixtures.sql_rows import rows
from tests.store.conftest import keep
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
HERE = [CPU.environment_id]


def submit(engine: Engine, *outcomes: Outcome) -> None:
    """Store a sweep that requests what the outcomes answer, and these."""
    requested = [
        (job.comparison(Pair(*pair)), job.content_hashes)
        for outcome in outcomes
        for job in [outcome.job]
        for pair in job.pairs
    ]
    submit_sweep(engine, NewSweep("language", "text", "?"), requested, [])
    for outcome in outcomes:
        keep(engine, outcome)


def test_speed_has_three_metrics(engine: Engine) -> None:
    """First token, output token and character have a row each, equal to the statistics of their
    series; latency has none.
    """
    outcome = a_generation(a_generation_job())
    keep(engine, outcome)
    found = {row["metric"]: row for row in rows(engine, "SELECT * FROM speedup")}
    assert set(found) == {"ttft", "tpot", "time_per_char"}
    assert outcome.samples is not None
    for metric, row in found.items():
        times = np.asarray(outcome.samples.series[metric])
        ratio = pool_visits([Visit(times[:, :1], times[:, 1:])], [0]).speedup
        assert (row["speedup"], row["speedup_low"], row["speedup_high"]) == pytest.approx(
            (ratio.value, ratio.low, ratio.high)
        )
        assert row["arm_ms"] == pytest.approx(1e3 * np.median(times[:, 1]))
        assert row["verdict"] == ("unclear" if metric == "ttft" else "faster")
        assert (row["tokens"], row["prompt_tokens"], row["new_tokens"], row["kv_cache"]) == (
            64,
            64,
            32,
            "dynamic",
        )
        assert (row["image_size"], row["decoding"], row["data"], row["baseline_id"]) == (
            None,
            "teacher_forcing",
            "docs",
            DENSE.arm_id,
        )


def test_nothing_of_a_generation_is_lost(engine: Engine) -> None:
    """The attempt keeps every series, and its analysis can be made anew from them."""
    outcome = a_generation(a_generation_job())
    keep(engine, outcome)
    assert outcome.samples is not None
    kept = {row["metric"]: row["seconds"] for row in rows(engine, "SELECT * FROM sample_series")}
    assert set(kept) == set(outcome.samples.series)
    for metric, blob in kept.items():
        assert np.frombuffer(zlib.decompress(blob), "<f8").reshape(40, 2).tolist() == [
            list(line) for line in outcome.samples.series[metric]
        ]
    before = [
        rows(engine, f"SELECT * FROM {view} ORDER BY 1, 2")
        for view in ("speedup", "break_even", "generation")
    ]
    assert reanalyse(engine) == 1
    assert [
        rows(engine, f"SELECT * FROM {view} ORDER BY 1, 2")
        for view in ("speedup", "break_even", "generation")
    ] == before
    assert not keep(engine, outcome)
    other = outcome.samples.model_copy(
        update={"series": {**outcome.samples.series, "ttft": outcome.samples.series["tpot"]}}
    )
    assert keep(engine, outcome.model_copy(update={"samples": other}))


def test_break_even_along_the_prompt(engine: Engine) -> None:
    """Each metric has its own curve along the tokens of the prompt: here decoding gains from
    between 64 and 256 on.
    """
    gains = ((16, 0.8), (64, 0.9), (256, 1.3))
    submit(
        engine,
        *(
            one
            for size, gain in gains
            for one in generation_visits(a_generation_job(size), (1.0, gain))
        ),
    )
    found = rows(engine, "SELECT * FROM break_even WHERE axis = 'tokens' ORDER BY metric")
    assert [(row["metric"], row["verdict"]) for row in found] == [
        ("time_per_char", "crossing"),
        ("tpot", "crossing"),
        ("ttft", "same"),
    ]
    assert [(row["x_low"], row["x_high"]) for row in found[:2]] == [(64, 256)] * 2
    assert len({row["curve_id"] for row in found}) == 1


def test_break_even_along_what_is_saved(engine: Engine) -> None:
    """Where sparsity moves at one length, what it saves of a token or of a run is an axis; of the
    first token it saves nothing.
    """
    arms = [larosa(share) for share in (0.25, 0.4, 0.5)]
    submit(
        engine,
        *(a_generation(a_generation_job(size, arms), (1.0, 0.9, 1.2, 1.4)) for size in (64, 128)),
    )
    found = rows(engine, "SELECT * FROM break_even WHERE axis = 'gmacs_saved' ORDER BY metric")
    assert [row["metric"] for row in found] == ["time_per_char"] * 2 + ["tpot"] * 2
    assert {row["varied_parameter"] for row in found} == {"sparsity"}
    assert {row["points"] for row in found} == {3}
    assert all(0.1 < row["x_low"] < row["x_high"] <= 0.2 for row in found[2:4])
    assert len({row["curve_id"] for row in found}) == 4


def test_each_metric_has_the_macs_of_what_it_times(engine: Engine) -> None:
    """The first token has those of the prompt, each further one its own, a character those of the
    whole run.
    """
    outcome = a_generation(a_generation_job())
    keep(engine, outcome)
    network = languages()["llama-220m"]
    found = {row["metric"]: row for row in rows(engine, "SELECT * FROM speedup")}
    first, whole = network.macs(64, 0) / 1e9, network.macs(64, 31) / 1e9
    assert found["ttft"]["gmacs_baseline"] == found["ttft"]["gmacs"] == pytest.approx(first)
    assert found["tpot"]["gmacs_baseline"] == pytest.approx((whole - first) / 31)
    assert found["tpot"]["gmacs"] == pytest.approx(0.75 * found["tpot"]["gmacs_baseline"])
    assert found["time_per_char"]["gmacs_baseline"] == pytest.approx(whole)
    assert {name: row["gmacs_overhead"] for name, row in found.items()} == {
        "ttft": 0.01,
        "tpot": 0.0,
        "time_per_char": 0.01,
    }


def test_a_single_new_token_has_no_time_per_output_token(engine: Engine) -> None:
    """What the samples do not hold has no row, and the comparison is answered all the same."""
    outcome = a_generation(a_generation_job(new_tokens=1))
    assert outcome.samples is not None
    series = {name: times for name, times in outcome.samples.series.items() if name != "tpot"}
    keep(
        engine,
        outcome.model_copy(
            update={"samples": outcome.samples.model_copy(update={"series": series})}
        ),
    )
    assert {row["metric"] for row in rows(engine, "SELECT metric FROM speedup")} == {
        "ttft",
        "time_per_char",
    }
    assert rows(engine, "SELECT * FROM failures") == []


@pytest.mark.parametrize("spoilt", [0.0, float("nan")])
def test_a_series_that_is_no_time_is_no_measurement(engine: Engine, spoilt: float) -> None:
    """One wrong time in one series, and the pair has a failure instead of speed-ups."""
    outcome = a_generation(a_generation_job())
    assert outcome.samples is not None
    broken = ((0.1, spoilt), *outcome.samples.series["ttft"][1:])
    samples = outcome.samples.model_copy(
        update={"series": {**outcome.samples.series, "ttft": broken}}
    )
    keep(engine, outcome.model_copy(update={"samples": samples}))
    assert rows(engine, "SELECT * FROM speedup") == []
    (why,) = rows(engine, "SELECT * FROM failures")
    assert "not positive and finite" in why["message"]


def test_a_failure_is_listed_once(engine: Engine) -> None:
    """An arm that ran out of memory has one row among the failures, though no metric has an answer;
    the sweep counts it once.
    """
    job = a_generation_job(arms=[larosa(0.5), larosa(0.25)])
    submit(
        engine,
        a_generation(
            job,
            (1.0, 1.0, 1.2),
            failures=[Failure(arm=1, reason="out_of_memory", message="prefill")],
        ),
    )
    (why,) = rows(engine, "SELECT * FROM failures")
    assert (why["kind"], why["reason"], why["prompt_tokens"], why["image_size"]) == (
        "generation",
        "out_of_memory",
        64,
        None,
    )
    assert {row["method"] for row in rows(engine, "SELECT * FROM speedup")} == {"larosa"}
    (sweep,) = rows(engine, "SELECT id FROM sweep")
    state = queue.progress(engine, sweep["id"])
    assert (state.comparisons, state.measured, state.failed) == (2, 1, 1)


def test_the_view_language_shows_each_arm_once(engine: Engine) -> None:
    """Metrics side by side in fixed units, baselines included; of the newest attempt that no flag
    marks as wrong.
    """
    job = a_generation_job(arms=[larosa(0.5, kv_cache="virtual")], baselines=[DENSE, larosa(0.0)])
    keep(engine, a_generation(job, (1.0, 1.1, 1.5)))
    keep(engine, a_generation(job, (1.0, 1.1, 2.0), ended_at=NOW + DAY))
    keep(
        engine,
        a_generation(job, (1.0, 1.1, 3.0), ended_at=NOW + 2 * DAY, flags=["thermal_slowdown"]),
    )
    found = {row["arm_id"]: row for row in rows(engine, "SELECT * FROM generation")}
    assert set(found) == {arm.arm_id for arm in job.arms}
    sparse = found[job.arms[2].arm_id]
    assert (sparse["tpot_ms"], sparse["ttft_ms"], sparse["tpot_p95_ms"]) == pytest.approx(
        (15.0, 200.0, 16.5)
    )
    assert (sparse["kv_cache"], sparse["achieved_sparsity"], sparse["peak_rss_isolated_bytes"]) == (
        "virtual",
        0.5,
        2**30,
    )
    dense = found[DENSE.arm_id]
    assert (dense["kv_cache"], dense["achieved_sparsity"], dense["method"], dense["job_flags"]) == (
        "dynamic",
        None,
        "dense",
        "",
    )
    assert dense["kv_bytes_resident"] - dense["kv_bytes_needed"] == 4096
    keep(engine, a_generation(a_generation_job(128), flags=["thermal_slowdown"]))
    assert {
        row["job_flags"]
        for row in rows(engine, "SELECT * FROM generation WHERE prompt_tokens = 128")
    } == {"thermal_slowdown"}


def test_quality_is_what_the_scores_say(engine: Engine) -> None:
    """The view equals the mathematics on the raw scores, and these can be read back."""
    outcome = a_reading(a_quality_job(weights="trained"), (0.0, 0.05))
    keep(engine, outcome)
    (row,) = rows(engine, "SELECT * FROM quality")
    assert outcome.text_scores is not None
    found = compare_texts(outcome.text_scores, 0, 1)
    assert (
        row["bits_per_byte_change"],
        row["bits_per_byte_change_low"],
        row["bits_per_byte_change_high"],
    ) == found.change[:3]
    assert (row["bits_per_byte_baseline"], row["bits_per_byte"]) == (
        found.bits_per_byte_baseline,
        found.bits_per_byte,
    )
    assert found.agreement is not None
    assert (row["top1_agreement"], row["verdict"], row["windows"]) == (
        found.agreement.value,
        "worse",
        200,
    )
    assert (row["weights"], row["data"], row["dtype"]) == ("trained", "docs", "float32")
    (kept,) = rows(engine, "SELECT payload FROM text_scores")
    assert TextScoreStore.unpack(kept["payload"]) == outcome.text_scores
    before = rows(engine, "SELECT * FROM quality")
    assert reanalyse(engine) == 1
    assert rows(engine, "SELECT * FROM quality") == before
    assert not keep(engine, outcome)


def test_another_vocabulary_has_no_agreement(engine: Engine) -> None:
    """Where two arms read other tokens, positions are not comparable: bits per byte are, and the
    rest is NULL.
    """
    keep(engine, a_reading(a_quality_job([stacked(0.5)]), tokens=(100, 78)))
    (row,) = rows(engine, "SELECT * FROM quality")
    assert (row["tokens_baseline"], row["tokens"]) == (20_000, 15_600)
    assert (row["top1_agreement"], row["kl"]) == (None, None)
    assert row["perplexity"] > row["perplexity_baseline"]


def test_a_failed_reading_is_a_failure_of_quality(engine: Engine) -> None:
    """An arm without a finite likelihood, and one that the worker failed, are listed among the
    failures.
    """
    job = a_quality_job([larosa(0.5), larosa(0.25)])
    outcome = a_reading(
        job,
        (0.0, float("nan"), 0.0),
        failures=[Failure(arm=2, reason="not_a_number", message="nan logits")],
    )
    keep(engine, outcome)
    found = {row["params"]: row for row in rows(engine, "SELECT * FROM failures")}
    assert {(row["kind"], row["reason"]) for row in found.values()} == {
        ("quality", "error"),
        ("quality", "not_a_number"),
    }
    assert rows(engine, "SELECT * FROM quality") == []


def test_scores_that_contradict_themselves_are_refused(engine: Engine) -> None:
    """Arrays of another length than the windows are no outcome."""
    outcome = a_reading(a_quality_job())
    assert outcome.text_scores is not None
    with pytest.raises(StoreError, match="bytes has 200 values for 7 windows"):
        keep(
            engine,
            outcome.model_copy(
                update={"text_scores": outcome.text_scores.model_copy(update={"windows": 7})}
            ),
        )


def test_quality_is_answered_by_as_many_characters(engine: Engine) -> None:
    """More characters are measured again, fewer are not, and a text that has no more answers for
    any number.
    """
    job = a_quality_job(characters=1000)
    keep(engine, a_reading(job))
    (comparison,) = job.comparison_ids()
    done = {(comparison, 0)}
    assert answers(engine, {comparison: Protocol(characters=500)}, HERE).answered == done
    assert answers(engine, {comparison: Protocol(characters=10_000)}, HERE).answered == set()
    ended = a_quality_job(characters=10_000_000, seed=1)
    keep(engine, a_reading(ended, complete=True))
    (comparison,) = ended.comparison_ids()
    assert answers(engine, {comparison: Protocol()}, HERE).answered == {(comparison, 0)}


def test_quality_is_answered_by_the_tasks_that_were_requested(engine: Engine) -> None:
    """An answer without an requested task is not enough; one that was requested more is, and a
    time-out only for as many.
    """
    job = a_quality_job(characters=1000)
    requested = job.model_copy(
        update={"protocol": Protocol(characters=1000, tasks=("piqa", "./a.yaml"))}
    )
    (comparison,) = requested.comparison_ids()
    assert job.comparison_ids() == (comparison,)
    keep(engine, a_reading(job))
    assert answers(engine, {comparison: requested.protocol}, HERE).answered == set()
    late = Failure(arm=None, reason="timeout", message="slow")
    keep(engine, a_reading(requested, ended_at=NOW + 1, failures=[late]))
    assert answers(engine, {comparison: requested.protocol}, HERE).answered == {(comparison, 0)}
    one = Protocol(characters=1000, tasks=("./a.yaml",))
    assert answers(engine, {comparison: one}, HERE).answered == set()
    keep(engine, a_reading(requested, ended_at=NOW + 2))
    assert answers(engine, {comparison: one}, HERE).answered == {(comparison, 0)}
    assert (
        answers(
            engine, {comparison: Protocol(characters=1000, tasks=("hellaswag",))}, HERE
        ).answered
        == set()
    )
    assert stricter(one, Protocol(characters=5, tasks=("piqa", "./a.yaml"))).tasks == (
        "./a.yaml",
        "piqa",
    )
    some, more = (one.model_copy(update={"documents": documents}) for documents in (50, 80))
    assert stricter(some, more).documents == stricter(more, Protocol()).documents == 80
    assert stricter(some, one).documents is None
    assert stricter(Protocol(), Protocol()).tasks is None


def test_every_metric_must_be_narrow(engine: Engine) -> None:
    """A comparison is precise enough when all its metrics are; one wide series leaves it open under
    a finer protocol.
    """
    outcome = a_generation(a_generation_job(), noise=0.001)
    keep(engine, outcome)
    (comparison,) = outcome.job.comparison_ids()
    finer = Protocol(pairs_max=1000, half_width=0.1)
    assert answers(engine, {comparison: finer}, HERE).answered == {(comparison, 0)}
    assert outcome.samples is not None
    wide = np.asarray(outcome.samples.series["ttft"]) * np.exp(
        np.random.default_rng(2).normal(0, 0.2, (40, 2))
    )
    series = {**outcome.samples.series, "ttft": tuple(map(tuple, wide.tolist()))}
    noisy = a_generation(a_generation_job(128), noise=0.001)
    assert noisy.samples is not None
    keep(
        engine,
        noisy.model_copy(update={"samples": noisy.samples.model_copy(update={"series": series})}),
    )
    (comparison,) = noisy.job.comparison_ids()
    assert answers(engine, {comparison: finer}, HERE).answered == set()


def test_a_time_out_is_tried_again_with_more_time_to_compile(engine: Engine) -> None:
    """A time-out answers for as long a compilation, not for a longer one."""
    job = a_generation_job(runtime="compile").model_copy(
        update={"protocol": Protocol(compile_timeout_s=60)}
    )
    keep(
        engine, a_generation(job, failures=[Failure(arm=1, reason="timeout", message="compiling")])
    )
    (comparison,) = job.comparison_ids()
    assert answers(engine, {comparison: Protocol(compile_timeout_s=60)}, HERE).answered == {
        (comparison, 0)
    }
    assert answers(engine, {comparison: Protocol(compile_timeout_s=600)}, HERE).answered == set()
