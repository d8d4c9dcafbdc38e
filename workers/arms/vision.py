"""Arms made ready: the model built, run once, and checked against what its method promises."""

import contextlib
import copy
import functools
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from sweeps.identity import canonical
from sweeps.job import Arm, Condition, Dtype, Job
from sweeps.method import Network
from sweeps.outcome import ArmOutcome
from workers import methods
from workers.arms.budget import Solved, solve
from workers.errors import NotANumberError, Unsupported
from workers.measure.timeout import compiling
from workers.measure.timer import synchronise
from workers.models.runtime import Autocast, Compiled, CudaGraph
from workers.models.share_weights import twin
from workers.models.token_trace import Trace, trace
from workers.models.vision import DTYPES, Loaded, check_size, example_input, load

MODELS_KEPT = 2


@dataclass(frozen=True)
class PreparedArm:
    """An arm that has run once; `condition` is its own, overrides applied."""

    index: int
    arm: Arm
    """As asked; `solved` is what runs."""
    solved: Solved
    condition: Condition
    network: Network
    model: nn.Module
    x: Tensor
    trace: Trace
    first_call_s: float

    def step(self) -> object:
        """One forward pass."""
        return self.model(self.x)

    def outcome(self) -> ArmOutcome:
        """What is known of the arm before it is measured."""
        size = self.condition.pixels
        parameters = list(self.model.parameters())
        flags = []
        if self.trace.blocks != methods.tokens(self.solved.arm, self.network, size):
            flags.append("token_trace_mismatch")
        if self.trace.batch != self.condition.batch_size:
            flags.append("consistency_check_failed")
        return ArmOutcome(
            arm=self.index,
            gmacs=self.network.macs(size, self.trace.blocks, self.trace.final) / 1e9,
            gmacs_overhead=methods.macs(self.solved.arm, self.network, size) / 1e9,
            parameters=sum(parameter.numel() for parameter in parameters),
            # Inference switches requires_grad off, so it says nothing; fine-tuning trains every floating-point parameter.
            trainable_parameters=sum(parameter.numel() for parameter in parameters if parameter.is_floating_point()),
            batch=self.trace.batch,
            tokens=self.network.patch_tokens(size),
            tokens_final=self.trace.final,
            trace=self.trace.blocks,
            threads=torch.get_num_threads(),
            first_call_s=self.first_call_s,
            solved=self.solved.values,
            route=methods.route(self.solved.arm, self.condition),
            flags=tuple(flags),
        )


def loaded(condition: Condition, contents: Mapping[str, str]) -> Loaded:
    """The condition's model, kept for the jobs that follow. Raises `Unsupported`."""
    shared = Condition(
        model=condition.model,
        weights=condition.weights,
        image_size=condition.pixels,
        device=condition.device,
        seed=condition.seed,
    )
    return _loaded(shared, canonical(contents))


def make_ready(job: Job, index: int, model: Loaded, inputs: dict[tuple[int, Dtype], Tensor]) -> PreparedArm:
    """Build arm `index` of the job on the job's loaded model, and run it once.

    `inputs` collects the input tensors by size and dtype, so that arms with equal inputs read the very same memory. Raises
    `Unsupported`, `NotANumberError`, and whatever the model raises.
    """
    arm = job.arms[index]
    condition = arm.condition(job.condition)
    solved = solve(arm, model.network, condition.pixels)
    network = build(model, job.condition, solved.arm)
    key = (condition.pixels, condition.dtype)
    if key not in inputs:
        inputs[key] = example_input(condition, model.network, torch.device(condition.device))
    x = inputs[key]
    synchronise(condition.device)
    with compiling(job.protocol.compile_timeout_s) if condition.runtime == "compile" else contextlib.nullcontext():
        start = time.perf_counter()
        logits = network(x)
        synchronise(condition.device)
        first_call_s = time.perf_counter() - start
    wrong = int((~torch.isfinite(logits)).sum())
    if wrong:
        raise NotANumberError(f"{wrong} of {logits.numel()} logits are not finite")
    return PreparedArm(index, arm, solved, condition, model.network, network, x, trace(network, x), first_call_s)


def build(loaded: Loaded, condition: Condition, arm: Arm) -> nn.Module:
    """The model of one arm: images [B, channels, size, size] to logits [B, classes]. `loaded.model` stays as it is.

    Weights are shared with `loaded.model` wherever the arm does not change them: another dtype has its own copy, another image size
    its own position embeddings (resampled by timm). Raises `Unsupported` with the reason.
    """
    own = arm.condition(condition)
    check_size(loaded.network, own.pixels)
    if (reason := methods.refuses(arm, loaded.network)) is not None:
        raise Unsupported(reason)
    model = twin(loaded.model)
    if own.pixels != model.patch_embed.img_size[0]:
        model.set_input_size((own.pixels, own.pixels))
    if DTYPES[own.dtype] != torch.float32:
        model = copy.deepcopy(model).to(DTYPES[own.dtype])
    for part in model.modules():
        if hasattr(part, "fused_attn"):
            part.fused_attn = own.attention == "sdpa"
    for step in arm.stack:
        method, params = methods.applied(step)
        params = methods.chosen(method, params, own)
        if own.runtime != "eager" and (reason := methods.eager_only(method, params)) is not None:
            raise Unsupported(f"{step.method} cannot run with runtime {own.runtime}: {reason}")
        model = method.apply(model, params)
    if own.dtype == "autocast-float16":
        model = Autocast(model)
    if own.runtime == "compile":
        model = Compiled(model)
    elif own.runtime == "cudagraph":
        model = CudaGraph(model)
    return cast(nn.Module, model.eval())


@functools.lru_cache(maxsize=MODELS_KEPT)
def _loaded(condition: Condition, contents: str) -> Loaded:  # noqa: ARG001 - a file with other content is another model
    return load(condition, torch.device(condition.device))
