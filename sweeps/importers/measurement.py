"""Measurement: one row of a table of measurements, whoever measured it; published tables with their
source.
"""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, NonNegativeFloat, NonNegativeInt, PositiveInt

from sweeps.model.identity import FrozenModel, digest
from sweeps.model.profile import COUNTERS, IntervalEstimate

LatencyUnit = Literal["per_batch", "per_image"]
"""What a latency is the time of: a whole batch, or an image of it."""
PUBLISHED = "published: "
"""Before the title of a reference, where the environment of a measurement stands."""
BASELINE_WORDS = ("baseline", "dense", "original", "none", "unmodified", "vanilla")
"""Labels of the unmodified model that are understood without being named."""

_NAMED_BASELINE = re.compile(rf"(?:^|.*[\s_:-])(?:{'|'.join(BASELINE_WORDS)})$")
_BASELINE_WORD = re.compile("|".join(BASELINE_WORDS), re.IGNORECASE)
WHOLE_FIELDS = frozenset(
    {
        "image_size",
        "tokens",
        "tokens_final",
        "batch",
        "batch_counted",
        "kernels",
        "forwards",
        "stages",
        "images",
    }
)
"""Fields of a measurement that are counts."""


def names_baseline(name: str) -> bool:
    """Whether a name is that of an unmodified model: `baseline`, `DeiT-S (dense)`, `Baseline (no
    TR)`.
    """
    if not _BASELINE_WORD.search(name):
        return False
    whole = name.strip().lower()
    before, _, inside = whole.partition("(")
    return any(
        _NAMED_BASELINE.fullmatch(part.strip(" )")) is not None for part in (whole, before, inside)
    )


_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Share = Annotated[float, Field(ge=0, le=1)]
_Noise = Annotated[float, Field(gt=0, lt=1)]
_Percent = Annotated[float, Field(ge=0, le=100)]


def _known_counters(counters: Mapping[str, float]) -> Mapping[str, float]:
    unknown = sorted(set(counters) - set(COUNTERS))
    if unknown:
        raise ValueError(f"unknown counter {unknown[0]!r}; known are {', '.join(COUNTERS)}")
    return counters


class Measurement(FrozenModel):
    """One row of a table: an arm under a condition, and what was measured or stated of it. All but
    the label may be missing.
    """

    label: str = ""
    """The arm as the table names it."""
    method: str | None = None
    """The method of this project that it is, if it is one."""
    device: str | None = None
    model: str | None = None
    setting: str | None = None
    """What else the row was measured under (dtype, runtime, weights …); rows are compared where it
    is equal."""
    image_size: PositiveInt | None = None
    tokens: NonNegativeInt | None = None
    """Patch tokens of an image, or tokens of the prompt, before any reduction."""
    tokens_final: NonNegativeInt | None = None
    """Tokens that are stated to be left in the end."""
    batch: PositiveInt | None = None
    batch_counted: NonNegativeInt | None = None
    """Items that a forward really held, where they were counted."""
    latency_ms: _Positive | None = None
    latency_p95_ms: _Positive | None = None
    latency_p99_ms: _Positive | None = None
    throughput: _Positive | None = None
    """Items per second."""
    gmacs: _Positive | None = None
    """1e9 multiply-accumulates per item; papers call them GFLOPs."""
    kernel_ms: _Positive | None = None
    """Time of all kernels on the device, of `forwards` forwards together."""
    kernels: NonNegativeInt | None = None
    """Kernels launched in these forwards."""
    forwards: PositiveInt | None = None
    """Forwards that `kernel_ms` and `kernels` cover; `None` where that is not stated."""
    kernel_time_share: _Share | None = None
    """Share of the kernel time of a forward that the profiled kernels take, which `kernel_ms` and
    `counters` are about."""
    device_ms: _Positive | None = None
    """Time of one forward by the device's own clock, gaps between its kernels included."""
    peak_gflops: _Positive | None = None
    """1e9 floating-point operations per second (two per MAC) that the device reaches at best."""
    keep_rate: Annotated[float, Field(gt=0, le=1)] | None = None
    stages: PositiveInt | None = None
    """Blocks in which the keep rate is applied."""
    r: NonNegativeFloat | None = None
    """Tokens that each block merges."""
    sparsity: _Share | None = None
    tokens_saved: _Share | None = None
    """Share of the tokens of a text that a vocabulary saves."""
    top1: _Percent | None = None
    images: PositiveInt | None = None
    """Images that `top1` is about."""
    kl: NonNegativeFloat | None = None
    perplexity: _Positive | None = None
    speedup: _Positive | None = None
    """Stated: time of the baseline over time of this row."""
    latency_change: Annotated[float, Field(gt=-100)] | None = None
    """Stated: change of the time against the baseline in per cent; above 0 is slower."""
    paired: IntervalEstimate | None = None
    """Speed-up by pairs of forwards of one job, with its interval."""
    no_effect: bool | None = None
    """Whether the method removes nothing here: the row does the work of its baseline."""
    memory_mb: _Positive | None = None
    """Peak of one device or process, in 1e6 bytes."""
    parameters_m: _Positive | None = None
    """1e6 weights of the model."""
    noise: _Noise | None = None
    """Relative standard deviation of its times."""
    counters: Annotated[Mapping[str, float], AfterValidator(_known_counters)] = Field(
        default_factory=dict
    )
    """Hardware counters by the names of `sweeps.model.profile.COUNTERS`."""
    tuned: bool | None = None
    """Whether the model was trained or tuned with the method; false: off the shelf."""
    note: str | None = None


