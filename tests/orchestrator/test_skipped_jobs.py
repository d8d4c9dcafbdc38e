"""What a run names at its end: the jobs that did not fit, and that nothing has a value."""

import io

import pytest
from rich.console import Console

from orchestrator.commands.run import ANSWERED, MAX_SKIPPED, UNANSWERED, conclude_run
from store.write.record import record
from sweeps.model.outcome import Failure, FailureReason
from sweeps.text.condition_text import job_label
from tests.orchestrator.conftest import Store
from tests.orchestrator.conftest import job as a_job
from tests.orchestrator.sites import SITES, planned
from tests.orchestrator.worker_entrypoints import noop


def test_skipped_jobs_are_named(store: Store) -> None:
    """Each in a line of its own, up to a few; of the others their number."""
    left = [a_job("a", image_size=32 * (place + 1)) for place in range(MAX_SKIPPED + 3)]
    store.submit(left)
    shown = io.StringIO()
    plan = planned(store, SITES, left)
    console = Console(file=shown, width=400)
    assert conclude_run(console, store.engine, plan, "sweep.yaml") == UNANSWERED
    *lines, more = [line for line in shown.getvalue().splitlines() if line.startswith("  ")]
    assert len(lines) == MAX_SKIPPED
    assert all(job_label(job) in line for job, line in zip(left, lines, strict=False))
    assert more == "  and 3 more jobs"


def test_sizes_that_a_refinement_added_owe_no_answer(store: Store) -> None:
    """Of what is left, only comparisons of the sweep file count."""
    left, measured = (
        [a_job("a", image_size=32), a_job("a", image_size=64)],
        a_job("a", image_size=96),
    )
    store.submit([*left, measured])
    record(store.engine, None, None, noop(measured))
    plan, shown = planned(store, SITES, left), io.StringIO()
    console = Console(file=shown, width=400)
    assert (
        conclude_run(console, store.engine, plan, "x.yaml", left[0].comparison_ids()) == UNANSWERED
    )
    assert shown.getvalue().startswith("1 comparison is not answered")
    assert conclude_run(console, store.engine, plan, "x.yaml", ()) == ANSWERED


@pytest.mark.parametrize(
    ("reason", "measured", "code", "last"),
    [
        ("wrong_result", True, UNANSWERED, "2 comparisons are not answered: failed (it differs);"),
        ("crash", False, UNANSWERED, "no comparison of this sweep has a measured value"),
        ("unsupported", False, UNANSWERED, "has a measured value: unsupported: it differs"),
        ("unsupported", True, ANSWERED, ""),
    ],
)
def test_exit_code_of_failures(
    store: Store, reason: FailureReason, *, measured: bool, code: int, last: str
) -> None:
    """A wrong result and a crash are no answers; what is unsupported is one, unless nothing at all
    has a value. The reason stands there once, however many sizes have it.
    """
    jobs, shown = [a_job("a", image_size=size) for size in (32, 48, 64)], io.StringIO()
    store.submit(jobs)
    for failing in jobs[: 2 if measured else 3]:
        failure = Failure(arm=1, reason=reason, message="it differs")
        without = {"samples": None, "failures": (failure,)}
        record(store.engine, None, None, noop(failing).model_copy(update=without))
    if measured:
        record(store.engine, None, None, noop(jobs[2]))
    plan = planned(store, SITES, jobs)
    console = Console(file=shown, width=400)
    assert conclude_run(console, store.engine, plan, "x.yaml") == code, shown.getvalue()
    assert last in shown.getvalue()
    assert shown.getvalue().count("it differs") == (code == UNANSWERED)


@pytest.mark.parametrize("width", [60, 120, 400])
def test_the_last_lines_are_wrapped(store: Store, width: int) -> None:
    """At 120 characters at most, whatever the terminal; a command stays in one line, and a message
    with brackets stays as it is.
    """
    jobs, shown = [a_job("a", image_size=32)], io.StringIO()
    store.submit(jobs)
    message = f"the [bold] words of {'a long message ' * 20}"
    failure = Failure(arm=1, reason="wrong_result", message=message)
    without = {"samples": None, "failures": (failure,)}
    record(store.engine, None, None, noop(jobs[0]).model_copy(update=without))
    sweep = f"'{'a folder/' * 20}x.yaml' --db postgresql://user@host/name"
    console = Console(file=shown, width=width)
    plan = planned(store, SITES, jobs)
    assert conclude_run(console, store.engine, plan, sweep) == UNANSWERED
    commands = [line for line in shown.getvalue().splitlines() if "breakeven run" in line]
    assert commands == [f"  breakeven run {sweep}"]
    others = [line for line in shown.getvalue().splitlines() if line not in commands]
    assert len(others) >= 3
    assert max(map(len, others)) <= 120
    assert message.strip() in " ".join(shown.getvalue().split())
