"""Advice read from a store: the arms and conditions that it rests on, failures at a size, other
metrics, batches and the policy that rests on the same arms.
"""

import json
import re

import pytest
from sqlalchemy import Engine, text

from store.errors import StoreError
from store.read.advice.advice import (
    AdviceRequest,
    MethodFacts,
    RefusedError,
    advice_of,
    at_batch,
    checked,
    condition_arms,
)
from store.read.advice.policy_file import policy_file
from store.read.advice.timed_arms import (
    amounts_of,
    fresh_figures,
    measured_conditions,
    provenance_rows,
    qualities_of,
    timed_arms,
    timed_batches,
    timed_conditions,
    timed_sizes,
)
from store.rows.placement import Place
from store.write.record import record_imported
from store.write.submission import newest_attempt
from sweeps.analysis.policy import Policy
from sweeps.model.job import DENSE, Arm, Comparison, Step
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
from tests.store.conftest import (
    CPU,
    a_job,
    an_evaluation,
    an_outcome,
    in_visits,
    keep,
    seconds_of,
    submit,
    with_seconds,
)
from tests.store.language_fixtures import MODEL, a_generation, a_generation_job, larosa

METHODS = MethodFacts(
    lambda method, params: f"{method} {params}",
    lambda method: "control" if method == "random" else "optimisation",
)
DEIT = "deit_tiny_patch16_224"
HERE = Place(CPU.environment_id, "here")
LATER = 1_790_100_000.0
MEMORY = Failure(
    arm=2, reason="out_of_memory", message="CUDA out of memory\nTried to allocate 2 GiB"
)


