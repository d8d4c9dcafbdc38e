"""Stacks: the speed-up of several methods together, beside those of its parts alone and their
product.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

from sweeps.analysis.labels import SPEEDUP, Conclusion, Finding, conclude, conclude_row

_NO_FACTOR = frozenset(
    {Finding.NO_INTERVAL, Finding.INSUFFICIENT, Finding.QUARANTINED, Finding.NOT_MEASURED}
)


class StackPart(NamedTuple):
    """A part of a stack: a method, or one condition that the stack overrides."""

    label: str
    speedup: Conclusion | None
    """Alone, against the same baseline; `None`: not measured alone."""


class Stack(NamedTuple):
    """A stack of methods, its parts, and the speed-up that their product would be."""

    row: Any
    """Of the view `speedup`."""
    label: str
    together: Conclusion
    parts: tuple[StackPart, ...]
    product: Conclusion | None
    """Its interval is the product of theirs: parts that were timed in the same rounds share the
    baseline's noise, so that their errors may add up. `None` unless every part was measured alone
    with an interval."""

    @property
    def text(self) -> str:
        """Parts, all together and the product, as the rest of a sentence."""
        clauses = [
            f"{part.label} was not measured alone"
            if part.speedup is None
            else f"{part.label} alone {part.speedup.numbers}"
            for part in self.parts
        ]
        if self.product is not None:
            end = f"; the product of the parts is {self.product.numbers}"
        else:
            measured = all(part.speedup is not None for part in self.parts)
            end = "; no product of the parts: not every part has enough pairs" if measured else ""
        return f"{'; '.join(clauses)}; all together {self.together.numbers}{end}"


def stacks_of(rows: Iterable[Any], label: Callable[[str, str], str]) -> Iterator[Stack]:
    """The stacks among rows of the view `speedup` by one metric, under one condition and against
    one baseline.

    `label` gives the label of a method and its parameters (JSON).
    """
    known = list(rows)
    alone = {
        _key(row.method, json.loads(row.params or "{}")): row
        for row in known
        if "+" not in row.method
    }
    for row in known:
        steps = json.loads(row.params or "{}")
        if not isinstance(steps, list):
            continue
        keys = [
            _key(step["method"], {k: v for k, v in step.items() if k != "method"})
            for step in steps
            if "method" in step
        ]
        keys += [
            _key("dense", {name: value})
            for step in steps
            if "method" not in step
            for name, value in step.items()
        ]
        parts = [_part(key, alone.get(key), label) for key in keys]
        yield Stack(
            row,
            label(row.method, row.params),
            _speedup(row),
            tuple(parts),
            _product([alone.get(key) for key in keys]),
        )


def _part(key: tuple[str, str], row: Any, label: Callable[[str, str], str]) -> StackPart:
    if row is None:
        return StackPart(f"{key[0]} {key[1]}", None)
    return StackPart(label(row.method, row.params), _speedup(row))


def _speedup(row: Any) -> Conclusion:
    return conclude_row(SPEEDUP, row, "speedup")


def _product(rows: Sequence[Any]) -> Conclusion | None:
    if any(row is None or _speedup(row).finding in _NO_FACTOR for row in rows):
        return None
    ends = [prod(getattr(row, f"speedup{end}") for row in rows) for end in ("", "_low", "_high")]
    return conclude(SPEEDUP, *ends, verdict=None)


def _key(method: str, params: dict[str, Any]) -> tuple[str, str]:
    return method, json.dumps(
        {name: value for name, value in params.items() if value is not None}, sort_keys=True
    )
