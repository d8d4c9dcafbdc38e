"""Recording outcomes: everything is kept, derived figures equal the statistics, and nothing is
stored twice.
"""

import json
import math
from operator import itemgetter

import numpy as np
import pytest
from sqlalchemy import Engine, text

from store.derive import break_evens
from store.errors import StoreError
from store.rows import owners
from store.rows.transactions import writing
from store.write import queue
from store.write.merge import stored_outcome
from store.write.reanalysis import reanalyse
from store.write.record import record, record_imported
from sweeps.model.condition import Rectangle
from sweeps.model.metrics import SPEED_FLOOR
from sweeps.model.outcome import Failure, MetricValue, Outcome
from sweeps.model.profile import Activities
from sweeps.stats import timing
from sweeps.stats.curve import break_even
from sweeps.text.curves import describe_curve
from tests.fixtures.sql_rows import rows
from tests.store.conftest import (
    a_job,
    an_evaluation,
    an_outcome,
    keep,
    keep_curve,
    pooled,
    seconds_of,
    stored_curve,
    submit,
    table,
    two_slots,
    with_arms,
    with_samples,
)
from tests.store.language_fixtures import (
    a_generation,
    a_generation_job,
    a_quality_job,
    a_reading,
    larosa,
)
from tests.store.profile_fixtures import a_profile_job, a_profiled_outcome, with_changes

ME = owners.owner()
DAY = 86_400.0
NOW = 1_790_000_000.0
TIMES = ({"device": 20.0, "host": 5.0}, {"device": 12.0, "host": 6.0})
OF_CURVES = ("x_first", "x_last", "worst_loss", "largest_gain")


def outcomes_of_all_kinds() -> list[Outcome]:
    """With failures, device times, bursts, series, two slots and profiles with intervals."""
    lost = Failure(arm=1, reason="out_of_memory", message="no", detail="a\nb")
    plain = an_outcome(a_job(64, (0.3, 0.5)), failures=[lost], speedups=(1, 2), flags=["x"])
    device, bursts = seconds_of(plain).tolist(), ((0.01, 0.005), (0.02, 0.01))
    timed = with_samples(plain, event_seconds=tuple(map(tuple, device)), bursts=bursts)
    return [
        timed.model_copy(update={"process": "4:2"}),
        two_slots(an_outcome(a_job(96)), bursts=((0.01, 0.005),)),
        a_generation(a_generation_job()),
        a_reading(a_quality_job()),
        an_evaluation(a_job(kind="accuracy"), unreadable=["a/b.png"]),
        with_changes(a_profiled_outcome(a_profile_job(), TIMES)),
    ]


def test_nothing_of_an_outcome_is_lost(engine: Engine) -> None:
    """The store gives back the very outcome of every kind of job, and recognises it again."""
    outcomes = outcomes_of_all_kinds()
    for number, outcome in enumerate(outcomes, 1):
        assert keep(engine, outcome)
        with engine.connect() as connection:
            assert stored_outcome(connection, number) == outcome
        assert not keep(engine, Outcome.model_validate_json(outcome.model_dump_json()))


def test_what_tells_outcomes_apart(engine: Engine) -> None:
    """Bursts, the process, readings between rounds, the implementation, a series or a profile alone
    make another outcome.
    """
    plain, generated = an_outcome(a_job()), a_generation(a_generation_job())
    assert generated.samples is not None
    series = {"seconds": (0.2, 0.4), "rounds": (3.0, 6.0), "cpu_mhz": (None, 2000.0)}
    profile = a_profile_job()
    outcomes = [
        plain,
        with_samples(plain, bursts=((0.01, 0.02),)),
        plain.model_copy(update={"process": "4:2"}),
        plain.model_copy(update={"system_series": series}),
        with_arms(plain, {}, {"implementation": "compiled"}),
        generated,
        with_samples(
            generated, series={**generated.samples.series, "ttft": generated.samples.series["tpot"]}
        ),
        a_profiled_outcome(profile, TIMES),
        a_profiled_outcome(profile, TIMES[::-1]),
    ]
    assert [keep(engine, outcome) for outcome in outcomes] == [True] * len(outcomes)
    assert not any(keep(engine, outcome) for outcome in outcomes)
    ragged = {"system_series": {"seconds": (0.2,), "load": (1.0, 1.0)}}
    with pytest.raises(ValueError, match="the columns of system_series differ in length"):
        Outcome.model_validate(plain.model_dump() | ragged)