def kept(
    engine: Engine,
    *,
    failing: tuple[int, ...] = (),
    sizes: tuple[int, ...] = (64, 96, 128, 160, 192),
    **condition: int,
) -> None:
    """Two arms at each size, faster the larger it is; at some of them the second one has no memory
    left.
    """
    for number, size in enumerate(sizes):
        job, work = a_job(size, (0.5, 0.7), **condition), (size // 16) ** 2 / 50
        costs = ((0.85, 0.7), (0.7, 0.5))
        speedups = [(1 + work) / (launch + share * work) for launch, share in costs]
        failures = (MEMORY,) if size in failing else ()
        more = {"seed": number, "ended_at": 1.79e9 + number}
        keep(engine, an_outcome(job, speedups=speedups, failures=failures, **more))


def only(engine: Engine, tokens: int, **more: object) -> Advice:
    (found,) = advice_of(engine, AdviceRequest(DEIT, tokens, 1, **more), METHODS)
    return found


def policy_of(engine: Engine) -> Policy:
    (condition,) = condition_arms(engine, METHODS, model=DEIT)
    made = policy_file(engine, [condition], max_drop=None, created=1.79e9)
    (rule,) = made.content["rules"]
    lowest = f", by intervals of {100 * rule['level']:.4g} % each:"
    assert made.lines[0].endswith(lowest)
    assert made.rules == 1
    assert rule["level"] == pytest.approx(1 - 0.01 / rule["intervals"])
    return Policy(made.content)


def test_rows_have_what_an_interval_is_made_of(engine: Engine) -> None:
    """Standard error, degrees of freedom, the comparison itself, and one group for all sizes of a
    condition. What a paper states is no measurement of a machine; an unknown model names the
    nearest.
    """
    with pytest.raises(StoreError, match="contains no timed comparison; measure some first"):
        timed_arms(engine)
    for job in (a_job(64), a_job(128), a_job(64, batch_size=8)):
        keep(engine, an_outcome(job))
    found = timed_arms(engine, DEIT, "cpu")
    assert sorted(row.tokens for row in found) == [16, 16, 64]
    assert all(row.effect_se and row.effect_freedom for row in found)
    assert len({(row.batch_size, row.condition_group) for row in found}) == 2
    assert len({row.condition_group for row in found}) == 2
    for row in found:
        comparison = Comparison.model_validate_json(row.payload)
        assert (comparison.question_id, comparison.baseline) == (row.question_id, DENSE)
        assert comparison.condition == row.condition
        assert row.condition.batch_size == row.batch_size
    with pytest.raises(StoreError, match=f"of {DEIT[:-1]}5; did you mean '{DEIT}'"):
        timed_arms(engine, f"{DEIT[:-1]}5")
    with pytest.raises(StoreError, match="timed on device cuda"):
        timed_arms(engine, DEIT, "cuda")
    with engine.begin() as connection:
        connection.execute(text("UPDATE effect_row SET source = 'published'"))
    with pytest.raises(StoreError, match="contains no timed comparison"):
        timed_arms(engine, DEIT, "cpu")


def test_quality_stays_with_its_data_set(engine: Engine) -> None:
    """One row for each data set of an arm: the newest without a flag."""
    keep(engine, an_outcome(a_job()))
    evaluated = a_job(kind="accuracy")
    folder = evaluated.condition.model_copy(update={"data": "imagefolder:x"})
    for job in (evaluated, evaluated.model_copy(update={"condition": folder})):
        keep(engine, an_evaluation(job))
    timed = timed_arms(engine)
    found = qualities_of(engine, timed)
    assert sorted(str(row.data) for row in found) == ["digits", "imagefolder:x"]
    assert {row.quality_pair_id for row in found} == {row.quality_pair_id for row in timed}
    assert amounts_of(engine, timed) == qualities_of(engine, []) == []


def test_new_attempts_alone(engine: Engine) -> None:
    """The pooled effect counts both attempts, the fresh one only what came after."""

    def fresh(since: int, place: Place = HERE) -> dict[str, object] | None:
        (comparison,) = a_job().comparison_ids()
        return fresh_figures(engine, comparison, "latency", place, since=since, metric="latency")

    keep(engine, an_outcome(a_job(), speedups=(1.5,)))
    since = newest_attempt(engine)
    assert fresh(since) is None
    more = {"seed": 1, "pairs": 50, "ended_at": LATER, "flags": ("contended",)}
    keep(engine, an_outcome(a_job(), speedups=(1.3,), **more))
    found = fresh(since)
    assert found is not None
    assert (found["n"], found["verdict"], found["flags"]) == (50, "faster", "contended")
    assert found["effect"] == pytest.approx(1.3, abs=0.02)
    (pooled,) = timed_arms(engine)
    assert (pooled.pairs, pooled.rounds, 1.3 < pooled.speedup < 1.5) == (90, 2, True)
    assert fresh(0, Place(CPU.environment_id, "elsewhere")) is None


def test_provenance_of_a_sweep(engine: Engine) -> None:
    """Where, when, from which commit and in how many attempts; attempts of other sweeps do not
    count.
    """
    own, other = a_job(64), a_job(128)
    submit(engine, [own], "own")
    submit(engine, [other], "other")
    for job, host, at in (
        (own, "here", 1.79e9),
        (own, "here", LATER),
        (own, "there", LATER),
        (other, "here", LATER + 500),
    ):
        keep(engine, an_outcome(job, host=host, ended_at=at))
    rows = provenance_rows(engine, "own")
    columns = ["host", "attempts", "first", "last", "commit", "device_name"]
    of = ("0123abc", "Imaginary CPU")
    assert sorted(rows[columns].itertuples(index=False, name=None)) == [
        ("here", 2, 1.79e9 - 10, LATER, *of),
        ("there", 1, LATER - 10, LATER, *of),
    ]
    assert json.loads(rows["facts"].iloc[0]) == {"cores": "2", "torch": "2.0"}
    assert provenance_rows(engine, "none").empty


def test_conditions_that_were_timed(engine: Engine) -> None:
    """The fullest is first, and what one is read alone is what it is among all. Arms of sweeps and
    imported ones are both choices, counted once.
    """
    for threads, sizes in ((1, (64, 96)), (2, (64, 96, 128))):
        jobs = [a_job(size, (0.5, 0.7), threads=threads) for size in sizes]
        submit(engine, jobs, f"threads-{threads}")
        kept(engine, sizes=sizes, threads=threads)
    kept(engine, sizes=(64, 96), failing=(64,), batch_size=8)
    fullest = timed_conditions(engine, DEIT, 1)
    assert [each.points for each in fullest] == [6, 4]
    for limit in ({"metric": "tpot"}, {"runtime": "compile"}, {"device": "cuda"}):
        assert timed_conditions(engine, DEIT, 1, **limit) == []
    assert timed_sizes(engine, DEIT, 1) == {16: 2, 36: 2, 64: 2}, "those of the fullest condition"
    assert (timed_sizes(engine, DEIT, 8), timed_batches(engine, DEIT, "cpu")) == (
        {16: 1, 36: 2},
        [1, 8],
    )
    columns = ["model", "device", "batch_size", "runtime", "metric", "points"]
    found = measured_conditions(engine)[columns].itertuples(index=False, name=None)
    assert list(found) == [
        (DEIT, "cpu", batch, "eager", "latency", points) for batch, points in ((1, 10), (8, 3))
    ]
    request = AdviceRequest(DEIT, 36, 1)
    both = {each.condition.threads: each for each in at_batch(engine, request, METHODS)}
    for condition, threads in zip(fullest, (2, 1), strict=True):
        (alone,) = at_batch(engine, request, METHODS, (condition,))
        assert advice_dict(alone.advice(36)) == advice_dict(both[threads].advice(36))


def test_an_arm_that_always_failed(engine: Engine) -> None:
    """It has no point anywhere, and is named all the same where its condition is read alone."""
    planned = a_job(64, (0.5, 0.7))
    other = Arm(stack=(Step(method="tome", params={"r_ratio": 0.06}, version=1),))
    job = planned.model_copy(update={"arms": (*planned.arms[:2], other)})
    submit(engine, [job])
    keep(engine, an_outcome(job, speedups=(1.2, 1.4), failures=(MEMORY,)))
    (condition,) = timed_conditions(engine, DEIT, 1)
    (alone,) = at_batch(engine, AdviceRequest(DEIT, 16, 1), METHODS, (condition,))
    assert condition.points == 1
    assert [(each.method, each.tokens) for each in alone.failures] == [("tome", 16)]


def test_what_failed_at_a_size_is_named_and_not_interpolated(engine: Engine) -> None:
    """An arm that has no memory at a size between two where it was timed is not ranked there, and
    the reason is given; a policy does not reach across it. Each row has its time with that of the
    unmodified model beside it; between two sizes there is none.
    """
    kept(engine, failing=(128,))
    ranked = {tokens: only(engine, tokens) for tokens in (36, 64, 100)}
    assert [len(each.found) for each in ranked.values()] == [2, 1, 2]
    ((label, reason, _),) = ranked[64].left_out
    assert ("0.7" in label, reason) == (True, "failed: out of memory (CUDA out of memory)")
    assert f"Not ranked: {label}: {reason}" in list(advice_notes(ranked[64]))
    assert advice_dict(ranked[64])["not_ranked"] == [{"arm": label, "reason": reason}]
    policy = policy_of(engine)
    chosen = {
        tokens: policy.choose(tokens=tokens, batch=1).params.get("keep_rate")
        for tokens in (36, 50, 64, 80, 100)
    }
    assert chosen == {36: 0.7, 50: 0.5, 64: 0.5, 80: 0.5, 100: 0.7}
    headings, rows = advice_table(ranked[36])
    place = headings.index("latency, ms (unmodified)")
    assert all("(" in row[place] for row in rows if row[1] != "the unmodified model")
    first, between = ranked[36].found[0], only(engine, 50)
    assert first.ms == (first.rows[0].baseline_ms, first.rows[0].arm_ms)
    assert {row[place] for row in advice_table(between)[1]} == {"-"}
    assert advice_dict(between)["arms"][0]["arm_ms"] is None


def test_a_size_at_which_all_failed_has_no_arm_in_a_policy(engine: Engine) -> None:
    """Where every arm failed at a size between two others, the policy has the unmodified model
    around it.
    """
    kept(engine, sizes=(64, 192))
    failures = [MEMORY.model_copy(update={"arm": arm}) for arm in (1, 2)]
    lost = an_outcome(a_job(128, (0.5, 0.7)), speedups=(1.2, 1.4), failures=failures)
    keep(engine, lost)
    policy = policy_of(engine)
    unmodified = [policy.choose(tokens=tokens, batch=1).unmodified for tokens in (16, 40, 64, 100)]
    assert unmodified == [False, True, True, True]
    assert not policy.choose(tokens=144, batch=1).unmodified


def test_a_batch_at_which_all_failed_is_refused_with_the_reason(engine: Engine) -> None:
    """Nothing was timed at the batch: the message names the batches that were, and why arms failed
    there.
    """
    kept(engine, sizes=(64,))
    failure = Failure(arm=1, reason="out_of_memory", message="no memory")
    keep(engine, an_outcome(a_job(64, (0.5,), batch_size=64), failures=(failure,)))
    message = r"at batch 64, and nothing is extrapolated; measured batches: 1 \(.*out of memory"
    with pytest.raises(RefusedError, match=message) as refused:
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
    assert advice_dict(answers.pop(None)) == advice_dict(answers["time_per_char"])
    assert "in time per output token" in advice_sentence(answers["tpot"])
    assert "time to the first token, ms (unmodified)" in advice_table(answers["ttft"])[0]
    assert len({each.found[0].arm.speedup.value for each in answers.values()}) == 3
    with pytest.raises(StoreError, match="by latency; timed are time_per_char, tpot, ttft"):
        advice_of(engine, AdviceRequest(MODEL, 64, 1, metric="latency"), METHODS)


def test_where_the_curve_pays_and_the_size_does_not_show_it_both_are_stated(engine: Engine) -> None:
    """Between sizes, with the error shared by six arms, a gain that the curve claims is not clear:
    one sentence names both.
    """
    gains, rates = {32: 0.8, 64: 0.9, 96: 1.05, 128: 1.15}, (0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
    submit(engine, [a_job(size, rates) for size in gains])
    for number, (size, gain) in enumerate(gains.items()):
        more = {"seed": number, "ended_at": 1.79e9 + 10 * number}
        visits = in_visits(a_job(size, rates), 3, speedups=(gain,) * len(rates), **more)
        record_imported(engine, visits)
    found = {tokens: only(engine, tokens) for tokens in (4, 28, 37, 64)}
    claims = {tokens: claim_sentence(advice) for tokens, advice in found.items()}
    words = claims.pop(37)
    assert set(claims.values()) == {""}
    claim = r"Over all sizes, topk .* measured from 36 to 64 tokens .* At 37 tokens alone, "
    assert re.match(claim, words)
    assert advice_dict(found[37])["claim"] == words


def test_the_evidence_of_the_first_arm_is_checked(engine: Engine) -> None:
    """An arm whose speed-up falls from half to half raises a doubt, which names the command for
    fresh pairs; others raise none.
    """
    whole = an_outcome(a_job(64), speedups=(1.4,), pairs=60)
    seconds = seconds_of(whole)
    seconds[30:, 1] *= 1.3
    keep(engine, with_seconds(whole, seconds))
    advice = checked(engine, only(engine, 16))
    words = doubt_sentence(advice, "breakeven advise --confirm")
    assert words.startswith("Its evidence: ")
    assert "a doubt: earlier and later half" in words
    assert words.endswith("measure it again. On fresh pairs: breakeven advise --confirm")
    doubts = [each["check"] for each in advice_dict(advice)["checks"] if each["doubt"]]
    assert doubts == ["Earlier and later half"]
    assert doubt_sentence(only(engine, 16), "breakeven advise --confirm") == ""
