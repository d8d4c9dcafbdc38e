"""Prepared arms: what arms of vision and language models have in common once they are built and
have run once.
"""

import contextlib
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from sweeps.model.condition import UNCOMPILED, Condition
from sweeps.model.job import Arm, Job
from sweeps.model.outcome import ArmOutcome
from workers.errors import NotANumberError, compiling


@dataclass
class JobArm:
    """An arm of a job."""

    index: int
    """Into the job's arms."""
    arm: Arm
    """As requested."""


@dataclass
class PreparedArm(JobArm, ABC):
    """An arm that has run once."""

    condition: Condition
    """Its own, overrides applied."""
    first_call_s: float
    """Wall time of the first run, compilation included."""

    @abstractmethod
    def step(self) -> object:
        """Run once, as it is timed."""

    @abstractmethod
    def outcome(self) -> ArmOutcome:
        """What is known of it before it is measured."""

    @property
    def captured_bytes(self) -> int:
        """Memory of a CUDA graph that the allocator's counters do not show; 0 without one."""
        return 0

    @property
    def forwards(self) -> int:
        """Forwards of the model in a step."""
        return 1


def describe(
    index: int,
    model: nn.Module,
    *,
    integer_weights: int = 0,
    **fields: Any,
) -> ArmOutcome:
    """The outcome of an arm that ran as `model`, whose `integer_weights` are no parameters of the
    module.

    Inference switches requires_grad off, so it does not show what is trainable; fine-tuning trains
    every floating-point parameter.
    """
    return ArmOutcome(
        arm=index,
        parameters=integer_weights + sum(parameter.numel() for parameter in model.parameters()),
        trainable_parameters=sum(
            parameter.numel() for parameter in model.parameters() if parameter.is_floating_point()
        ),
        threads=torch.get_num_threads(),
        **fields,
    )


def raised(**flags: bool) -> tuple[str, ...]:
    """The names of those that are true."""
    return tuple(name for name, true in flags.items() if true)


def compile_limit(job: Job, condition: Condition) -> AbstractContextManager[None]:
    """The time-out of an arm's first run, where that compiles."""
    return (
        compiling(job.protocol.compile_timeout_s)
        if condition.runtime not in UNCOMPILED
        else contextlib.nullcontext()
    )


def check_finite(logits: Tensor) -> None:
    """Raises `NotANumberError` unless all are."""
    if wrong := int((~torch.isfinite(logits)).sum()):
        raise NotANumberError(f"{wrong} of {logits.numel()} logits are not finite")
