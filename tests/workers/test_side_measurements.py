"""What is measured besides the samples may raise: the samples are there all the same, and a note
states what is not, and why.
"""

import importlib
import inspect
from collections.abc import Iterable
from types import FunctionType, ModuleType
from typing import Any

import pytest

from sweeps.model.job import Protocol
from sweeps.model.outcome import Outcome
from tests.workers.vision_jobs import DENSE, PASS_S, TOPK, job, metrics
from workers.kinds import latency
from workers.measure import environment, peaks
from workers.run import run

FORCED = "RuntimeError: forced"
MEASURED = {
    "counters": (
        *("HostCounters.__init__", "HostCounters.look", "HostCounters.read", "HostCounters._load"),
        *("HostCounters._cpu_seconds", "HostCounters._of_cores", "HostCounters._quota"),
        *("HostCounters._joules", "HostCounters._clock", "HostCounters._mhz", "_read_all"),
        *("HostCounters._involuntary", "HostCounters._thermal", "HostCounters._cpu_file"),
        *("PackageEnergy.__init__", "PackageEnergy._read", "PackageEnergy.joules"),
        *("_numbers", "energy_domains", "GpuSamples.__init__", "GpuSamples.findings"),
        "GpuSamples.last",
    ),
    "descendants": ("has_children", "running_descendants", "end"),
    "environment": (
        *("_cpu_model", "_versions", "cgroup_folders", "commit", "cpu_quotas"),
        *("instructions", "read_text"),
    ),
    "monitors": (
        *("watch", "since", "cpu_findings", "ContentionWait._contended"),
        *("own_disturbances", "is_traced", "thread_seconds"),
    ),
    "peaks": ("bandwidth", "_reads", "_seconds", "_peaks", "_fastest_product"),
    "process_cleanup": ("ProcessCleanup._growth", "resident", "_allocated"),
    "process_state": (
        *("raise_priority", "flushes_denormals", "_autocast", "_folder", "_umask", "_interval"),
        *("_owners", "_functions", "_global_hooks", "ForwardFunctions.restore", "_quick"),
        *("ProcessState.restore", "ProcessState._restored_variables", "_threads"),
    ),
    "readings": (
        *("peak_memory", "trim_heap", "_reset_process_peak", "_status"),
        *("measured_energy", "_meter", "Energy.metrics"),
    ),
    "threads": ("policy_readings",),
}
"""Functions of `workers.measure` that read something of the process or the machine in a latency
job on a CPU: each is forced to raise."""
NEEDED = {
    "environment": {
        "environment_of",
        "_facts",
        "host_facts",
        "spin_turns",
        "chosen_by",
        "cores",
        "allowed_cores",
        "cores_of_threads",
    }
    | {"usable_cores", "_unpinned"},
    "monitors": {"Watch.__init__", "Watch.look", "Watch.series"}
    | {"ContentionWait.__init__", "ContentionWait.wait"},
    "peaks": {"measure_peaks"},
    "process_cleanup": {"ProcessCleanup.__init__", "ProcessCleanup.finish"},
    "process_state": {"use_threads", "ForwardFunctions.__init__", "ProcessState.__init__", "_value"}
    | {f"Changes.{name}" for name in ("__init__", "watched", "_compare", "look", "timed")}
    | {f"Changes.{name}" for name in ("_note", "flags", "notes")},
    "readings": {"measures_energy"},
    "threads": {
        "wait_variables",
        "parse_core_list",
        "pinned",
        "requested_policy",
        "present_policy",
        "set_policy",
    }
    | {"policy_variables", "pin_main_thread"},
}
"""What a job needs besides: how many cores and threads it has, what is printed of the samples, and
the functions that call those above and read nothing themselves."""
ELSEWHERE = {
    "counters": {"energy_problem", "_number", "slowdowns", "foreign_mib", "competing", "ancestors"}
    | {"GpuSamples.add"},
    "descendants": {"adopt_orphans", "is_running", "writing_below", "end_all"},
    "environment": {"devices", "allocator", "module_variables", "_handle", "place_of_gpu"}
    | {"cuda_uuid", "gpu", "_torch_cuda"},
    "monitors": {"repeated"},
    "process_cleanup": {"memory_share"},
    "process_state": {"one_thread", "_backend_attributes", "_sdp", "_restored", "_shown"},
    "readings": {"counter_value", "_counted", "_integrated"},
    "threads": {"divide_cores", "thread_siblings", "share_of_gpu", "pin", "physical_first"}
    | {"_described"},
}
"""What a latency job on a CPU does not call."""


