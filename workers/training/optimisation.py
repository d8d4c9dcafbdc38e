"""What all trainings share: parameter groups, the learning-rate schedule, and one update of the weights."""

import math
from typing import Any

from torch import Tensor, nn

WARMUP = 0.1
"""Share of the steps in which the learning rate rises."""


class TrainingTargetMissed(RuntimeError):  # noqa: N818 - the exception is a result, not a programming error
    """Training ended below the quality that the recipe requires."""


def decay_groups(model: nn.Module, weight_decay: float, exempt: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Parameter groups of an optimiser: matrices decay, vectors and the parameters named in `exempt` do not."""
    named = list(model.named_parameters())
    decaying = [value for name, value in named if value.ndim > 1 and name not in exempt]
    others = [value for name, value in named if value.ndim <= 1 or name in exempt]
    return [{"params": decaying, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]


def warmup_cosine(step: int, steps: int, *, last: float = 0.0, offset: int = 0) -> float:
    """The learning rate of a step (from 0 on) as a share of the peak: a linear warm-up, then half a cosine down to `last`.

    `offset`: steps by which the cosine is ahead.
    """
    warmup = max(1, round(WARMUP * steps))
    if step < warmup:
        return (step + 1) / warmup
    angle = math.pi * (step - warmup + offset) / max(1, steps - warmup + offset)
    return last + (1 - last) * (1 + math.cos(angle)) / 2


def update(model: nn.Module, loss: Tensor, optimiser: Any, schedule: Any) -> float:
    """One step of the optimiser and of the schedule, with gradients clipped to norm 1; the loss as a number."""
    optimiser.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()
    schedule.step()
    return loss.item()
