"""Reasons that are known without a profile: what the MACs promise, what the method adds, the two
costs of a fit over sizes, and what the same tokens give when they are cut for nothing.
"""

from collections.abc import Iterator
from math import inf, log
from typing import Any

from sweeps.analysis.labels import SPEEDUP, Conclusion, conclude_interval, conclude_row
from sweeps.model.flags import split_flags
from sweeps.model.metrics import SPEED_FLOOR
from sweeps.model.profile import Peaks
from sweeps.number_format import count, image_text, is_missing, with_interval
from sweeps.stats.cost_model import Cost, RelativeCosts
from sweeps.stats.pooling import RealisedShare
from sweeps.stats.roofline import Limit, Roofline
from sweeps.text.curves import token_unit

PROFILE_SECTION = "jobs:\n  profile: {}"
"""What a sweep file gains so that its arms are profiled."""
RATIOS_OF_COSTS = (
    "Costs and their ratios are of one fit, of times and of speed-ups, each paired inside its job."
    " In a ratio the level of the times, which differs from job to job, cancels. 95 % intervals."
)
"""What the numbers of `explain_costs` rest on."""
_COST_UNITS = (("alpha", "fixed cost", "ms"), ("beta", "cost of work", "ms per {}"))


def name_size(row: Any) -> str:
    """Pixels and tokens together: `64 px (16 tokens)`; of a language model `64 prompt tokens`."""
    pixels, tokens = row.image_size, row.tokens
    own = "" if is_missing(tokens) else f"{tokens:,.0f} {token_unit(row)}"
    if is_missing(pixels):
        return own
    size = image_text(pixels, row.image_shape)
    return f"{size} ({own})" if own else size


def profile_needed() -> str:
    """What is not known of an arm without a profile, and what makes one."""
    return (
        "which of its operators take the time is not known without a profile: add the key profile"
        " to the jobs of the sweep file (`profile: {}`) and run that file again; what is measured"
        " stays"
    )


def promise_of(row: Any) -> float | None:
    """The speed-up that the MACs of a row of the view `speedup` promise, those of the method itself
    included.
    """
    baseline, arm = row.gmacs_baseline, row.gmacs_total
    return None if is_missing(baseline) or is_missing(arm) or not arm > 0 else float(baseline / arm)


def explain_promise(row: Any) -> str:
    """The promise of a row of the view `speedup` beside what was measured, and the time that MACs
    do not explain.

    `0.993x [0.949, 1.039] was measured (unclear), its MACs promise 1.11x. It takes 19.6 ms, the
    baseline 19.5 ms …`.
    """
    reached = conclude_row(SPEEDUP, row, "speedup")
    measured = f"{reached.numbers} was measured ({reached.word})"
    promise = promise_of(row)
    if "no_effect" in split_flags(row.flags):
        return (
            f"{measured}, though it removes nothing at this size: that is no effect of fewer tokens"
        )
    if promise is None:
        return f"{measured}; what its MACs promise is not known"
    if 1 / (1 + SPEED_FLOOR) <= promise <= 1 + SPEED_FLOOR:
        return f"{measured}, its MACs promise nothing ({promise:.3g}x)"
    implied = row.baseline_ms / promise
    beyond, more = abs(row.arm_ms - implied), "more" if row.arm_ms >= implied else "less"
    return (
        f"{measured}, its MACs promise {promise:.2f}x. It takes {row.arm_ms:.3g} ms, the baseline"
        f" {row.baseline_ms:.3g} ms; if time followed MACs it would be {implied:.3g} ms, so that"
        f" {beyond:.2g} ms {more} are not explained by MACs"
    )


def explain_own_work(row: Any) -> str:
    """What the method itself computes, of a row of the view `speedup`; empty where that is not
    known.
    """
    own, baseline = row.gmacs_overhead, row.gmacs_baseline
    if is_missing(own) or is_missing(baseline) or not baseline > 0:
        return ""
    if own <= 0:
        return (
            "the method itself adds no MACs; what it adds are operators without matrix products, if"
            " anything"
        )
    share = 100 * own / baseline
    return f"the method itself adds {own:.2g} GMACs, {share:.2g} % of the baseline's"


