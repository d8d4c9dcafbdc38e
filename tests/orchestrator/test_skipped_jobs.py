"""What a run of limited time names at its end: the jobs that did not fit."""

import io

from rich.console import Console

from orchestrator.commands.run import ANSWERED, MAX_SKIPPED, UNANSWERED, conclude_run
from sweeps.text.condition_text import job_label
from tests.orchestrator.conftest import Store
from tests.orchestrator.conftest import job as a_job
from tests.orchestrator.sites import SITES, planned


def test_skipped_jobs_are_named(store: Store) -> None:
    """Each in a line of its own, up to a few; of the others their number."""
    left = [a_job("a", image_size=32 * (place + 1)) for place in range(MAX_SKIPPED + 3)]
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
    left = [a_job("a", image_size=32), a_job("a", image_size=64)]
    plan, shown = planned(store, SITES, left), io.StringIO()
    console = Console(file=shown, width=400)
    assert (
        conclude_run(console, store.engine, plan, "x.yaml", left[0].comparison_ids()) == UNANSWERED
    )
    assert shown.getvalue().startswith("1 comparison is not answered")
    assert conclude_run(console, store.engine, plan, "x.yaml", ()) == ANSWERED
