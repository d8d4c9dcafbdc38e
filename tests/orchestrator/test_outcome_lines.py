"""The lines on an outcome while a sweep runs: a baseline timed twice in every round, and an outcome
cut short.
"""

import numpy as np

from orchestrator.loop.progress import comparison_lines
from sweeps.model.outcome import Outcome
from tests.orchestrator.conftest import job
from tests.orchestrator.worker_entrypoints import noop


def timed(
    *ratios: float,
    slots: tuple[int, ...],
    rounds: int = 40,
    pairs_min: int = 30,
    noise: float = 0.01,
) -> Outcome:
    """Times of a baseline and of arms this much faster, with noise, each in its columns of the
    rounds.
    """
    found = noop(job(*"ab"[: len(ratios)], pairs_min=pairs_min))
    truth = 0.01 / np.array([1.0, *ratios])[list(slots)]
    times = truth * np.exp(noise * np.random.default_rng(0).standard_normal((rounds, len(slots))))
    columns = tuple(range(len(slots)))
    changed = {
        "arms": slots,
        "seconds": tuple(map(tuple, times.tolist())),
        "order": (columns,) * rounds,
        "inner": (1,) * len(slots),
    }
    assert found.samples is not None
    return found.model_copy(
        update={"samples": found.samples.model_validate(found.samples.model_dump() | changed)}
    )


def test_both_slots_of_a_baseline_count() -> None:
    """A baseline that is timed twice in every round has one line for each arm, with the numbers of
    both slots.
    """
    faster, alike = (line.plain for line in comparison_lines(timed(2.0, 1.0, slots=(0, 1, 2, 0))))
    assert faster.startswith(("  a: 1.9", "  a: 2.0"))
    assert faster.endswith("] faster")
    assert alike.startswith(("  b: 0.99", "  b: 1.0"))
    assert alike.endswith("] unclear")


def test_fewer_pairs_than_requested() -> None:
    """A budget that ended the rounds early leaves a comparison that names so, whatever its
    interval.
    """
    (line,) = comparison_lines(timed(2.0, slots=(0, 1, 0), rounds=20))
    assert line.plain.endswith("20 of 30 pairs too few pairs")
    assert "x" not in line.plain


def test_a_slowed_machine_gives_no_verdict() -> None:
    """Whatever the interval, the line of a quarantined outcome names no side."""
    slowed = timed(2.0, slots=(0, 1, 0)).model_copy(update={"flags": ("thermal_slowdown",)})
    (line,) = comparison_lines(slowed)
    assert line.plain.endswith("] quarantined")
