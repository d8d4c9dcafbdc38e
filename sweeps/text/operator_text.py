"""Operators in words: which take as long although their MACs fell, which were added, and how well
each side uses the machine.
"""

from collections.abc import Sequence
from typing import NamedTuple

NOTABLE_SHARE = 0.02
"""Of the baseline's time in operators: less is not named."""
MAX_WORK_SHARE = 0.9
"""Below this share of its MACs an operator has less work."""
MAX_OPERATORS = 4
"""Operators that one part of a sentence names."""
RATE_TOLERANCE = 0.05
"""Rates that differ by less are not called different: totals of a profile have no interval."""


class OperatorPair(NamedTuple):
    """One operator in both arms: ms, calls and GMACs of a forward; 0 where it does not run, `None`
    for MACs that are not known.
    """

    name: str
    baseline_ms: float
    arm_ms: float
    baseline_count: float
    arm_count: float
    baseline_gmacs: float | None
    arm_gmacs: float | None

    @property
    def short_name(self) -> str:
        """`addmm` of `aten::addmm`."""
        return self.name.rpartition("::")[2].strip("_")


def explain_operators(pairs: Sequence[OperatorPair]) -> str:
    """What the operators of a profiled arm take beside the baseline's, as a sentence without its
    end; empty if nothing stands out.

    `by operator (totals of the profiled rounds, without intervals): matrix products save less time
    than MACs: addmm takes 2.71 of 2.92 ms with 52 % of its MACs; added were baddbmm 0.15 ms …;
    longer … became native_layer_norm 0.632 instead of 0.545 ms`
    """
    whole = sum(pair.baseline_ms for pair in pairs)
    if not whole:
        return ""
    least = NOTABLE_SHARE * whole
    products = [pair for pair in pairs if _has_less_work(pair) and pair.baseline_ms >= least]
    added = [pair for pair in pairs if not pair.baseline_count]
    others = [pair for pair in pairs if pair.baseline_count and pair not in products]
    longer = [pair for pair in others if pair.arm_ms - pair.baseline_ms >= least / 4]
    parts = []
    if products:
        named = sorted(products, key=lambda pair: -pair.baseline_ms)[:MAX_OPERATORS]
        saved = _saved(products)
        parts.append(f"matrix products save {saved}: {', '.join(_product(pair) for pair in named)}")
    if added:
        total = sum(pair.arm_ms for pair in added)
        parts.append(f"added were {_listed(added)}, together {total:.2g} ms")
    if longer:
        parts.append(f"longer than the baseline's became {_listed(longer, beside=True)}")
    if not parts:
        return ""
    return f"by operator (totals of the profiled rounds, without intervals): {'; '.join(parts)}"


def _has_less_work(pair: OperatorPair) -> bool:
    return bool(
        pair.baseline_gmacs
        and pair.arm_gmacs
        and pair.arm_gmacs < MAX_WORK_SHARE * pair.baseline_gmacs
    )


def _saved(products: Sequence[OperatorPair]) -> str:
    """Whether these operators save as large a share of their time as of their MACs."""
    time = sum(pair.arm_ms for pair in products) / sum(pair.baseline_ms for pair in products)
    work = sum(pair.arm_gmacs or 0.0 for pair in products) / sum(
        pair.baseline_gmacs or 0.0 for pair in products
    )
    if abs(time - work) <= RATE_TOLERANCE:
        return "what their MACs do"
    return f"{'less' if time > work else 'more'} time than MACs"


def _product(pair: OperatorPair) -> str:
    share = (pair.arm_gmacs or 0.0) / (pair.baseline_gmacs or 1.0)
    return (
        f"{pair.short_name} takes {pair.arm_ms:.3g} of {pair.baseline_ms:.3g} ms with"
        f" {100 * share:.0f} % of its MACs"
    )


def _listed(pairs: Sequence[OperatorPair], *, beside: bool = False) -> str:
    """The largest differences, and how many more there are."""
    ordered = sorted(pairs, key=lambda pair: pair.baseline_ms - pair.arm_ms)
    named = [
        f"{pair.short_name} {pair.arm_ms:.3g} instead of {pair.baseline_ms:.3g} ms"
        if beside
        else f"{pair.short_name} {pair.arm_ms:.2g} ms"
        for pair in ordered[:MAX_OPERATORS]
    ]
    more = len(ordered) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


def explain_rates(baseline: float | None, arm: float | None, *, less_work: bool) -> str:
    """Achieved GFLOP/s of both sides while the device works, as a sentence without its end; empty
    where one is not known.
    """
    if not baseline or not arm:
        return ""
    text = (
        f"while it works, the machine reaches {arm:.3g} GFLOP/s, with the baseline {baseline:.3g}"
    )
    if abs(arm / baseline - 1) < RATE_TOLERANCE:
        return text
    less = "less work uses the machine " if less_work else "it uses the machine "
    return f"{text}: {less}{'less well' if arm < baseline else 'better'}"
