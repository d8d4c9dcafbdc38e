"""The properties of this machine that can change a time: devices and their fingerprint, read
without importing torch.
"""

import contextlib
import ctypes
import functools
import importlib.metadata
import importlib.util
import os
import platform
import re
import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pynvml

from sweeps.model.condition import Device
from sweeps.model.outcome import Environment
from workers.measure.optional import optional_manager, optional_value
from workers.waiting import (
    SPIN_VARIABLE,
    TURNS_VARIABLE,
    WaitTimes,
    choose_turns,
    stored_times,
    wait_times,
)

LIBRARIES = ("torch", "timm", "transformers", "tokenizers", "numpy")
"""One environment for all kinds: after an upgrade of any of these, vision is measured again too."""
INSTRUCTIONS = (
    *("avx2", "avx512f", "avx_vnni", "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16"),
    *("asimd", "sve", "i8mm", "bf16"),
)
"""Of x86, then of ARM: vectors, and products of int8 or bfloat16, without which these types gain
little or lose."""
ALLOCATOR_VARIABLES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
"""Variables that set torch's CUDA allocator; the second is the older name and means the same."""
SHARE_VARIABLE = "BREAKEVEN_SHARE"
"""Variable of a worker that is pinned to its share of the host (`pinning.py`): the number of
shares, and how many cores it might use before, such as `2/16`."""
PLACES_VARIABLE = "BREAKEVEN_PLACES"
"""Variable of a process whose threads are pinned (`workers/measure/threads.py`): their cores
in order, such as `0,1`."""
PROJECT = Path(__file__).resolve().parents[2]
ROOT = Path("/")
"""Folder of `proc` and `sys`; tests make others."""


def devices() -> tuple[Device, ...]:
    """The device classes that a job can request here: `("cpu",)` or `("cpu", "cuda")`."""
    with gpu() as handle:
        return ("cpu", "cuda") if handle is not None else ("cpu",)


def environment_of(device: Device) -> Environment:
    """The environment in which `device` is timed; equal at any time and in any process of the same
    machine.

    No host name, frequency or load; a fact that cannot be read is absent. Raises `LookupError` when
    `device` is `cuda` and no CUDA device can be used.
    """
    facts = host_facts() | _facts({"spin_turns": spin_turns})
    if device == "cuda":
        with gpu() as handle:
            if handle is None:
                raise LookupError(
                    "no CUDA device here: NVML, CUDA_VISIBLE_DEVICES or this build of torch offers"
                    " none; request device cpu"
                )
            facts |= _facts(
                {
                    "gpu": lambda: str(pynvml.nvmlDeviceGetName(handle)),
                    # a curve stays on one device
                    "gpu_uuid": lambda: str(pynvml.nvmlDeviceGetUUID(handle)),
                    "driver": lambda: str(pynvml.nvmlSystemGetDriverVersion()),
                    "cuda": lambda: _torch_cuda() or "",
                    "allocator": allocator,
                }
            )
    name = facts.get("gpu" if device == "cuda" else "cpu", "unknown")
    return Environment(device=device, device_name=name, facts=facts)


def host_facts() -> dict[str, str]:
    """Those of the host and of the libraries, whatever the device."""
    return _facts(
        {
            "cpu": _cpu_model,
            "cores": lambda: _unpinned()[1] or f"{cores():g}",
            "python": platform.python_version,
            "instructions": lambda: " ".join(instructions()),
        }
    ) | optional_value("versions of libraries", _versions, {})


def spin_turns() -> str:
    """For how many turns threads of OpenMP that wait spin by default before they sleep, or `unset`:
    by `SPIN_VARIABLE`, else the choice for this host, for which times are measured where none are
    stored.
    """
    set_by_user = os.environ.get(TURNS_VARIABLE) or os.environ.get(SPIN_VARIABLE)
    return set_by_user or choose_turns(wait_times(host_facts(), module_variables()))


def chosen_by() -> WaitTimes | None:
    """The times of this host, where the turns are chosen by them."""
    times = stored_times(host_facts())
    return times if times and choose_turns(times) == spin_turns() else None


