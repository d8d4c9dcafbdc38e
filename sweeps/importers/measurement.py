"""Measurement: one row of a table of measurements, whoever measured it; published tables with their
source; the names that papers and tools give the fields and their units.
"""

import math
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pydantic import AfterValidator, Field, NonNegativeFloat, NonNegativeInt, PositiveInt

from sweeps.errors import UserError, unknown_word
from sweeps.model.identity import FrozenModel, digest
from sweeps.model.profile import COUNTERS, IntervalEstimate

if TYPE_CHECKING:
    import pandas as pd


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
    year: Annotated[int, Field(gt=1990, lt=2100)] | None = None
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
    tools: tuple[str, ...] | None = None
    """Of each profile among the rows the tool that recorded it."""

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


FIELDS = tuple(
    name for name in Measurement.model_fields if name not in {"counters", "paired"}
) + tuple(COUNTERS)
TEXTS = frozenset({"label", "method", "device", "model", "setting", "note"})
_CONDITIONS = (
    "threads num_threads cores seed run_id repeat trial dataset data test backend compile runtime"
    " framework attention kv_cache prompt prompt_len gen_len context weights pretrained"
)
_NAMES: Mapping[str, str] = {
    "label": "label arm name variant config configuration setup run run_name",
    "method": "method",
    "model": "model network net architecture arch",
    "device": "device gpu device_name hardware accelerator",
    "setting": f"setting dtype precision quantization quant amp {_CONDITIONS}",
    "image_size": "image_size img_size input_size resolution is infer_img_size",
    "tokens": "tokens num_tokens n_tokens seq_len sequence_length n_patches num_patches patches",
    "tokens_final": "tokens_final final_tokens tokens_left",
    "batch": "batch batch_size bs infer_batch_size",
    "batch_counted": "batch_counted",
    "latency_ms": (
        "latency time step_time infer_step_time forward inference_time ms p50 median latency_p50"
        " p50_latency median_latency latency_median mean_latency latency_mean avg_latency"
        " latency_avg average_latency latency_average mean_time time_mean avg_time time_avg"
        " median_time time_median average_time time_average"
    ),
    "latency_p95_ms": "p95 latency_p95 p95_latency",
    "latency_p99_ms": "p99 latency_p99 p99_latency",
    "throughput": "throughput tp fps ips tps img_s im_s images_s imgs_s samples_s",
    "gmacs": "gmacs macs flops gflops infer_gmacs",
    "kernel_ms": "kernel kernel_time gpu_time device_time cuda_time",
    "device_ms": "device_ms device_latency device_latency_ms",
    "kernels": "kernels kernel_count launches num_kernels total_kernels",
    "forwards": "forwards iterations iters",
    "peak_gflops": "peak_gflops",
    "keep_rate": "keep_rate keep_ratio keep",
    "stages": "stages",
    "r": "r",
    "sparsity": "sparsity",
    "top1": "top1 top_1 acc acc1 accuracy acc_1",
    "images": "images num_images n_images samples num_samples n_samples",
    "kl": "kl kl_divergence",
    "perplexity": "perplexity ppl",
    "speedup": "speedup speed_up",
    "latency_change": "latency_change latency_delta delta_latency change_of_time",
    "memory_mb": "memory max_memory peak_memory peak_gpu_memory gpu_memory",
    "parameters_m": "params param_count parameters no_params num_params",
    "noise": "noise cv rel_std",
    "note": "note notes comment",
    "sm_throughput": "sm_throughput sm_utilization sm_utilisation compute_throughput",
    "memory_throughput": "memory_throughput memory_utilization memory_utilisation",
    "achieved_occupancy": "achieved_occupancy occupancy",
    "l1_hit_rate": "l1_hit_rate l1_tex_hit_rate",
    "l2_hit_rate": "l2_hit_rate",
}
ALIASES: Mapping[str, str] = {
    name: field for field, names in _NAMES.items() for name in names.split()
}
"""Names of columns in papers and of tools, and what they are."""
_TIMES = {
    "ms": 1,
    "s": 1e3,
    "sec": 1e3,
    "seconds": 1e3,
    "us": 1e-3,
    "µs": 1e-3,
    "μs": 1e-3,
    "ns": 1e-6,
}
SHARES = ("keep_rate", "sparsity", "tokens_saved", "noise")
"""Fields between 0 and 1, which tables also state in per cent."""
_PERCENT = ("%", "pct", "percent", "cent")
UNITS_OF: Mapping[str, Mapping[str, float]] = {
    **dict.fromkeys(
        ("latency_ms", "latency_p95_ms", "latency_p99_ms", "kernel_ms", "device_ms"), _TIMES
    ),
    "memory_mb": {"mb": 1, "mib": 1.048576, "gb": 1e3, "gib": 1073.741824},
    "parameters_m": {"m": 1, "b": 1e3, "g": 1e3},
    "gmacs": {"g": 1, "gmacs": 1, "gflops": 1, "m": 1e-3, "mmacs": 1e-3, "mflops": 1e-3, "t": 1e3},
    "latency_change": dict.fromkeys(_PERCENT, 1),
    "speedup": {"x": 1, "×": 1},
    **{name: dict.fromkeys(_PERCENT, 1) for name in ("top1", *COUNTERS)},
    **{share: dict.fromkeys(_PERCENT, 0.01) for share in SHARES},
}
"""Units by field, and how many of the field's own each is."""
UNIT_NEEDED = UNITS_OF.keys() - {"speedup", "top1", *COUNTERS, *SHARES}
"""Fields whose numbers are not known without a unit."""
BARE_BELOW = {"gmacs": 1e3, "latency_change": math.inf}
"""Of them those that are, below these numbers: papers count FLOPs in GMACs, and write a change of 0
without %."""
ALL_UNITS = {unit for units in UNITS_OF.values() for unit in units} | {"db"}
_COUNTED: Mapping[LatencyUnit | Literal["per_token"], str] = {
    "per_token": "tok|token",
    "per_image": "im|img|image|images",
    "per_batch": "batch|step|forward",
}
HEADER_UNITS = {
    unit: re.compile(
        rf"(ms|s|us|µs)\s*(/|per)\s*({words})\b|{unit.replace('_', '[-_ ]')}", re.IGNORECASE
    )
    for unit, words in _COUNTED.items()
}
"""What the header of a latency states that it is the time of."""
_RATE = re.compile(
    r"(?<![a-z])(?:(?<!\bk )(?<!\bm )(?<!\d )(?:(?P<tokens>t|toks?|tokens?)"
    r"|(?P<images>f|i|ims?|imgs?|images?|samples?|examples?|frames?|seqs?|sequences?))"
    r" ?(?:/|\bper\b) ?(?:s|secs?|seconds?)\b(?! ?(?:/|per\b))"
    r"|[a-zµ]+ ?(?:/|\bper\b) ?(?:s|secs?|seconds?|ms|us|m|min|minutes?|h|hours?)\b)"
)
"""`images/s`, `tok/sec`, `samples per second`; or a rate of something else, of thousands, per
minute or per GPU, which does not show how many items of a batch it counts."""
_BRACKETS = re.compile(r"[\[(](.*?)[\])]")
_WORD = re.compile(r"[^\W_]+|[%×]")
_STATISTIC = re.compile(
    r"\b(p\d[\d.]*|\d+th|\d[\d.]*\s*%|min|max|std\w*|sd|mean|avg|average|median)(?![a-z])"
)


