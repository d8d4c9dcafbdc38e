"""Reasons that are known without a profile: what the MACs promise, what the method adds, the two
costs of a fit over sizes, and what the same tokens give when they are cut for nothing.
"""

from collections.abc import Iterator, Mapping
from math import inf, log

from sweeps.analysis.labels import SPEEDUP, Conclusion, conclude_interval, conclude_speedup
from sweeps.analysis.rows import CeilingRow, CostModelRow, SizedRow, SpeedupRow
from sweeps.analysis.waterfall import promise_of
from sweeps.model.flags import split_flags
from sweeps.model.metrics import SPEED_FLOOR
from sweeps.model.profile import Peaks
from sweeps.number_format import count, image_text, p_text, with_interval
from sweeps.stats.cost_model import Cost, RelativeCosts
from sweeps.stats.pooling import RealisedShare
from sweeps.stats.roofline import Limit, Roofline
from sweeps.text.curves import token_unit
from sweeps.text.effects import effect_word

PROFILE_SECTION = "jobs:\n  profile: {}"
"""What a sweep file gains so that its arms are profiled."""
RATIOS_OF_COSTS = (
    "Costs and their ratios are of one fit, of times and of speed-ups, each paired inside its job."
    " In a ratio the level of the times, which differs from job to job, cancels. 95 % intervals."
)
"""What the numbers of `explain_costs` rest on."""
MAX_IN_HEADLINE = 3
"""Methods in a headline."""
_Ends = tuple[float | None, float | None, float | None]
"""A value and its interval."""


def name_size(row: SizedRow) -> str:
    """Pixels and tokens together: `64 px (16 tokens)`; of a language model `64 prompt tokens`."""
    own = "" if row.tokens is None else f"{row.tokens:,.0f} {token_unit(row)}"
    if row.image_size is None:
        return own
    size = image_text(row.image_size, row.image_shape)
    return f"{size} ({own})" if own else size


def profile_needed() -> str:
    """What is not known of an arm without a profile, and what makes one."""
    return (
        "which of its operators take the time is not known without a profile: add the key profile"
        " to the jobs of the sweep file (profile: {}) and run that file again; what is measured"
        " stays"
    )


def explain_promise(row: SpeedupRow) -> str:
    """The promise beside what was measured, and the time that MACs do not explain.

    `0.993x [0.949, 1.039] was measured (unclear), its MACs promise 1.11x. It takes 19.6 ms, the
    baseline 19.5 ms …`.
    """
    reached, promise = conclude_speedup(row), promise_of(row)
    measured = f"{reached.numbers} was measured ({effect_word(reached)})"
    if "no_effect" in split_flags(row.flags):
        return (
            f"{measured}, though it removes nothing at this size: that is no effect of fewer tokens"
        )
    if promise is None or row.baseline_ms is None or row.arm_ms is None:
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


def explain_own_work(row: SpeedupRow) -> str:
    """What the method itself computes; empty where that is not known."""
    own, baseline = row.gmacs_overhead, row.gmacs_baseline
    if own is None or not baseline:
        return ""
    if own <= 0:
        return (
            "the method itself adds no MACs; what it adds are operators without matrix products, if"
            " anything"
        )
    return f"the method itself adds {own:.2g} GMACs, {100 * own / baseline:.2g} % of the baseline's"


def explain_costs(row: CostModelRow, relative: RelativeCosts | None = None) -> Iterator[str]:
    """Both costs of a fit, each of the arm beside the baseline's, and what follows.

    `relative` are the ratios of the same fit, whose intervals are narrower than those of the costs
    in ms.
    """
    yield from _explain_cost(
        ("fixed cost", "ms", " at every size"),
        (row.alpha, row.alpha_low, row.alpha_high),
        (row.alpha_baseline, row.alpha_baseline_low, row.alpha_baseline_high),
        relative and relative.fixed,
        row.points,
    )
    yield from _explain_cost(
        ("cost of work", f"ms per {row.work_unit}", f" for each {row.work_unit} that remains"),
        (row.beta, row.beta_low, row.beta_high),
        (row.beta_baseline, row.beta_baseline_low, row.beta_baseline_high),
        relative and relative.work,
        row.points,
    )
    if relative is not None and not any(map(_clear, relative)):
        yield (
            "whether the fixed cost or the cost of work takes what is missing of the promise, these"
            " sizes do not show"
        )


def _explain_cost(
    names: tuple[str, str, str], arm: _Ends, baseline: _Ends, ratio: Cost | None, points: int
) -> Iterator[str]:
    """One cost in seconds; `names` are its label, its unit, and where it counts."""
    if arm[0] is None:
        return
    label, unit, where = names
    beside = f"{_milliseconds(arm)} {unit}, the baseline's {_milliseconds(baseline)}"
    if ratio is None:
        yield f"{label} by the fit: {beside}" + (
            ", intervals that overlap" if _overlap(arm, baseline) else ""
        )
        return
    shown = f"{'more' if ratio.low > 1 else 'less'}{where}"
    if not _clear(ratio):
        shown = f"these {points} sizes cannot tell them apart"
    times = with_interval(ratio.value, ratio.low, ratio.high)
    yield f"{label}: {times} times the baseline's: {shown} ({beside})"


