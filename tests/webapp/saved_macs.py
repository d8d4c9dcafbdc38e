"""Outcomes of one method at several keep rates, which lie on a curve along the MACs saved."""

from sweeps.model.outcome import Outcome
from tests.store.conftest import a_job, an_outcome

RATES = (0.3, 0.5, 0.7)


def saving(size: int, speedups: tuple[float, ...]) -> Outcome:
    """TopK at three keep rates, which really save that much."""
    found = an_outcome(a_job(size, keep_rates=RATES), speedups=speedups)
    cheaper = [
        arm.model_copy(
            update={
                "gmacs": arm.gmacs if arm.arm == 0 else found.arms[0].gmacs * RATES[arm.arm - 1]
            }
        )
        for arm in found.arms
    ]
    return found.model_copy(update={"arms": tuple(cheaper)})