class UnclearUnitError(UserError):
    """A column whose numbers have no unit of its field."""


class NamedColumns(NamedTuple):
    """The columns of a file by what they are."""

    fields: Mapping[str, str]
    """Field of each column that is one."""
    unknown: tuple[str, ...]


def name_columns(
    path: Path, columns: Mapping[str, "pd.Series[str]"], mapping: Mapping[str, str], *, guess: bool
) -> NamedColumns:
    """What the columns of a file are; `columns`: their cells by name. Raises `UserError` for a
    mapping that cannot be.
    """
    for column, wanted in mapping.items():
        if column not in columns:
            raise UserError(f"{path}: {unknown_word('column', column, list(columns))}")
        if wanted not in FIELDS:
            raise UserError(f"{path}: {unknown_word('field', wanted, list(FIELDS))}")
    found, unknown = dict(mapping), []
    for name in columns:
        field = None if name in found or not guess else field_of(name)
        if field is not None and (field == "setting" or field not in found.values()):
            found[name] = field
        elif name not in found:
            unknown.append(name)
    single = [field for field in found.values() if field != "setting"]
    twice = {field for field in single if single.count(field) > 1}
    if twice:
        both = " and ".join(repr(name) for name in found if found[name] in twice)
        raise UserError(f"{path}: the columns {both} are both mapped to {sorted(twice)[0]!r}")
    _choose_arms(columns, found, unknown, fixed=mapping)
    return NamedColumns(found, tuple(unknown))


