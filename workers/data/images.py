"""Images with their classes, the common form of all sources of images."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from workers.errors import DataError

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True)
class Images:
    """Images with their classes; each is read on demand."""

    names: tuple[str, ...]
    labels: NDArray[np.int64]
    """The class of each image as an index into `classes`, shape [images]."""
    classes: tuple[str, ...]
    read: Callable[[int], "Image"]
    """The image of an index, called from several threads; raises what Pillow does if it is
    broken."""
    class_map: Mapping[str, int] | None = None
    """The model's output for a class, by name, where the classes are not the model's own; the other
    outputs are left out."""

    def __len__(self) -> int:
        return len(self.names)

    def outputs(self, head: int) -> NDArray[np.int64]:
        """For each class the output of a model with `head` outputs that stands for it. Raises
        `DataError`.
        """
        if self.class_map is None:
            if len(self.classes) != head:
                raise DataError(
                    f"the data has {len(self.classes)} classes and the model's head {head}; where"
                    " they are a part of the model's classes, add a file class_map.txt to the"
                    " data: one line `CLASS OUTPUT` for each"
                )
            return np.arange(head)
        if missing := [name for name in self.classes if name not in self.class_map]:
            raise DataError(
                f"class_map.txt has no line for {len(missing)} of the classes, the first being"
                f" {missing[0]}"
            )
        outputs = np.array([self.class_map[name] for name in self.classes], dtype=np.int64)
        if outputs.min() < 0 or outputs.max() >= head:
            raise DataError(
                f"class_map.txt names output {outputs.max()}, but the model's head has the outputs"
                f" 0 to {head - 1}"
            )
        return outputs


def evenly_spaced(total: int, wanted: int | None) -> Sequence[int]:
    """`wanted` of `total` indices, in order and evenly spaced; all of them for `None` or for more
    than `total`.
    """
    if wanted is None or wanted >= total:
        return range(total)
    return [place * total // wanted for place in range(wanted)]
