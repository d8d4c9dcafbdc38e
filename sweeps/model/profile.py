"""Profiles: where the time of an arm's forward goes, by class of time and by kernel or operator,
whichever tool recorded it.
"""

from typing import Literal

from pydantic import (
    Field,
    FiniteFloat,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
)

from sweeps.model.identity import FrozenModel

Tool = Literal["torch", "nsys", "ncu"]
Phase = Literal["forward", "prefill", "decode"]
"""`forward` of a vision model; of a language model `prefill` and one `decode` step, each profiled
apart."""
TimeClass = Literal["device", "launch", "host", "sync", "idle"]
"""`device`: kernels and copies run (on a CPU: operators). The rest are gaps of the device, by what
the host does in them: `launch` enters the launch of a kernel, `sync` waits for the device, `host`
dispatches operators or runs Python, `idle` is none of these."""
Activity = Literal["kernel", "memcpy", "memset", "operator"]
Side = Literal["baseline", "arm"]
"""Which of the two arms of a comparison a profile shows."""


class Activities(FrozenModel):
    """All runs of one kernel or operator in a profiled pass, as means of one forward."""

    name: str
    activity: Activity
    count: NonNegativeFloat
    """Runs in one forward."""
    seconds: NonNegativeFloat
    """Time of these runs together, per forward; of an operator its own time, without that of
    operators it calls."""
    gmacs: float | None = None
    """1e9 MACs per forward, where they can be derived from shapes."""
    bytes_moved: float | None = None
    """Bytes read and written per forward, where they can be derived from shapes or were counted."""
    counters: dict[str, float] = Field(default_factory=dict)
    """Hardware counters by the names of `COUNTERS`, means weighted by time."""


COUNTERS = {
    "sm_throughput": "%",
    "memory_throughput": "%",
    "achieved_occupancy": "%",
    "l1_hit_rate": "%",
    "l2_hit_rate": "%",
}
"""Hardware counters of kernels and their units."""


class IntervalEstimate(FrozenModel):
    """A figure and its interval, whose ends are `None` where there are too few rounds for one."""

    value: FiniteFloat
    low: FiniteFloat | None = None
    high: FiniteFloat | None = None


class ArmProfile(FrozenModel):
    """One arm and phase under a profiler: seconds, counts and bytes are means of one forward (or
    decode step).
    """

    arm: int
    """Index into `Job.arms`."""
    tool: Tool
    phase: Phase = "forward"
    forwards: PositiveInt
    """Forwards that the profiled pass held."""
    wall_s: NonNegativeFloat | None = None
    """Median wall time without a profiler; `None` where it was not measured in the same process."""
    profiled_wall_s: NonNegativeFloat | None = None
    """Wall time with the profiler, which slows the host."""
    times: dict[TimeClass, float] = Field(default_factory=dict)
    """Seconds by class; with `wall_s` they add up to it. Empty where only kernels were recorded one
    by one (ncu)."""
    launches: NonNegativeFloat = 0
    """Kernels, copies and memsets started (on a CPU: operators called by the model)."""
    kernel_time_share: float | None = Field(default=None, ge=0, le=1)
    """Share of the arm's kernel time that `activities` hold, where it is known; a tool may have
    recorded only a few kernels."""
    activities: tuple[Activities, ...] = ()
    """Longest total first."""
    allocations: float | None = None
    """Memory allocations per forward."""
    allocated_bytes: float | None = None
    """Bytes allocated per forward."""
    baseline: NonNegativeInt | None = None
    """Index into `Job.arms` of the arm that the following compare it with, by pairs inside rounds;
    `None` without such rounds."""
    rounds: PositiveInt | None = None
    """Rounds under the profiler, in each of which every arm of the job ran in random order."""
    speedup: IntervalEstimate | None = None
    """Of the walls without a profiler, baseline over arm, with the interval of any speed-up
    (`sweeps.stats.pooling`)."""
    profiled_speedup: IntervalEstimate | None = None
    """The same under the profiler, less its own time."""
    changes: dict[TimeClass, IntervalEstimate] = Field(default_factory=dict)
    """By class what the arm takes more than its baseline, as a share of the baseline's wall, with
    intervals of the same level."""


class Peaks(FrozenModel):
    """What a device reaches at best, measured here; an attribute of an environment, no part of its
    identity.
    """

    gflops: PositiveFloat
    """1e9 floating-point operations per second (two per MAC) of a large matrix product in the
    dtype, by the fastest of several kernels."""
    kernel: str | None = None
    """That kernel, such as `torch.mm` or `oneDNN`."""
    gb_per_s: PositiveFloat
    """1e9 bytes per second of memory, read and written."""
    dtype: str
    threads: int | None = None
    """CPU threads that were used; `None` on a GPU."""
