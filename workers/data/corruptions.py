"""Corruptions of images in five severities, after Hendrycks and Dietterich, ICLR 2019, arXiv
1903.12261 (ImageNet-C): its 15, and of its extra ones Gaussian blur and speckle noise.

The parameters are those of the paper's program (hendrycks/robustness), whose images have
224 pixels. Lengths in pixels scale with the shorter side of the image, and snow, fog, frost and
displacements are drawn for 224 pixels and stretched over the longer side, so that the same share of
the picture changes. Randomness is seeded by the image's name: every arm and every run gets the same
image. The images are not the files of ImageNet-C: noise is drawn anew, they are not compressed
afterwards, and `frost` lays a drawn texture over the picture where ImageNet-C has photographs of
frost, so its errors are not those of ImageNet-C. The files themselves are read as
`imagefolder:PATH`.
"""

import hashlib
import io
import itertools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image

REFERENCE_SIZE = 224
Values = NDArray[np.float64]
"""Pixels from 0 to 1, shape [height, width, channels]."""
Corruption = Callable[["Image", Any, Generator], "Image"]
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


def _on_values(change: Callable[[Values, Any, Generator], Values]) -> Corruption:
    """A corruption of pixel values as one of images; like ImageNet-C it cuts fractions of a level
    off.
    """

    def corruption(image: "Image", strength: object, random: Generator) -> "Image":
        from PIL import Image

        values = np.asarray(image, dtype=np.float64) / 255
        changed = change(values.reshape(*values.shape[:2], -1), strength, random)
        return Image.fromarray(
            (np.clip(changed, 0, 1) * 255).astype(np.uint8).reshape(values.shape)
        )

    return corruption


def _scale(x_HWC: Values) -> float:
    """Pixels of the image for each of a picture of 224 pixels."""
    return float(min(x_HWC.shape[:2]) / REFERENCE_SIZE)


def _stretched(layer_RR: Values, x_HWC: Values) -> Values:
    """A layer for 224 pixels over the image, [H, W, 1]: the longer side takes all of it."""
    from PIL import Image

    H, W = x_HWC.shape[:2]
    share = REFERENCE_SIZE / max(H, W)
    box = (0.0, 0.0, W * share, H * share)
    layer = Image.fromarray(layer_RR.astype(np.float32))
    return np.asarray(layer.resize((W, H), Image.Resampling.BILINEAR, box), np.float64)[..., None]


def _filtered(
    x_HWC: Values, taps_T2: Values, weights_T: Values, mode: Literal["edge", "reflect"]
) -> Values:
    """At each pixel the weighted sum of what is `taps_T2` (down, right) of it, in pixels of 224;
    `mode` is NumPy's for what lies outside the image.
    """
    from scipy.signal import fftconvolve

    taps_T2 = taps_T2 * _scale(x_HWC)
    corners_T2 = np.floor(taps_T2).astype(int)
    reach = int(abs(corners_T2).max())
    kernel = np.zeros((2 * reach + 2, 2 * reach + 2))
    for corner in itertools.product((0, 1), (0, 1)):
        # between pixels a tap counts for the four around it
        near_T = (1 - abs(corners_T2 + corner - taps_T2)).prod(1)
        np.add.at(kernel, tuple((corners_T2 + corner + reach).T), weights_T * near_T)
    padded = np.pad(x_HWC, ((reach, reach + 1), (reach, reach + 1), (0, 0)), mode)
    filtered: Values = fftconvolve(padded, kernel[::-1, ::-1, None], "valid", axes=(0, 1))
    return filtered


def _defocus_blur(x_HWC: Values, strength: tuple[int, float], _: Generator) -> Values:
    """A disk, its edge smoothed by a Gaussian that is cut off after one pixel, or two for large
    disks.
    """
    from scipy.ndimage import gaussian_filter

    radius, sigma = strength
    side = np.arange(-max(8, radius), max(8, radius) + 1.0)
    disk = (side[:, None] ** 2 + side**2 <= radius**2).astype(np.float64)
    smooth = gaussian_filter(disk / disk.sum(), sigma, mode="mirror", radius=1 + (radius > 8))
    taps_T2 = np.stack(np.meshgrid(side, side, indexing="ij"), -1).reshape(-1, 2)
    return _filtered(x_HWC, taps_T2, smooth.ravel(), "reflect")


