"""Recording outcomes: everything is kept, derived figures equal the statistics, and nothing is
stored twice.
"""

import json
import math
import zlib
from operator import itemgetter

import numpy as np
import pytest
from sqlalchemy import Engine, text

from store.derive import break_evens
from store.rows import owners
from store.rows.samples import unpack_samples
from store.rows.transactions import writing
from store.write import queue
from store.write.reanalysis import reanalyse
from store.write.record import record
from store.write.submission import NewSweep, submit_sweep
from sweeps.model.condition import Rectangle
from sweeps.model.metrics import SPEED_FLOOR
from sweeps.model.outcome import Failure, MetricValue, Outcome, Samples
from sweeps.stats import timing
from sweeps.stats.curve import break_even
from sweeps.text.curves import describe_curve
from tests.fixtures.sql_rows import rows
from tests.store.conftest import a_job, an_outcome, keep, pooled, stored_curve, two_slots

ME = owners.owner()
DAY = 86_400.0
NOW = 1_790_000_000.0
OF_CURVES = ("x_first", "x_last", "worst_loss", "largest_gain")


def bursts_of(packed: bytes, arms: int) -> tuple[tuple[float, ...], ...]:
    """The table of bursts in a column of `sample`."""
    return tuple(
        map(tuple, np.frombuffer(zlib.decompress(packed), "<f8").reshape(-1, arms).tolist())
    )


def rebuilt(engine: Engine, attempt: int) -> Outcome:
    """The outcome as the store remembers it."""
    (kept,) = rows(engine, "SELECT payload FROM attempt WHERE id = :attempt", attempt=attempt)
    document = json.loads(kept["payload"])
    with engine.connect() as connection:
        row = connection.execute(
            text("SELECT * FROM sample WHERE attempt = :attempt"), {"attempt": attempt}
        ).one_or_none()
    if row is not None:
        timings = unpack_samples(row)
        order = np.frombuffer(zlib.decompress(row.run_order), "<i4").reshape(
            row.rounds, row.columns
        )
        device = timings.event_seconds
        document["samples"] = Samples(
            arms=tuple(timings.arms),
            seconds=tuple(map(tuple, timings.seconds.tolist())),
            event_seconds=None if device is None else tuple(map(tuple, device.tolist())),
            order=tuple(map(tuple, order.tolist())),
            inner=tuple(json.loads(row.inner)),
            stopped=row.stopped,
            bursts=None if row.bursts is None else bursts_of(row.bursts, len(set(timings.arms))),
        )
    return Outcome.model_validate(document)


def test_nothing_of_an_outcome_is_lost(engine: Engine) -> None:
    """The attempt with its samples gives back the very outcome, device times, bursts and failures
    included.
    """
    job = a_job(keep_rates=(0.3, 0.5))
    outcome = an_outcome(
        job,
        failures=[Failure(arm=1, reason="out_of_memory", message="no", detail="a\nb")],
        speedups=(1, 2),
        flags=["x"],
    )
    assert outcome.samples is not None
    further = {"event_seconds": outcome.samples.seconds, "bursts": ((0.01, 0.005), (0.02, 0.01))}
    outcome = outcome.model_copy(
        update={"samples": outcome.samples.model_copy(update=further), "process": "4:2"}
    )
    keep(engine, outcome)
    assert rebuilt(engine, 1) == outcome
    slots = two_slots(an_outcome(a_job()), bursts=((0.01, 0.005),))
    keep(engine, slots)
    assert rebuilt(engine, 2) == slots


def test_view_equals_statistics(engine: Engine) -> None:
    """Every figure of the speedup view is what `sweeps.stats` computes from the raw samples."""
    outcome = an_outcome(a_job(keep_rates=(0.3, 0.5, 0.7)), speedups=(1.5, 1.0, 0.8), seed=3)
    keep(engine, outcome)
    assert outcome.samples is not None
    seconds = np.array(outcome.samples.seconds)
    found = {row["params"]: row for row in rows(engine, "SELECT * FROM speedup")}
    assert len(found) == 3
    for column, rate in enumerate((0.3, 0.5, 0.7), start=1):
        row = found[f'{{"keep_rate":{rate},"layers":[3,6,9]}}']
        ratio = pooled([outcome], column)
        assert (row["speedup"], row["speedup_low"], row["speedup_high"]) == (
            ratio.value,
            ratio.low,
            ratio.high,
        )
        assert (row["pairs"], row["verdict"], row["floor"]) == (40, ratio.verdict(), SPEED_FLOOR)
        assert row["baseline_ms"] == 1e3 * timing.median(seconds[:, 0]).value
        assert row["arm_ms"] == 1e3 * timing.median(seconds[:, column]).value
    assert {row["verdict"] for row in found.values()} == {"faster", "unclear", "slower"}