def _choose_arms(
    columns: Mapping[str, "pd.Series[str]"],
    found: dict[str, str],
    unknown: list[str],
    *,
    fixed: Mapping[str, str],
) -> None:
    """Let the column that holds the unmodified model be that of the arms: of the label, else of
    method or model.
    """
    by_field = {field: name for name, field in found.items()}
    label = by_field.get("label")
    others = [
        name for field in ("method", "model") if (name := by_field.get(field)) and name not in fixed
    ]
    if label is not None and (label in fixed or _holds_baseline(columns[label])):
        return
    arms = next((name for name in others if _holds_baseline(columns[name])), None)
    if arms is None and label is None:
        arms = next((name for name in others if found[name] == "method"), None)
    if arms is not None:
        if label is not None:
            del found[label]
            unknown.append(label)
        found[arms] = "label"


def _holds_baseline(cells: "pd.Series[str]") -> bool:
    return any(map(names_baseline, cells.unique()))


def field_of(header: str) -> str | None:
    """The field that a column's name shows; a statistic in brackets is part of the name."""
    items = rate_items(header)
    if items is not None:
        return "throughput" if items else None
    if HEADER_UNITS["per_token"].search(header):
        return "latency_ms"
    inside = " ".join(_BRACKETS.findall(header.lower()))
    name = _BRACKETS.sub("", header.replace("Δ", " delta ")).strip().lower()
    name = re.sub(r"[^a-z0-9]+", "_", name.replace("/", "_")).strip("_")
    name = re.sub(
        r"_per_(image|batch|step|forward)$",
        "",
        name.removeprefix("real_").removeprefix("measured_"),
    )
    rest, _, unit = name.rpartition("_")
    if name in ALIASES or unit not in ALL_UNITS:
        rest, unit = name, ""
    field = ALIASES.get("_".join([rest, *_STATISTIC.findall(inside)]))
    other_unit = "%" in header or re.search("[a-z]", inside + unit)
    return None if inside == "k" or (field == "throughput" and other_unit) else field


def rate_items(text: str) -> str | None:
    """What a rate counts each second: `images`, `tokens`, or empty for anything else; `None` where
    the text is no rate.
    """
    rate = _RATE.search(re.sub(r"\b([a-z])ps\b", r"\1/s", text.lower().replace("_", " ")))
    return None if rate is None else rate.lastgroup or ""


def unit_factor(unit: str, field: str) -> float | None:
    """How many of the field's own unit one of a unit behind a number is; `None` where it is none of
    the field's.
    """
    if field == "throughput":
        return 1.0 if rate_items(unit) == "images" else None
    return UNITS_OF.get(field, {}).get(unit.lower())


def unit_of(header: str, field: str) -> float | None:
    """How many of the field's own unit a number below a header is, by the unit in it: `None` where
    it names none, NaN where it names one of something else.
    """
    units = UNITS_OF.get(field)
    if units is None:
        return 1.0
    text = header.lower().replace("infer_step_time", "ms")  # of timm
    text = re.sub(r"\s*(/|per)\s*(im|batch|step|forward|tok)\w*", "", text)
    outside = _WORD.findall(_BRACKETS.sub("", text))
    words = [*_WORD.findall(" ".join(_BRACKETS.findall(text))), *outside[-1:]]
    for word in words:
        if word in units:
            return units[word]
    if not ALL_UNITS.isdisjoint(words):
        return math.nan
    return None if field in UNIT_NEEDED else 1.0
