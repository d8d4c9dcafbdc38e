"""scikit-learn's 1 797 handwritten digits of 8 x 8 pixels, with a fixed split into training and
held-out images.
"""

import hashlib
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from workers.data.images import Images

DIGITS_SPLIT = 1
"""Raised when the split changes."""
HELD_OUT_DIGITS = 0.2
CLASSES = tuple(map(str, range(10)))


class Digits(NamedTuple):
    """Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning
    Repository, its test part.
    """

    pixels: NDArray[np.uint8]
    """Shape [images, 8, 8]: 0 (background) to 255 (ink), stretched from the 17 levels of the
    source."""
    labels: NDArray[np.int64]
    held_out: NDArray[np.bool_]
    """Images that are not used for training."""


@cache
def digits() -> Digits:
    """All images in scikit-learn's order.

    Of each class the fifth with the lowest SHA-256 of the pixels is held out: the same on every
    machine, and equal images are always in the same part.
    """
    from sklearn.datasets import load_digits

    source = load_digits()
    levels, labels = source.images.astype(np.uint8), source.target.astype(np.int64)
    keys = np.array([hashlib.sha256(image.tobytes()).hexdigest() for image in levels])
    held_out = np.zeros(len(labels), dtype=np.bool_)
    for label in range(len(CLASSES)):
        ordered = np.sort(keys[labels == label])
        last = ordered[round(HELD_OUT_DIGITS * len(ordered)) - 1]
        held_out |= (labels == label) & (keys <= last)
    return Digits(np.round(levels * (255 / 16)).astype(np.uint8), labels, held_out)


def held_out_digits() -> Images:
    """The held-out part, on which accuracy is measured."""
    found = digits()
    places = np.flatnonzero(found.held_out)
    return Images(
        names=tuple(f"digits/{place}" for place in places),
        labels=found.labels[places],
        classes=CLASSES,
        read=lambda index: Image.fromarray(found.pixels[places[index]]),
    )
