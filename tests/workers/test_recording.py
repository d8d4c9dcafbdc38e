"""Recordings of torch's profiler: what of a real one on a CPU is read, and events of a GPU, made by
hand, by class.
"""

from typing import Any

import pytest
import torch
from torch.autograd import DeviceType
from torch.autograd.profiler_util import FunctionEvent

from sweeps.model.condition import Device
from sweeps.model.profile import Phase
from sweeps.stats.profiles import ArmWall, PhaseRounds
from sweeps.stats.roofline import DISPATCH, Work
from workers.measure.profiling import (
    PhaseTable,
    Profiled,
    Recording,
    TorchRecording,
    add_rounds,
    called,
    profile_phase,
    read_events,
)
from workers.models import cpp_build

MAIN = 1


def event(
    name: str, start_us: float, end_us: float, identity: int = 0, *, gpu: bool = False
) -> FunctionEvent:
    """An event as torch reads it from kineto: `identity` is the correlation of a call with what it
    started.
    """
    device = DeviceType.CUDA if gpu else DeviceType.CPU
    return FunctionEvent(
        identity,
        name,
        MAIN,
        start_us,
        end_us,
        device_type=device,
        use_device="cuda",
        input_shapes=[],
    )


def gpu_forward(start: float) -> list[FunctionEvent]:
    """100 us: 10 of Python, a launch of 4, a kernel of 30 that waited 6, a copy of 20 right behind
    it, and a wait to the end.
    """
    return [
        event("breakeven:forward", start, start + 100),
        event("breakeven:forward", start + 20, start + 70, gpu=True),
        event("cudaLaunchKernel", start + 10, start + 14, int(start) + 1),
        event("cudaMemcpyAsync", start + 14, start + 18, int(start) + 2),
        event("cudaDeviceSynchronize", start + 60, start + 100, int(start) + 3),
        event("gemm_kernel", start + 20, start + 50, int(start) + 1, gpu=True),
        event("Memcpy DtoH (Device -> Pageable)", start + 50, start + 70, int(start) + 2, gpu=True),
    ]


def profiled(phase: Phase, recorded: TorchRecording, *, wall_s: float, device: Device) -> Profiled:
    """The profile of one arm whose every marked forward is a round."""
    tables: dict[Phase, PhaseTable] = {}
    add_rounds(tables, recorded, [[[window]] for window in recorded.windows], [0], device)
    table = tables.get(phase, PhaseTable())
    fitted = PhaseRounds(tables["forward"].times, [0], device)
    return profile_phase(phase, ArmWall(0, wall_s), table=table, fitted=fitted, details=recorded)


def test_a_gpu_timeline_by_hand() -> None:
    """Kernels and copies are device time; gaps are launch, wait and Python."""
    events = [each for start in (0, 1000, 2000) for each in gpu_forward(start)]
    recorded = read_events(events, 4)
    assert [window.phase for window in recorded.windows] == ["forward"] * 3
    assert [run.name for run in recorded.runs][:2] == [
        "gemm_kernel",
        "Memcpy DtoH (Device -> Pageable)",
    ]
    found, possible = profiled("forward", recorded, device="cuda", wall_s=90e-6)
    assert possible
    assert found.profiled_wall_s == pytest.approx(100e-6)
    # device 50; the gaps of 10 (launch), 30 (wait) and 10 (Python) share the 40 that the wall of 90
    # leaves
    assert found.times == pytest.approx(
        {"device": 50e-6, "launch": 8e-6, "sync": 24e-6, "host": 8e-6, "idle": 0.0}
    )
    assert sum(found.times.values()) == pytest.approx(90e-6)
    assert (found.launches, found.forwards, found.kernel_time_share) == (2, 3, 1.0)
    assert [(each.name, each.activity, each.count) for each in found.activities] == [
        ("gemm_kernel", "kernel", 1),
        ("Memcpy DtoH (Device -> Pageable)", "memcpy", 1),
    ]
    assert [each.seconds for each in found.activities] == pytest.approx([30e-6, 20e-6])


def test_device_time_beyond_the_wall_is_marked() -> None:
    """A kernel cannot run longer than the forward that waits for it."""
    recorded = read_events(gpu_forward(0), 4)
    assert not profiled("forward", recorded, device="cuda", wall_s=30e-6).possible


