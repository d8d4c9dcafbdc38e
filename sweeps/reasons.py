"""Reasons that are known without a profile: what the MACs promise, what the method adds, and the two costs of a fit over sizes."""

from collections.abc import Iterator
from typing import Any

from sweeps.labels import SPEEDUP, conclude_row
from sweeps.metrics import SPEED_FLOOR
from sweeps.number_format import is_missing, with_interval

PROFILE_SECTION = "jobs:\n  profile: {}"
"""What a sweep file gains so that its arms are profiled."""
_COST_UNITS = (("alpha", "fixed cost", "ms"), ("beta", "cost of work", "ms per {}"))


def promise_of(row: Any) -> float | None:
    """The speed-up that the MACs of a row of the view `speedup` promise, those of the method itself included."""
    baseline, arm = row.gmacs_baseline, row.gmacs_total
    return None if is_missing(baseline) or is_missing(arm) or not arm > 0 else float(baseline / arm)


def explain_promise(row: Any) -> str:
    """The promise of a row of the view `speedup` beside what was measured, and the time that MACs do not explain.

    `its MACs promise 1.11x, 0.993x [0.949, 1.039] was measured (unclear): 19.6 ms; 17.4 ms would follow from the MACs …`.
    """
    reached = conclude_row(SPEEDUP, row, "speedup")
    measured = f"{reached.numbers} was measured ({reached.word})"
    promise = promise_of(row)
    if promise is None:
        return f"{measured}; what its MACs promise is not known"
    if 1 / (1 + SPEED_FLOOR) <= promise <= 1 + SPEED_FLOOR:
        return f"its MACs promise nothing ({promise:.3g}x), {measured}"
    implied = row.baseline_ms / promise
    beyond, more = abs(row.arm_ms - implied), "more" if row.arm_ms >= implied else "less"
    return (
        f"its MACs promise {promise:.2f}x, {measured}. It takes {row.arm_ms:.3g} ms, the baseline {row.baseline_ms:.3g} ms; "
        f"if time followed MACs it would be {implied:.3g} ms, so that {beyond:.2g} ms {more} are not explained by MACs"
    )


def explain_own_work(row: Any) -> str:
    """What the method itself computes, of a row of the view `speedup`; empty where that is not known."""
    own, baseline = row.gmacs_overhead, row.gmacs_baseline
    if is_missing(own) or is_missing(baseline) or not baseline > 0:
        return ""
    if own <= 0:
        return "the method itself adds no MACs; what it adds are operators without matrix products, if anything"
    share = 100 * own / baseline
    return f"the method itself adds {own:.2g} GMACs, {share:.2g} % of the baseline's"


def explain_costs(row: Any) -> Iterator[str]:
    """Both costs of the fit in a row of the view `cost_model`, each of the arm beside the baseline's, with their intervals."""
    for name, label, unit in _COST_UNITS:
        arm, baseline = (_milliseconds(row, each) for each in (name, f"{name}_baseline"))
        if arm != "-":
            yield f"{label}: {arm} {unit.format(row.work_unit)} (baseline {baseline})"


def describe_fit(row: Any) -> str:
    """How far the cost model in a row of the view `cost_model` may be believed."""
    over = f"a fit of fixed cost + cost of work over {row.points:.0f} sizes, which is no profile"
    if row.verdict == "undetermined":
        return f"{over}; so few points do not determine it: no break-even is predicted"
    if row.verdict == "misfit":
        return f"{over}; it does not fit these points (p = {row.misfit_p:.2g}): a line per GMAC is not how this arm behaves"
    return f"{over}; it fits these points (p = {row.misfit_p:.2g})"


def _milliseconds(row: Any, name: str) -> str:
    """A cost with its interval; a dash where it is not known."""
    value, low, high = (None if is_missing(each := getattr(row, f"{name}{end}")) else 1e3 * each for end in ("", "_low", "_high"))
    return with_interval(value, low, high, ".3g")
