"""What all trainings share: parameter groups, the learning-rate schedule, and the updates of the
weights.
"""

import logging
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from workers.measure.process_state import one_thread

_LOG = logging.getLogger(__name__)
WARMUP = 0.1
"""Share of the steps in which the learning rate rises."""


class TrainingTargetMissed(RuntimeError):  # noqa: N818 - the exception is a result, not a programming error
    """Training ended below the quality that the recipe requires."""


def decay_groups(
    model: nn.Module, weight_decay: float, exempt: tuple[str, ...] = ()
) -> list[dict[str, Any]]:
    """Parameter groups of an optimiser: matrices decay, vectors and the parameters named in
    `exempt` do not.
    """
    groups: dict[float, list[nn.Parameter]] = {weight_decay: [], 0.0: []}
    for name, value in model.named_parameters():
        decays = value.ndim > 1 and name not in exempt
        groups[weight_decay if decays else 0.0].append(value)
    return [{"params": group, "weight_decay": decay} for decay, group in groups.items()]


def warmup_cosine(step: int, steps: int, *, last: float = 0.0, offset: int = 0) -> float:
    """The learning rate of a step (from 0 on) as a share of the peak: a linear warm-up, then half a
    cosine down to `last`.

    `offset`: steps by which the cosine is ahead.
    """
    warmup = max(1, round(WARMUP * steps))
    if step < warmup:
        return (step + 1) / warmup
    angle = math.pi * (step - warmup + offset) / max(1, steps - warmup + offset)
    return last + (1 - last) * (1 + math.cos(angle)) / 2


@contextmanager
def training(seed: int) -> Iterator[None]:
    """Gradients are on, and random numbers and sums are the same on every machine: one thread,
    seeded here and restored after.
    """
    with (
        one_thread(),
        torch.random.fork_rng(devices=[]),
        torch.inference_mode(mode=False),
        torch.enable_grad(),
    ):
        torch.manual_seed(seed)
        yield


def minimise(
    model: nn.Module, losses: Iterable[Tensor], optimiser: Any, schedule: Any
) -> list[float]:
    """One step of the optimiser and of the schedule for each loss, with gradients clipped to norm
    1; the losses as numbers.
    """
    found: list[float] = []
    for step, loss in enumerate(losses):
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        found.append(loss.item())
        if step % 50 == 0:
            _LOG.info("step %d, loss %.3f", step, found[-1])
    return found