def test_kernels_share_the_work_of_their_operator() -> None:
    """A product of 60 MACs that ran as two kernels of 10 and 20 us gives them 20 and 40."""
    product: Any = event("aten::mm", 12, 16)
    product.input_shapes = [[3, 4], [4, 5]]
    product.append_kernel("split", 0, 10.0)
    product.append_kernel("sum", 0, 20.0)
    recorded = read_events([event("breakeven:forward", 0, 100), product], 4)
    assert [(name, work.macs) for name, _, work in recorded.work] == [
        ("aten::mm", 60),
        ("split", 20),
        ("sum", 40),
    ]


def test_no_forward_of_a_phase_is_an_error() -> None:
    """A message names the phase that is missing."""
    with pytest.raises(ValueError, match="recorded no decode of this arm"):
        profiled("decode", read_events(gpu_forward(0), 4), device="cuda", wall_s=1.0)


def test_a_real_recording_on_a_cpu() -> None:
    """Marks, own times that add up to less than the forward, MACs from shapes, and allocations."""
    left, right = torch.randn(200, 300), torch.randn(300, 100)
    with torch.inference_mode(), Recording("cpu", details=True) as recording:
        for _ in range(3):
            recording.open("forward")
            torch.nn.functional.linear(left, right.T).relu()
    recorded = recording.read(4)
    assert [window.phase for window in recorded.windows] == ["forward"] * 3
    names = {run.name for run in recorded.operators}
    assert "aten::linear" in names & DISPATCH
    macs = [work.macs for _, _, work in recorded.work if work.macs]
    assert macs == [200 * 300 * 100] * 3
    assert all(work == Work() for name, _, work in recorded.work if name in DISPATCH)
    for window in recorded.windows:
        own = [run.own_s for run in recorded.operators if window.start <= run.start < window.end]
        assert 0 < sum(own) <= (window.end - window.start) * 1.001
    assert sum(size for _, size in recorded.allocations) >= 3 * 4 * 200 * 100
    found, _ = profiled("forward", recorded, device="cpu", wall_s=1.0)
    assert sum(each.gmacs or 0 for each in found.activities) == pytest.approx(6e-3)
    assert found.allocations is not None
    assert found.allocations >= 2


def test_kinetos_own_events_are_those_of_torch() -> None:
    """Marks, names and own times are those of torch's slower tree."""
    left = torch.randn(50, 60)
    with torch.inference_mode(), Recording("cpu") as recording:
        for _ in range(3):
            recording.open("forward")
            torch.nn.functional.layer_norm(left @ left.T, (50,)).softmax(-1)
    bare, full = recording.read(4), read_events(recording._profile.events(), 4)
    assert [window.phase for window in bare.windows] == [window.phase for window in full.windows]
    for one, other in zip(bare.windows, full.windows, strict=True):
        assert one.end - one.start == pytest.approx(other.end - other.start)
    runs = [sorted(each.operators, key=lambda run: run.start) for each in (bare, full)]
    assert [run.name for run in runs[0]] == [run.name for run in runs[1]]
    assert [run.own_s for run in runs[0]] == pytest.approx([run.own_s for run in runs[1]])
    steps = [[run.start - own[0].start for run in own] for own in runs]
    assert steps[0] == pytest.approx(steps[1], abs=1e-8)


def test_compiled_code_is_seen_by_its_name(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """A library's call has a mark in a recording that counts as an operator."""
    source = tmp_path / "toy.cpp"
    monkeypatch.setattr(cpp_build, "_LOADED", {source: {"twice": lambda number: 2 * number}})
    with cpp_build.observed_functions(called), Recording("cpu") as recording:
        recording.open("forward")
        assert cpp_build.functions(source, {})["twice"](21) == 42
    recorded = recording.read(4)
    assert [run.name for run in recorded.operators] == ["breakeven::twice"]
    assert cpp_build.functions(source, {})["twice"](1) == 2
    with Recording("cpu") as recording:
        recording.open("forward")
        cpp_build.functions(source, {})["twice"](21)
    assert not recording.read(4).operators
