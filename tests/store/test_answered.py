"""Which questions need not be measured again, and the lists of `store.read.queries`."""

from collections.abc import Sequence

import pytest
from sqlalchemy import Engine

from store.errors import StoreError
from store.read import queries
from store.read.answers import answers, doubted
from store.read.user_sql import run_query
from store.rows import owners
from store.write import queue
from store.write.record import record
from store.write.submission import NewSweep, submit_sweep
from sweeps.model.job import Protocol
from sweeps.model.outcome import Environment, Failure, Outcome
from tests.store.conftest import CPU, a_job, an_outcome, keep


def rows(engine: Engine, sql: str) -> list[tuple[object, ...]]:
    return run_query(engine.url.database, sql).rows


def is_answered(engine: Engine, outcomes: Sequence[Outcome], requested: Protocol) -> bool:
    for outcome in outcomes:
        keep(engine, outcome)
    comparison, environment = (
        outcomes[0].job.comparison_ids()[0],
        outcomes[0].environment.environment_id,
    )
    found = answers(engine, {comparison: requested}, [environment])
    return found.answered == {(comparison, number) for number in range(requested.rounds)}


@pytest.mark.parametrize(
    ("measured", "noise", "requested", "expected"),
    [
        (Protocol(), 0.001, Protocol(), True),  # narrow enough
        (
            Protocol(budget_s=1),
            0.001,
            Protocol(budget_s=99, half_width=0.1),
            True,
        ),  # narrow enough, however it was measured
        (
            Protocol(budget_s=1),
            0.001,
            Protocol(budget_s=99),
            False,
        ),  # the default, which no single attempt reaches
        (Protocol(), 0.5, Protocol(), True),  # wide, but requesting the same again would not help
        (Protocol(), 0.5, Protocol(budget_s=99), False),  # wide, and now more is requested
        (Protocol(), 0.01, Protocol(half_width=0.0001), False),
        (Protocol(), 0.001, Protocol(pairs_min=100), False),
        (Protocol(), 0.001, Protocol(rounds=2), False),
    ],
)
def test_precision(
    *, engine: Engine, measured: Protocol, noise: float, requested: Protocol, expected: bool
) -> None:
    """An answer counts if it is as narrow as requested, or was measured under a protocol that
    requested as much.
    """
    assert (
        is_answered(engine, [an_outcome(a_job(protocol=measured), noise=noise)], requested)
        is expected
    )


def test_rounds(engine: Engine) -> None:
    """Each round is answered on its own; flagged ones count."""
    protocol = Protocol(rounds=3)
    rounds = [a_job(protocol=protocol).model_copy(update={"round": number}) for number in range(3)]
    (comparison,) = rounds[0].comparison_ids()
    for number in (0, 2):
        keep(engine, an_outcome(rounds[number], seed=number, flags=["contended"]))
    assert answers(engine, {comparison: protocol}, [CPU.environment_id]).answered == {
        (comparison, 0),
        (comparison, 2),
    }


def test_pairs_reached_decide_not_pairs_requested(engine: Engine) -> None:
    """An attempt that was cut short answers nothing, however little its pairs scatter; the next one
    adds its pairs to them.
    """
    cut = an_outcome(a_job(), pairs=12, noise=0.0001)
    comparison, environment = cut.job.comparison_ids()[0], cut.environment.environment_id
    keep(engine, cut)
    assert answers(engine, {comparison: Protocol()}, [environment])[:3] == (
        set(),
        {(comparison, 0): 12},
        {},
    )
    assert rows(engine, "SELECT verdict FROM speedup") == [("insufficient",)]
    keep(engine, an_outcome(a_job(), pairs=18, noise=0.0001, seed=1))
    assert answers(engine, {comparison: Protocol()}, [environment])[:3] == (
        {(comparison, 0)},
        {},
        {},
    )
    assert rows(engine, "SELECT verdict, pairs FROM speedup") == [("faster", 30)]


def test_each_round_needs_its_pairs(engine: Engine) -> None:
    """Many pairs in one round do not stand in for another round that was cut short."""
    protocol = Protocol(rounds=2)
    for number, pairs in enumerate((300, 5)):
        job = a_job(protocol=protocol).model_copy(update={"round": number})
        keep(engine, an_outcome(job, pairs=pairs, seed=number))
    (comparison,) = job.comparison_ids()
    found = answers(engine, {comparison: protocol}, [CPU.environment_id])
    assert (found.answered, found.pairs) == ({(comparison, 0)}, {(comparison, 1): 5})
    assert rows(engine, "SELECT verdict FROM speedup") == [("insufficient",)]


def test_pairs_of_other_environments_do_not_add_up(engine: Engine) -> None:
    """Twenty pairs on each of two machines are no forty pairs."""
    there = Environment(device="cpu", device_name="Another CPU")
    outcomes = [an_outcome(a_job(), pairs=20), an_outcome(a_job(), pairs=20, environment=there)]
    for outcome in outcomes:
        keep(engine, outcome)
    (comparison,) = a_job().comparison_ids()
    found = answers(
        engine,
        {comparison: Protocol()},
        [outcome.environment.environment_id for outcome in outcomes],
    )
    assert (found.answered, found.pairs) == (set(), {(comparison, 0): 20})