def test_break_even_view_equals_break_even(engine: Engine) -> None:
    """The break_even view has what `sweeps.stats.curve` computes from the points of the
    speedup view, on both axes.
    """
    jobs = [a_job(size) for size in (32, 64, 96, 128, 192)]
    requested = [
        (comparison, job.content_hashes) for job in jobs for comparison in job.comparisons()
    ]
    submit_sweep(engine, NewSweep("sweep", "text", "?"), requested, jobs)
    for job, truth in zip(jobs, (0.7, 0.9, 1.0, 1.2, 1.6), strict=True):
        keep(engine, an_outcome(job, speedups=(truth,)))
    for axis, column in (("tokens", "tokens"), ("gmacs", "gmacs_baseline")):
        curve = stored_curve(engine, axis, itemgetter(column))
        expected = break_even(curve)
        (found,) = rows(engine, "SELECT * FROM break_even WHERE axis = :axis", axis=axis)
        (crossing,) = expected.crossings
        assert (found["verdict"], found["why"], found["points"]) == (
            "crossing",
            describe_curve(curve),
            5,
        )
        assert (found["x"], found["x_low"], found["x_high"], found["direction"]) == (
            crossing.x,
            crossing.low,
            crossing.high,
            "gains",
        )
        assert {name: found[name] for name in OF_CURVES} == {
            name: getattr(expected, name) for name in OF_CURVES
        }
        assert (found["sweep"], found["method"], found["device_name"]) == (
            "sweep",
            "topk",
            "Imaginary CPU",
        )


def test_a_rectangle_is_a_point_between_squares(engine: Engine) -> None:
    """24 tokens of 64 x 96 pixels lie on the curve of the squares, and have their own shape and
    quality.
    """
    jobs = [a_job(size) for size in (64, Rectangle(height=64, width=96), 128)]
    submit_sweep(engine, NewSweep("sweep", "text", "?"), jobs, [])
    for job, truth in zip(jobs, (0.7, 1.2, 1.3), strict=True):
        keep(engine, an_outcome(job, speedups=(truth,)))
    (found,) = rows(engine, "SELECT x_low, x_high FROM break_even WHERE axis = 'tokens'")
    assert (found["x_low"], found["x_high"]) == (16, 24)
    sizes = "SELECT image_size, image_shape, tokens, quality_pair_id FROM speedup ORDER BY tokens"
    small, wide, large = rows(engine, sizes)
    assert [row["image_shape"] for row in (small, wide, large)] == [None, "64x96", None]
    assert wide["image_size"] == pytest.approx((64 * 96) ** 0.5)
    other = a_job(Rectangle(height=96, width=64))
    keep(engine, an_outcome(other))
    assert len({row["quality_pair_id"] for row in rows(engine, sizes)}) == 4


def test_sweep_of_answered_questions_has_its_break_evens(engine: Engine) -> None:
    """A sweep that requests what is answered already has break-evens at once; one without answers
    has none.
    """
    jobs = [a_job(size) for size in (32, 64, 96)]
    for job, truth in zip(jobs, (0.7, 0.8, 1.5), strict=True):
        keep(engine, an_outcome(job, speedups=(truth,)))
    assert rows(engine, "SELECT * FROM break_even") == []
    submit_sweep(engine, NewSweep("later", "text", "?"), jobs, [])
    submit_sweep(engine, NewSweep("part", "text", "?"), jobs[0].comparisons(), [])
    found = rows(
        engine, "SELECT sweep, verdict, points FROM break_even WHERE axis = 'tokens' ORDER BY sweep"
    )
    assert [tuple(row.values()) for row in found] == [
        ("later", "crossing", 3),
        ("part", "unclear", 1),
    ]


def test_recording_twice_changes_nothing(engine: Engine) -> None:
    """The same outcome again is distinguished from a new one, whether it was measured here or
    imported.
    """
    sweep = submit_sweep(engine, NewSweep("sweep", "text", "?"), a_job().comparisons(), [a_job()])
    (claimed,) = queue.claim(engine, sweep, owner=ME)
    outcome = an_outcome(claimed.job)
    assert record(engine, claimed.row, ME, outcome)
    assert not record(engine, claimed.row, ME, outcome)
    assert not keep(engine, Outcome.model_validate_json(outcome.model_dump_json()))
    assert keep(engine, an_outcome(claimed.job, seed=1))
    counted = rows(engine, "SELECT source, n FROM attempt ORDER BY id")
    assert [tuple(row.values()) for row in counted] == [("measured", 1), ("imported", 1)]
    assert rows(engine, "SELECT pairs, rounds, source FROM speedup") == [
        {"pairs": 80, "rounds": 2, "source": "measured"}
    ]


