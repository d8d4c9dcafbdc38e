"""Arms of vision models: built on shared weights, run once, and checked against the tokens that
their methods promise.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from sweeps.model.condition import EXPORTED, INT8, Condition, Dtype, ImageSize, image_shape
from sweeps.model.job import Arm, Job
from sweeps.model.method import Network
from sweeps.model.outcome import ArmOutcome, MetricValue
from workers import methods
from workers.arms.budget import BudgetSolution, solve
from workers.arms.counts import vision_counts
from workers.arms.prepared import PreparedArm, check_finite, compile_limit, describe, raised
from workers.errors import Unsupported
from workers.measure.samples import metric_value
from workers.measure.timer import synchronise
from workers.models.exported import INPUTS, Exported
from workers.models.runtime import (
    Autocast,
    Compiled,
    CudaGraph,
    OneGraph,
    Trace,
    trace,
    traced_forward,
)
from workers.models.share_weights import DTYPES, cast_shared, clone_shared, guard
from workers.models.vision import VisionModel, check_image_size, example_input
from workers.token_reduction.patch_vit import use_kernel

ImageInputs = dict[tuple[ImageSize, Dtype], Tensor]
"""Input images by size and dtype, so that arms with equal inputs read the same memory."""


@dataclass
class VisionArm(PreparedArm):
    """An arm of a vision model with its input."""

    solved: BudgetSolution
    """What runs instead of `arm`."""
    network: Network
    model: nn.Module
    x: Tensor
    trace: Trace

    def step(self) -> object:
        return self.model(self.x)

    @property
    def described(self) -> bool:
        """Whether the blocks of the model are known, so that tokens can be counted in them."""
        return self.network.refusal is None

    @property
    def captured_bytes(self) -> int:
        captured = self.model.captured if isinstance(self.model, CudaGraph) else None
        return 0 if captured is None else captured.unseen_bytes

    def _of_the_runtime(self) -> tuple[MetricValue, ...]:
        """Seconds until it can run, once; of an exported arm also how far its logits are from
        eager's.
        """
        if isinstance(self.model, Exported):
            return (
                metric_value("seconds_to_compile", self.model.conversion_s, n=1),
                metric_value("logit_difference", self.model.difference, n=INPUTS),
            )
        if isinstance(self.model, Compiled) or getattr(self.model, "compiled", False):
            return (metric_value("seconds_to_compile", self.first_call_s, n=1),)
        return ()

    def outcome(self) -> ArmOutcome:
        blocks, network, own = self.trace.blocks, self.network, self.condition
        counts = vision_counts(self.solved, network, own, blocks, self.trace.final)
        return describe(
            self.index,
            self.model,
            batch=self.trace.batch,
            tokens_final=self.trace.final,
            first_call_s=self.first_call_s,
            metrics=self._of_the_runtime(),
            implementation=methods.chosen_implementation(self.solved.arm, own, network),
            flags=raised(
                token_trace_mismatch=blocks != counts["trace"],
                no_effect=methods.without_effect(self.solved.arm, network, own.pixels),
                consistency_check_failed=self.trace.batch != own.batch_size,
            ),
            **{**counts, "trace": blocks},
        )


def prepare_vision(
    job: Job,
    index: int,
    loaded: VisionModel,
    inputs: ImageInputs,
    calibration: Callable[[ImageSize], Tensor | None] = lambda _: None,
) -> VisionArm:
    """Build arm `index` of the job on the job's loaded model, and run it once on the inputs, which
    are made where they are missing; int8 is calibrated on the images of `calibration`.

    Raises `Unsupported`, `NotANumberError`, and whatever the model raises.
    """
    arm = job.arms[index]
    condition = arm.condition(job.condition)
    solved = solve(arm, loaded.network, condition.pixels)
    model = build_vision(loaded, job.condition, solved.arm)
    if isinstance(model, Exported) and model.int8:
        model.calibration = calibration(condition.pixels)
    key = (condition.pixels, condition.dtype)
    if key not in inputs:
        inputs[key] = example_input(condition, loaded.network)
    synchronise(condition.device)
    with compile_limit(job, condition):
        start = time.perf_counter()
        if loaded.network.refusal is not None:
            with torch.inference_mode():
                logits = model(inputs[key])
            tokens = loaded.network.patch_tokens(condition.pixels)
            seen = Trace(len(logits), (), tokens)
        elif isinstance(model, OneGraph):
            logits, seen = model(inputs[key]), None
        else:
            logits, seen = traced_forward(model, inputs[key])
        synchronise(condition.device)
        first_call_s = time.perf_counter() - start
    check_finite(logits)
    seen = seen or trace(model, inputs[key])
    return VisionArm(
        index, arm, condition, first_call_s, solved, loaded.network, model, inputs[key], seen
    )


def build_vision(loaded: VisionModel, condition: Condition, arm: Arm) -> nn.Module:
    """The model of one arm: images [B, channels, H, W] to logits [B, classes]. `loaded.model` stays
    as it is.

    Weights are shared with `loaded.model` wherever the arm does not change them: the arms of
    another dtype share one copy, another image size has its own position embeddings (resampled by
    timm). Raises `Unsupported` with the reason.
    """
    own = arm.condition(condition)
    check_image_size(loaded.network, own.pixels)
    if (reason := methods.stack_refusal(arm, loaded.network)) is not None:
        raise Unsupported(reason)
    shared = cast_shared(loaded.model, DTYPES[own.dtype])
    guard(shared)
    model = clone_shared(shared)
    described = loaded.network.refusal is None
    if described and (shape := image_shape(own.pixels)) != tuple(model.patch_embed.img_size):
        model.set_input_size(shape)
    for part in model.modules():
        if hasattr(part, "fused_attn"):
            part.fused_attn = own.attention != "eager"
    model = methods.apply_stack(arm, model, own, loaded.network)
    if own.attention == "triton":
        use_kernel(model, own, loaded.network)
    if own.dtype == "autocast-float16":
        model = Autocast(model)
    runtime = INT8 if own.dtype == "int8" else own.runtime
    if runtime == "compile":
        model = Compiled(model)
    elif runtime == "cudagraph":
        model = CudaGraph(model)
    elif runtime == "compiled_graph":
        model = CudaGraph(model, compiled=True)
    elif runtime in EXPORTED:
        tokens = methods.promised_tokens(arm, loaded.network, own.pixels)
        heads = loaded.network.heads
        model = Exported(
            model,
            runtime,
            fused=all(heads != block.attention for block in tokens),
            int8=own.dtype == "int8",
        )
    return cast(nn.Module, model.eval())
