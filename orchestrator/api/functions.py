"""The public interface for functions: `compare`, `curve`, and the curve that comes back."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.api.callables import (
    BY_DTYPE,
    ArmFunctions,
    Check,
    measure_apart,
    measure_points,
    request_of,
)
from orchestrator.api.comparison import progress_bar
from orchestrator.api.result import Result, html_table, save_results
from orchestrator.text_table import table_lines
from sweeps.analysis.compared import DEFAULT_MARGIN, ComparedArm, Judgement
from sweeps.model.outcome import INTEGER
from sweeps.stats import curve as curves
from sweeps.stats.curve import BreakEven, Point, break_even
from sweeps.stats.pooling import Verdict
from sweeps.text.compared import speedup_text
from sweeps.text.curves import claim_text

_VERDICTS: Mapping[Judgement, Verdict] = {
    "faster": "faster",
    "slower": "slower",
    "equal": "same",
    "undecided": "unclear",
}


def compare_functions(
    functions: ArmFunctions,
    inputs: Callable[[], Any] | None = None,
    *,
    time: str | float = "30s",
    check: Check = BY_DTYPE,
    margin: float = DEFAULT_MARGIN,
    control: str | None = None,
    visits: int | None = None,
    timeout: str | float | None = None,
    isolate: bool = False,
    fresh_inputs: bool = False,
) -> Result:
    """Compare functions with the first one, which is the baseline, for about `time` (`30s`, `2m` or
    seconds); less where all are decided earlier.

    `inputs` makes the arguments: a tuple of positional ones, a dictionary of named ones, or a
    single one. It is called for each visit, and every arm gets a copy. The results of the arms on
    the same inputs must be equal, see `Check` and `workers.measure.results`; arms must not change
    their inputs. The verdict is `slower` where an arm certainly loses more than `margin`. `control`
    names an arm that must not differ from the baseline. `visits` are as many as the time allows
    for. After `timeout` (by default four times `time` and a minute) what still runs has failed.
    `isolate` measures in a new process, which an arm cannot take this one down with. With
    `fresh_inputs` each timed call has inputs of its own, so that an arm that keeps its results for
    known inputs gains nothing. Raises `ArmFailedError` if the baseline or all other arms fail, and
    `DifferentResultsError`.
    """
    (result,) = _measured(
        functions,
        inputs,
        [{}],
        isolate=isolate,
        time=time,
        check=check,
        margin=margin,
        controls={} if control is None else {control: next(iter(functions), "")},
        visits=visits,
        timeout=timeout,
        fresh_inputs=fresh_inputs,
    )
    return result


@dataclass(frozen=True)
class Curve:
    """Speed-ups along one axis of the inputs."""

    axis: str
    """Its name, such as `n`."""
    results: Mapping[float, Result]
    """By place on the axis, in order."""

    @property
    def arms(self) -> tuple[str, ...]:
        """Names of the arms that were measured, without the baseline."""
        return tuple(dict.fromkeys(name for each in self.results.values() for name in each.arms))

    def points(self, arm: str | None = None) -> tuple[Point, ...]:
        """The speed-ups of an arm, which need not be named if there is one."""
        return self._line(arm).points

    @property
    def break_even(self) -> BreakEven:
        """Where the only arm begins or ceases to pay; never outside of what was measured."""
        return self.break_even_of()

    def break_even_of(self, arm: str | None = None) -> BreakEven:
        return break_even(self._line(arm))

    def save(self, url: str | Path = "breakeven.db", sweep: str | None = None) -> str:
        """Record it in a store, as a sweep whose name is returned. Raises `StoreError`."""
        return save_results(list(self.results.values()), url, sweep)

    def __str__(self) -> str:
        """A table of the points, and what they allow to claim of each arm."""
        return "\n".join([*table_lines(*self._table()), *self._lines()])

    def _repr_html_(self) -> str:
        return html_table(*self._table(), self._lines())

    def _table(self) -> tuple[Sequence[str], list[Sequence[str]]]:
        rows: list[Sequence[str]] = []
        for x, result in self.results.items():
            found = [result.arms.get(name) for name in self.arms]
            rows.append([f"{x:g}", *(_cell(arm) for arm in found)])
        return (self.axis, *self.arms), rows

    def claims(self) -> list[str]:
        """What the points allow to say of each arm along the axis, a line each."""
        return [f"{name}: {claim_text(self._line(name), self.axis)}" for name in self.arms]

    def _lines(self) -> list[str]:
        doubts = [
            f"{self.axis}={x:g}: {line}"
            for x, result in self.results.items()
            for line in result.doubts()
        ]
        return [*self.claims(), *doubts]

    def _line(self, arm: str | None) -> curves.Curve:
        """Raises `ValueError` where there are several arms and none is named."""
        if arm is None and len(self.arms) != 1:
            raise ValueError(f"name one of the arms {', '.join(self.arms)}")
        found = {x: result.arms.get(arm or self.arms[0]) for x, result in self.results.items()}
        return curves.Curve(
            axis="parameter",
            points=tuple(
                Point(
                    x=x,
                    speedup=each.ratio,
                    low=each.low or None,
                    high=each.high if each.low else None,
                    verdict=_VERDICTS[each.verdict],
                    pairs=each.pairs,
                )
                for x, each in found.items()
                if each is not None
            ),
        )


def measure_curve(
    functions: ArmFunctions,
    inputs: Callable[..., Any],
    over: Mapping[str, Sequence[float]],
    *,
    time: str | float = "2m",
    check: Check = BY_DTYPE,
    margin: float = DEFAULT_MARGIN,
    visits: int | None = None,
    timeout: str | float | None = None,
    isolate: bool = False,
    fresh_inputs: bool = False,
) -> Curve:
    """Compare functions at the sizes of `over`, such as `{"n": [64, 256, 1024]}`, in `time` for all
    of them, which are visited in turns; `inputs(n=64)` makes the arguments of one.

    All else is as in `compare`. Raises `ValueError` for anything but one axis with two or more
    different finite numbers.
    """
    try:
        ((axis, sizes),) = over.items()
        different = {float(size) for size in sizes if abs(size) < INTEGER}
    except (AttributeError, TypeError, ValueError):
        different = set()
    if len(different) < 2 or len(different) < len(sizes):
        raise ValueError(
            f"over needs one axis with two or more different finite numbers, not {over!r}"
        )
    results = _measured(
        functions,
        inputs,
        [{axis: size} for size in sorted(sizes)],
        isolate=isolate,
        time=time,
        check=check,
        margin=margin,
        visits=visits,
        timeout=timeout,
        fresh_inputs=fresh_inputs,
    )
    return Curve(axis, dict(zip(sorted(sizes), results, strict=True)))


def _measured(
    functions: ArmFunctions,
    inputs: Callable[..., Any] | None,
    points: Sequence[Mapping[str, float]],
    *,
    isolate: bool,
    **options: Any,
) -> list[Result]:
    request = request_of(functions, inputs, points, **options)
    return (measure_apart if isolate else measure_points)(request, progress_bar())


def _cell(arm: ComparedArm | None) -> str:
    if arm is None:
        return "failed"
    return f"{speedup_text(arm.ratio, arm.low, arm.high)} {arm.verdict}"
