"""How often a sequence of kernels repeats: forwards in a trace that no range separates."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

BINS = 32
"""Names are matched in so many groups: equal names are always in one, so that the matches counted are at least the true ones."""
MOST_PERIODS = 2000
"""So many periods are tried at most, the most promising first."""
NEAR_BEST = 0.8
"""A shorter period is taken if it covers this share of what the best covers: four forwards also repeat as two pairs."""
NESTED = 0.25
"""A forward repeats itself over at least this share of its kernels, which are those of its blocks."""
OFTEN = 3
"""Kernels that a pass runs so often show how many passes there are; rarer ones also run elsewhere."""

Codes = NDArray[np.int64]


class KernelRepeats(NamedTuple):
    """The part of a sequence that repeats."""

    period: int
    """Kernels in one pass."""
    equal: int
    """Passes that run the same kernels in the same order, one after the other."""
    passes: int
    """All passes, those included that run other kernels too: a first forward that tunes, one that counts operations."""
    first: int
    """Place of the first kernel of the equal passes."""
    rest: int
    """Kernels outside the equal passes."""
    complete: bool
    """The passes are forwards: each holds repeats itself, as a forward holds blocks, and no kernels follow that belong to no pass.
    Blocks of one forward repeat too, but hold no repeats, and its head follows them."""


def find_repeats(names: Sequence[str]) -> KernelRepeats | None:
    """The repeats that cover most of `names` (in the order of launch); `None` if nothing repeats."""
    ids: dict[str, int] = {}
    codes = np.array([ids.setdefault(name, len(ids)) for name in names], dtype=np.int64)
    found = _longest(codes)
    if found is None:
        return None
    period, first, covered = found
    equal = covered // period
    one_pass = codes[first : first + period]
    after = codes[first + equal * period :]
    passes = _passes(codes, one_pass, equal)
    ended = np.array_equal(after, one_pass[: len(after)]) or (len(after) >= period / 3 and passes > equal)
    return KernelRepeats(
        period=period,
        equal=equal,
        passes=passes,
        first=first,
        rest=len(codes) - equal * period,
        complete=bool(ended) and _nested(one_pass),
    )


def _longest(codes: Codes) -> tuple[int, int, int] | None:
    """Period, first place and length of the longest part that repeats at least once; the shortest of nearly equal ones."""
    half = len(codes) // 2
    if half == 0:
        return None
    periods = np.arange(1, half + 1)
    bound = _matches(codes)[1 : half + 1] + periods
    best = (0, 0, 0)
    for period in periods[np.lexsort((periods, -bound))][:MOST_PERIODS]:
        if bound[period - 1] <= best[2]:
            break
        best = max(best, _covered(codes, int(period)), key=lambda found: found[2])
    if best[2] == 0:
        return None
    enough = NEAR_BEST * best[2]
    for period in periods[bound >= enough][:MOST_PERIODS]:
        found = _covered(codes, int(period))
        if found[2] >= enough:
            return found
    return best


def _matches(codes: Codes) -> NDArray[np.int64]:
    """For each lag, shape [n], at least the number of places whose code equals the one that far behind it."""
    size = 1 << (2 * len(codes) - 1).bit_length()
    bins = codes % BINS
    power = np.zeros(size // 2 + 1)
    for number in np.unique(bins):
        power += np.abs(np.fft.rfft(bins == number, size)) ** 2
    return np.rint(np.fft.irfft(power, size)[: len(codes)]).astype(np.int64)


def _covered(codes: Codes, period: int) -> tuple[int, int, int]:
    """Period, first place and length of the longest part with that period; length 0 if it has not two whole passes."""
    equal = np.concatenate(([False], codes[period:] == codes[:-period], [False]))
    edges = np.flatnonzero(equal[1:] != equal[:-1])
    starts, ends = edges[::2], edges[1::2]
    if len(starts) == 0:
        return period, 0, 0
    longest = int(np.argmax(ends - starts))
    length = int(ends[longest] - starts[longest])
    return (period, int(starts[longest]), length + period) if length >= period else (period, 0, 0)


def _passes(codes: Codes, one_pass: Codes, equal: int) -> int:
    """How many passes there are, if at least two kernels that run often in a pass show a whole number of them; else `equal`."""
    total = Counter(codes.tolist())
    often = [(code, runs) for code, runs in Counter(one_pass.tolist()).items() if runs >= OFTEN]
    times = Counter(total[code] // runs for code, runs in often if total[code] % runs == 0)
    return max((number for number, kernels in times.items() if kernels > 1 and number > equal), default=equal)


def _nested(one_pass: Codes) -> bool:
    inner = _longest(one_pass)
    if inner is None:
        return False
    period, first, covered = inner
    return covered >= NESTED * len(one_pass) and len(np.unique(one_pass[first : first + period])) > 1
