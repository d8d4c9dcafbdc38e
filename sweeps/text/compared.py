"""Comparisons with a baseline in words: a line for each arm, and a table."""

from collections.abc import Iterable, Mapping, Sequence

from sweeps.analysis.compared import ComparedArm, Ratio
from sweeps.model.flags import FLAGS
from sweeps.number_format import count, duration, with_interval

COLUMNS = ("arm", "time", "speed-up", "99 % interval", "verdict")


def speedup_text(ratio: float, low: float, high: float) -> str:
    """`1.204x [1.187, 1.221]`, without the interval where there is none."""
    if not 0 < low <= high < float("inf"):
        return f"{ratio:.3f}x"
    return with_interval(ratio, low, high, ".3f").replace(" [", "x [", 1)


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
        ratio, _, interval = speedup_text(arm.ratio, arm.low, arm.high).partition(" ")
        rows.append((arm.name, short_time(seconds[arm.name]), ratio, interval, arm.verdict))
    return rows


def null_sentence(null: Ratio, baseline: str) -> str:
    """How far the two slots of the baseline lie apart."""
    return f"{baseline} against itself: {speedup_text(*null)}"


def flag_sentences(flags: Iterable[str]) -> list[str]:
    """What each flag means."""
    return [f"{flag}: {FLAGS[flag].meaning}" for flag in flags]