def _glass_blur(x_HWC: Values, strength: tuple[float, int, int], random: Generator) -> Values:
    """Between two blurs each pixel in turn, from the last to the first, takes the value of one
    nearby (the published program exchanges views of pixels, which copies one to the other).
    """
    sigma, pixels, rounds = strength
    x_HWC = _gaussian_blur(x_HWC, sigma, random)
    H, W, C = x_HWC.shape
    reach = max(1, round(pixels * _scale(x_HWC)))
    inner = slice(-reach, reach, -1)
    places = np.arange(H * W)
    for _ in range(rounds):
        to_HW = np.arange(H * W).reshape(H, W)[inner, inner]
        down_HW, right_HW = random.integers(-reach, reach, (2, *to_HW.shape))
        from_HW = to_HW + down_HW * W + right_HW
        for to, source in zip(to_HW.ravel().tolist(), from_HW.ravel().tolist(), strict=True):
            places[to] = places[source]
    return _gaussian_blur(x_HWC.reshape(-1, C)[places].reshape(H, W, C), sigma, random)


def _moved(x_HWC: Values, radius: int, sigma: float, degrees: float) -> Values:
    """ImageMagick's motion blur: half a Gaussian along a line of whole pixels."""
    steps = np.arange(2 * radius + 1)
    weights = np.exp(-(steps**2) / (2 * sigma**2))
    angle = np.deg2rad(degrees)
    line_2T = np.ceil(np.outer((np.sin(angle), np.cos(angle)), steps) - 0.5)
    return _filtered(x_HWC, line_2T.T, weights / weights.sum(), "edge")


def _motion_blur(x_HWC: Values, strength: tuple[int, float], random: Generator) -> Values:
    return _moved(x_HWC, *strength, random.uniform(-45, 45))


def _zoomed(x_HWC: Values, factor: float) -> Values:
    """The middle of the image, enlarged to its size."""
    from scipy.ndimage import zoom

    size = np.array(x_HWC.shape[:2])
    part = _middle(x_HWC, np.ceil(size / factor).astype(int))
    return _middle(zoom(part, (factor, factor, 1), order=1), size)


def _middle(x_HWC: Values, size: NDArray[np.int64]) -> Values:
    top, left = (x_HWC.shape[:2] - size) // 2
    return x_HWC[top : top + size[0], left : left + size[1]]


def _zoom_blur(x_HWC: Values, strength: tuple[float, float], _: Generator) -> Values:
    factors = np.arange(1, *strength)
    total: Values = sum((_zoomed(x_HWC, factor) for factor in factors), x_HWC)
    return total / (len(factors) + 1)


def _snow(x_HWC: Values, strength: tuple[float, ...], random: Generator) -> Values:
    """Flakes that fall both ways, over a picture made whiter."""
    mean, deviation, zoom, least, radius, sigma, kept = strength
    flakes_RR1 = random.normal(mean, deviation, (REFERENCE_SIZE, REFERENCE_SIZE, 1))
    flakes_RR1 = _zoomed(flakes_RR1, zoom)
    flakes_RR1 = np.where(flakes_RR1 < least, 0, flakes_RR1).clip(0, 1)
    fallen_RR1 = _moved(flakes_RR1, int(radius), sigma, random.uniform(-135, -45))
    snow_HW1 = _stretched(fallen_RR1[..., 0], x_HWC)
    grey_HW1 = x_HWC @ ((0.299, 0.587, 0.114) if x_HWC.shape[-1] == 3 else (1,))
    white = np.maximum(x_HWC, 1.5 * grey_HW1[..., None] + 0.5)
    whiter: Values = kept * x_HWC + (1 - kept) * white + snow_HW1 + snow_HW1[::-1, ::-1]
    return whiter


