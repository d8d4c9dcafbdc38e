"""How well two arms predict the same text: bits per byte with a paired interval, top-1 agreement,
KL divergence.
"""

from math import exp, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeps.model.metrics import METRICS
from sweeps.model.outcome import TextScores, unpack
from sweeps.stats.quality import (
    Interval,
    QualityVerdict,
    array_problem,
    interval_verdict,
    of_arm,
    ratio,
)

BITS_FLOOR = METRICS["bits_per_byte"].floor
"""Bits per byte that are called no difference."""
BLOCKS = 10
"""Parts of a text without documents, by which its intervals are made."""


class Fidelity(NamedTuple):
    """What one arm loses against another on the windows of a text that both scored."""

    windows: int
    unscored: int
    """Windows left out because one of the two gave no finite likelihood."""
    bytes: int
    characters: int
    tokens_baseline: int
    tokens: int
    """Tokens of the arm's own tokenizer: where they differ, perplexities per token cannot be
    compared, bits per byte can."""
    bits_per_byte_baseline: float
    bits_per_byte: float
    change: Interval
    """Bits per byte of the arm less those of the baseline: above 0 the arm is worse."""
    perplexity_baseline: float
    perplexity: float
    agreement: Interval | None
    """Positions at which both find the same token most likely, in per cent; `None` where the two
    read other tokens."""
    kl: Interval | None
    """Mean KL(baseline || arm) over positions in nats."""

    def verdict(self, floor: float = BITS_FLOOR) -> QualityVerdict:
        """See `sweeps.stats.quality.interval_verdict`; `floor` in bits per byte."""
        return interval_verdict(self.change.low, self.change.high, floor)


def compare_texts(scores: TextScores, baseline: int, arm: int) -> Fidelity:
    """How two arms of a quality job predict the text. Raises `ValueError` for an arm it lacks, or
    that scored no window.
    """
    sizes, characters = (
        unpack(scores.bytes, "i4").astype(np.float64),
        unpack(scores.characters, "i4"),
    )
    sides = [of_arm(scores.arms, index) for index in (baseline, arm)]
    nll = [unpack(side.nll, "f8") for side in sides]
    tokens = [unpack(side.tokens, "i4") for side in sides]
    both = np.isfinite(nll[0]) & np.isfinite(nll[1]) & (sizes > 0)
    if not np.any(both):
        raise ValueError(f"arms {baseline} and {arm} have no window that both scored")
    total = float(np.sum(sizes[both]))
    counts = [int(np.sum(side[both])) for side in tokens]
    sums = [float(np.sum(side[both])) for side in nll]
    documents = _documents(scores)
    agreement, kl = _predictions(scores, baseline, arm, both, documents)
    return Fidelity(
        windows=int(np.sum(both)),
        unscored=int(np.sum(~both)),
        bytes=int(total),
        characters=int(np.sum(characters[both])),
        tokens_baseline=counts[0],
        tokens=counts[1],
        bits_per_byte_baseline=sums[0] / total / log(2),
        bits_per_byte=sums[1] / total / log(2),
        change=ratio((nll[1] - nll[0])[both] / log(2), sizes[both], documents[both]),
        perplexity_baseline=_perplexity(sums[0], counts[0]),
        perplexity=_perplexity(sums[1], counts[1]),
        agreement=agreement,
        kl=kl,
    )


def scored(scores: TextScores | None, arm: int) -> bool:
    """Whether an arm gave at least one window a finite likelihood."""
    return scores is not None and any(
        side.arm == arm and bool(np.any(np.isfinite(unpack(side.nll, "f8"))))
        for side in scores.arms
    )


def scores_problem(scores: TextScores) -> str | None:
    """Why the scores cannot be: an array that does not hold one value for each window; `None` if
    they can.
    """
    columns = [(name, getattr(scores, name), "i4") for name in ("bytes", "characters", "documents")]
    for side in scores.arms:
        columns += [
            (f"nll of arm {side.arm}", side.nll, "f8"),
            (f"tokens of arm {side.arm}", side.tokens, "i4"),
        ]
    for pair in scores.pairs:
        named = (("positions", "i4"), ("agree", "i4"), ("kl", "f4"))
        columns += [
            (f"{name} of arm {pair.arm}", getattr(pair, name), dtype) for name, dtype in named
        ]
    return array_problem(columns, scores.windows, "windows")


def _documents(scores: TextScores) -> NDArray[np.int32]:
    """Which document each window is of; a text of one document counts as `BLOCKS` contiguous
    ones.
    """
    found: NDArray[np.int32] = unpack(scores.documents, "i4")
    if len(set(found.tolist())) == 1:
        return (
            np.arange(scores.windows, dtype=np.int32)
            * min(BLOCKS, scores.windows)
            // scores.windows
        )
    return found


def _predictions(
    scores: TextScores,
    baseline: int,
    arm: int,
    both: NDArray[np.bool_],
    documents: NDArray[np.int32],
) -> tuple[Interval | None, Interval | None]:
    """Top-1 agreement in per cent and KL over the positions that were compared; `None` where there
    are none.
    """
    pair = next(
        (pair for pair in scores.pairs if (pair.baseline, pair.arm) == (baseline, arm)), None
    )
    if pair is None:
        return None, None
    positions, kl = (
        unpack(pair.positions, "i4").astype(np.float64),
        unpack(pair.kl, "f4").astype(np.float64),
    )
    used = both & (positions > 0) & np.isfinite(kl)
    if not np.any(used):
        return None, None
    positions, documents = positions[used], documents[used]
    share = ratio(100 * unpack(pair.agree, "i4")[used], positions, documents)
    share = share._replace(low=max(share.low, 0.0), high=min(share.high, 100.0))
    return share, ratio(kl[used] * positions, positions, documents)


def _perplexity(nll: float, tokens: int) -> float:
    """Per token of the arm's own tokenizer; infinite where it would not fit a float."""
    mean_nll = nll / tokens if tokens else np.inf
    return exp(mean_nll) if mean_nll < 700 else np.inf
