"""Evidence of a comparison: the numbers worked out end in what is stored, and what is not there is
named.
"""

import csv
import io
import re
from math import exp

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
from store.write.submission import NewSweep, submit_sweep
from sweeps.model.outcome import Failure
from sweeps.stats.pooling import ratio_verdict
from tests.fixtures.sql_rows import rows
from tests.store.conftest import a_job, an_evaluation, an_outcome, in_visits, two_slots


def evidence(engine: Engine, number: int = 0, **place: str) -> PointEvidence:
    """Of the comparison that is `number` in the order of ids."""
    ids = [
        row["comparison_id"]
        for row in rows(
            engine, "SELECT DISTINCT comparison_id FROM effect_row ORDER BY comparison_id"
        )
    ]
    return point_evidence(engine, ids[number], **place)


def check_stored(found: PointEvidence) -> TimedPairs:
    """The worked-out numbers, the last of the running estimate and the last line of the rule are
    exactly what is stored.
    """
    (timed,) = found.timed
    (stored,) = [row for row in found.effects if row["metric"] == timed.metric.name]
    result = timed.pooling.speedup
    assert (result.value, result.pairs, timed.verdict) == (
        stored["effect"],
        stored["n"],
        stored["verdict"],
    )
    assert (result.low or None) == stored["effect_low"]
    assert (None if result.high == float("inf") else result.high) == stored["effect_high"]
    assert result.freedom == stored["effect_freedom"]
    running, shown = running_speedups(timed)[-1], shown_pairs(timed)
    assert running.found == result
    assert running.number == len(shown) == sum(each.row.size for each in timed.attempts)
    assert sum(len(each.visit.arm) for each in timed.attempts) == stored["n"]
    assert worked_rule(timed)[-1].value == stored["verdict"]
    assert sum(part.weight for part in timed.pooling.parts) == pytest.approx(1)
    return timed


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+\.\d+", text)]


def test_one_attempt_ends_in_the_stored_verdict(engine: Engine) -> None:
    """A clear speed-up: the printed rule computes to the printed interval, and names the comparison
    that decides.
    """
    record_imported(engine, [an_outcome(a_job(), speedups=(1.5,))])
    found = evidence(engine)
    timed = check_stored(found)
    lines = {line.what: line for line in worked_rule(timed)}
    log, reach, se = numbers(lines["Interval"].how)
    value, low, high = numbers(lines["Interval"].value)
    assert (value, low, high) == pytest.approx(
        [exp(log), exp(log - reach * se), exp(log + reach * se)], abs=6e-4
    )
    assert lines["Verdict"].how.startswith(f"low end {low:.3f} > 1")
    assert lines["Between visits"].how.startswith("one visit; before any are compared 0.01")
    assert lines["Between visits"].value.startswith("SD 0.01000")
    assert "spends 50 %" in lines["Level"].how
    assert lines["Level"].value == "0.5 %"


@pytest.mark.parametrize("truths", [(1.4, 1.41, 1.4), (1.4, 1.5, 1.6)])
def test_pooled_attempts(engine: Engine, truths: tuple[float, ...]) -> None:
    """Runs that agree, and such whose own spread becomes the error; the rule states which."""
    for run, truth in enumerate(truths):
        record_imported(
            engine, in_visits(a_job(), 2, speedups=(truth,), seed=run, ended_at=1.79e9 + 100 * run)
        )
    found = evidence(engine)
    timed = check_stored(found)
    lines = {line.what: line for line in worked_rule(timed)}
    apart = lines["Agreement of runs"].value == "their own spread is the error"
    assert apart == timed.pooling.disagree == (truths[1] > 1.45)
    assert (
        "Agreement of runs" in {each.check for each in findings(found, timed) if each.noise}
    ) == apart
    assert "6 visits" in lines
    alone = attempt_speedups(timed)
    assert [attempt for attempt, _ in alone] == [1, 2, 3, 4, 5, 6]
    assert [speedup.value for _, speedup in alone] == pytest.approx(np.repeat(truths, 2), rel=0.01)


