"""Corruptions of images: what each does, how strong, and that it is the same each time."""

import numpy as np
import pytest
from PIL import Image
from scipy.ndimage import gaussian_filter

from workers.data.corruptions import CORRUPTIONS, corrupt


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


@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_each_severity_is_worse(corruption: str, mode: str) -> None:
    """A corrupted image has the size and mode it had, and is the farther from what it was the
    higher the severity.
    """
    before = picture(mode)
    after = [corrupt(before, corruption, severity, "a.png") for severity in range(1, 6)]
    assert all((image.size, image.mode) == (before.size, mode) for image in after)
    distances = [distance(before, image) for image in after]
    assert distances == sorted(distances)
    assert 0 < distances[0] < distances[-1]
    assert distance(before, picture(mode)) == 0


@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_the_same_image_each_time(corruption: str) -> None:
    """The same name gives the same image; where chance plays a part, another name or severity gives
    other noise.
    """
    one, again, other = (
        np.asarray(corrupt(picture(), corruption, 2, name)) for name in ("a", "a", "b")
    )
    assert np.array_equal(one, again)
    assert np.array_equal(one, other) != corruption.endswith("noise")


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


def test_impulse_noise_hits_the_published_share() -> None:
    """A share of 27 % of the values is hit at severity 5, half of them made white and half
    black.
    """
    grey = Image.fromarray(np.full((224, 224, 3), 128, np.uint8))
    values = np.asarray(corrupt(grey, "impulse_noise", 5, "grey"))
    assert np.mean(values == 0) == pytest.approx(0.135, rel=0.05)
    assert np.mean(values == 255) == pytest.approx(0.135, rel=0.05)


def test_contrast_and_brightness_by_hand() -> None:
    """Contrast draws values towards the channel's mean; brightness adds to the largest channel and
    keeps the hue.
    """
    half = Image.fromarray(np.repeat(np.array([[[0, 0, 0], [200, 100, 50]]], np.uint8), 2, 0))
    flat = np.asarray(corrupt(half, "contrast", 3, "half"), float)
    assert flat[0, 0] == pytest.approx([100 * 0.8, 50 * 0.8, 25 * 0.8], abs=1)
    assert flat[0, 1] == pytest.approx([100 * 1.2, 50 * 1.2, 25 * 1.2], abs=1)
    bright = np.asarray(corrupt(half, "brightness", 1, "half"), float)
    assert bright[0, 0] == pytest.approx([25.5] * 3, abs=1)
    assert bright[0, 1] == pytest.approx([225.5, 225.5 / 2, 225.5 / 4], abs=1)


def test_blur_is_a_share_of_the_picture() -> None:
    """A picture half as large is blurred half as many pixels wide, so that both lose the same
    detail.
    """
    large = corrupt(picture("L", 224), "gaussian_blur", 4, "edge")
    small = corrupt(picture("L", 112), "gaussian_blur", 4, "edge")
    assert distance(large.resize((112, 112), Image.Resampling.BOX), small) < 1.5
