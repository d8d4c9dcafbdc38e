"""Text scores: how likely each arm found the windows of a text, packed small enough to be kept."""

from sweeps.model.identity import FrozenModel

SCORED, CONTEXT = 384, 256
"""Characters of a window that are scored, and of context before them: together some 220 tokens,
fewer than the sequence length of the smallest model's training."""


class ArmScores(FrozenModel):
    """One arm on the windows of a text, in their order; each text is packed by `predictions.pack`,
    a value per window.
    """

    arm: int
    """Index into `Job.arms`."""
    nll: str
    """Negative log likelihood of the window's text in nats, float64; NaN where it is not finite."""
    tokens: str
    """Tokens of the arm's own tokenizer in the scored part of the window, int32."""


class PairScores(FrozenModel):
    """How an arm's predictions differ from its baseline's, window by window; only where both read
    the same tokens.
    """

    baseline: int
    arm: int
    positions: str
    """Positions compared, int32."""
    agree: str
    """Positions at which both find the same token most likely, int32."""
    kl: str
    """Mean KL(baseline || arm) over the positions in nats, float32."""


class TextScores(FrozenModel):
    """What a quality job read: all arms on the same windows of the same text, in the same order."""

    windows: int
    listing: str
    """Hash of the text that was read."""
    bytes: str
    """UTF-8 bytes of the scored part of each window, int32."""
    characters: str
    """Characters of the same, int32."""
    documents: str
    """Which document each window is of, int32."""
    arms: tuple[ArmScores, ...] = ()
    pairs: tuple[PairScores, ...] = ()
    complete: bool = False
    """Whether these are all windows of the text, so that no more characters could be read."""
