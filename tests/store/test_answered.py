"""Which questions need not be measured again, and the lists of `store.read.queries`."""

from collections.abc import Sequence

import pytest
from sqlalchemy import Engine

from store.errors import StoreError
from store.read import queries
from store.read.answers import Answers, Change, answers, doubted, stale_answers
from store.rows import owners
from store.write import queue
from store.write.record import record
from sweeps.model.job import Job, Protocol
from sweeps.model.outcome import Environment, Failure, Outcome
from tests.store.conftest import CPU, a_job, an_evaluation, an_outcome, keep, submit, table

HEAT = ("thermal_slowdown",)


def known(engine: Engine, job: Job, requested: Protocol | None = None) -> Answers:
    """What is known of the first comparison of a job."""
    wanted = {job.comparison_ids()[0]: requested or Protocol()}
    return answers(engine, wanted, [CPU.environment_id])


def is_answered(engine: Engine, outcome: Outcome, requested: Protocol) -> bool:
    keep(engine, outcome)
    comparison = outcome.job.comparison_ids()[0]
    rounds = {(comparison, number) for number in range(requested.rounds)}
    return known(engine, outcome.job, requested).answered == rounds


@pytest.mark.parametrize(
    ("measured", "noise", "requested", "expected"),
    [
        (Protocol(), 0.001, Protocol(), True),  # narrow enough
        (Protocol(budget_s=1), 0.001, Protocol(budget_s=99, half_width=0.1), True),
        (Protocol(budget_s=1), 0.001, Protocol(budget_s=99), False),  # no single attempt reaches it
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
    outcome = an_outcome(a_job(protocol=measured), noise=noise)
    assert is_answered(engine, outcome, requested) is expected


@pytest.mark.parametrize(
    ("made", "seen", "requested", "expected"),
    [
        (None, 400, 100, True),
        (100, 100, None, False),
        (100, 100, 200, False),
        (200, 200, 100, True),
        (1000, 400, 2000, True),  # there are no more than 400
    ],
)
def test_images(
    *, engine: Engine, made: int | None, seen: int, requested: int | None, expected: bool
) -> None:
    """As many images as are requested answer a question, or all there are."""
    job = a_job(kind="accuracy", protocol=Protocol(images=made))
    outcome = an_evaluation(job, images=seen)
    assert is_answered(engine, outcome, Protocol(images=requested)) is expected


@pytest.mark.parametrize(
    ("reason", "requested", "expected"),
    [
        ("out_of_memory", Protocol(), True),
        ("unsupported", Protocol(half_width=0.0001, rounds=3), True),
        ("wrong_result", Protocol(), False),
        ("crash", Protocol(), False),
        ("error", Protocol(), False),
        ("timeout", Protocol(images=1000), True),
        ("timeout", Protocol(timeout_s=999, images=1000), False),
        ("timeout", Protocol(images=100), False),
        ("timeout", Protocol(), True),
    ],
)
def test_failures(*, engine: Engine, reason: str, requested: Protocol, expected: bool) -> None:
    """Failures that answer the question are answers; a time-out only while no more time is allowed,
    for no fewer images.
    """
    job = a_job(kind="accuracy", protocol=Protocol(images=1000))
    failed = Failure(arm=None, reason=reason, message="so")
    assert is_answered(engine, an_evaluation(job, failures=[failed]), requested) is expected


def test_rounds(engine: Engine) -> None:
    """Each round is answered on its own, by its own pairs; flagged ones count."""
    protocol = Protocol(rounds=4)
    rounds = [a_job(protocol=protocol).model_copy(update={"round": number}) for number in range(4)]
    for number, pairs in ((0, 40), (2, 300), (3, 5)):
        keep(engine, an_outcome(rounds[number], pairs=pairs, seed=number, flags=["contended"]))
    (comparison,) = rounds[0].comparison_ids()
    found = known(engine, rounds[0], protocol)
    assert found.answered == {(comparison, 0), (comparison, 2)}
    assert found.pairs == {(comparison, 3): 5}
    assert table(engine, "SELECT verdict FROM speedup") == [("insufficient",)]


def test_pairs_reached_decide_not_pairs_requested(engine: Engine) -> None:
    """An attempt that was cut short answers nothing, however little its pairs scatter; the next one
    adds its pairs to them, but not to those of another machine.
    """
    job, shown = a_job(), "SELECT verdict, pairs FROM speedup"
    key = (job.comparison_ids()[0], 0)
    keep(engine, an_outcome(job, pairs=12, noise=0.0001))
    assert known(engine, job)[:3] == (set(), {key: 12}, {})
    assert table(engine, shown) == [("insufficient", 12)]
    there = Environment(device="cpu", device_name="Another CPU")
    keep(engine, an_outcome(job, pairs=20, environment=there))
    places = [CPU.environment_id, there.environment_id]
    assert answers(engine, {key[0]: Protocol()}, places)[:2] == (set(), {key: 20})
    keep(engine, an_outcome(job, pairs=18, noise=0.0001, seed=1))
    assert known(engine, job)[:3] == ({key}, {}, {})
    assert ("faster", 30) in table(engine, shown)


def test_wrong_pairs_count_until_right_ones_suffice(engine: Engine) -> None:
    """A few right pairs do not displace a whole attempt that a flag marks as wrong; enough of them
    do.
    """
    keep(engine, an_outcome(a_job(), flags=["state_changed"]))
    for seed, (pairs, expected) in enumerate([(5, ("state_changed", 45)), (30, ("", 35))], start=1):
        keep(engine, an_outcome(a_job(), pairs=pairs, seed=seed))
        assert table(engine, "SELECT flags, pairs FROM speedup") == [expected]


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


def test_only_measured_on_a_slowed_machine(engine: Engine) -> None:
    """The figures are shown with the reason, lie on no curve and answer nothing; another attempt
    stands alone, by its own pairs.
    """
    job, shown = a_job(), "SELECT verdict, flags, pairs, rounds FROM speedup"
    submit(engine, [job])
    comparison, here = job.comparison_ids()[0], [CPU.environment_id]
    keep(engine, an_outcome(job, speedups=(3.0,), flags=["contended", *HEAT]))
    assert table(engine, shown) == [("quarantined", "contended,thermal_slowdown", 40, 1)]
    found = known(engine, job)
    assert found == (set(), {}, {}, {}, {comparison: HEAT})
    assert doubted(engine, "flagged", here) == {comparison}
    curve = "SELECT verdict, points FROM break_even WHERE axis = 'tokens'"
    assert table(engine, curve) == [("unclear", 0)]
    keep(engine, an_outcome(job, speedups=(1.5,), pairs=5, seed=1))
    assert table(engine, shown) == [("insufficient", "", 5, 1)]
    found = known(engine, job)
    assert (found.answered, found.pairs, found.quarantined) == (set(), {(comparison, 0): 5}, {})
    keep(engine, an_outcome(job, speedups=(1.5,), seed=2))
    keep(engine, an_outcome(job, speedups=(3.0,), seed=3, flags=("quota_throttled",)))
    assert table(engine, shown) == [("faster", "", 45, 2)]
    assert known(engine, job).answered == {(comparison, 0)}
    assert doubted(engine, "flagged", here) == set()
    other = a_job(64)  # wrong for another reason answers, and comes before slowed
    for seed, flags in enumerate((HEAT, ("state_changed",))):
        keep(engine, an_outcome(other, seed=seed, flags=flags))
    assert ("faster", "state_changed", 40, 1) in table(engine, shown)


def test_other_environments_and_versions(engine: Engine) -> None:
    """Neither another machine's answer nor that of an older method or protocol version counts."""
    old = a_job(version=1)
    protocol = old.model_copy(update={"protocol_version": 2})
    keep(engine, an_outcome(old, speedups=(1.2,)))
    (comparison,) = old.comparison_ids()
    assert answers(engine, {comparison: Protocol()}, ["elsewhere"]).answered == set()
    newer = (*a_job(version=2).comparison_ids(), *protocol.comparison_ids())
    requested = dict.fromkeys((comparison, *newer), Protocol())
    assert len(requested) == 3
    found = answers(engine, requested, [CPU.environment_id])
    assert found.answered == {(comparison, 0)}
    keep(engine, an_outcome(protocol, speedups=(1.5,), ended_at=1_790_000_100.0))
    ((speedup, pairs, question),) = table(engine, "SELECT speedup, pairs, question_id FROM speedup")
    assert speedup == pytest.approx(1.5, rel=0.02)
    assert (pairs, question) == (40, old.comparisons()[0].question_id)


def test_what_has_changed_since_is_named(engine: Engine) -> None:
    """An answer that counts is not stale; another library, method or content is named, and how many
    comparisons it concerns.
    """
    old, new = (CPU.model_copy(update={"facts": {"torch": each}}) for each in ("2.8", "2.9"))
    job = a_job(64)
    assert not stale_answers(engine, [job], [old])
    keep(engine, an_outcome(job, environment=old))
    assert not stale_answers(engine, [job], [old])
    assert stale_answers(engine, [job], [new]) == {Change("torch", "2.8", "2.9"): 1}
    version = Change("topk", "version 1", "version 2")
    assert stale_answers(engine, [a_job(64, version=2)], [old]) == {version: 1}
    other = {**job.model_dump(), "content_hashes": {"weights": "0" * 64}}
    found = stale_answers(engine, [Job.model_validate(other)], [old])
    assert found == {Change("weights"): 1}


def test_sweeps(engine: Engine) -> None:
    """The list of sweeps counts comparisons, answers and jobs; a name that is not there is answered
    with the nearest ones.
    """
    with pytest.raises(StoreError, match="no sweep called quick; there is none yet"):
        queries.find_sweep(engine, "quick")
    row, me = submit(engine, [a_job(size) for size in (32, 64, 96)], "quick"), owners.owner()
    first, second = queue.claim(engine, row, owner=me, limit=2)
    record(engine, first.row, me, an_outcome(first.job))
    crash = Failure(arm=1, reason="crash", message="so")
    record(engine, second.row, me, an_outcome(second.job, failures=[crash]))
    (sweep,) = queries.sweep_summaries(engine)
    expected = {"comparisons": 3, "measured": 1, "failures": 1, "waiting": 1, "running": 0}
    expected |= {"done": 1, "failed": 1}
    assert {key: sweep[key] for key in expected} == expected
    assert queries.find_sweep(engine, "quick")["question"] == "Does it pay?"
    with pytest.raises(StoreError, match="did you mean quick"):
        queries.find_sweep(engine, "quikc")


def test_rows_of_a_sweep(engine: Engine) -> None:
    """The rows of a view that belong to a sweep become a data frame, in the view's order; those of
    other sweeps are left out. Each attempt comes once, with what it measured.
    """
    for size in (96, 64, 32):
        keep(engine, an_outcome(a_job(size), flags=HEAT if size == 96 else ()))
    requested = [a_job(96), a_job(64)]
    submit(engine, requested, "two")
    frame = queries.sweep_rows(engine, "two", "speedup")
    assert frame[["tokens", "method"]].values.tolist() == [[16, "topk"], [36, "topk"]]
    assert all(queries.sweep_rows(engine, "one", view).empty for view in queries.SWEEP_VIEWS)
    assert queries.zeroshot_rows(engine, "two").empty
    frame = queries.execution_rows(engine, "two")
    assert list(frame["comparison_ids"]) == [list(job.comparison_ids()) for job in requested]
    assert list(frame["quarantine"].fillna("")) == ["thermal_slowdown", ""]
    assert list(frame["system_metrics"]) == [{"load": 0.5}] * 2
    assert queries.execution_rows(engine, "none").empty


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("contended", "state_changed", "my_quota_throttled"), None),
        (("contended", "power_brake", "thermal_slowdown"), "thermal_slowdown,power_brake"),
    ],
)
def test_sql_finds_quarantined_attempts(
    *, engine: Engine, flags: Sequence[str], expected: str | None
) -> None:
    """The view has the reasons, in the order of their declarations, and what the monitors read; no
    flag whose name only ends like one of them.
    """
    outcome = an_outcome(a_job(), flags=flags)
    keep(engine, outcome.model_copy(update={"system_metrics": {"cpu_mhz_min": 1200.0}}))
    sql = "SELECT quarantine, json_extract(system_metrics, '$.cpu_mhz_min') FROM execution"
    assert table(engine, sql) == [(expected, 1200.0)]