def explain_costs(row: Any, relative: RelativeCosts | None = None) -> Iterator[str]:
    """Both costs of the fit in a row of the view `cost_model`, each of the arm beside the
    baseline's, and what follows.

    `relative` are the ratios of the same fit, whose intervals are narrower than those of the costs
    in ms.
    """
    for name, label, unit in _COST_UNITS:
        arm, baseline = (_milliseconds(row, each) for each in (name, f"{name}_baseline"))
        if arm == "-":
            continue
        ratio: Cost | None = (
            None if relative is None else relative.fixed if name == "alpha" else relative.work
        )
        beside = f"{arm} {unit.format(row.work_unit)}, the baseline's {baseline}"
        if ratio is None:
            yield f"{label} by the fit: {beside}" + (
                ", intervals that overlap" if _overlap(row, name) else ""
            )
        else:
            times = f"{with_interval(ratio.value, ratio.low, ratio.high)} times the baseline's"
            more = f"{'more' if ratio.low > 1 else 'less'}{_of_what(name, row.work_unit)}"
            shown = (
                more if _clear(ratio) else f"these {row.points:.0f} sizes cannot tell them apart"
            )
            yield f"{label}: {times}: {shown} ({beside})"
    if relative is not None and not any(map(_clear, relative)):
        yield (
            "whether the fixed cost or the cost of work takes what is missing of the promise, these"
            " sizes do not show"
        )


def _clear(ratio: Cost | None) -> bool:
    return ratio is not None and (ratio.low > 1 or ratio.high < 1)


def _of_what(name: str, unit: str) -> str:
    return " at every size" if name == "alpha" else f" for each {unit} that remains"


def _overlap(row: Any, name: str) -> bool:
    ends = [
        getattr(row, f"{each}{end}")
        for each in (name, f"{name}_baseline")
        for end in ("_low", "_high")
    ]
    return not any(map(is_missing, ends)) and ends[0] <= ends[3] and ends[2] <= ends[1]


def describe_fit(row: Any) -> str:
    """How far the cost model in a row of the view `cost_model` may be believed."""
    over = f"a fit of fixed cost + cost of work over {row.points:.0f} sizes, which is no profile"
    if row.verdict == "undetermined":
        return f"{over}; so few points do not determine it: no break-even is predicted"
    if row.verdict == "misfit":
        return (
            f"{over}; it does not fit these points (p = {row.misfit_p:.2g}): a line per GMAC is not"
            " how this arm behaves"
        )
    return f"{over}; it fits these points (p = {row.misfit_p:.2g})"


def _milliseconds(row: Any, name: str) -> str:
    """A cost with its interval; a dash where it is not known."""
    value, low, high = (
        None if is_missing(each := getattr(row, f"{name}{end}")) else 1e3 * each
        for end in ("", "_low", "_high")
    )
    return with_interval(value, low, high, ".3g")


def ceiling_of(row: Any) -> Conclusion:
    """The speed-up of a free cut beside a row of the view `speedup` with `ceiling` and its ends
    (`store.read.curves`).
    """
    return conclude_interval(SPEEDUP, row.ceiling, row.ceiling_low, row.ceiling_high)


def left_to_gain(row: Any) -> tuple[float, float, float]:
    """The ceiling over what was reached, with the ends that both intervals allow together."""
    low, high = row.ceiling_low, row.ceiling_high
    known = not any(map(is_missing, (low, high, row.speedup_low, row.speedup_high)))
    return (
        row.ceiling / row.speedup,
        low / row.speedup_high if known else 0.0,
        high / row.speedup_low if known else inf,
    )


def is_bound(row: Any) -> bool:
    """Whether the free cut bounds what others reach: it has an interval, and the arm beside it is
    not measured clearly faster.
    """
    if any(map(is_missing, (row.ceiling, row.ceiling_low, row.ceiling_high))):
        return False
    return bool(is_missing(row.speedup_low) or row.speedup_low <= row.ceiling_high)


