"""Evidence of a comparison: the numbers worked out end in what is stored, and what is not there is
named.
"""

import re
from math import exp, inf

import numpy as np
import pytest
from sqlalchemy import Engine

from store.errors import StoreError
from store.read.evidence.evidence import (
    PointEvidence,
    TimedPairs,
    point_evidence,
    similar_comparisons,
)
from store.read.evidence.evidence_checks import (
    attempt_speedups,
    findings,
    null_contrasts,
    pair_rows,
    readings_by_pair,
    running_speedups,
    shown_pairs,
    worked_rule,
)
from store.write.record import record_imported
from sweeps.model.job import Job
from sweeps.model.outcome import Failure, Outcome
from sweeps.stats.pooling import ratio_verdict
from tests.store.conftest import (
    a_job,
    an_evaluation,
    an_outcome,
    in_visits,
    seconds_of,
    submit,
    table,
    two_slots,
    with_seconds,
)


def evidence(engine: Engine, job: Job | None = None, **place: str) -> PointEvidence:
    """Of the only comparison of a job."""
    (comparison,) = (job or a_job()).comparison_ids()
    return point_evidence(engine, comparison, **place)


def doubts(found: PointEvidence, timed: TimedPairs) -> set[str]:
    return {finding.check for finding in findings(found, timed) if finding.noise}


def checked(engine: Engine, *outcomes: Outcome) -> tuple[PointEvidence, TimedPairs]:
    """The evidence of these outcomes of one job. The worked-out numbers, the last of the running
    estimate and the last line of the rule are exactly what is stored.
    """
    record_imported(engine, outcomes)
    found = evidence(engine, outcomes[0].job.model_copy(update={"round": 0}))
    (timed,) = found.timed
    (stored,) = [row for row in found.effects if row["metric"] == timed.metric.name]
    result = timed.pooling.speedup
    high = None if result.high == inf else result.high
    assert [result.value, result.low or None, high, result.freedom, result.pairs] == [
        stored[name] for name in ("effect", "effect_low", "effect_high", "effect_freedom", "n")
    ]
    running, shown = running_speedups(timed)[-1], shown_pairs(timed)
    assert running.found == result
    assert running.number == len(shown) == sum(each.row.size for each in timed.attempts)
    assert sum(len(each.visit.arm) for each in timed.attempts) == stored["n"]
    assert worked_rule(timed)[-1].value == timed.verdict == stored["verdict"]
    assert sum(part.weight for part in timed.pooling.parts) == pytest.approx(1)
    return found, timed


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+\.\d+", text)]


def test_one_attempt_ends_in_the_stored_verdict(engine: Engine) -> None:
    """A clear speed-up: the printed rule computes to the printed interval, and names the comparison
    that decides; nothing raises a doubt.
    """
    found, timed = checked(engine, an_outcome(a_job(), speedups=(1.5,)))
    lines = {line.what: line for line in worked_rule(timed)}
    log, reach, se = numbers(lines["Interval"].how)
    value, low, high = numbers(lines["Interval"].value)
    ends = [exp(log), exp(log - reach * se), exp(log + reach * se)]
    assert (value, low, high) == pytest.approx(ends, abs=6e-4)
    assert lines["Verdict"].how.startswith(f"low end {low:.3f} > 1")
    assert lines["Between visits"].how.startswith(
        "one visit of a run; before any are compared 0.01"
    )
    assert (lines["Between visits"].value[:10], lines["Level"].value) == ("SD 0.01050", "0.5 %")
    assert "spends 50 %" in lines["Level"].how
    assert doubts(found, timed) == set()


@pytest.mark.parametrize("truths", [(1.4, 1.41, 1.4), (1.4, 1.5, 1.6)])
def test_pooled_attempts(engine: Engine, truths: tuple[float, ...]) -> None:
    """Runs that agree, and such whose own spread becomes the error; the rule states which."""
    visits = [
        visit
        for run, truth in enumerate(truths)
        for visit in in_visits(a_job(), 2, speedups=(truth,), seed=run, ended_at=1.79e9 + 100 * run)
    ]
    found, timed = checked(engine, *visits)
    lines = {line.what: line for line in worked_rule(timed)}
    apart = lines["Agreement of runs"].value == "their own spread is the error"
    assert apart == timed.pooling.disagree == (truths[1] > 1.45)
    assert ("Agreement of runs" in doubts(found, timed)) == apart
    assert "6 visits" in lines
    alone = dict(attempt_speedups(timed))
    assert list(alone) == [1, 2, 3, 4, 5, 6]
    values = [speedup.value for speedup in alone.values()]
    assert values == pytest.approx(np.repeat(truths, 2), rel=0.01)