def test_wrong_attempts_count_only_alone(engine: Engine) -> None:
    """An attempt that a flag marks as wrong is shown with its flags until there is a right one."""
    keep(engine, an_outcome(a_job(), speedups=(3,), flags=["thermal_slowdown", "contended"]))
    assert rows(engine, "SELECT flags, rounds FROM speedup") == [
        {"flags": "contended,thermal_slowdown", "rounds": 1}
    ]
    keep(engine, an_outcome(a_job(), speedups=(1.5,), seed=1))
    (row,) = rows(engine, "SELECT flags, rounds, speedup FROM speedup")
    assert (row["flags"], row["rounds"]) == ("", 1)
    assert row["speedup"] == pytest.approx(1.5, rel=0.02)


def test_a_raised_version_replaces_the_answer(engine: Engine) -> None:
    """The view shows the newest comparison_id of a question, by the time of measuring and not of
    importing.
    """
    new = an_outcome(a_job(version=2), speedups=(2.0,), ended_at=NOW + DAY)
    old = an_outcome(a_job(version=1), speedups=(1.2,), ended_at=NOW)
    keep(engine, new)
    keep(engine, old)
    (row,) = rows(engine, "SELECT speedup, question_id, comparison_id FROM speedup")
    assert row["speedup"] == pytest.approx(2.0, rel=0.02)
    assert row["comparison_id"] == new.job.comparison_ids()[0] != old.job.comparison_ids()[0]


def test_few_pairs_are_no_answer(engine: Engine) -> None:
    """Fewer than requested have no verdict; where they vary too much for an interval its ends are
    NULL, not 0 and infinity.
    """
    keep(engine, an_outcome(a_job(), pairs=3))
    keep(engine, an_outcome(a_job(96), pairs=3, noise=2.0))
    found = rows(
        engine,
        "SELECT speedup_low, speedup_high, verdict, pairs FROM speedup ORDER BY image_size DESC",
    )
    assert [(row["verdict"], row["pairs"]) for row in found] == [("insufficient", 3)] * 2
    expected = pooled([an_outcome(a_job(), pairs=3)])
    assert (found[0]["speedup_low"], found[0]["speedup_high"]) == (expected.low, expected.high)
    assert (found[1]["speedup_low"], found[1]["speedup_high"]) == (None, None)


def test_metrics_are_long_rows(engine: Engine) -> None:
    """Metrics join to speed-ups through comparison_attempt; one that is not finite stays in the
    payload alone.
    """
    outcome = an_outcome(a_job())
    odd = outcome.arms[1].model_copy(
        update={
            "metrics": (*outcome.arms[1].metrics, MetricValue(name="odd", value=math.nan, unit="W"))
        }
    )
    keep(engine, outcome.model_copy(update={"arms": (outcome.arms[0], odd)}))
    joined = """SELECT m.metric, m.value, m.unit FROM metric AS m
      JOIN comparison_attempt AS p ON p.attempt = m.attempt AND p.arm = m.arm"""
    assert rows(engine, joined) == [{"metric": "rss_before", "value": 513.0, "unit": "MiB"}]
    assert math.isnan(rebuilt(engine, 1).arms[1].metrics[1].value)


def test_reanalyse_rebuilds_every_derived_row(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Derived rows that were lost or spoilt come back from the raw samples, for all sweeps or for
    one.
    """
    monkeypatch.setattr(break_evens, "BATCH", 2)
    monkeypatch.setattr("store.write.reanalysis.BATCH", 2)
    jobs = [a_job(size) for size in (32, 64, 96, 128)]
    submit_sweep(engine, NewSweep("sweep", "text", "?"), jobs, [])
    for job, truth in zip(jobs, (0.7, 0.8, 1.5, 1.6), strict=True):
        keep(engine, an_outcome(job, speedups=(truth,)))
    views = ("speedup", "break_even")
    before = [rows(engine, f"SELECT * FROM {view} ORDER BY 1, 2, 3, 12") for view in views]
    with writing(engine) as connection:
        connection.execute(text("DELETE FROM break_even_row"))
        connection.execute(text("UPDATE effect_row SET effect = 7, analysis_version = 0"))
    assert reanalyse(engine, "another sweep") == 0
    assert reanalyse(engine, "sweep") == 4
    assert [rows(engine, f"SELECT * FROM {view} ORDER BY 1, 2, 3, 12") for view in views] == before
    assert reanalyse(engine) == 4