@pytest.mark.parametrize(
    "case",
    [(1.0, 0.05, "unclear"), (0.8, 0.01, "slower"), (1.3, 0.01, "faster"), (1.0, 0.002, "same")],
)
def test_each_verdict_has_its_comparison(engine: Engine, case: tuple[float, float, str]) -> None:
    """The numbers in the last line are those that the rule compares; `same` takes several
    visits.
    """
    speedup, noise, verdict = case
    record_imported(
        engine, in_visits(a_job(), 6 if verdict == "same" else 1, speedups=(speedup,), noise=noise)
    )
    found = evidence(engine)
    timed = check_stored(found)
    result = timed.pooling.speedup
    assert timed.verdict == verdict == ratio_verdict(result.low, result.high)
    how = worked_rule(timed)[-1].how
    decisive = {
        "unclear": (result.low, result.high),
        "slower": (result.high,),
        "faster": (result.low,),
    }
    assert all(f"{end:.3f}" in how for end in decisive.get(verdict, (result.low, result.high)))


def test_flagged_attempts_are_shown_and_not_used(engine: Engine) -> None:
    """One that a flag marks as wrong stands among the attempts, and the answer rests on the
    others.
    """
    wrong = an_outcome(a_job(), speedups=(3.0,), flags=("consistency_check_failed",))
    record_imported(
        engine, [wrong, an_outcome(a_job(), speedups=(1.5,), seed=1, flags=("contended",))]
    )
    found = evidence(engine)
    timed = check_stored(found)
    assert [each.used for each in found.attempts] == [False, True]
    assert [each.flags for each in found.attempts] == ["consistency_check_failed", "contended"]
    assert [each.row.attempt for each in timed.attempts] == [2]


def test_quarantined_short_and_unsettled_answers(engine: Engine) -> None:
    """Each of the first two has its reason in the last line; of an attempt that was not settled the
    later half counts.
    """
    record_imported(engine, [an_outcome(a_job(64), flags=("thermal_slowdown",))])
    found = evidence(engine)
    assert "slowed" in worked_rule(check_stored(found))[-1].how
    (question,) = rows(engine, "SELECT comparison_id FROM effect_row")
    record_imported(engine, [an_outcome(a_job(96), pairs=10)])
    ids = {row["comparison_id"] for row in rows(engine, "SELECT comparison_id FROM effect_row")} - {
        question["comparison_id"]
    }
    short = point_evidence(engine, ids.pop())
    assert worked_rule(check_stored(short))[-1].how.startswith("10 pairs, fewer than the")
    record_imported(engine, [an_outcome(a_job(128), flags=("warmup_not_converged",))])
    (unsettled,) = rows(
        engine, "SELECT comparison_id, n FROM effect_row WHERE flags = 'warmup_not_converged'"
    )
    last = check_stored(point_evidence(engine, unsettled["comparison_id"]))
    assert unsettled["n"] == 20
    assert worked_rule(last)[0].how.startswith("20 rounds, ")
    assert (running_speedups(last)[0].number, len(shown_pairs(last))) == (21, 40)


def test_too_few_pairs_for_an_interval(engine: Engine) -> None:
    """Five pairs that vary much have an estimate and no interval; every part of the evidence still
    stands.
    """
    record_imported(engine, [an_outcome(a_job(), pairs=5, noise=2.0)])
    found = evidence(engine)
    timed = check_stored(found)
    assert "Interval" in {finding.check for finding in findings(found, timed) if finding.noise}
    assert [line.how for line in worked_rule(timed) if line.what == "Interval"] == ["there is none"]


