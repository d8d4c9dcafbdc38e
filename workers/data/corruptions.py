"""Corruptions of images in five severities, after Hendrycks and Dietterich, ICLR 2019, arXiv
1903.12261 (ImageNet-C).

The numbers are those of ImageNet-C, whose images have 224 pixels. Lengths in pixels scale with the
image's size, so that the same share of the picture is blurred. Randomness is seeded by the image's
name: every arm and every run gets the same image.
"""

import hashlib
import io
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image

REFERENCE_SIZE = 224
Values = NDArray[np.float64]
"""Pixels from 0 to 1, shape [height, width, channels]."""
Corruption = Callable[["Image", Any, np.random.Generator], "Image"]
"""Takes an image, the strength of a severity, and a generator of its own."""


def corrupt(image: "Image", corruption: str, severity: int, name: str) -> "Image":
    """`image` (mode L or RGB, 8 bits) with a corruption of `CORRUPTIONS` in a severity from 1 to 5;
    `name` identifies the image.
    """
    seed = hashlib.sha256(f"{corruption}/{severity}/{name}".encode()).digest()
    change, strengths = CORRUPTIONS[corruption]
    return change(
        image, strengths[severity - 1], np.random.default_rng(int.from_bytes(seed[:8], "little"))
    )


def _on_values(change: Callable[[Values, Any, np.random.Generator], Values]) -> Corruption:
    """A corruption of pixel values as one of images; like ImageNet-C it cuts fractions of a level
    off.
    """

    def corruption(image: "Image", strength: float, random: np.random.Generator) -> "Image":
        from PIL import Image

        values = np.asarray(image, dtype=np.float64) / 255
        changed = change(values.reshape(*values.shape[:2], -1), strength, random)
        return Image.fromarray(
            (np.clip(changed, 0, 1) * 255).astype(np.uint8).reshape(values.shape)
        )

    return corruption


def _impulse_noise(x_HWC: Values, share: float, random: np.random.Generator) -> Values:
    hit = random.random(x_HWC.shape) < share
    return np.where(hit, random.integers(0, 2, x_HWC.shape), x_HWC)


def _gaussian_blur(x_HWC: Values, pixels: float, _: np.random.Generator) -> Values:
    from scipy.ndimage import gaussian_filter

    sigma = pixels * min(x_HWC.shape[:2]) / REFERENCE_SIZE
    blurred: Values = gaussian_filter(x_HWC, (sigma, sigma, 0), mode="nearest")
    return blurred


def _contrast(x_HWC: Values, share: float, _: np.random.Generator) -> Values:
    mean_11C = x_HWC.mean((0, 1), keepdims=True)
    flattened: Values = (x_HWC - mean_11C) * share + mean_11C
    return flattened


def _brightness(x_HWC: Values, added: float, _: np.random.Generator) -> Values:
    """More of V in HSV: with H and S as they are, the channels grow with V in proportion, and black
    becomes grey.
    """
    v_HW1 = x_HWC.max(-1, keepdims=True)
    brighter_HW1 = np.clip(v_HW1 + added, 0, 1)
    brighter: Values = np.where(v_HW1 > 0, x_HWC / np.where(v_HW1 > 0, v_HW1, 1), 1) * brighter_HW1
    return brighter


def _pixelate(image: "Image", share: float, _: np.random.Generator) -> "Image":
    from PIL.Image import Resampling

    small = image.resize(
        (max(1, int(image.width * share)), max(1, int(image.height * share))), Resampling.BOX
    )
    return small.resize(image.size, Resampling.BOX)


def _jpeg(image: "Image", quality: int, _: np.random.Generator) -> "Image":
    from PIL import Image

    written = io.BytesIO()
    image.save(written, "JPEG", quality=quality)
    with Image.open(written) as read:
        read.load()
        return read


CORRUPTIONS: Mapping[str, tuple[Corruption, Sequence[float]]] = MappingProxyType(
    {
        "brightness": (_on_values(_brightness), (0.1, 0.2, 0.3, 0.4, 0.5)),
        "contrast": (_on_values(_contrast), (0.4, 0.3, 0.2, 0.1, 0.05)),
        "gaussian_blur": (_on_values(_gaussian_blur), (1, 2, 3, 4, 6)),
        "gaussian_noise": (
            _on_values(lambda x, scale, rng: x + rng.normal(0, scale, x.shape)),
            (0.08, 0.12, 0.18, 0.26, 0.38),
        ),
        "impulse_noise": (_on_values(_impulse_noise), (0.03, 0.06, 0.09, 0.17, 0.27)),
        "jpeg": (_jpeg, (25, 18, 15, 10, 7)),
        "pixelate": (_pixelate, (0.6, 0.5, 0.4, 0.3, 0.25)),
        "shot_noise": (
            _on_values(lambda x, photons, rng: rng.poisson(x * photons) / photons),
            (60, 25, 12, 5, 3),
        ),
        "speckle_noise": (
            _on_values(lambda x, scale, rng: x + x * rng.normal(0, scale, x.shape)),
            (0.15, 0.2, 0.35, 0.45, 0.6),
        ),
    }
)
"""By name; each with its strengths of severity 1 to 5."""
