"""Which points of a curve count: noisy ones do, wrong ones never, those without effect lie off it;
each host has its own curve.
"""

from collections.abc import Sequence

import pytest
from sqlalchemy import Engine

from sweeps.model.outcome import Failure
from tests.store.conftest import a_job, an_outcome, keep, submit, table, with_arms

SIZES = (64, 96, 128, 192)
CURVES = "SELECT host, axis, points, points_missing, verdict FROM break_even"
GAINS = (1.2, 1.3, 1.4, 1.5)


@pytest.mark.parametrize(
    ("speedups", "flags", "expected"),
    [
        (
            GAINS,
            ("contended", "warmup_not_converged", "low_priority", ""),
            ("always", 4, "Along tokens: faster at 16 to 144.", None),
        ),
        (
            (0.7, 1.3, 1.4, 1.5),
            ("token_trace_mismatch", "", "", ""),
            ("always", 3, "Along tokens: faster at 36 to 144.", "16"),
        ),
        (
            GAINS,
            ("thermal_slowdown",) * 4,
            ("unclear", 0, "No points were measured.", "16, 36, 64, 144"),
        ),
        (
            (1.0, 1.0, 1.4, 1.5),
            ("no_effect",) * 4,
            ("no_effect", 4, "removes nothing at 16 to", None),
        ),
        (
            (1.0, 1.0, 1.4, 1.5),
            ("no_effect", "no_effect", "", ""),
            ("always", 2, "removes nothing at 16 to", None),
        ),
    ],
)
def test_points_by_their_flags(
    *,
    engine: Engine,
    speedups: Sequence[float],
    flags: Sequence[str],
    expected: tuple[str, int, str, str | None],
) -> None:
    """A busy neighbour hides no point; a wrong one is left out and named; a method that removes
    nothing at a size neither pays nor loses there.
    """
    submit(engine, map(a_job, SIZES))
    for size, truth, flag in zip(SIZES, speedups, flags, strict=True):
        outcome = an_outcome(a_job(size), speedups=(truth,))
        keep(engine, with_arms(outcome, {}, {"flags": (flag,) if flag else ()}))
    columns = "verdict, points, why, left_out FROM break_even WHERE axis = 'tokens'"
    ((verdict, points, why, left_out),) = table(engine, f"SELECT {columns}")
    assert (verdict, points, left_out) == (expected[0], expected[1], expected[3])
    assert expected[2] in why


def test_points_of_two_hosts_are_not_spliced(engine: Engine) -> None:
    """Points shared out between two hosts are two curves, each of which lacks what the other
    measured; a whole one none.
    """
    truths = dict(zip(SIZES, (0.7, 0.9, 1.2, 1.5), strict=True))
    submit(engine, map(a_job, SIZES))
    for (size, truth), host in zip(truths.items(), "abab", strict=True):
        keep(engine, an_outcome(a_job(size), speedups=(truth,), host=host))
    along = f"{CURVES} WHERE axis <> 'image_size' ORDER BY 1, 2"
    found = [row[:4] for row in table(engine, along)]
    assert found == [(host, axis, 2, 2) for host in "ab" for axis in ("gmacs", "tokens")]
    for size, truth in truths.items():
        keep(engine, an_outcome(a_job(size), speedups=(truth,), host="c"))
    whole = table(engine, along)[-2:]
    assert whole == [("c", axis, 4, 0, "crossing") for axis in ("gmacs", "tokens")]


def test_neither_a_failure_nor_an_old_version_is_a_missing_point(engine: Engine) -> None:
    """A size that ran out of memory is answered, though it is no point; so is what was requested of
    an older version of a method and measured with the new one.
    """
    submit(engine, [a_job(size) for size in (64, 128, 4096)])
    jobs = [a_job(size, version=2) for size in (64, 128, 4096)]
    submit(engine, jobs, text="other")
    lost = Failure(arm=1, reason="out_of_memory", message="too large")
    for job in jobs:
        failures = [lost] if job is jobs[2] else []
        keep(engine, an_outcome(job, failures=failures, host="a"))
    assert {row[2:4] for row in table(engine, CURVES)} == {(2, 0)}
    assert table(engine, "SELECT host FROM failures") == [("a",)]


def test_curves_along_savings_keep_hosts_apart(engine: Engine) -> None:
    """Keep rates shared out between two hosts: a curve for each that has three of them, with the
    number that it lacks.
    """
    jobs = [a_job(keep_rates=(rate,)) for rate in (0.9, 0.7, 0.5, 0.3)]
    submit(engine, jobs)
    for place, (job, host) in enumerate(zip(jobs, "aaab", strict=True)):
        outcome = an_outcome(job, speedups=(0.9 + place / 10,), host=host)
        less = {"gmacs": (outcome.arms[1].gmacs or 0) * (1 - place / 10)}
        keep(engine, with_arms(outcome, {}, less))
    found = table(engine, f"{CURVES} WHERE axis = 'gmacs_saved'")
    assert [row[:4] for row in found] == [("a", "gmacs_saved", 3, 1)]