def functions(module: ModuleType) -> dict[str, FunctionType]:
    """Those that a module defines, and the methods of its classes, by name; of decorated ones what
    is decorated.
    """
    found = {}
    for name, value in vars(module).items():
        owned = getattr(value, "__module__", "") == module.__name__
        parts = vars(value) if inspect.isclass(value) and owned else {}
        for part, each in [("", value), *parts.items()]:
            function = getattr(each, "fget", None) or inspect.unwrap(each)
            if isinstance(function, FunctionType) and function.__module__ == module.__name__:
                path = function.__code__.co_filename
                if path == module.__file__ and "<locals>" not in function.__qualname__:
                    found[f"{name}.{part}".strip(".")] = function
    return found


def raises(*_: Any, **__: Any) -> Any:
    raise RuntimeError("forced")


def raises_in_generator(*_: Any, **__: Any) -> Any:
    for error in (RuntimeError("forced"),):
        raise error
    yield


def force(patch: pytest.MonkeyPatch, module: str, names: Iterable[str]) -> Outcome:
    """A latency job in which these functions raise, whoever imported them."""
    found = functions(importlib.import_module(f"workers.measure.{module}"))
    for name in names:
        yields = inspect.isgeneratorfunction(found[name])
        forced = raises_in_generator if yields else raises
        patch.setattr(found[name], "__code__", forced.__code__)
    for cache in (environment.commit, environment._versions, environment._torch_cuda):
        cache.cache_clear()
    peaks._fastest_product.cache_clear()
    latency.PEAKS_OF.clear()
    patch.setattr(latency, "BUDGET_FOR_PEAKS_S", 0.0)
    patch.setattr(peaks, "ENOUGH_S", 0.0)
    patch.setitem(peaks.READ_BYTES, "cpu", 2**20)
    return run(job([DENSE, TOPK], Protocol(pairs_min=6, pairs_max=6)), pass_seconds=PASS_S)


def assert_sampled(outcome: Outcome) -> None:
    """Both arms were timed, and a note has what was raised."""
    assert not outcome.failures, outcome.failures[0].detail
    assert outcome.samples is not None
    assert (outcome.samples.arms, len(outcome.samples.seconds)) == ((0, 1, 0, 1), 6)
    assert [metrics(arm)["latency"] > 0 for arm in outcome.arms] == [True, True]
    assert "unmeasured" in outcome.flags
    assert any(FORCED in note for note in outcome.notes), outcome.notes


def test_every_function_that_measures_is_forced() -> None:
    """A function that is added to these modules is in one of the three lists."""
    for module, measured in MEASURED.items():
        listed = {*measured, *NEEDED.get(module, ()), *ELSEWHERE.get(module, ())}
        assert functions(importlib.import_module(f"workers.measure.{module}")).keys() == listed


@pytest.mark.parametrize("module", MEASURED)
def test_all_of_a_module_raise(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    """All that reads one part of the process or machine at once."""
    assert_sampled(force(monkeypatch, module, MEASURED[module]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in MEASURED.items() for name in names]
)
def test_each_raises(monkeypatch: pytest.MonkeyPatch, module: str, name: str) -> None:
    """One function alone, so that what calls it reaches the others."""
    assert_sampled(force(monkeypatch, module, [name]))
