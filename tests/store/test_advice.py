"""Advice read from a store: failures at a size, other metrics, batches and the policy that rests on
the same arms.
"""

import re

import pytest
from sqlalchemy import Engine

from store.errors import StoreError
from store.read.advice.advice import (
    AdviceRequest,
    MethodFacts,
    RefusedError,
    advice_of,
    checked,
    condition_arms,
)
from store.read.advice.policy_file import policy_file
from store.read.advice.timed_arms import measured_conditions, timed_batches, timed_sizes
from sweeps.analysis.policy import Policy
from sweeps.model.outcome import Failure
from sweeps.text.advice_text import (
    Advice,
    advice_dict,
    advice_notes,
    advice_sentence,
    advice_table,
    claim_sentence,
    doubt_sentence,
)
from tests.store.conftest import a_job, an_outcome, in_visits, keep, submit
from tests.store.language_fixtures import MODEL, a_generation, a_generation_job, larosa

METHODS = MethodFacts(
    lambda method, params: f"{method} {params}",
    lambda method: "control" if method == "random" else "optimisation",
)
DEIT = "deit_tiny_patch16_224"
MEMORY = Failure(
    arm=2, reason="out_of_memory", message="CUDA out of memory\nTried to allocate 2 GiB"
)


def kept(
    engine: Engine,
    *,
    failing: tuple[int, ...] = (),
    sizes: tuple[int, ...] = (64, 96, 128, 160, 192),
    batch_size: int = 1,
) -> None:
    """Two arms at each size, faster the larger it is; at some of them the second one has no memory
    left.
    """
    for number, size in enumerate(sizes):
        job = a_job(size, (0.5, 0.7), batch_size=batch_size)
        failures = (MEMORY,) if size in failing else ()
        work = (size // 16) ** 2 / 50
        speedups = [
            (1 + work) / (launch + share * work) for launch, share in ((0.85, 0.7), (0.7, 0.5))
        ]
        keep(
            engine,
            an_outcome(
                job, speedups=speedups, failures=failures, seed=number, ended_at=1.79e9 + number
            ),
        )


def only(engine: Engine, tokens: int, **more: object) -> Advice:
    (found,) = advice_of(engine, AdviceRequest(DEIT, tokens, 1, **more), METHODS)
    return found


def test_what_failed_at_a_size_is_named_and_not_interpolated(engine: Engine) -> None:
    """An arm that has no memory at a size between two where it was timed is not ranked there, and
    the reason is given.
    """
    kept(engine, failing=(128,))
    assert [each.label.split()[1] for each in only(engine, 36).found if "0.7" in each.label]
    found = only(engine, 64)
    assert [each.label for each in found.found if "0.7" in each.label] == []
    ((label, reason, _),) = found.left_out
    assert "0.7" in label
    assert reason == "failed: out of memory (CUDA out of memory)"
    assert f"Not ranked: {label}: {reason}" in list(advice_notes(found))
    assert advice_dict(found)["not_ranked"] == [{"arm": label, "reason": reason}]
    elsewhere = only(engine, 100)
    assert [each.label for each in elsewhere.left_out] == []


def test_a_policy_does_not_reach_across_a_failure(engine: Engine) -> None:
    """Between two sizes where an arm is faster it is used, but not up to a size at which it
    failed.
    """
    kept(engine, failing=(128,))
    (condition,) = condition_arms(engine, METHODS, model=DEIT)
    made = policy_file(engine, [condition], max_drop=None, created=1.79e9)
    policy = Policy(made.content)
    chosen = {
        tokens: policy.choose(tokens=tokens, batch=1).params.get("keep_rate")
        for tokens in (36, 50, 64, 80, 100)
    }
    assert chosen == {36: 0.7, 50: 0.5, 64: 0.5, 80: 0.5, 100: 0.7}
    assert (made.rules, made.arms) == (1, 2)


def test_a_size_at_which_all_failed_has_no_arm_in_a_policy(engine: Engine) -> None:
    """Where every arm failed at a size between two others, the policy has the unmodified model
    around it.
    """
    kept(engine, sizes=(64, 192))
    lost = a_job(128, (0.5, 0.7))
    failures = tuple(
        Failure(arm=arm, reason="unsupported", message="too few tokens") for arm in (1, 2)
    )
    keep(engine, an_outcome(lost, speedups=(1.2, 1.4), failures=failures, ended_at=1.79e9 + 9))
    (condition,) = condition_arms(engine, METHODS, model=DEIT)
    policy = Policy(policy_file(engine, [condition], max_drop=None, created=1.79e9).content)
    assert [
        policy.choose(tokens=tokens, batch=1).unmodified for tokens in (16, 40, 64, 100, 144)
    ] == [False, True, True, True, False]
    assert condition.at(64).found == ()


def test_a_batch_at_which_all_failed_is_refused_with_the_reason(engine: Engine) -> None:
    """Nothing was timed at the batch: the message names the batches that were, and why arms failed
    there.
    """
    kept(engine, sizes=(64,))
    big = a_job(64, (0.5,), batch_size=64)
    failure = Failure(arm=1, reason="out_of_memory", message="no memory")
    keep(engine, an_outcome(big, failures=(failure,), ended_at=1.79e9 + 9))
    with pytest.raises(
        RefusedError,
        match=r"at batch 64, and nothing is extrapolated; measured batches: 1 \(.*out of memory",
    ) as refused:
        advice_of(engine, AdviceRequest(DEIT, 16, 64), METHODS)
    assert refused.value.batches == (1,)
    with pytest.raises(RefusedError) as refused:
        advice_of(engine, AdviceRequest(DEIT, 300, 1), METHODS)
    assert refused.value.tokens == (16,)


def test_arms_are_ranked_by_each_metric_of_a_kind(engine: Engine) -> None:
    """A sparse arm gains per output token; the order and the words are those of the metric that was
    chosen.
    """
    keep(engine, a_generation(a_generation_job(arms=[larosa(0.25), larosa(0.5)]), (1.0, 1.2, 1.5)))
    answers = {}
    for metric in (None, "time_per_char", "tpot", "ttft"):
        (answers[metric],) = advice_of(engine, AdviceRequest(MODEL, 64, 1, metric=metric), METHODS)
    assert advice_dict(answers[None]) == advice_dict(answers["time_per_char"])
    assert "in time per output token" in advice_sentence(answers["tpot"])
    assert "time to the first token, ms (unmodified)" in advice_table(answers["ttft"])[0]
    values = {
        metric: answers[metric].found[0].arm.speedup.value
        for metric in ("time_per_char", "tpot", "ttft")
    }
    assert len(set(values.values())) == 3
    with pytest.raises(StoreError, match="by latency; timed are time_per_char, tpot, ttft"):
        advice_of(engine, AdviceRequest(MODEL, 64, 1, metric="latency"), METHODS)


def test_times_and_ranges_of_the_unmodified_model(engine: Engine) -> None:
    """Each row has its time with that of the unmodified model beside it; between two sizes there is
    none.
    """
    kept(engine)
    headings, rows = advice_table(only(engine, 36))
    place = headings.index("latency, ms (unmodified)")
    assert all("(" in row[place] for row in rows if row[1] != "the unmodified model")
    found = only(engine, 36).found[0]
    assert found.ms == (found.rows[0].baseline_ms, found.rows[0].arm_ms)
    between = only(engine, 50)
    assert {row[place] for row in advice_table(between)[1]} == {"-"}
    assert advice_dict(between)["arms"][0]["arm_ms"] is None


def test_choices_are_those_that_were_timed(engine: Engine) -> None:
    """Model, device, batch, runtime, metric and tokens of what was compared with the unmodified
    model, with the number of arms.
    """
    kept(engine, sizes=(64,), failing=(64,))
    kept(engine, sizes=(64, 96), batch_size=8)
    found = measured_conditions(engine)
    rows = {
        (row.model, row.device, row.batch_size, row.runtime, row.metric): row.points
        for row in found.itertuples()
    }
    assert rows == {
        (DEIT, "cpu", 1, "eager", "latency"): 1,
        (DEIT, "cpu", 8, "eager", "latency"): 4,
    }
    assert timed_batches(engine, DEIT, "cpu") == [1, 8]
    assert (timed_sizes(engine, DEIT, 8), timed_sizes(engine, DEIT, 1)) == ({16: 2, 36: 2}, {16: 1})


def test_swept_and_imported_arms_are_both_choices(engine: Engine) -> None:
    """What a sweep requested is counted with its panels; the same arms are not counted twice."""
    job = a_job(64, (0.5, 0.7))
    submit(engine, [job])
    keep(engine, an_outcome(job, speedups=(1.2, 1.4)))
    kept(engine, sizes=(96,), batch_size=8)
    found = measured_conditions(engine)
    assert dict(zip(found["batch_size"], found["points"], strict=True)) == {1: 2, 8: 2}


def test_where_the_curve_pays_and_the_size_does_not_show_it_both_are_stated(engine: Engine) -> None:
    """Between sizes, with the error shared by six arms, a gain that the curve claims is not clear:
    one sentence names both.
    """
    gains, rates = {32: 0.8, 64: 0.9, 96: 1.05, 128: 1.15}, (0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
    submit(engine, [a_job(size, rates) for size in gains])
    for number, (size, gain) in enumerate(gains.items()):
        job, ended_at = a_job(size, rates), 1.79e9 + 10 * number
        for outcome in in_visits(
            job, 3, speedups=(gain,) * len(rates), seed=number, ended_at=ended_at
        ):
            keep(engine, outcome)
    found = {tokens: only(engine, tokens) for tokens in (4, 28, 37, 64)}
    assert claim_sentence(found[4]) == claim_sentence(found[28]) == claim_sentence(found[64]) == ""
    words = claim_sentence(found[37])
    assert re.match(
        r"Over all sizes, topk .* pays from 36 tokens on .* At 37 tokens alone, ", words
    )
    assert advice_dict(found[37])["claim"] == words


def test_the_evidence_of_the_first_arm_is_checked(engine: Engine) -> None:
    """An arm whose speed-up falls from half to half raises a doubt, which names the command for
    fresh pairs; others raise none.
    """
    whole = an_outcome(a_job(64), speedups=(1.4,), pairs=60)
    samples = whole.samples
    assert samples is not None
    drifted = tuple(
        tuple(
            value * (1.3 if number >= 30 and samples.arms[column] == 1 else 1.0)
            for column, value in enumerate(row)
        )
        for number, row in enumerate(samples.seconds)
    )
    keep(
        engine,
        whole.model_copy(update={"samples": samples.model_copy(update={"seconds": drifted})}),
    )
    advice = checked(engine, only(engine, 16))
    words = doubt_sentence(advice, "breakeven advise --confirm")
    assert words.startswith("Its evidence: ")
    assert "a doubt: earlier and later half" in words
    assert words.endswith("measure it again. On fresh pairs: breakeven advise --confirm")
    assert [each["check"] for each in advice_dict(advice)["checks"] if each["doubt"]] == [
        "Earlier and later half"
    ]
    assert doubt_sentence(only(engine, 16), "breakeven advise --confirm") == ""


def test_policies_name_the_level_of_their_intervals(engine: Engine) -> None:
    """Two arms at five sizes share the error: each interval has the level that the rule states, and
    its lines too.
    """
    kept(engine)
    (condition,) = condition_arms(engine, METHODS, model=DEIT)
    made = policy_file(engine, [condition], max_drop=None, created=1.79e9)
    (rule,) = made.content["rules"]
    assert (rule["intervals"], rule["level"]) == (10, pytest.approx(0.999))
    assert made.lines[0].endswith(", by intervals of 99.9 % each:")