def _clear(ratio: Cost | None) -> bool:
    return ratio is not None and (ratio.low > 1 or ratio.high < 1)


def _overlap(one: _Ends, other: _Ends) -> bool:
    (_, low, high), (_, other_low, other_high) = one, other
    if low is None or high is None or other_low is None or other_high is None:
        return False
    return low <= other_high and other_low <= high


def describe_fit(row: CostModelRow) -> str:
    """How far a cost model may be believed."""
    over = f"a fit of fixed cost + cost of work over {row.points} sizes, which is no profile"
    if row.misfit_p is None or row.verdict == "undetermined":
        return f"{over}; so few points do not determine it: no break-even is predicted"
    if row.verdict == "misfit":
        return (
            f"{over}; it does not fit these points (p {p_text(row.misfit_p, '= ')}): a line per"
            " GMAC is not how this arm behaves"
        )
    return f"{over}; it fits these points (p {p_text(row.misfit_p, '= ')})"


def _milliseconds(cost: _Ends) -> str:
    """A cost in seconds with its interval; a dash where it is not known."""
    value, low, high = (None if each is None else 1e3 * each for each in cost)
    return with_interval(value, low, high, ".3g")


def ceiling_of(row: CeilingRow) -> Conclusion:
    """The speed-up of a free cut."""
    return conclude_interval(SPEEDUP, row.ceiling, row.ceiling_low, row.ceiling_high)


def left_to_gain(row: CeilingRow) -> tuple[float, float, float]:
    """The ceiling over what was reached, with the ends that both intervals allow together."""
    low, high = 0.0, inf
    if row.ceiling_low is not None and row.speedup_high is not None:
        low = row.ceiling_low / row.speedup_high
    if row.ceiling_high is not None and row.speedup_low is not None:
        high = row.ceiling_high / row.speedup_low
    return (row.ceiling or 0.0) / row.speedup, low, high


def is_bound(row: CeilingRow) -> bool:
    """Whether the free cut bounds what others reach: it has an interval, and the arm beside it is
    not measured clearly faster.
    """
    return row.ceiling_high is not None and (row.speedup_low or 0.0) <= row.ceiling_high


def explain_ceiling(row: CeilingRow) -> str:
    """What a free cut of the same tokens shows, as a sentence without its end; empty where none was
    measured.

    `Cut for nothing, the same tokens give 1.021x [0.978, 1.066]: at 16 tokens no method with these
    token counts gains more than 6.6 %`. Where the ceiling is a clear gain, it states whose the rest
    of the promise is, where both intervals allow that.
    """
    if row.ceiling is None:
        return ""
    free = ceiling_of(row)
    text = f"cut for nothing, the same tokens give {free.numbers}"
    if free.high is None or row.ceiling_low is None or row.ceiling_high is None:
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
            f"{text}: at {row.tokens or 0:,} {token_unit(row)} no method with these token counts"
            f" {most}"
        )
    promise = promise_of(row)
    if promise is None or promise <= (1 + SPEED_FLOOR) * row.ceiling_high:
        return text
    whose = _owner_of_rest(row, log(promise / row.ceiling_high), log(promise / row.ceiling_low))
    return f"{text}, of {promise:.2f}x promised{whose}"


def _owner_of_rest(row: CeilingRow, least: float, most: float) -> str:
    """Whether most of what is missing of the promise, in logarithms between two ends, is the
    method's own cost, where the intervals agree on it.
    """
    value, low, high = left_to_gain(row)
    if high == inf:
        return ""
    cost = f"without its own cost it would be {value:.3f}x [{low:.3f}, {high:.3f}] as fast as now"
    if least > log(high):
        return f": most of what is missing is not its own cost ({cost})"
    if most < log(max(low, 1.0)):
        return f": most of what is missing is its own cost ({cost})"
    return f" ({cost})"


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


def realised_headline(shares: Mapping[str, RealisedShare | None]) -> str:
    """What arrives of the promise by method, in about twelve words: `topk 37 % (31 % to 45 %) of
    the promised saving arrives`; only methods of which the interval shows whether any of it does.
    """
    known = [(share.median, name, share) for name, share in shares.items() if share is not None]
    listed = [
        f"{name} {_percent(median)}"
        f" ({' to '.join(dict.fromkeys(map(_percent, (share.low, share.high))))})"
        for median, name, share in sorted(known, reverse=True)
        if share.low is not None and share.high is not None and share.low * share.high > 0
    ]
    if known and not listed:
        return "Cannot tell whether any of the promised saving arrives"
    arrives = f"{', '.join(listed[:MAX_IN_HEADLINE])} of the promised saving arrives"
    return arrives if listed else "No MACs promise a saving here"


def _percent(share: float) -> str:
    """Whole per cent; a bound where more than the whole promise was lost."""
    return "below -100 %" if share < -1 else f"{100 * share + 0.0:.0f} %"