def _plasma(decay: float, random: Generator) -> Values:
    """A fractal from 0 to 1 by the diamond-square algorithm, [224, 224]: each halving of the grid
    divides what is added at random by `decay` squared.
    """
    step, added = 256, 1.0
    x = np.zeros((step, step))

    def mean(one: Values, other: Values, *rolls: int) -> Values:
        """Of four neighbours each, a random number added; `rolls` are shift and axis of both."""
        total = one + np.roll(one, *rolls[:2]) + other + np.roll(other, *rolls[2:])
        return total / 4 + added * random.uniform(-1, 1, total.shape)

    while step >= 2:
        half = step // 2
        corners = x[::step, ::step]
        right = np.roll(corners, -1, 1)
        x[half::step, half::step] = middles = mean(corners, right, -1, 0, -1, 0)
        x[::step, half::step] = mean(middles, corners, 1, 0, -1, 1)
        x[half::step, ::step] = mean(middles, corners, 1, 1, -1, 0)
        step, added = half, added / decay**2
    x -= x.min()
    part: Values = x[:REFERENCE_SIZE, :REFERENCE_SIZE] / x.max()
    return part


def _fog(x_HWC: Values, strength: tuple[float, float], random: Generator) -> Values:
    thick, decay = strength
    white = x_HWC.max()
    foggy = x_HWC + thick * _stretched(_plasma(decay, random), x_HWC)
    whitest: Values = foggy * white / (white + thick)
    return whitest


def _frost(x_HWC: Values, strength: tuple[float, float], random: Generator) -> Values:
    """Veins where a fractal is at its middle, on a cloudy ground; ImageNet-C has photographs."""
    kept, laid = strength
    veins_RR = 1 - abs(2 * _plasma(1.4, random) - 1)
    frost_RR = (veins_RR**3 + _plasma(1.7, random)) / 2
    frosted: Values = kept * x_HWC + laid * _stretched(frost_RR, x_HWC)
    return frosted


def _elastic_transform(
    x_HWC: Values, strength: tuple[float, float, float], random: Generator
) -> Values:
    """A random affine map, then a smooth field of displacements."""
    from scipy.ndimage import gaussian_filter

    amplitude, sigma, affine = (244 * number for number in strength)  # not 224
    scale, size = _scale(x_HWC), np.array(x_HWC.shape[:2])
    before_32 = size // 2 + min(size) // 3 * np.array([[1, 1], [1, -1], [-1, -1]])
    after_32 = before_32 + scale * random.uniform(-affine, affine, (3, 2))
    back_32 = np.linalg.solve(np.column_stack([after_32, np.ones(3)]), before_32)
    places_HW2 = np.moveaxis(np.indices(x_HWC.shape[:2]), 0, -1)
    x_HWC = _sampled(x_HWC, places_HW2 @ back_32[:2] + back_32[2], "mirror")
    shifts = [
        gaussian_filter(random.uniform(-1, 1, (REFERENCE_SIZE,) * 2), sigma, truncate=3)
        for _ in range(2)
    ]
    moved_HW2 = np.concatenate([_stretched(shift, x_HWC) for shift in shifts], -1)
    return _sampled(x_HWC, places_HW2 + amplitude * scale * moved_HW2, "reflect")


def _sampled(x_HWC: Values, places_HW2: Values, mode: str) -> Values:
    """The image between pixels, at places (down, right)."""
    from scipy.ndimage import map_coordinates

    places_2HW = np.moveaxis(places_HW2, -1, 0)
    channels = np.moveaxis(x_HWC, -1, 0)
    return np.stack(
        [map_coordinates(channel, places_2HW, order=1, mode=mode) for channel in channels], -1
    )


def _impulse_noise(x_HWC: Values, share: float, random: Generator) -> Values:
    hit = random.random(x_HWC.shape) < share
    return np.where(hit, random.integers(0, 2, x_HWC.shape), x_HWC)