def test_view_equals_statistics(engine: Engine) -> None:
    """Every figure of the speedup view is what `sweeps.stats` computes from the raw samples."""
    outcome = an_outcome(a_job(keep_rates=(0.3, 0.5, 0.7)), speedups=(1.5, 1.0, 0.8), seed=3)
    keep(engine, outcome)
    seconds = seconds_of(outcome)
    found = {
        json.loads(row["params"])["keep_rate"]: row for row in rows(engine, "SELECT * FROM speedup")
    }
    for column, rate in enumerate((0.3, 0.5, 0.7), start=1):
        row, ratio = found[rate], pooled([outcome], column)
        expected = {
            "speedup": ratio.value,
            "speedup_low": ratio.low,
            "speedup_high": ratio.high,
            "pairs": 40,
            "verdict": ratio.verdict(),
            "floor": SPEED_FLOOR,
            "baseline_ms": 1e3 * timing.median(seconds[:, 0]).value,
            "arm_ms": 1e3 * timing.median(seconds[:, column]).value,
        }
        assert {name: row[name] for name in expected} == expected
    assert {row["verdict"] for row in found.values()} == {"faster", "unclear", "slower"}


def test_break_even_view_equals_break_even(engine: Engine) -> None:
    """The break_even view has what `sweeps.stats.curve` computes from the points of the
    speedup view, on both axes.
    """
    keep_curve(engine, {32: 0.7, 64: 0.9, 96: 1.0, 128: 1.2, 192: 1.6})
    for axis, column in (("tokens", "tokens"), ("gmacs", "gmacs_baseline")):
        curve = stored_curve(engine, axis, itemgetter(column))
        expected = break_even(curve)
        (found,) = rows(engine, "SELECT * FROM break_even WHERE axis = :axis", axis=axis)
        (crossing,) = expected.crossings
        assert {
            "verdict": "crossing",
            "why": describe_curve(curve),
            "points": 5,
            "x": crossing.x,
            "x_low": crossing.low,
            "x_high": crossing.high,
            "direction": "gains",
            "sweep": "sweep",
            "method": "topk",
            "device_name": "Imaginary CPU",
            **{name: getattr(expected, name) for name in OF_CURVES},
        }.items() <= found.items()


def test_a_rectangle_is_a_point_between_squares(engine: Engine) -> None:
    """24 tokens of 64 x 96 pixels lie on the curve of the squares, and have their own shape and
    quality.
    """
    keep_curve(engine, {64: 0.7, Rectangle(height=64, width=96): 1.2, 128: 1.3})
    places = "SELECT x_low, x_high FROM break_even WHERE axis = 'tokens'"
    assert table(engine, places) == [(16, 24)]
    keep(engine, an_outcome(a_job(Rectangle(height=96, width=64))))
    sizes = "SELECT image_size, image_shape, quality_pair_id FROM speedup ORDER BY tokens"
    _, wide, high, _ = found = table(engine, sizes)
    assert {wide[1], high[1]} == {"64x96", "96x64"}
    assert wide[0] == pytest.approx((64 * 96) ** 0.5)
    assert len({row[2] for row in found}) == 4


def test_sweep_of_answered_questions_has_its_break_evens(engine: Engine) -> None:
    """A sweep that requests what is answered already has break-evens at once; one without answers
    has none.
    """
    jobs = [a_job(size) for size in (32, 64, 96)]
    for job, truth in zip(jobs, (0.7, 0.8, 1.5), strict=True):
        keep(engine, an_outcome(job, speedups=(truth,)))
    assert table(engine, "SELECT * FROM break_even") == []
    submit(engine, jobs, "later")
    submit(engine, jobs[:1], "part")
    wanted = "sweep, verdict, points FROM break_even WHERE axis = 'tokens'"
    found = table(engine, f"SELECT {wanted} ORDER BY sweep")
    assert found == [("later", "crossing", 3), ("part", "unclear", 1)]


def test_recording_twice_changes_nothing(engine: Engine) -> None:
    """The same outcome again is distinguished from a new one, whether it was measured here or
    imported.
    """
    (claimed,) = queue.claim(engine, submit(engine, [a_job()]), owner=ME)
    outcome = an_outcome(claimed.job)
    assert record(engine, claimed.row, ME, outcome)
    assert not record(engine, claimed.row, ME, outcome)
    assert not keep(engine, outcome)
    assert keep(engine, an_outcome(claimed.job, seed=1))
    counted = table(engine, "SELECT source, n FROM attempt ORDER BY id")
    assert counted == [("measured", 1), ("imported", 1)]
    assert table(engine, "SELECT pairs, rounds, source FROM speedup") == [(80, 2, "measured")]


def test_a_raised_version_replaces_the_answer(engine: Engine) -> None:
    """The view shows the newest comparison_id of a question, by the time of measuring and not of
    importing.
    """
    new = an_outcome(a_job(version=2), speedups=(2.0,), ended_at=NOW + DAY)
    old = an_outcome(a_job(version=1), speedups=(1.2,), ended_at=NOW)
    keep(engine, new)
    keep(engine, old)
    ((speedup, comparison),) = table(engine, "SELECT speedup, comparison_id FROM speedup")
    assert speedup == pytest.approx(2.0, rel=0.02)
    assert comparison == new.job.comparison_ids()[0] != old.job.comparison_ids()[0]