def test_two_slots_show_the_baseline_against_itself(engine: Engine) -> None:
    """The second column is 4 % slower in each round: the null contrast shows it, and the findings
    call it no chance.
    """
    record_imported(engine, [two_slots(an_outcome(a_job(), speedups=(1.5,), noise=0.01))])
    found = evidence(engine)
    timed = check_stored(found)
    (null,) = null_contrasts(timed)
    assert exp(-null.contrast.effect) == pytest.approx(1.04, rel=1e-9)
    table = pair_rows(found, "latency")
    assert len(table) == 40
    first = table[0]
    assert {
        "baseline_1_s",
        "baseline_2_s",
        "arm_s",
        "place_baseline_1",
        "place_arm",
        "ratio",
    } <= first.keys()
    assert first["ratio"] == pytest.approx(
        (first["baseline_1_s"] * first["baseline_2_s"]) ** 0.5 / first["arm_s"]
    )
    assert [first[f"place_{name}"] for name in ("baseline_1", "arm", "baseline_2")] == [1, 2, 0]


def test_findings_of_noise_and_of_an_effect(engine: Engine) -> None:
    """Of an arm without an effect the interval and the signs raise a doubt; of a large effect
    nothing does.
    """
    record_imported(
        engine,
        [
            an_outcome(a_job(64), speedups=(1.5,)),
            an_outcome(a_job(96), speedups=(1.0,), noise=0.05),
        ],
    )
    by_effect = {}
    for number in (0, 1):
        found = evidence(engine, number)
        timed = check_stored(found)
        by_effect[timed.verdict] = {
            finding.check for finding in findings(found, timed) if finding.noise
        }
    assert by_effect["faster"] == set()
    assert {"Interval", "Sign of each pair"} <= by_effect["unclear"]


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
    outcomes = [
        an_outcome(a_job(), seed=seed).model_copy(update={"system_series": series})
        for seed in (0, 1)
    ]
    record_imported(engine, outcomes)
    found = evidence(engine)
    read = readings_by_pair(found, check_stored(found))
    assert [(row["number"], row["value"]) for row in read if row["reading"] == "cpu_mhz"] == [
        (10, 2000),
        (50, 2000),
    ]
    foreign = [row["value"] for row in read if row["reading"] == "foreign_cores"]
    assert foreign == pytest.approx([0.5, 0.2, 0.5, 0.2])


def test_failures_are_shown_with_their_traceback(engine: Engine) -> None:
    """No times, and every attempt with what it reported."""
    failure = Failure(arm=1, reason="error", message="<b>no</b>", detail="Traceback\nKeyError: 1")
    record_imported(engine, [an_outcome(a_job(), failures=[failure])])
    found = evidence(engine)
    assert found.failed
    assert not found.timed
    assert [each.failure for each in found.attempts] == [failure]
    assert found.attempts[0].arms["arm"] == {}


def test_an_answer_elsewhere_is_named(engine: Engine) -> None:
    """The newest place is shown by default, each by its host, and a place without an answer is
    refused with those that have one.
    """
    record_imported(
        engine,
        [
            an_outcome(a_job(), host="old"),
            an_outcome(a_job(), host="new", ended_at=1_790_000_100.0),
        ],
    )
    newest = evidence(engine)
    assert newest.place.host == "new"
    assert [row["host"] for row in newest.elsewhere] == ["old"]
    assert evidence(engine, host="old").place.host == "old"
    with pytest.raises(
        StoreError, match=r"no answer on host else; it has one in environment \w+ on host new"
    ):
        evidence(engine, host="else")