def explain_ceiling(row: Any) -> str:
    """What a free cut of the same tokens shows, as a sentence without its end; empty where none was
    measured.

    `Cut for nothing, the same tokens give 1.021x [0.978, 1.066]: at 16 tokens no method with these
    token counts gains more than 6.6 %`. Where the ceiling is a clear gain, it states whose the rest
    of the promise is, where both intervals allow that.
    """
    if is_missing(row.ceiling):
        return ""
    free = ceiling_of(row)
    text = f"cut for nothing, the same tokens give {free.numbers}"
    if free.high is None or is_missing(row.ceiling_low) or is_missing(row.ceiling_high):
        return f"{text}, without an interval, from which nothing follows"
    if not is_bound(row):
        return (
            f"{text}, slower than this arm is measured, which is impossible: one of both was"
            " disturbed, or runs other kernels"
        )
    if row.ceiling_low <= 1:
        most = (
            f"gains more than {100 * (free.high - 1):.1f} %" if free.high > 1 else "gains anything"
        )
        return (
            f"{text}: at {row.tokens:,.0f} {token_unit(row)} no method with these token counts"
            f" {most}"
        )
    promise = promise_of(row)
    if promise is None or promise <= (1 + SPEED_FLOOR) * row.ceiling_high:
        return text
    return f"{text}, of {promise:.2f}x promised{_missing_part(row, promise)}"


def _missing_part(row: Any, promise: float) -> str:
    """Whether most of what is missing of the promise is the method's own cost, where the ends of
    the intervals agree on it.
    """
    value, low, high = left_to_gain(row)
    most = (
        f"without its own cost it would be {value:.3f}x [{low:.3f}, {high:.3f}] as fast as now"
        if high < inf
        else ""
    )
    if not most:
        return ""
    if log(promise / row.ceiling_high) > log(high):
        return f": most of what is missing is not its own cost ({most})"
    if log(promise / row.ceiling_low) < log(max(low, 1.0)):
        return f": most of what is missing is its own cost ({most})"
    return f" ({most})"


_LIMITS: dict[Limit, str] = {
    "host": "most of the wall is no device work, so that neither arithmetic nor memory holds it",
    "compute": "arithmetic is the limit",
    "memory": "memory is the limit",
    "neither": (
        "neither arithmetic nor memory reaches half of its peak: small kernels or operators hold it"
    ),
}


def describe_roofline(found: Roofline, peaks: Peaks) -> str:
    """One sentence: rates beside the peaks, the limit that holds, and what is left to gain."""
    rates = []
    if found.gflops is not None:
        rates.append(f"{found.gflops:.3g} of {peaks.gflops:.3g} GFLOP/s")
    if found.gb_per_s is not None:
        rates.append(f"{found.gb_per_s:.3g} of {peaks.gb_per_s:.3g} GB/s")
    text = (
        f"{' and '.join(rates)} while the device works: {_LIMITS[found.limit]}"
        if rates
        else _LIMITS[found.limit]
    )
    if found.ceiling is not None:
        text += f"; without its matrix products it would be at most {found.ceiling:.2f}x as fast"
    return text


def realised_sentence(name: str, share: RealisedShare | None) -> str:
    """What arrives of a method's promise, as a sentence that begins with its name."""
    if share is None:
        return (
            f"{name}: its MACs promise nothing that could arrive (within 2 % of none), or are not"
            " known."
        )
    if share.points == 1:
        return f"{name}: {_percent(share.median)} of the promised saving arrives (1 point)."
    rests = f"{count(share.points, 'point')} from {_percent(share.least)} to {_percent(share.most)}"
    if share.median < 0:
        return (
            f"{name}: none of the promised saving arrives at the median, {_percent(share.median)}"
            f" ({rests})."
        )
    return (
        f"{name}: {_percent(share.median)} of the promised saving arrives at the median ({rests})."
    )


def _percent(share: float) -> str:
    """Whole per cent; a bound where more than the whole promise was lost."""
    return "below -100 %" if share < -1 else f"{100 * share + 0.0:.0f} %"
