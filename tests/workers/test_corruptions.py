"""Corruptions of images: what each does, how strong, and that it is the same each time."""

import io
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image
from scipy.ndimage import gaussian_filter

from workers.data.corruptions import CORRUPTIONS, corrupt

RANDOM = {
    *(name for name in CORRUPTIONS if name.endswith("noise")),
    *("glass_blur", "motion_blur", "snow", "frost", "fog", "elastic_transform"),
}
WORSE = {
    "elastic_transform": [(1, 2)],
    "fog": [(1, 2), (1, 5)],
    "frost": [(1, 2), (1, 5)],
    "glass_blur": [(1, 5)],
}
"""Pairs of severities of which the second changes more pixels, where by the published parameters
not each severity does (glass blur 2 has one round less than 1, elastic 3 to 5 move fewer)."""


def picture(mode: str = "RGB", size: int = 224) -> Image.Image:
    """A colourful picture with detail of all sizes: noise, smoothed little and much."""
    noise = np.random.default_rng(0).random((224, 224, 3))
    layers = [gaussian_filter(noise, (sigma, sigma, 0), mode="wrap") for sigma in (1, 3, 9)]
    mixed = sum((layer - layer.mean()) / layer.std() for layer in layers)
    image = Image.fromarray(np.clip(128 + 30 * mixed, 0, 255).astype(np.uint8)).convert(mode)
    return image.resize((size, size), Image.Resampling.BOX)


def distance(one: Image.Image, other: Image.Image) -> float:
    """Root mean square over pixels, in levels."""
    return float(np.sqrt(np.mean((np.asarray(one, float) - np.asarray(other, float)) ** 2)))


@pytest.mark.parametrize(("mode", "size"), [("L", 224), ("RGB", 96)])
@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_each_severity_is_worse(corruption: str, mode: str, size: int) -> None:
    """Size and mode stay, and higher severities are farther from the image in the mean."""
    before = picture(mode, size).resize((size, size + 8))
    distances = []
    for severity in range(1, 6):
        after = [corrupt(before, corruption, severity, f"{name}") for name in range(4)]
        assert all((image.size, image.mode) == (before.size, mode) for image in after)
        distances.append(np.mean([distance(before, image) for image in after]))
    assert min(distances) > 0
    for one, other in WORSE.get(corruption, pairwise(range(1, 6))):
        assert distances[one - 1] < distances[other - 1]


@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_the_same_image_each_time(corruption: str) -> None:
    """One name gives one image; where chance plays a part, another name gives other noise."""
    one, again, other = (
        np.asarray(corrupt(picture(), corruption, 2, name)) for name in ("a", "a", "b")
    )
    assert np.array_equal(one, again)
    assert np.array_equal(one, other) != (corruption in RANDOM)


@pytest.mark.parametrize(
    ("corruption", "sigma"),
    [("gaussian_noise", 0.08), ("shot_noise", (0.5 / 60) ** 0.5), ("speckle_noise", 0.5 * 0.15)],
)
def test_noise_is_as_strong_as_published(corruption: str, sigma: float) -> None:
    """On even grey the noise has the mean 0 and the published standard deviation."""
    grey = Image.fromarray(np.full((224, 224, 3), 128, np.uint8))
    noise = (np.asarray(corrupt(grey, corruption, 1, "grey"), float) + 0.5 - 128) / 255
    assert abs(noise.mean()) < 0.002
    assert noise.std() == pytest.approx(sigma, rel=0.03)


def test_contrast_and_brightness_by_hand() -> None:
    """Contrast draws to the channel's mean; brightness adds to the largest channel, hue kept."""
    half = Image.fromarray(np.repeat(np.array([[[0, 0, 0], [200, 100, 50]]], np.uint8), 2, 0))
    flat = np.asarray(corrupt(half, "contrast", 3, "half"), float)
    assert flat[0, 0] == pytest.approx([100 * 0.8, 50 * 0.8, 25 * 0.8], abs=1)
    assert flat[0, 1] == pytest.approx([100 * 1.2, 50 * 1.2, 25 * 1.2], abs=1)
    bright = np.asarray(corrupt(half, "brightness", 1, "half"), float)
    assert bright[0, 0] == pytest.approx([25.5] * 3, abs=1)
    assert bright[0, 1] == pytest.approx([225.5, 225.5 / 2, 225.5 / 4], abs=1)


