"""Predictions of each arm for each image, packed small enough to be kept, so that any two arms can
be compared later.
"""

import base64
from typing import TYPE_CHECKING, Any

from sweeps.model.identity import FrozenModel

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike, NDArray


def pack(values: "ArrayLike", dtype: "DTypeLike") -> str:
    """An array as base64 text of its little-endian bytes."""
    import numpy as np

    return base64.b64encode(
        np.asarray(values, dtype=np.dtype(dtype).newbyteorder("<")).tobytes()
    ).decode("ascii")


def unpack(text: str, dtype: "DTypeLike") -> "NDArray[Any]":
    """What `pack` packed."""
    import numpy as np

    return np.frombuffer(base64.b64decode(text), dtype=np.dtype(dtype).newbyteorder("<"))


class ArmImages(FrozenModel):
    """One arm on the images of an evaluation, in their order; each text is `pack`ed, one value per
    image.
    """

    arm: int
    """Index into `Job.arms`."""
    predicted: str
    """Class with the highest logit, int16; -1 where the logits are not finite."""
    rank: str
    """How many classes have a higher logit than the true one, int16: 0 is a top-1 hit, below 5 a
    top-5 hit; -1 if not finite."""
    margin: str
    """Logit of the true class less the highest other logit, float32."""


class PairImages(FrozenModel):
    """How an arm's output differs from its baseline's, image by image."""

    baseline: int
    arm: int
    kl: str
    """KL(baseline || arm) of the softmax over the outputs that stand for the data's classes, in
    nats, float32.

    With a class map other outputs of the model are left out before the softmax.
    """


class Predictions(FrozenModel):
    """What an accuracy job saw: arms and pairs on the same images in the same order."""

    images: int
    classes: int
    labels: str
    """True classes, int16, packed."""
    listing: str
    """Hash of the data listing (names, labels, corruption): what was evaluated."""
    unreadable: tuple[str, ...] = ()
    """Names of images that could not be read; the rest was evaluated."""
    arms: tuple[ArmImages, ...] = ()
    pairs: tuple[PairImages, ...] = ()