@pytest.mark.parametrize(
    ("speedup", "noise", "verdict"),
    [(1.0, 0.05, "unclear"), (0.8, 0.01, "slower"), (1.0, 0.002, "same")],
)
def test_each_verdict_has_its_comparison(
    engine: Engine, speedup: float, noise: float, verdict: str
) -> None:
    """The numbers in the last line are those that the rule compares; `same` takes several visits.
    Of an arm without an effect the interval and the signs raise a doubt.
    """
    visits = 6 if verdict == "same" else 1
    found, timed = checked(engine, *in_visits(a_job(), visits, speedups=(speedup,), noise=noise))
    result = timed.pooling.speedup
    assert timed.verdict == verdict == ratio_verdict(result.low, result.high)
    decisive = (result.high,) if verdict == "slower" else (result.low, result.high)
    assert all(f"{end:.3f}" in worked_rule(timed)[-1].how for end in decisive)
    if verdict == "unclear":
        assert {"Interval", "Sign of each pair"} <= doubts(found, timed)


def test_flagged_attempts_are_shown_and_not_used(engine: Engine) -> None:
    """One that a flag marks as wrong stands among the attempts, and the answer rests on the
    others.
    """
    wrong = an_outcome(a_job(), speedups=(3.0,), flags=("consistency_check_failed",))
    right = an_outcome(a_job(), speedups=(1.5,), seed=1, flags=("contended",))
    found, timed = checked(engine, wrong, right)
    assert [(each.used, each.flags) for each in found.attempts] == [
        (False, "consistency_check_failed"),
        (True, "contended"),
    ]
    assert [each.row.attempt for each in timed.attempts] == [2]


def test_quarantined_short_and_unsettled_answers(engine: Engine) -> None:
    """Each of the first two has its reason in the last line; of an attempt that was not settled the
    later half counts; five pairs that vary much have an estimate and no interval.
    """
    _, hot = checked(engine, an_outcome(a_job(64), flags=("thermal_slowdown",)))
    assert "slowed" in worked_rule(hot)[-1].how
    _, short = checked(engine, an_outcome(a_job(96), pairs=10))
    assert worked_rule(short)[-1].how.startswith("10 pairs, fewer than the")
    _, late = checked(engine, an_outcome(a_job(128), flags=("warmup_not_converged",)))
    assert worked_rule(late)[0].how.startswith("20 rounds, ")
    assert (running_speedups(late)[0].number, len(shown_pairs(late))) == (21, 40)
    found, few = checked(engine, an_outcome(a_job(160), pairs=5, noise=2.0))
    assert "Interval" in doubts(found, few)
    assert [line.how for line in worked_rule(few) if line.what == "Interval"] == ["there is none"]


def test_every_pair_as_a_row(engine: Engine) -> None:
    """Every time without loss. The second slot of a baseline is 4 % slower in each round: the null
    contrast shows it.
    """
    outcome = two_slots(an_outcome(a_job(), speedups=(1.5,), noise=0.01))
    found, timed = checked(engine, outcome)
    (null,) = null_contrasts(timed)
    assert exp(-null.contrast.effect) == pytest.approx(1.04, rel=1e-9)
    read = pair_rows(found, "latency")
    names = ("baseline_1", "arm", "baseline_2")
    times = [[row[f"{name}_s"] for name in names] for row in read]
    assert np.array_equal(times, seconds_of(outcome))
    assert [read[0][f"place_{name}"] for name in names] == [1, 2, 0]
    first, arm, second = times[0]
    assert read[0]["ratio"] == pytest.approx((first * second) ** 0.5 / arm)