def test_few_pairs_are_no_answer(engine: Engine) -> None:
    """Fewer than requested have no verdict; where they vary too much for an interval its ends are
    NULL, not 0 and infinity.
    """
    few = an_outcome(a_job(), pairs=3)
    keep(engine, few)
    keep(engine, an_outcome(a_job(96), pairs=3, noise=2.0))
    wanted = "speedup_low, speedup_high, verdict, pairs FROM speedup ORDER BY image_size DESC"
    expected = pooled([few])
    assert table(engine, f"SELECT {wanted}") == [
        (expected.low, expected.high, "insufficient", 3),
        (None, None, "insufficient", 3),
    ]


def test_metrics_are_long_rows(engine: Engine) -> None:
    """Metrics join to speed-ups through comparison_attempt; one that is not finite stays in the
    payload alone.
    """
    outcome = an_outcome(a_job())
    odd = MetricValue(name="odd", value=math.nan, unit="W")
    keep(engine, with_arms(outcome, {}, {"metrics": (*outcome.arms[1].metrics, odd)}))
    joined = """SELECT m.metric, m.value, m.unit FROM metric AS m
      JOIN comparison_attempt AS p ON p.attempt = m.attempt AND p.arm = m.arm"""
    assert table(engine, joined) == [("rss_before", 513.0, "MiB")]
    with engine.connect() as connection:
        assert math.isnan(stored_outcome(connection, 1).arms[1].metrics[1].value)