class StatedBreakEven(FrozenModel):
    """A break-even or crossing that a source claims."""

    axis: Literal["tokens", "image_size", "batch", "gmacs"] = "tokens"
    at: _Positive
    where: str = ""


class _TableFacts(FrozenModel):
    """What holds of all rows of a table."""

    latency: LatencyUnit | None = None
    """What `latency_ms` is the time of; `None` where the source does not state it."""
    items: Literal["images", "tokens"] = "images"
    """What `throughput` counts."""
    baseline: str | None = None
    """Label of the rows of the unmodified model; `None`: one of `BASELINE_WORDS`."""
    noise: _Noise | None = None
    """Relative standard deviation of a time, where the source states it."""
    break_evens: tuple[StatedBreakEven, ...] = ()


class SourceFacts(_TableFacts):
    """The same and the source of a published table."""

    title: str = Field(min_length=1)
    owner: str = Field(min_length=1)
    """Authors, or who made the report."""
    year: int | None = None
    where: str = Field(min_length=1)
    """Table, section or file of the source."""
    url: str | None = None
    software: str | None = None
    counter: str | None = None
    """What counted the MACs."""
    note: str | None = None


class MeasurementTable(_TableFacts):
    """Rows that one source reports together."""

    name: str
    rows: tuple[Measurement, ...]
    job_noise: _Noise | None = None
    """That of the median of a job beside another job of the same machine, which varies less than
    single times; `None`: `noise`."""

    def is_baseline(self, row: Measurement) -> bool:
        """Whether a row is of the unmodified model."""
        return (
            row.label == self.baseline
            if self.baseline
            else names_baseline(row.label or row.method or "")
        )

    @cached_property
    def baselines(self) -> Mapping[tuple[object, ...], list[Measurement]]:
        """The rows of the unmodified model by `condition_of`."""
        found: dict[tuple[object, ...], list[Measurement]] = {}
        for row in filter(self.is_baseline, self.rows):
            found.setdefault(condition_of(row), []).append(row)
        return found

    def batch_seconds(self, row: Measurement) -> float | None:
        """Seconds of a whole forward by its latency; `None` where that or its unit is not known."""
        if row.latency_ms is None or (self.latency is None and row.batch != 1):
            return None
        return row.latency_ms / 1e3 * (1 if self.latency != "per_image" else row.batch or 1)

    def item_seconds(self, row: Measurement) -> float | None:
        """Seconds per item, by the throughput if there is one, else by the latency."""
        if row.throughput:
            return 1 / row.throughput
        whole = self.batch_seconds(row)
        return None if whole is None else whole / (row.batch or 1)


class ReferenceSet(SourceFacts, MeasurementTable):
    """A published table with its source."""

    @property
    def environment(self) -> str:
        """What stands instead of a measuring environment."""
        return f"{PUBLISHED}{self.title}"

    @property
    def set_digest(self) -> str:
        return digest(self)

    def derived_speedup(self, row: Measurement) -> float | None:
        """Baseline over arm at the row's condition by the times of the table, else what the row
        states; `None` of a baseline.
        """
        if self.is_baseline(row):
            return None
        beside = self.beside(row)
        own, other = self.item_seconds(row), None if beside is None else self.item_seconds(beside)
        return other / own if own and other else row.speedup

    def beside(self, row: Measurement) -> Measurement | None:
        """The only row of the unmodified model under the same condition."""
        found = self.baselines.get(condition_of(row), [])
        return found[0] if len(found) == 1 else None


def condition_of(row: Measurement) -> tuple[object, ...]:
    """What the baseline of a row has in common with it."""
    return (row.device, row.model, row.setting, row.image_size, row.tokens, row.batch)