def _facts(readers: Mapping[str, Callable[[], str]]) -> dict[str, str]:
    """Those that can be read and are not empty."""
    values = {
        name: optional_value(f"{name} of the environment", read, "")
        for name, read in readers.items()
    }
    return {name: value for name, value in values.items() if value}


def allocator() -> str:
    """How torch's CUDA allocator is configured in this process' environment, such as
    `expandable_segments:True`; else empty.
    """
    values = (os.environ.get(name, "").replace(" ", "") for name in ALLOCATOR_VARIABLES)
    return "; ".join(dict.fromkeys(filter(None, values)))


def cores() -> float:
    """CPU cores that this process may use: its affinity, limited by cgroup quotas (possibly to a
    fraction).

    A quota is divided among the shares of a host.
    """
    quotas = optional_value("quota of CPU time", cpu_quotas, [])
    return usable_cores(len(allowed_cores()), quotas, int(_unpinned()[0] or 1))


def allowed_cores() -> tuple[int, ...]:
    """The CPU cores that this process may use; if its threads are pinned, in the order in which
    they get them.
    """
    if places := os.environ.get(PLACES_VARIABLE):
        return tuple(map(int, places.split(",")))
    return (
        tuple(sorted(os.sched_getaffinity(0)))
        if hasattr(os, "sched_getaffinity")
        else tuple(range(os.cpu_count() or 1))
    )


def cores_of_threads(threads: int) -> tuple[int, ...]:
    """The cores that so many threads of this process may run on: as many if they are pinned, else
    all.
    """
    return allowed_cores()[:threads] if PLACES_VARIABLE in os.environ else allowed_cores()


def usable_cores(allowed: int, quotas: Collection[float], shares: int) -> float:
    """Cores of an affinity mask that cgroup quotas leave to one of the shares of a host."""
    return min([float(allowed), *(quota / shares for quota in quotas)])


def cgroup_folders(top: Path = ROOT) -> list[Path]:
    """The cgroup folders that limit this process' CPU time, innermost first (version 1 or 2; none
    outside Linux).

    `top` is the folder of `proc` and `sys`.
    """
    root, found = top / "sys/fs/cgroup", []
    for line in read_text(top / "proc/self/cgroup").splitlines():
        hierarchy, controllers, path = line.split(":", 2)
        if hierarchy == "0":
            mounts = [root]
        elif "cpu" in controllers.split(","):
            mounts = [root / controllers, root / "cpu"]
        else:
            continue
        inner = path.strip("/")
        for mount in mounts:
            folder = mount / inner
            found += [
                place
                for place in (folder, *folder.parents)
                if place.is_relative_to(mount) and (place / "cpu.stat").exists()
            ]
    return list(dict.fromkeys(found))


def module_variables() -> dict[str, str]:
    """The environment variables of a process in which `python -P -m` finds this project."""
    path = filter(None, (os.environ.get("PYTHONPATH"), str(PROJECT)))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}


@functools.cache
def commit() -> str | None:
    """The project's git commit, with `-dirty` when tracked files were changed; `None` outside a
    checkout.

    Read once per process, which is when the code was loaded.
    """
    if not (PROJECT / ".git").exists():
        return None
    command = [
        "git",
        "--no-optional-locks",
        "describe",
        "--always",
        "--dirty",
        "--abbrev=40",
        "--exclude=*",
    ]
    try:
        result = subprocess.run(
            command, cwd=PROJECT, capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return result.stdout.strip() or None


@optional_manager("GPU", lambda: None)
@contextlib.contextmanager
def gpu() -> Iterator[Any]:
    """The NVML handle of the GPU that `cuda` means in this process, or `None`; NVML stays
    initialised inside the block.
    """
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
    with contextlib.ExitStack() as stack:
        handle = None
        if first and not first.startswith("-") and _torch_cuda() is not None:
            with contextlib.suppress(pynvml.NVMLError):
                pynvml.nvmlInit()
                stack.callback(pynvml.nvmlShutdown)
                handle = _handle(first)
        yield handle


def _handle(first: str) -> Any:
    """The device that an entry of CUDA_VISIBLE_DEVICES names: an index, or the (possibly shortened)
    UUID of a GPU or MIG slice. Raises `NVMLError`.
    """
    if first.startswith("MIG-"):
        return pynvml.nvmlDeviceGetHandleByUUID(first)
    handles = [
        pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())
    ]
    uuids = [str(pynvml.nvmlDeviceGetUUID(handle)) for handle in handles]
    place = place_of_gpu(first, uuids, os.environ.get("CUDA_DEVICE_ORDER", ""), cuda_uuid)
    return None if place is None else handles[place]


