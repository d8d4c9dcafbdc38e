"""From images to a model's input: timm's preprocessing for the model, an optional corruption,
batches read ahead.
"""

import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, cast

import timm
import torch
from PIL import Image
from timm.data.transforms import MaybeToTensor
from torch import Tensor
from torchvision.transforms import Compose

from sweeps.model.condition import Condition, ImageSize, image_shape
from workers.data.corruptions import corrupt
from workers.data.images import Images

UNREADABLE = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    struct.error,
    Image.DecompressionBombError,
)
"""Raised by Pillow for a file that is not an image, or a broken one."""
READ_AHEAD = 2
"""Batches that are read while one is computed."""


class Batch(NamedTuple):
    """Some of the images, without those that could not be read."""

    places: tuple[int, ...]
    """Indices into the `Images`."""
    inputs: Mapping[ImageSize, Tensor]
    """By image size: normalised images [B, channels, H, W]."""
    unreadable: tuple[str, ...]


class Preprocessing:
    """timm's preprocessing for a model, for several image sizes.

    Corruptions are applied to the crop for the condition's image size, as in ImageNet-C; an arm of
    another size gets the same corrupted image, resized.
    """

    def __init__(self, model: Any, condition: Condition, sizes: Collection[ImageSize]) -> None:
        config = cast(Any, timm.data).resolve_model_data_config(model)
        self.condition, self.sizes, self.channels = condition, tuple(sizes), config["input_size"][0]
        self.cut: dict[ImageSize, Compose] = {}
        self.normalise: dict[ImageSize, Compose] = {}
        for size in {condition.pixels, *sizes}:
            options = {**config, "input_size": (self.channels, *image_shape(size))}
            steps = cast(Any, timm.data).create_transform(**options, is_training=False).transforms
            first = next(
                place for place, step in enumerate(steps) if isinstance(step, MaybeToTensor)
            )
            self.cut[size], self.normalise[size] = Compose(steps[:first]), Compose(steps[first:])

    def __call__(self, image: Image.Image, name: str) -> dict[ImageSize, Tensor]:
        """The model's input by image size, each [channels, H, W]."""
        image = image.convert("L" if self.channels == 1 else "RGB")
        condition = self.condition
        if condition.corruption is None:
            crops = {size: self.cut[size](image) for size in self.sizes}
        else:
            own = corrupt(
                self.cut[condition.pixels](image),
                condition.corruption,
                condition.severity or 1,
                name,
            )
            crops = dict.fromkeys(self.sizes, own)
            for size in {*self.sizes} - {condition.pixels}:
                crops[size] = own.resize(image_shape(size)[::-1], Image.Resampling.BICUBIC)
        return {size: torch.as_tensor(self.normalise[size](crop)) for size, crop in crops.items()}


def batches(
    images: Images, places: Sequence[int], prepare: Preprocessing, size: int, threads: int
) -> Iterator[Batch]:
    """The images at `places` in batches of `size`, decoded by `threads` threads ahead of time."""
    chunks = [places[start : start + size] for start in range(0, len(places), size)]

    def one(place: int) -> dict[ImageSize, Tensor] | None:
        try:
            image = images.read(place)
        except UNREADABLE:
            return None
        return prepare(image, images.names[place])

    pool = ThreadPoolExecutor(threads, thread_name_prefix="images")
    try:
        waiting = [[pool.submit(one, place) for place in chunk] for chunk in chunks[:READ_AHEAD]]
        for turn, chunk in enumerate(chunks):
            if turn + READ_AHEAD < len(chunks):
                waiting.append([pool.submit(one, place) for place in chunks[turn + READ_AHEAD]])
            read = {
                place: found.result() for place, found in zip(chunk, waiting.pop(0), strict=True)
            }
            good = {place: found for place, found in read.items() if found is not None}
            inputs = {
                each: torch.stack([found[each] for found in good.values()])
                for each in (prepare.sizes if good else ())
            }
            unreadable = (images.names[place] for place in chunk if place not in good)
            yield Batch(tuple(good), inputs, tuple(unreadable))
    finally:
        pool.shutdown(cancel_futures=True)
