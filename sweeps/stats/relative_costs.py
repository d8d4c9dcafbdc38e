"""Costs of an arm relative to its baseline: fixed cost and cost of work, from speed-ups alone, each paired inside its job."""

from math import exp
from typing import NamedTuple

import numpy as np

from sweeps.stats.cost_model import CostFit
from sweeps.stats.launch_work import COST_ALPHA, Cost
from sweeps.stats.pooling import WIDEST_LOG, quantile
from sweeps.stats.two_way import Array


class RelativeCosts(NamedTuple):
    """Ratios of the arm's costs to the baseline's, each with its 95 % interval; `None` where it is not determined."""

    fixed: Cost | None
    """Of a forward, whatever its work."""
    work: Cost | None
    """Of a GMAC (or token)."""


def relative_costs(found: CostFit | None) -> RelativeCosts | None:
    """The ratios that a fit of speed-ups determines; `None` without a fit that describes its points, or where all had equal work.

    The level of times differs from job to job, that of a speed-up does not: so these ratios are known far better than both costs
    in ms. In the model (1 + b g) / (a + c h) they are a and c / b, and their errors those of its logarithmic parameters.
    """
    if found is None or not found.adequate or len(found.parameters) != 3:
        return None
    reach = quantile(COST_ALPHA, found.freedom + 1)  # as of both costs: points less those of one line
    return RelativeCosts(*(_ratio(found, np.array(each), reach) for each in ((1.0, 0.0, 0.0), (0.0, -1.0, 1.0))))


def _ratio(found: CostFit, direction: Array, reach: float) -> Cost | None:
    """The exponential of a sum of parameters with its interval; `None` where that is wider than any that is shown."""
    value, half = float(direction @ found.parameters), reach * float(np.sqrt(direction @ found.covariance @ direction))
    return Cost(exp(value), exp(value - half), exp(value + half)) if half <= WIDEST_LOG else None