def plain(level: int, mode: str = "L") -> Image.Image:
    return Image.new(mode, (224, 224), (level,) * len(mode) if mode != "L" else level)


def a_point() -> Image.Image:
    """One white pixel on black, at (112, 112)."""
    point = plain(0)
    point.putpixel((112, 112), 255)
    return point


def test_defocus_spreads_a_point_over_a_disk() -> None:
    """At severity 1 the radius is 3: 29 pixels have a 29th each."""
    values = np.asarray(corrupt(a_point(), "defocus_blur", 1, "point"))
    assert (values > 0).sum() == 29
    assert set(values[values > 0]) == {255 // 29}
    rows, columns = np.nonzero(values)
    assert (abs(rows - 112).max(), abs(columns - 112).max()) == (3, 3)


def test_motion_blur_is_half_a_gaussian() -> None:
    """Radius 15, sigma 8: steps along a line to one side, weighted by half a Gaussian."""
    values = np.asarray(corrupt(a_point(), "motion_blur", 3, "point"), float)
    rows, columns = np.nonzero(values)
    assert columns.max() == 112
    assert 20 * 0.7 - 1 <= 112 - columns.min() <= 20  # a step further weighs less than a level
    assert (abs(rows - 112) <= 112 - columns + 1).all()
    weights = np.exp(-(np.arange(31) ** 2) / (2 * 8**2))
    lengths = np.hypot(rows - 112, columns - 112)
    mean = (lengths * values[rows, columns]).sum() / values.sum()
    assert mean == pytest.approx((np.arange(31) * weights).sum() / weights.sum(), abs=0.7)


def test_fog_and_frost_by_their_formulas() -> None:
    """Fog on white is (1 + c f) / (1 + c), on black nothing; frost adds published shares."""
    white = np.asarray(corrupt(plain(255), "fog", 3, "white"), float) / 255
    fractal = (white * 3.5 - 1) / 2.5
    assert -0.01 < fractal.min() < 0.2
    assert 0.8 < fractal.max() <= 1
    assert not np.asarray(corrupt(plain(0), "fog", 3, "white")).any()
    dark, light = (
        np.asarray(corrupt(plain(level), "frost", 4, "frost"), float) for level in (0, 50)
    )
    assert np.mean(light - dark) == pytest.approx(50 * 0.65, abs=1)
    assert 0 < dark.min() < 40
    assert 100 < dark.max() <= 0.7 * 255


@pytest.mark.parametrize(("severity", "share"), [(3, 0.05), (4, 0.07), (5, 0.12)])
def test_elastic_moves_pixels_as_far_as_published(severity: int, share: float) -> None:
    """On a ramp the change less its affine part is smoothed noise of the published size."""
    ramp = np.tile(np.arange(16, 240, dtype=np.uint8), (224, 1))
    found = []
    for name in range(4):
        moved = np.asarray(
            corrupt(Image.fromarray(ramp), "elastic_transform", severity, f"{name}"), float
        )
        shift = (moved - ramp)[40:-40, 40:-40]
        rows, columns = np.indices(shift.shape)
        affine = np.stack([rows.ravel(), columns.ravel(), np.ones(shift.size)], 1)
        found.append((shift.ravel() - affine @ np.linalg.lstsq(affine, shift.ravel())[0]).std())
    smoothed = (1 / 3) ** 0.5 / (2 * np.pi**0.5 * 2.44)
    assert np.mean(found) == pytest.approx(244 * share * smoothed, rel=0.1)


def test_pixelate_and_jpeg_by_pillow() -> None:
    """A quarter of the side at severity 5; quality 7, read back from the quantisation table."""
    blocks = np.asarray(corrupt(picture("L"), "pixelate", 5, ""))
    assert (blocks == np.repeat(np.repeat(blocks[::4, ::4], 4, 0), 4, 1)).all()
    written = io.BytesIO()
    picture().save(written, "JPEG", quality=7)
    assert distance(corrupt(picture(), "jpeg", 5, ""), Image.open(written)) == 0