def test_readings_lie_beside_the_pairs(engine: Engine) -> None:
    """Counters become rates between readings; those of the second attempt follow the pairs of the
    first.
    """
    series = {
        "seconds": (1.0, 3.0),
        "rounds": (10.0, 30.0),
        "cpu_mhz": (2000.0, None),
        "foreign_s": (0.5, 0.9),
    }
    outcomes = [an_outcome(a_job(), seed=seed) for seed in (0, 1)]
    outcomes = [each.model_copy(update={"system_series": series}) for each in outcomes]
    read = readings_by_pair(*checked(engine, *outcomes))
    clock = [(row["number"], row["value"]) for row in read if row["reading"] == "cpu_mhz"]
    assert clock == [(10, 2000), (50, 2000)]
    foreign = [row["value"] for row in read if row["reading"] == "foreign_cores"]
    assert foreign == pytest.approx([0.5, 0.2, 0.5, 0.2])


def test_what_is_not_timed(engine: Engine) -> None:
    """A failure has no times, and every attempt with what it reported; an accuracy has its answer
    and no pairs.
    """
    failure = Failure(arm=1, reason="error", message="<b>no</b>", detail="Traceback\nKeyError: 1")
    accuracy = a_job(kind="accuracy")
    record_imported(engine, [an_outcome(a_job(), failures=[failure]), an_evaluation(accuracy)])
    found = evidence(engine)
    assert (found.failed, found.timed) == (True, ())
    assert [each.failure for each in found.attempts] == [failure]
    assert found.attempts[0].arms["arm"] == {}
    found = evidence(engine, accuracy)
    assert (found.timed, found.place.host) == ((), "")
    assert "top1" in {row["metric"] for row in found.effects}
    assert [each.used for each in found.attempts] == [True]


def test_an_answer_elsewhere_is_named(engine: Engine) -> None:
    """The newest place is shown by default, each by its host, and a place without an answer is
    refused with those that have one.
    """
    for host, ended_at in (("old", 1.79e9), ("new", 1.7901e9)):
        record_imported(engine, [an_outcome(a_job(), host=host, ended_at=ended_at)])
    newest = evidence(engine)
    assert newest.place.host == "new"
    assert [row["host"] for row in newest.elsewhere] == ["old"]
    assert evidence(engine, host="old").place.host == "old"
    with pytest.raises(
        StoreError, match=r"on host else; it has one in environment \w+ on host new"
    ):
        evidence(engine, host="else")


def test_unknown_ids_are_refused_with_the_nearest(engine: Engine) -> None:
    """A typing error names the id that begins alike, a question's id the comparison that answers
    it; words find a comparison by model, method, parameter or size.
    """
    submit(engine, [a_job()], "one", "name: one")
    (comparison,) = a_job().comparison_ids()
    with pytest.raises(StoreError, match="requested, but has no answer yet"):
        evidence(engine)
    record_imported(engine, [an_outcome(a_job())])
    found = evidence(engine)
    assert [(each.name, each.text) for each in found.requested_by] == [("one", "name: one")]
    for wrong, message in (
        (f"{comparison[:-1]}x", f"nearest: {comparison}"),
        (found.question_id, f"answered by comparison {comparison}"),
        ("%_", r"contains no comparison %_$"),
    ):
        with pytest.raises(StoreError, match=message):
            point_evidence(engine, wrong)
    for words, count in {
        " ": 1,
        "deit top": 1,
        "topk keep_rate=0.5": 1,
        "224": 1,
        "deit nothing-of-the-kind": 0,
        "keep_rate=1.5": 0,
        "240": 0,
    }.items():
        named = [row["comparison_id"] for row in similar_comparisons(engine, words)]
        assert named == [comparison] * count, words


def test_mean_times_that_disagree_are_flagged(engine: Engine) -> None:
    """8 % faster in 11 of 12 of its forwards, 8 times as slow in the other one: the ratio of means
    is stored, and a flag beside it.
    """
    outcome = two_slots(an_outcome(a_job(), speedups=(1.08,), pairs=100))
    seconds = seconds_of(outcome)
    seconds[:, 1] *= [8 if index % 12 == 7 else 1 for index in range(100)]
    found, timed = checked(engine, with_seconds(outcome, seconds))
    shown = table(engine, "SELECT ratio_of_means, speedup_low, flags FROM speedup")
    ((ratio, low, flags),) = shown
    means = seconds.mean(axis=0)
    assert ratio == pytest.approx((means[0] + means[2]) / 2 / means[1])
    assert (ratio < 0.9, low > 1, flags) == (True, True, "mean_disagrees")
    assert "Mean times" in doubts(found, timed)
