"""Trends of speed-ups in words."""

from collections.abc import Mapping, Sequence

from sweeps.analysis.trends import Change, Trend
from sweeps.number_format import count
from sweeps.stats.change_points import MIN_ESTIMATES

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
