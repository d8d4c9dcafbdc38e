"""Peak memory of a stretch of work: CUDA's allocator peaks, and on Linux the process' own
resettable peak.
"""

import contextlib
import ctypes
import gc
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from sweeps.model.condition import Device
from sweeps.model.outcome import MetricValue
from workers.measure.readings.metric_values import metric_value

MIB = 2**20
RESET_PEAK = "5"
"""Written to /proc/self/clear_refs, it lowers VmHWM to the memory resident now (man 5 proc); psutil
has neither."""


@dataclass
class Peak:
    """Filled in when the block of `peak_memory` ends; what cannot be measured here is absent."""

    metrics: tuple[MetricValue, ...] = ()


@contextlib.contextmanager
def peak_memory(device: Device, captured_bytes: int = 0) -> Iterator[Peak]:
    """Measure the block's peak memory in MiB; `captured_bytes` are those of a CUDA graph
    (`Captured.unseen_bytes`).

    `rss_before` and `peak_rss` are the whole process' (Linux with a writable clear_refs only), so
    their difference is what the block added; `cuda_peak_allocated` and `cuda_peak_reserved` are
    those of torch's allocator, `cuda_allocated_before` likewise.
    """
    peak = Peak()
    gc.collect()
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    values: dict[str, int] = {}
    before = _reset_process_peak()
    if device == "cuda":
        values["cuda_allocated_before"] = torch.cuda.memory_allocated()
    yield peak
    if before is not None:
        values |= {"rss_before": before, "peak_rss": _status("VmHWM")}
    if device == "cuda":
        torch.cuda.synchronize()
        values["cuda_peak_allocated"] = torch.cuda.max_memory_allocated() + captured_bytes
        values["cuda_peak_reserved"] = torch.cuda.max_memory_reserved()
    peak.metrics = tuple(metric_value(name, size / MIB, n=1) for name, size in values.items())


def _reset_process_peak() -> int | None:
    """Resident bytes once the process' peak has been reset to them; `None` where it cannot be
    reset.
    """
    with contextlib.suppress(OSError, AttributeError):
        # glibc keeps freed memory, which the block would reuse unnoticed
        ctypes.CDLL(None).malloc_trim(0)
    try:
        Path("/proc/self/clear_refs").write_text(RESET_PEAK)
        return _status("VmRSS")
    except OSError:
        return None


def _status(field: str) -> int:
    match = re.search(
        rf"^{field}:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE
    )
    if match is None:
        raise OSError(f"/proc/self/status has no field {field}")
    return int(match[1]) * 1024
