"""What is known of profiled arms beside their profiles: points, ceilings and operators, and the
explain that all of them make.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from store.read.advice.ceilings import with_ceilings
from store.rows.frames import rows_of
from sweeps.number_format import is_missing
from sweeps.text.ceilings import explain_ceiling
from sweeps.text.operator_text import OperatorPair, explain_operators, explain_rates
from sweeps.text.reasons import explain_promise

if TYPE_CHECKING:
    import pandas as pd

_PLACE = ("environment", "host", "condition_id", "arm_id", "baseline_id", "metric")


class ProfileContext:
    """Points of the view `speedup` and operators of the view `kernel`; explains one arm with those
    of it and its baseline.
    """

    def __init__(
        self, points: "pd.DataFrame", operators: "pd.DataFrame", is_ceiling: Callable[[str], bool]
    ) -> None:
        """`is_ceiling` is whether a method only cuts tokens."""
        self._is_ceiling = is_ceiling
        rows = rows_of(with_ceilings(points, is_ceiling)) if len(points) else []
        self._points = {tuple(getattr(row, name) for name in _PLACE): row for row in rows}
        self._operators: dict[str, dict[str, Any]] = {}
        for row in rows_of(operators):
            self._operators.setdefault(row.profile_id, {})[row.name] = row

    def explain(
        self,
        arm: Any,
        baseline: Any,
        metric: str | None,
        wall: str,
        gflops: Sequence[float | None] = (),
    ) -> str:
        """Sentences on an arm, by rows of the view `profile` of it and its baseline: what was
        timed, then why.

        `wall` is the sentence of the profile on the wall; `gflops`, what baseline and arm reach,
        only of a profile that explains.
        """
        point = self._points.get(
            (arm.environment, arm.host, arm.condition_id, arm.arm_id, baseline.arm_id, metric)
        )
        sentences = [] if point is None else [explain_promise(point)]
        if point is not None and not self._is_ceiling(point.method):
            sentences.append(explain_ceiling(point))
        sentences.append(wall)
        if gflops:
            sentences.append(
                explain_operators(self.operator_pairs(baseline.profile_id, arm.profile_id))
            )
            sentences.append(explain_rates(*gflops, less_work=_less(arm.gmacs, baseline.gmacs)))
        return join_sentences(sentences)

    def operator_pairs(self, baseline: str, arm: str) -> list[OperatorPair]:
        """The operators of two profiles, by their `profile_id`; none where one of both has no
        operators.
        """
        sides = [self._operators.get(each, {}) for each in (baseline, arm)]
        if not all(sides):
            return []
        return [
            _pair(name, sides[0].get(name), sides[1].get(name))
            for name in dict.fromkeys((*sides[0], *sides[1]))
        ]


def join_sentences(sentences: list[str]) -> str:
    """Sentences without their ends as one text without its end; empty ones are left out, the first
    keeps its small letter.
    """
    known = [each for each in sentences if each]
    return ". ".join([*known[:1], *(f"{each[:1].upper()}{each[1:]}" for each in known[1:])])


def _pair(name: str, baseline: Any, arm: Any) -> OperatorPair:
    sides = (baseline, arm)
    ms, runs = (
        [0.0 if side is None else float(getattr(side, column)) for side in sides]
        for column in ("ms", "count")
    )
    gmacs = [
        None if side is None or is_missing(side.gmacs) else float(side.gmacs) for side in sides
    ]
    return OperatorPair(name, *ms, *runs, *gmacs)


def _less(arm: Any, baseline: Any) -> bool:
    return not is_missing(arm) and not is_missing(baseline) and bool(arm < baseline)
