"""The unmodified model made slower by a known share: a positive control that the measurement itself
must detect.

After each forward it waits, without giving up the core, for `fraction` of the time that this very
forward took. Small forwards on two threads measured about 1 % slower than that (0.94 instead of 1
/ 1.05 at 32 and 64 px), probably since threads sleep by then.
"""

import time
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from sweeps.model import method
from sweeps.model.condition import Condition, ImageSize
from sweeps.model.method import BlockTokens, Network, Purpose

if TYPE_CHECKING:
    from timm.models.vision_transformer import VisionTransformer
    from torch import nn

PAPER = "none: a control"
VERSION = 1


class Params(method.Params):
    """How much slower."""

    purpose: ClassVar[Purpose] = "control"
    fraction: float = Field(
        default=0.05, ge=0, le=10, description="extra time as a share of the forward's own"
    )

    def eager_only(self, _condition: Condition, /) -> str:
        return (
            "it reads the clock between forwards, which has no place in a compiled or captured"
            " graph"
        )


NEUTRAL = Params(fraction=0)
EXAMPLES = (Params(), Params(fraction=0.5))


def tokens(params: Params, network: Network, image_size: ImageSize) -> tuple[BlockTokens, ...]:  # noqa: ARG001 - all are kept
    return network.dense_tokens(image_size)


def macs(params: Params, network: Network, image_size: ImageSize) -> int:  # noqa: ARG001 - waiting multiplies nothing
    return 0


def refuses(params: Params, network: Network) -> str | None:  # noqa: ARG001 - waiting is possible everywhere
    return None


def apply(model: "VisionTransformer", params: Params) -> "nn.Module":
    """A copy of `model` with the wait behind it. Raises `Unsupported` on a GPU, whose work goes on
    after the call returns.
    """
    from workers.errors import Unsupported
    from workers.models.share_weights import clone_shared

    if next(model.parameters()).device.type == "cuda":
        raise Unsupported(
            "slowed waits by the clock of the CPU, and on a GPU the call returns before the work is"
            " done"
        )
    started = 0.0

    def start(*_: object) -> None:
        nonlocal started
        started = time.perf_counter()

    def wait(*_: object) -> None:
        now = time.perf_counter()
        until = now + params.fraction * (now - started)
        while now < until:
            now = time.perf_counter()

    slowed = clone_shared(model)
    slowed.register_forward_pre_hook(start)
    slowed.register_forward_hook(wait)
    return slowed