def test_unknown_ids_are_refused_with_the_nearest(engine: Engine) -> None:
    """A typing error names the id that begins alike, a question's id the comparison that answers
    it.
    """
    record_imported(engine, [an_outcome(a_job())])
    found = evidence(engine)
    with pytest.raises(StoreError, match=f"nearest: {found.comparison_id}"):
        point_evidence(engine, found.comparison_id[:-1] + "x")
    with pytest.raises(StoreError, match=f"answered by comparison {found.comparison_id}"):
        point_evidence(engine, found.question_id)
    with pytest.raises(StoreError, match=r"contains no comparison %_$"):
        point_evidence(engine, "%_")
    assert [
        row["comparison_id"]
        for row in similar_comparisons(engine, f"deit {found.comparison.arm.method[:3]}")
    ] == [found.comparison_id]
    assert similar_comparisons(engine, "deit nothing-of-the-kind") == []
    step, size = found.comparison.arm.stack[0], found.comparison.condition.image_size
    name, value = next(
        (name, value) for name, value in step.params.items() if isinstance(value, int | float)
    )
    for words in (" ", f"{step.method} {name}={value}", str(size)):
        assert [row["comparison_id"] for row in similar_comparisons(engine, words)] == [
            found.comparison_id
        ]
    assert (
        similar_comparisons(engine, f"{name}={value + 1}")
        == similar_comparisons(engine, f"{size + 16}")
        == []
    )


def test_requested_and_unanswered(engine: Engine) -> None:
    """A comparison of a sweep that nothing has measured yet; and which sweeps request a measured
    one.
    """
    job = a_job()
    submit_sweep(
        engine, NewSweep("one", "name: one", "Why?"), [(each, {}) for each in job.comparisons()], []
    )
    with pytest.raises(StoreError, match="requested, but has no answer yet"):
        point_evidence(engine, job.comparison_ids()[0])
    record_imported(engine, [an_outcome(job)])
    assert [(each.name, each.text) for each in evidence(engine).requested_by] == [
        ("one", "name: one")
    ]


def test_accuracy_has_its_answer_and_attempts(engine: Engine) -> None:
    """What is not timed has no pairs, and all else."""
    record_imported(engine, [an_evaluation(a_job(kind="accuracy"))])
    found = evidence(engine)
    assert found.timed == ()
    assert found.place.host == ""
    assert "top1" in {row["metric"] for row in found.effects}
    assert [each.used for each in found.attempts] == [True]


def test_pairs_survive_a_round_trip_through_csv(engine: Engine) -> None:
    """Every time is written without loss."""
    outcome = an_outcome(a_job())
    record_imported(engine, [outcome])
    table = pair_rows(evidence(engine), "latency")
    text = io.StringIO()
    writer = csv.DictWriter(text, list(table[0]))
    writer.writeheader()
    writer.writerows(table)
    read = list(csv.DictReader(io.StringIO(text.getvalue())))
    assert outcome.samples is not None
    assert np.array_equal(
        [[float(row["baseline_s"]), float(row["arm_s"])] for row in read], outcome.samples.seconds
    )


def test_mean_times_that_disagree_are_flagged(engine: Engine) -> None:
    """8 % faster in 70 % of its forwards, twice as slow in the others: the ratio of means is
    stored, and a flag beside it.
    """
    outcome = two_slots(an_outcome(a_job(), speedups=(1.08,), pairs=100))
    assert outcome.samples is not None
    seconds = [
        (first, arm * (2.16 if index % 10 in {1, 4, 7} else 1), again)
        for index, (first, arm, again) in enumerate(outcome.samples.seconds)
    ]
    uneven = outcome.model_copy(
        update={"samples": outcome.samples.model_copy(update={"seconds": tuple(seconds)})}
    )
    record_imported(engine, [uneven])
    (row,) = rows(engine, "SELECT speedup, speedup_low, ratio_of_means, flags FROM speedup")
    means = np.array(seconds).mean(axis=0)
    assert row["ratio_of_means"] == pytest.approx((means[0] + means[2]) / 2 / means[1])
    assert row["ratio_of_means"] < 0.9
    assert row["speedup_low"] > 1
    assert row["flags"] == "mean_disagrees"
    found = evidence(engine)
    assert [
        each.check
        for each in findings(found, check_stored(found))
        if each.check == "Mean times" and each.noise
    ]
