"""One arm of a job alone, with ranges by which an outside profiler (nsys, ncu) knows its forwards,
blocks and reductions.

Ranges of NVTX: `breakeven:comparison:ID` and `breakeven:side:SIDE` (where the arm stands in a
comparison) and `breakeven:arm:INDEX` around all measured forwards, `breakeven:forward` around each,
in it `block I` and `reduction`. The prompt of a language model is `breakeven:prefill`, and a
forward is one decode step. Without CUDA they are ranges of torch's profiler alone.
"""

import contextlib
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.profiler import record_function

from sweeps.model.job import Job
from sweeps.model.profile import Side
from workers.arms.language import LanguageArm, cut_texts, prepare_language
from workers.arms.vision import VisionArm, prepare_vision
from workers.measure.process_state import use_threads
from workers.measure.profiling import MARK
from workers.measure.timer import synchronise
from workers.models.vision import shared_vision
from workers.token_reduction.patch_vit import FusedReduction, MergingBlock, ReducingBlock


@contextlib.contextmanager
def named_range(name: str) -> Iterator[None]:
    """A range of this name: of NVTX where there is CUDA, else of torch's profiler alone, which
    costs nothing unless it records.
    """
    nvtx: Any = torch.cuda.nvtx if torch.cuda.is_available() else None
    if nvtx is not None:
        nvtx.range_push(name)
    try:
        with record_function(name):
            yield
    finally:
        if nvtx is not None:
            nvtx.range_pop()


@contextlib.contextmanager
def captured_range() -> Iterator[None]:
    """What nsys (`--capture-range=cudaProfilerApi`) and ncu (`--profile-from-start off`) record;
    without CUDA nothing.
    """
    profiler: Any = torch.cuda.profiler if torch.cuda.is_available() else None
    if profiler is not None:
        profiler.start()
    try:
        yield
    finally:
        if profiler is not None:
            torch.cuda.synchronize()
            profiler.stop()


def within(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """`call` in a range of this name."""

    def ranged(*arguments: Any, **options: Any) -> Any:
        with named_range(name):
            return call(*arguments, **options)

    return ranged


UNTRACED_FORWARDS = 10
"""Forwards before those in ranges; of a language model one run of its workload."""
FORWARD, PREFILL = f"{MARK}forward", f"{MARK}prefill"


def tie_of(job: Job, arm: int) -> tuple[str, Side] | None:
    """The first comparison with this arm and its side there, preferably as the arm; `None` for an
    arm in none.
    """
    for side in ("arm", "baseline"):
        for pair, comparison_id in zip(job.pairs, job.comparison_ids(), strict=True):
            if getattr(pair, side) == arm:
                return comparison_id, side
    return None


def run_traced(job: Job, arm: int, forwards: int) -> float:
    """Run the arm alone: warm-up outside of ranges, then exactly `forwards` forwards in them;
    returns their seconds, which a profiler makes more.

    Raises `Unsupported`, and what the model raises.
    """
    use_threads(job.condition)
    names = [f"{MARK}arm:{arm}"]
    if (tie := tie_of(job, arm)) is not None:
        names = [f"{MARK}comparison:{tie[0]}", f"{MARK}side:{tie[1]}", *names]
    with torch.inference_mode():
        prepared = (
            prepare_vision(job, arm, shared_vision(job.condition, job.content_hashes), {})
            if job.condition.image_size is not None
            else prepare_language(job, arm, cut_texts(job))
        )
        if isinstance(prepared, VisionArm):
            model, warmup, work = prepared.model, UNTRACED_FORWARDS, partial(_run_vision, prepared)
        else:
            model, warmup, work = prepared.model.model, 1, partial(_run_language, prepared)
        if prepared.condition.runtime == "eager":
            _name_parts(model)
        for _ in range(warmup):
            prepared.step()
        synchronise(prepared.condition.device)
        with captured_range(), ExitStack() as ranges:
            for name in names:
                ranges.enter_context(named_range(name))
            started = time.perf_counter()
            work(forwards)
            return time.perf_counter() - started


def _run_vision(arm: VisionArm, forwards: int) -> None:
    for _ in range(forwards):
        with named_range(FORWARD):
            arm.step()
            synchronise(arm.condition.device)


def _run_language(arm: LanguageArm, forwards: int) -> None:
    """Whole runs of the workload, until so many decode steps were in ranges; what follows them in
    the last run is in none.
    """
    left, steps = forwards, len(arm.first.steps_s)
    while left:
        traced = min(left, steps)
        arm.workload.run(arm.model, clock=_RangedSteps(traced))
        left -= traced


class _RangedSteps:
    """A clock of the workload that puts the prompt and the first decode steps of a run into
    ranges.
    """

    def __init__(self, steps: int) -> None:
        self.steps, self.read, self._opened = steps, 0, ExitStack()

    def __call__(self) -> float:
        self._opened.close()
        self.read += 1
        if self.read <= self.steps + 1:
            self._opened.enter_context(named_range(PREFILL if self.read == 1 else FORWARD))
        return time.perf_counter()


def _name_parts(model: nn.Module) -> None:
    """Ranges around the blocks of an eager model, and in them around what reduces tokens; compiled
    code has no such parts.
    """
    lists: list[Any] = [
        part for part in model.modules() if isinstance(part, nn.Sequential | nn.ModuleList)
    ]
    # the blocks of a transformer are the parts of its longest list of modules
    blocks = max(lists, key=len, default=())
    for index, block in enumerate(blocks):
        block.forward = within(f"block {index}", block.forward)
    for part in model.modules():
        if isinstance(part, ReducingBlock) and part.reduction is not None:
            if isinstance(part.reduction, FusedReduction):
                named = within("reduction", part.reduction.reduce)
                part.reduction = replace(part.reduction, reduce=named)
            else:
                part.reduction = within("reduction", part.reduction)
        elif isinstance(part, MergingBlock):
            part.around = replace(
                part.around,
                merge=within("reduction", part.around.merge),
                unmerge=within("reduction", part.around.unmerge),
            )


def commands(path: Path, arm: int, forwards: int) -> str:
    """The command lines that record this run by nsys and by ncu, and import what they wrote."""
    python = shlex.join([Path(sys.executable).name, "-m", "workers.run", str(path)])
    own = f"{python} --arm {arm} --forwards {forwards}"
    name = f"{path.stem}-arm{arm}"
    return (
        "nsys profile --trace=cuda,nvtx --cuda-graph-trace=node --capture-range=cudaProfilerApi"
        f" --capture-range-end=stop -o {name} {own}\nnsys export --type sqlite {name}.nsys-rep &&"
        f" breakeven import {name}.sqlite\nLC_ALL=C ncu --profile-from-start off --nvtx --set full"
        f" --csv --page raw --log-file {name}.csv {own}\nbreakeven import {name}.csv --forwards"
        f" {forwards}\n"
    )


def trace_one(path: Path, job: Job, arm: int, forwards: int) -> None:
    """Run an arm for an outside profiler, and print how to record it and what ran."""
    sys.stdout.write(commands(path, arm, forwards))
    with contextlib.redirect_stdout(sys.stderr):
        seconds = run_traced(job, arm, forwards)
    tie = tie_of(job, arm)
    stands = "no comparison" if tie is None else f"{tie[1]} of comparison {tie[0]}"
    sys.stdout.write(
        f"{forwards} forwards of arm {arm}, {job.arms[arm]} ({stands}):"
        f" {1e3 * seconds / forwards:.3f} ms each\n"
    )
