"""Comparisons in words: arms with a baseline, a line for each and a table, and the trends of
speed-ups over days.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import inf

from sweeps.analysis.compared import ComparedArm, Ratio
from sweeps.model.flags import FLAGS
from sweeps.number_format import count, duration
from sweeps.stats.trends import MIN_ESTIMATES, Change, Trend

COLUMNS = ("arm", "time", "speed-up", "99 % interval", "verdict")


def speedup_parts(ratio: float, low: float, high: float) -> tuple[str, str]:
    """`1.204x` and `[1.187, 1.221]`; the interval is empty where there is none."""
    known = 0 < low <= high < inf
    return f"{ratio:.3f}x", f"[{low:.3f}, {high:.3f}]" if known else ""


def speedup_text(ratio: float, low: float, high: float) -> str:
    """`1.204x [1.187, 1.221]`, without the interval where there is none."""
    return " ".join(filter(None, speedup_parts(ratio, low, high)))


def short_time(seconds: float) -> str:
    """`12.3 ms`: four digits in the unit that suits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.4g} {unit}"
    return f"{seconds / 1e-9:.4g} ns"


def compared_sentence(arm: ComparedArm, baseline: str, margin: float) -> str:
    """One line: `new: faster than old, 1.204x [1.187, 1.221] (312 pairs in 12 visits)`."""
    verdict = {
        "faster": f"faster than {baseline}",
        "slower": f"slower than {baseline}",
        "equal": f"equal to {baseline} within {100 * margin:g} %",
        "undecided": f"undecided against {baseline}",
    }[arm.verdict]
    basis = f"{count(arm.pairs, 'pair')} in {count(arm.visits, 'visit')}"
    if arm.verdict == "undecided" and arm.not_slower:
        basis += f"; not slower by {100 * margin:g} %"
    elif arm.needed_s is not None:
        basis += f"; about {duration(arm.needed_s)} should decide"
    flags = f"; {', '.join(arm.flags)}" if arm.flags else ""
    ratio = speedup_text(arm.ratio, arm.low, arm.high)
    return f"{arm.name}: {verdict}, {ratio} ({basis}{flags})"


def compared_rows(
    arms: Iterable[ComparedArm], seconds: Mapping[str, float], baseline: str
) -> list[Sequence[str]]:
    """The rows below `COLUMNS`, the baseline first."""
    rows: list[Sequence[str]] = [(baseline, short_time(seconds[baseline]), "1", "", "baseline")]
    for arm in arms:
        parts = speedup_parts(arm.ratio, arm.low, arm.high)
        rows.append((arm.name, short_time(seconds[arm.name]), *parts, arm.verdict))
    return rows


def null_sentence(null: Ratio, baseline: str) -> str:
    """How far two copies of the baseline lie apart."""
    return f"two copies of {baseline}: {speedup_text(*null)}"


def flag_sentences(flags: Iterable[str]) -> list[str]:
    """What each flag means."""
    return [f"{flag}: {FLAGS[flag].meaning}" for flag in flags]


MAX_DIFFERENCES = 4
"""Differences that one sentence names."""
MAX_LENGTH = 24
"""Characters of a value that are shown."""


def trends_text(name: str, trends: Sequence[Trend]) -> str:
    """How many comparisons of a sweep became slower, faster, or neither."""
    changed = sum(bool(trend.changes) for trend in trends)
    slower = sum(trend.slower_since() is not None for trend in trends)
    short = sum(not trend.decided for trend in trends)
    return (
        f"{trends[0].metric} of {name}: {count(len(trends), 'comparison')}, {slower} slower and"
        f" {changed - slower} faster since the newest change,"
        f" {len(trends) - changed - short} without a change,"
        f" {short} with fewer than {MIN_ESTIMATES} measurements"
    )


def change_text(change: Change) -> str:
    """By how much, since when and what was recorded otherwise, such as `5.1 % slower since
    2026-11-23 07:23 (1.52x -> 1.44x); changed: torch 2.14.0 -> 2.15.0`.
    """
    return (
        f"{moved_text(change)} ({change.before:.3g}x -> {change.after:.3g}x);"
        f" changed: {changes_text(change.what)}"
    )


def possible_text(change: Change) -> str:
    """A fall that one day shows: `possible: 5.1 % slower since 2026-11-23 07:23; a second day like
    it would be a change`.
    """
    return f"possible: {moved_text(change)}; a second day like it would be a change"


def moved_text(change: Change) -> str:
    """By how much and since when."""
    ratio = change.ratio
    side = f"{100 * (1 - ratio):.1f} % slower" if ratio < 1 else f"{100 * (ratio - 1):.1f} % faster"
    return f"{side} since {time_text(change.at)}"


def ends_text(trend: Trend) -> tuple[str, str]:
    """The first and the last speed-up, each with its interval and time."""
    first, last = (
        f"{each.found.value:.3g}x [{each.found.low:.3g}, {each.found.high:.3g}]"
        f" {time_text(each.at)}"
        for each in (trend.measurements[0], trend.measurements[-1])
    )
    return first, last


def time_text(at: str) -> str:
    """A time of the store to the minute."""
    return at[:16].replace("T", " ")


def changes_text(what: Mapping[str, tuple[str, str]]) -> str:
    """What differs between two measurements."""
    if not what:
        return "nothing that is recorded"
    named = [
        f"{name} {_cut(then)} -> {_cut(now)}"
        for name, (then, now) in list(what.items())[:MAX_DIFFERENCES]
    ]
    rest = len(what) - len(named)
    return ", ".join([*named, f"and {rest} more"] if rest else named)


def _cut(value: str) -> str:
    return value if len(value) <= MAX_LENGTH else f"{value[: MAX_LENGTH - 2]} …"
