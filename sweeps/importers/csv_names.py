"""Names of columns in papers and of tools: the field that each is, its unit, and which column holds
the arms.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sweeps.errors import UserError, unknown_word
from sweeps.importers.measurement import Measurement, names_baseline
from sweeps.model.profile import COUNTERS

if TYPE_CHECKING:
    import pandas as pd

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
UNITS_OF: Mapping[str, Mapping[str, float]] = {
    **dict.fromkeys(
        ("latency_ms", "latency_p95_ms", "latency_p99_ms", "kernel_ms", "device_ms"), _TIMES
    ),
    "gmacs": {"g": 1, "gmacs": 1, "gflops": 1, "m": 1e-3, "mmacs": 1e-3, "mflops": 1e-3, "t": 1e3},
    "memory_mb": {"mb": 1, "mib": 1.048576, "gb": 1e3, "gib": 1073.741824},
    "parameters_m": {"m": 1, "b": 1e3, "g": 1e3},
    **{share: dict.fromkeys(("%", "pct", "percent", "per cent"), 0.01) for share in SHARES},
}
"""Units by field, and how many of the field's own each is."""
PER_IMAGE = re.compile(
    r"(ms|s|us|µs)\s*(/|per)\s*(im|img|image|images)\b|per[-_ ]image", re.IGNORECASE
)
PER_BATCH = re.compile(
    r"(ms|s|us|µs)\s*(/|per)\s*(batch|step|forward)\b|per[-_ ]batch", re.IGNORECASE
)
PER_TOKEN = re.compile(r"(ms|s|us|µs)\s*(/|per)\s*(tok|token)\b|per[-_ ]token", re.IGNORECASE)
RATE = re.compile(r"([a-z#]+)\s*_?(?:/|per)_?\s*(?:s|sec|second)\b", re.IGNORECASE)
"""`images/s`, `tok/sec`, `samples_per_second`: a rate, and what it counts."""
TOKENS = frozenset({"t", "tok", "toks", "token", "tokens"})


class NamedColumns(NamedTuple):
    """The columns of a file by what they are."""

    fields: Mapping[str, str]
    """Field of each column that is one."""
    guessed: tuple[str, ...]
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
    return NamedColumns(found, tuple(name for name in found if name not in mapping), tuple(unknown))


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
    """The field that a column's name shows."""
    if RATE.search(header.replace("_", " ")):
        return "throughput"
    if PER_TOKEN.search(header):
        return "latency_ms"
    name = re.sub(r"[\[(].*?[\])]", "", header.replace("Δ", " delta ")).strip().lower()
    name = re.sub(r"[^a-z0-9]+", "_", name.replace("/", "_")).strip("_")
    name = re.sub(
        r"_per_(image|batch|step|forward)$",
        "",
        name.removeprefix("real_").removeprefix("measured_"),
    )
    unit = name.rpartition("_")[2]
    known = {short for units in UNITS_OF.values() for short in units}
    return ALIASES.get(name if name in ALIASES or unit not in known else name.rpartition("_")[0])


def counts_tokens(header: str) -> bool:
    """Whether a rate is of tokens."""
    found = RATE.search(header.replace("_", " "))
    return header.strip().lower() == "tps" or (found is not None and found[1].lower() in TOKENS)


def unit_of(header: str, field: str) -> float:
    """How many of the field's own unit a number below a header is, by the unit in it."""
    inside = re.findall(r"[\[(](.*?)[\])]", header)
    words = [
        re.split(r"\s*(?:/|per)\s*(?:im|batch|step|forward|tok)", text.strip().lower())[0]
        for text in (*inside, header)
    ]
    words.append("%" if header.strip().endswith("%") else header.strip().lower().rpartition("_")[2])
    units = UNITS_OF.get(field, {})
    return next((units[word.strip()] for word in words if word.strip() in units), 1.0)