def place_of_gpu(
    first: str, uuids: Sequence[str], order: str, of_cuda: Callable[[], str | None]
) -> int | None:
    """The index in NVML, which has GPUs with these UUIDs, of the one that an entry of
    CUDA_VISIBLE_DEVICES names first.

    NVML counts by bus number, CUDA the fastest first unless `order` (CUDA_DEVICE_ORDER) is
    PCI_BUS_ID: of several GPUs the one with the UUID that CUDA itself gives is meant.
    """
    if not first.isdigit():
        return next((place for place, uuid in enumerate(uuids) if uuid.startswith(first)), None)
    if len(uuids) > 1 and order != "PCI_BUS_ID" and (uuid := of_cuda()) in uuids:
        return uuids.index(str(uuid))
    return int(first) if int(first) < len(uuids) else None


def cuda_uuid(library: str = "libcuda.so.1") -> str | None:
    """The UUID of the GPU that CUDA calls 0 in this process, as NVML writes it, by CUDA's driver;
    makes no context on it.
    """
    try:
        driver = ctypes.CDLL(library)
        read = driver.cuDeviceGetUuid
    except (OSError, AttributeError):
        return None
    device, found = ctypes.c_int(), (ctypes.c_ubyte * 16)()
    failed = driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), 0) or read(found, device)
    return None if failed else f"GPU-{UUID(bytes=bytes(found))}"


def _unpinned() -> tuple[str, str]:
    """Number of shares and cores of the whole, from `SHARE_VARIABLE`; empty where this process is
    not pinned.
    """
    number, _, whole = os.environ.get(SHARE_VARIABLE, "").partition("/")
    return number, whole


def _cpu_model() -> str:
    match = re.search(r"^model name\s*:\s*(.+)$", read_text("/proc/cpuinfo"), re.MULTILINE)
    return match[1].strip() if match else platform.processor() or platform.machine()


def instructions(top: Path = ROOT) -> list[str]:
    """Which of `INSTRUCTIONS` the CPU has; none where the system does not say."""
    listed = re.search(
        r"^(?:flags|Features)\s*:(.*)$", read_text(top / "proc/cpuinfo"), re.MULTILINE
    )
    return [name for name in INSTRUCTIONS if listed and name in listed[1].split()]


def cpu_quotas(top: Path = ROOT) -> list[float]:
    """Cores that the cgroups allow, from `cpu.max` (version 2) or `cpu.cfs_quota_us` (version 1);
    none where there is no limit.
    """
    limits = []
    for folder in cgroup_folders(top):
        # quota and period, `max` or -1 standing for no quota
        words = read_text(folder / "cpu.max") or " ".join(
            read_text(folder / f"cpu.cfs_{name}_us") for name in ("quota", "period")
        )
        numbers = [int(word) for word in words.split() if word.isdigit()]
        if len(numbers) == 2 and numbers[1]:
            limits.append(numbers[0] / numbers[1])
    return limits


@functools.cache
def _versions() -> dict[str, str]:
    """Of the installed libraries; transformers may be missing on a machine for vision only."""
    found = {}
    for name in LIBRARIES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


@functools.cache
def _torch_cuda() -> str | None:
    """The CUDA version that torch was built with, read from its version file because importing
    torch takes seconds.
    """
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    match = re.search(
        r"^cuda\b[^=]*=\s*['\"]([^'\"]+)",
        read_text(Path(spec.origin).with_name("version.py")),
        re.MULTILINE,
    )
    return match[1] if match else None


def read_text(path: Path | str) -> str:
    """The text of a file, empty where it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