def test_wrong_pairs_count_until_right_ones_suffice(engine: Engine) -> None:
    """A few right pairs do not displace a whole attempt that a flag marks as wrong; enough of them
    do.
    """
    keep(engine, an_outcome(a_job(), flags=["state_changed"]))
    for seed, (pairs, expected) in enumerate([(5, ("state_changed", 45)), (30, ("", 35))], start=1):
        keep(engine, an_outcome(a_job(), pairs=pairs, seed=seed))
        assert rows(engine, "SELECT flags, pairs FROM speedup") == [expected]


@pytest.mark.parametrize(
    ("flag", "pairs"),
    [("contended", 80), ("warmup_not_converged", 60), ("low_priority", 80), ("pass_skipped", 80)],
)
def test_noisy_pairs_count_like_any(engine: Engine, flag: str, pairs: int) -> None:
    """A flag that does not mark the measurement as wrong takes no pair away but those of an
    unfinished warm-up.
    """
    keep(engine, an_outcome(a_job(), flags=[flag]))
    keep(engine, an_outcome(a_job(), seed=1))
    assert rows(engine, "SELECT flags, pairs FROM speedup") == [(flag, pairs)]


def test_doubted_answers(engine: Engine) -> None:
    """Flagged, unclear and failed answers are found by themselves, for measuring them again."""
    kinds = {
        32: {"flags": ["contended"]},
        64: {"speedups": (1.0,), "noise": 0.03},
        96: {"failures": [Failure(arm=1, reason="crash", message="so")]},
        128: {},
    }
    for size, how in kinds.items():
        keep(engine, an_outcome(a_job(size), **how))
    for doubt, size in (("flagged", 32), ("unclear", 64), ("failed", 96)):
        assert doubted(engine, doubt, [CPU.environment_id]) == set(a_job(size).comparison_ids())


@pytest.mark.parametrize(
    ("reason", "requested", "expected"),
    [
        ("out_of_memory", Protocol(), True),
        ("unsupported", Protocol(half_width=0.0001, rounds=3), True),
        ("error", Protocol(), False),
        ("timeout", Protocol(), True),
        ("timeout", Protocol(timeout_s=999), False),
    ],
)
def test_failures(*, engine: Engine, reason: str, requested: Protocol, expected: bool) -> None:
    """Failures that answer the question are answers; a time-out only while no more time is
    allowed.
    """
    outcome = an_outcome(a_job(), failures=[Failure(arm=1, reason=reason, message="so")])
    assert is_answered(engine, [outcome], requested) is expected


def test_other_environments_and_versions(engine: Engine) -> None:
    """Neither another machine's answer nor that of an older method version counts."""
    outcome = an_outcome(a_job(version=1))
    keep(engine, outcome)
    old, new = outcome.job.comparison_ids()[0], a_job(version=2).comparison_ids()[0]
    assert answers(engine, {old: Protocol()}, ["elsewhere"]).answered == set()
    found = answers(
        engine, {old: Protocol(), new: Protocol()}, [outcome.environment.environment_id]
    )
    assert found.answered == {(old, 0)}


def test_sweeps(engine: Engine) -> None:
    """The list of sweeps counts comparisons, answers and jobs."""
    jobs = [a_job(size) for size in (32, 64, 96)]
    row = submit_sweep(engine, NewSweep("quick", "text", "Does it pay?"), jobs, jobs)
    me = owners.owner()
    first, second = queue.claim(engine, row, owner=me, limit=2)
    record(engine, first.row, me, an_outcome(first.job))
    record(
        engine,
        second.row,
        me,
        an_outcome(second.job, failures=[Failure(arm=1, reason="crash", message="so")]),
    )
    (sweep,) = queries.sweep_summaries(engine)
    shown = {
        key: sweep[key]
        for key in (
            "name",
            "question",
            "comparisons",
            "measured",
            "failures",
            "waiting",
            "running",
            "done",
            "failed",
        )
    }
    assert shown == {
        "name": "quick", "question": "Does it pay?", "comparisons": 3, "measured": 1, "failures": 1,
        "waiting": 1, "running": 0, "done": 2, "failed": 0,
    }  # fmt: skip


def test_sweep_by_name(engine: Engine) -> None:
    """A name that is not there is answered with the nearest ones."""
    with pytest.raises(StoreError, match="no sweep called quick; there is none yet"):
        queries.find_sweep(engine, "quick")
    submit_sweep(engine, NewSweep("quickstart", "text", "?"), a_job().comparisons(), [])
    assert queries.find_sweep(engine, "quickstart")["text"] == "text"
    with pytest.raises(StoreError, match="did you mean quickstart"):
        queries.find_sweep(engine, "quickstrat")


def test_rows_of_a_sweep(engine: Engine) -> None:
    """The rows of a view that belong to a sweep become a data frame, in the view's order; those of
    other sweeps are left out.
    """
    for size in (96, 64, 32):
        keep(engine, an_outcome(a_job(size)))
    submit_sweep(engine, NewSweep("two", "text", "?"), [a_job(96), a_job(64)], [])
    frame = queries.sweep_rows(engine, "two", "speedup")[["tokens", "method"]]
    assert frame.to_dict("records") == [
        {"tokens": 16, "method": "topk"},
        {"tokens": 36, "method": "topk"},
    ]
    assert all(queries.sweep_rows(engine, "one", view).empty for view in queries.SWEEP_VIEWS)
    assert queries.zeroshot_rows(engine, "two").empty
    with pytest.raises(StoreError, match="no such column: token"):
        rows(engine, "SELECT token FROM speedup")
