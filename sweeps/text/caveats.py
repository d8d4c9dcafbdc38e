"""Caveats: what the measurements behind an answer do not show."""

from collections.abc import Iterable, Iterator
from statistics import median
from typing import Any

from sweeps.model.flags import split_flags
from sweeps.number_format import count, is_missing

MAX_NAMED = 3
"""Points that a caution names; more are counted."""
SMALL_MODEL = 1e9
"""Parameters below which a model ranks methods only."""
SLOW_SPEED = 0.9
"""Share of the quickest known speed below which that is said."""


def cautions(model: str, weights: str, parameters: float | None) -> Iterator[str]:
    """Sentences for one model, the same in the report and in the app; `parameters` of the
    unmodified model, `None` if not known.
    """
    small = (
        f" of {parameters / 1e6:.3g} M parameters"
        if parameters is not None and parameters < SMALL_MODEL
        else ""
    )
    if weights == "random":
        yield (
            f"{model} has random weights: its times are real, its quality does not predict that of"
            " a trained model."
        )
    if small or weights == "trained":
        yield (
            f"{model}{small} ranks methods; it does not predict speed-ups or losses of models of 7B"
            " parameters."
        )


def slow_caution(speeds: Iterable[float | None]) -> Iterator[str]:
    """A sentence where the machine ran slower than it can in the newest runs; `speeds` are
    `host_speed` of each speed-up.
    """
    known = [speed for speed in speeds if not is_missing(speed) and speed is not None]
    if known and (usual := median(known)) < SLOW_SPEED:
        yield (
            f"this host ran at {usual:.2f} of its quickest known speed; run again when it is quick,"
            " which adds visits to these"
        )


def states_caution(points: Iterable[tuple[str, Any]]) -> Iterator[str]:
    """A sentence where speed-ups are clearly others while the machine is slow; `points` as for
    `mean_caution`.
    """
    named = [
        f"{label} at {row.tokens:.0f} tokens {row.speedup:.2f}x when the host is quick,"
        f" {row.speedup_slow:.2f}x when it is slow"
        for label, row in _flagged(points, "states_differ")
    ]
    if named:
        yield f"speed-ups change with the state of the host: {_shortened(named)}"


def mean_caution(points: Iterable[tuple[str, Any]]) -> Iterator[str]:
    """A sentence where mean times disagree with speed-ups; `points` are rows of the view `speedup`,
    each behind its label.
    """
    named = [
        f"{label} at {row.tokens:.0f} tokens is {row.ratio_of_means:.2f}x as fast, not"
        f" {row.speedup:.2f}x"
        for label, row in _flagged(points, "mean_disagrees")
    ]
    if named:
        yield f"some forwards take much longer than typical ones: by mean times {_shortened(named)}"


def _flagged(points: Iterable[tuple[str, Any]], flag: str) -> Iterator[tuple[str, Any]]:
    return ((label, row) for label, row in points if flag in split_flags(row.flags))


def _shortened(named: list[str]) -> str:
    """The first ones, and the number of the others."""
    more = [f"{count(len(named) - MAX_NAMED, 'more speed-up')}"] if len(named) > MAX_NAMED else []
    return "; ".join(named[:MAX_NAMED] + more)


def load_caution(flags: Iterable[str | None]) -> Iterator[str]:
    """A sentence where speed-ups were measured beside other programs; `flags` are the joined ones
    of each speed-up.

    Beside a busy core some ratios are others, and not only noisier.
    """
    each = [split_flags(joined) for joined in flags]
    if loaded := sum("contended" in names for names in each):
        yield (
            f"measured beside other programs: {loaded} of {count(len(each), 'speed-up')}; on a"
            " quiet machine they may differ"
        )