def test_reanalyse_rebuilds_every_derived_row(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Derived rows that were lost or spoilt come back from the raw data of every kind, for all
    sweeps or for one.
    """
    monkeypatch.setattr(break_evens, "BATCH", 2)
    monkeypatch.setattr("store.write.reanalysis.BATCH", 2)
    keep_curve(engine, {32: 0.7, 64: 0.8, 96: 1.5, 128: 1.6})
    record_imported(engine, outcomes_of_all_kinds())
    views = ("effect", "speedup", "accuracy", "quality", "generation", "break_even", "cost_model")

    def shown() -> list[list[str]]:
        return [sorted(map(str, table(engine, f"SELECT * FROM {view}"))) for view in views]

    before = shown()
    with writing(engine) as connection:
        connection.execute(text("DELETE FROM break_even_row"))
        connection.execute(text("UPDATE effect_row SET baseline_value = 7, analysis_version = 0"))
    assert shown() != before
    assert reanalyse(engine, "another sweep") == 0
    assert reanalyse(engine, "sweep") == 4
    assert reanalyse(engine) == 9
    assert shown() == before


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        (
            with_samples(an_outcome(a_job()), seconds=((0.1,), (0.1, 0.1))),
            "a round of seconds has 1",
        ),
        (an_evaluation(a_job(kind="accuracy")), "labels has 1000 values for 7 images"),
        (a_reading(a_quality_job()), "bytes has 200 values for 7 windows"),
        (a_profiled_outcome(a_profile_job(), TIMES), "'warp_speed' is no counter; known are sm_th"),
    ],
)
def test_an_outcome_that_contradicts_itself_is_refused(
    engine: Engine, outcome: Outcome, message: str
) -> None:
    """Ragged samples, arrays of another length, and a counter that has no column: nothing of the
    outcome is stored, nor of those that are imported with it.
    """
    spoilt: dict[str, object] = {}
    if outcome.predictions is not None:
        spoilt["predictions"] = outcome.predictions.model_copy(update={"images": 7})
    if outcome.text_scores is not None:
        spoilt["text_scores"] = outcome.text_scores.model_copy(update={"windows": 7})
    if outcome.profiles is not None:
        kernel = Activities(
            name="g", activity="kernel", count=2, seconds=1, counters={"warp_speed": 9}
        )
        wrong = [each.model_copy(update={"activities": (kernel,)}) for each in outcome.profiles]
        spoilt["profiles"] = tuple(wrong)
    with pytest.raises(StoreError, match=message):
        record_imported(engine, [an_outcome(a_job(32)), outcome.model_copy(update=spoilt)])
    assert table(engine, "SELECT * FROM attempt") == []


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        (an_outcome(a_job()), "neither samples nor a failure for arm 1, topk(keep_rate=0.5"),
        (an_evaluation(a_job(kind="accuracy")), "neither predictions nor a failure for arm 1"),
        (a_reading(a_quality_job(), (0.0, math.nan)), "neither a finite score nor a failure"),
        (a_profiled_outcome(a_profile_job(), TIMES), "no profile of forward and no failure"),
        (with_samples(an_outcome(a_job()), seconds=((0.0, 0.01),) * 40), "not positive and finite"),
        (
            with_samples(an_outcome(a_job()), seconds=((math.inf, 0.01),) * 40),
            "not positive and finite for arm 0, dense",
        ),
    ],
)
def test_silence_is_an_error(engine: Engine, outcome: Outcome, message: str) -> None:
    """A pair without results is not lost: it is a failure that is no answer. Times that cannot be
    are kept raw, and never reach the statistics.
    """
    if "nor a failure for" in message:
        outcome = outcome.model_copy(update={"samples": None, "predictions": None})
    if outcome.profiles is not None:
        outcome = outcome.model_copy(update={"profiles": outcome.profiles[:1]})
    keep(engine, outcome)
    ((reason, why),) = table(engine, "SELECT reason, message FROM failures")
    assert (reason, message in why) == ("error", True)
    with engine.connect() as connection:
        assert stored_outcome(connection, 1).samples == outcome.samples


def test_failures_of_one_metric_or_several(engine: Engine) -> None:
    """The failed arm is in failures and not in speedup, the other one the other way round;
    measuring later clears it.
    """
    job, failed = a_job(keep_rates=(0.3, 0.5)), "SELECT params, reason, message, at FROM failures"
    params = '{"keep_rate":%s,"layers":[3,6,9]}'
    full = Failure(arm=1, reason="out_of_memory", message="no room")
    keep(engine, an_outcome(job, speedups=(1, 2), failures=[full]))
    assert table(engine, "SELECT params FROM speedup") == [(params % 0.5,)]
    expected = (params % 0.3, "out_of_memory", "no room", "2026-09-21T14:13:20.000Z")
    assert table(engine, failed) == [expected]
    keep(engine, an_outcome(job, speedups=(1, 2), seed=1))
    assert table(engine, failed) == []
    assert table(engine, "SELECT count(*) FROM failure") == [(1,)]
    wrong = a_quality_job([larosa(0.5)])
    keep(engine, a_reading(wrong, failures=[Failure(arm=1, reason="not_a_number", message="nan")]))
    assert table(engine, "SELECT kind, reason FROM failures") == [("quality", "not_a_number")]


@pytest.mark.parametrize(("arm", "failures"), [(0, 2), (1, 1), (None, 2)])
def test_who_fails_with_whom(engine: Engine, arm: int | None, failures: int) -> None:
    """A failed baseline fails all its pairs, a failed arm its own, a failed job everything."""
    failure = Failure(arm=arm, reason="crash", message="signal 11")
    keep(engine, an_outcome(a_job(keep_rates=(0.3, 0.5)), speedups=(1, 1), failures=[failure]))
    assert len(table(engine, "SELECT * FROM failures")) == failures


@pytest.mark.parametrize(("reason", "state"), [("timeout", "done"), ("error", "failed")])
def test_state_of_the_job(engine: Engine, reason: str, state: str) -> None:
    """Failures that answer the question end a job as done, an unforeseen exception as failed."""
    sweep = submit(engine, [a_job()])
    (claimed,) = queue.claim(engine, sweep, owner=ME)
    failure = Failure(arm=1, reason=reason, message="so")
    record(engine, claimed.row, ME, an_outcome(claimed.job, failures=[failure]))
    assert queue.progress(engine, sweep).counts[state] == 1


def test_numbers_must_be_numbers(engine: Engine) -> None:
    """The database itself refuses text and impossible values in columns of figures."""
    keep(engine, an_outcome(a_job()))
    for change in (
        "UPDATE effect_row SET effect = 'fast'",
        "UPDATE effect_row SET effect = -1",
        "UPDATE effect_row SET effect_high = 9e999",
        "UPDATE effect_row SET verdict = 'great'",
        "UPDATE attempt SET ended_at = 1",
        "UPDATE metric_row SET value = 'much'",
        "UPDATE comparison_attempt SET comparison_id = 'nothing'",
    ):
        with pytest.raises(StoreError, match="constraint failed"), writing(engine) as connection:
            connection.execute(text(change))


def test_both_slots_of_the_baseline_count(engine: Engine) -> None:
    """A baseline that was timed twice in each round is the mean of both by logarithms, and its
    median that of all its times.
    """
    once = an_outcome(a_job(), speedups=(1.5,))
    record_imported(engine, [once, two_slots(an_outcome(a_job(64), speedups=(1.5,)))])
    wanted = "speedup, pairs, rounds, baseline_ms FROM speedup ORDER BY image_size DESC"
    first, second = table(engine, f"SELECT {wanted}")
    assert second[0] == pytest.approx(1.04**0.5 * first[0], rel=2e-3)
    assert second[1:3] == (40, 1)
    baseline = seconds_of(once)[:, 0]
    assert second[3] == 1e3 * np.median(np.concatenate([baseline, 1.04 * baseline]))
