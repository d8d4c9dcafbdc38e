"""Our own measurements as a table to audit: rows of the public view `arm`."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sweeps.importers.measurement import Measurement, MeasurementTable
from sweeps.model.flags import contended, split_flags
from sweeps.number_format import is_missing
from sweeps.stats.visits import FLOOR_SD

PASS_NOISE = 0.1
"""Relative standard deviation of a time beside one of another pass of the same job: a pair of
forwards on a shared CPU differs by 7 to 15 %, and throughput is measured in a pass of its own."""
SETTING_COLUMNS = (
    "weights",
    "dtype",
    "attention",
    "runtime",
    "kv_cache",
    "threads",
    "wait_policy",
    "pinning",
    "inputs",
    "image_shape",
    "data",
    "corruption",
    "host",
)
BASELINE = "dense"


def measured_table(
    name: str, rows: Iterable[Mapping[str, Any]], label: Callable[[str, str], str]
) -> MeasurementTable:
    """The arms of a sweep, by the columns of the view `arm`; `label` gives the label of a method
    and its parameters (JSON).

    The throughput of a job beside other programs is left out: its pass may have had less of the
    cores than that of the latency. A row may also have `peak_gflops`, the peak that was measured
    where the arm ran, and of its speed-up `paired` and `no_effect`.
    """
    known: list[dict[str, Any]] = [
        {key: None if is_missing(value) else value for key, value in row.items()} for row in rows
    ]
    prefixes = {
        _place(row): row["tokens_final"] - row["tokens"]
        for row in known
        if row["method"] == BASELINE
    }
    found = [_measurement(row, label, prefixes.get(_place(row), 1)) for row in known]
    noise = {"noise": PASS_NOISE, "job_noise": FLOOR_SD}
    return MeasurementTable(
        name=name, rows=tuple(found), latency="per_batch", baseline=BASELINE, **noise
    )


def condition_key(row: Mapping[str, Any]) -> str:
    """What of the condition of a row of a view is not a field of its own."""
    return ", ".join(
        _written(row[name]) for name in SETTING_COLUMNS if not is_missing(row.get(name))
    )


def _written(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _place(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return (row["model"], row["image_size"])


def _measurement(
    row: Mapping[str, Any], label: Callable[[str, str], str], prefix: int
) -> Measurement:
    timed = row.get("latency_ms") is not None
    alone = timed and not contended(split_flags(row.get("job_flags")))
    rate, stages = _stages(row["params"])
    values = {
        "label": label(row["method"], row["params"]),
        "method": row["method"],
        "device": row["device_name"],
        "model": row["model"],
        "setting": condition_key(row),
        "image_size": None if row.get("image_shape") else row.get("image_size"),
        "tokens": row["tokens"],
        "tokens_final": max(0, row["tokens_final"] - prefix),
        "keep_rate": rate,
        "stages": stages,
        "batch": row["batch_size"],
        "batch_counted": row["batch"] if timed else None,
        "latency_ms": row.get("latency_ms"),
        "throughput": row.get("throughput") if alone else None,
        "gmacs": row.get("gmacs_total") or None,
        "device_ms": row.get("device_latency_ms"),
        "peak_gflops": row.get("peak_gflops") if timed else None,
        "paired": row.get("paired") if timed else None,
        "no_effect": row.get("no_effect") if timed else None,
        "top1": row.get("top1"),
        "perplexity": row.get("perplexity"),
    }
    return Measurement.model_validate(
        {key: value for key, value in values.items() if value is not None}
    )


def _stages(params: str | None) -> tuple[float | None, int | None]:
    """Keep rate and stages of a method that has both and no rule of its own for how many tokens are
    left.
    """
    found = json.loads(params) if params else {}
    if (
        not isinstance(found, dict)
        or found.get("align") is not None
        or not isinstance(found.get("layers"), list)
    ):
        return None, None
    rate = found.get("keep_rate")
    return (
        (float(rate), len(found["layers"]))
        if isinstance(rate, int | float) and 0 < rate <= 1
        else (None, None)
    )