def _gaussian_blur(x_HWC: Values, pixels: float, _: Generator) -> Values:
    from scipy.ndimage import gaussian_filter

    sigma = pixels * _scale(x_HWC)
    blurred: Values = gaussian_filter(x_HWC, (sigma, sigma, 0), mode="nearest")
    return blurred


def _contrast(x_HWC: Values, share: float, _: Generator) -> Values:
    mean_11C = x_HWC.mean((0, 1), keepdims=True)
    flattened: Values = (x_HWC - mean_11C) * share + mean_11C
    return flattened


def _brightness(x_HWC: Values, added: float, _: Generator) -> Values:
    """More of V in HSV: with H and S as they are, the channels grow with V in proportion, and black
    becomes grey.
    """
    v_HW1 = x_HWC.max(-1, keepdims=True)
    brighter_HW1 = np.clip(v_HW1 + added, 0, 1)
    brighter: Values = np.where(v_HW1 > 0, x_HWC / np.where(v_HW1 > 0, v_HW1, 1), 1) * brighter_HW1
    return brighter


def _pixelate(image: "Image", share: float, _: Generator) -> "Image":
    from PIL.Image import Resampling

    small = image.resize(
        (max(1, int(image.width * share)), max(1, int(image.height * share))), Resampling.BOX
    )
    return small.resize(image.size, Resampling.BOX)


def _jpeg(image: "Image", quality: int, _: Generator) -> "Image":
    from PIL import Image

    written = io.BytesIO()
    image.save(written, "JPEG", quality=quality)
    with Image.open(written) as read:
        read.load()
        return read


CORRUPTIONS: Mapping[str, tuple[Corruption, Sequence[object]]] = MappingProxyType(
    {
        "brightness": (_on_values(_brightness), (0.1, 0.2, 0.3, 0.4, 0.5)),
        "contrast": (_on_values(_contrast), (0.4, 0.3, 0.2, 0.1, 0.05)),
        "defocus_blur": (
            _on_values(_defocus_blur),
            ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)),
        ),
        "elastic_transform": (
            _on_values(_elastic_transform),
            (
                (2, 0.7, 0.1),
                (2, 0.08, 0.2),
                (0.05, 0.01, 0.02),
                (0.07, 0.01, 0.02),
                (0.12, 0.01, 0.02),
            ),
        ),
        "fog": (_on_values(_fog), ((1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4))),
        "frost": (_on_values(_frost), ((1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75))),
        "gaussian_blur": (_on_values(_gaussian_blur), (1, 2, 3, 4, 6)),
        "gaussian_noise": (
            _on_values(lambda x, scale, rng: x + rng.normal(0, scale, x.shape)),
            (0.08, 0.12, 0.18, 0.26, 0.38),
        ),
        "glass_blur": (
            _on_values(_glass_blur),
            ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
        ),
        "impulse_noise": (_on_values(_impulse_noise), (0.03, 0.06, 0.09, 0.17, 0.27)),
        "jpeg": (_jpeg, (25, 18, 15, 10, 7)),
        "motion_blur": (_on_values(_motion_blur), ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15))),
        "pixelate": (_pixelate, (0.6, 0.5, 0.4, 0.3, 0.25)),
        "shot_noise": (
            _on_values(lambda x, photons, rng: rng.poisson(x * photons) / photons),
            (60, 25, 12, 5, 3),
        ),
        "snow": (
            _on_values(_snow),
            (
                (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
                (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
                (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
                (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
                (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
            ),
        ),
        "speckle_noise": (
            _on_values(lambda x, scale, rng: x + x * rng.normal(0, scale, x.shape)),
            (0.15, 0.2, 0.35, 0.45, 0.6),
        ),
        "zoom_blur": (
            _on_values(_zoom_blur),
            ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)),
        ),
    }
)
"""By name; each with its strengths of severity 1 to 5."""
