"""The audit of a table: all rules on it, what they found, and which could not be applied; and our
own measurements as such a table, from the public views `arm`, `profile` and `kernel`.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from pydantic import Field

from sweeps.analysis.audit import comparisons, devices, records, throughput
from sweeps.analysis.audit.frame import (
    SEVERITIES,
    AuditFinding,
    AuditFrame,
    AuditRule,
    frame_of_table,
)
from sweeps.importers.measurement import Measurement, MeasurementTable
from sweeps.importers.traces import weighted_means
from sweeps.model.flags import contended, split_flags
from sweeps.model.identity import FrozenModel
from sweeps.model.profile import COUNTERS
from sweeps.number_format import count, is_missing
from sweeps.stats.visits import FLOOR

AUDIT_RULES: tuple[AuditRule, ...] = (
    AuditRule(
        throughput.throughput_times_latency,
        ("throughput", "latency_ms", "batch"),
        "rates of images beside a latency",
    ),
    AuditRule(
        throughput.flat_throughput,
        ("throughput", "latency_ms", "batch"),
        "a batch that grows four times",
    ),
    AuditRule(throughput.steady_state, ("throughput", "batch"), "two batch sizes of one arm"),
    AuditRule(throughput.counted_items, ("batch", "batch_counted"), "counted items"),
    AuditRule(devices.device_work, ("kernel_ms", "gmacs", "batch"), "two rows of one arm"),
    AuditRule(
        devices.device_within_wall,
        ("kernel_ms|device_ms", "forwards|device_ms", "latency_ms"),
        "the time of a whole forward",
    ),
    AuditRule(
        devices.totals_per_forward,
        ("kernel_ms", "latency_ms"),
        "totals beside the time of a whole forward",
    ),
    AuditRule(devices.profile_coverage, ("kernel_time_share",), "profiles"),
    AuditRule(devices.same_counters, ("counters",), "two arms or sizes"),
    AuditRule(
        devices.beyond_peak,
        ("gmacs", "peak_gflops|device", "throughput|latency_ms"),
        "a device whose peak is known",
    ),
    AuditRule(devices.beyond_memory, ("memory_mb", "device"), "a device whose memory is known"),
    AuditRule(records.catalogue_macs, ("gmacs", "model"), "an unmodified model of the catalogue"),
    AuditRule(
        records.tokens_of_size, ("tokens", "image_size", "model"), "a model whose patches are known"
    ),
    AuditRule(
        records.weights_in_memory,
        ("memory_mb", "model|parameters_m"),
        "a model whose weights are known",
    ),
    AuditRule(
        comparisons.beyond_macs,
        ("gmacs", "throughput|latency_ms|speedup"),
        "an arm whose only baseline has MACs",
        beside=("baseline",),
    ),
    AuditRule(
        comparisons.stated_ratio,
        ("speedup|latency_change",),
        "a ratio beside its rows, or two ratios",
    ),
    AuditRule(
        comparisons.break_even_without_data,
        ("tokens|image_size|batch|gmacs",),
        "an arm along the axis",
        beside=("break_evens",),
    ),
    AuditRule(
        comparisons.stage_tokens,
        ("tokens", "tokens_final", "keep_rate", "stages"),
        "several stages",
    ),
    AuditRule(
        throughput.time_of_sizes,
        ("tokens|image_size", "throughput|latency_ms"),
        "two sizes of the unmodified model",
        beside=("baseline",),
    ),
    AuditRule(throughput.nothing_removed, ("paired", "no_effect"), "an arm that removes nothing"),
    AuditRule(records.sampling_error, ("top1", "images"), "two accuracies of the same images"),
    AuditRule(records.possible_accuracy, ("top1", "images"), "an accuracy exact enough"),
    AuditRule(
        records.percentiles_in_order,
        ("latency_p95_ms|latency_p99_ms",),
        "two percentiles of a row (a latency that is not called a median is none)",
    ),
    AuditRule(
        records.duplicated_rows,
        ("throughput|latency_ms|kernel_ms|top1|perplexity|memory_mb",),
        "two rows",
    ),
)
"""All rules, in the order in which they are listed, with what each compares."""
OF_RATIOS = (
    "beyond_macs",
    "break_even_without_data",
    "stated_ratio",
    "percentiles_in_order",
    "duplicated_rows",
)
"""Rules that compare times with times alone, whatever their unit."""


class AuditReport(FrozenModel):
    """What an audit checked and found."""

    name: str
    rows: int
    findings: tuple[AuditFinding, ...]
    """Worst first."""
    applied: Mapping[str, int]
    """Comparisons that each rule made; those that made none are not among them."""
    not_applied: Mapping[str, str] = Field(default_factory=dict)
    """What the table lacks for each of the others."""
    notes: tuple[str, ...] = ()
    """What was inferred or assumed."""

    @property
    def contradictions(self) -> int:
        return sum(finding.severity == "contradiction" for finding in self.findings)

    @property
    def answer(self) -> str:
        """The answer in one sentence, after the name of what was audited."""
        applied = f"{count(self.rows, 'row')}, {count(len(self.applied), 'rule')}"
        if not self.applied:
            return f"no rule could be applied to {count(self.rows, 'row')}: nothing was checked"
        if not self.findings:
            return f"{applied} applied, nothing found"
        wrong, doubtful, notes = (
            sum(found.severity == severity for found in self.findings) for severity in SEVERITIES
        )
        words = (
            count(wrong, "contradiction") if wrong else "no contradiction",
            f"{doubtful} doubtful" if doubtful else "",
            count(notes, "note") if notes else "",
        )
        return (
            f"{', '.join(filter(None, words))} in {count(self.rows, 'row')}, by"
            f" {count(len(self.applied), 'rule')}"
        )


def audit_table(table: MeasurementTable | AuditFrame, notes: tuple[str, ...] = ()) -> AuditReport:
    """All rules on a table. A latency whose unit is not stated is taken for what its products with
    the throughput show.
    """
    frame = frame_of_table(table) if isinstance(table, MeasurementTable) else table
    inferred = throughput.inferred_latency(frame.with_units) if frame.latency is None else None
    if inferred is not None:
        frame = replace(frame, latency=inferred)
        notes = (
            *notes,
            "the latency is of a whole batch: throughput × latency is the batch size in every row",
        )
    elif frame.latency is None and (frame.stated("latency_ms") & (frame.column("batch") > 1)).any():
        notes = (
            *notes,
            (
                "what the latency is the time of (a batch or an image) is neither stated nor clear"
                " from the numbers"
            ),
        )
    applied: dict[str, int] = {}
    lacking: dict[str, str] = {}
    found: list[AuditFinding] = []
    with np.errstate(divide="ignore", invalid="ignore"):
        for rule in AUDIT_RULES:
            table_of_rule = frame if rule.name in OF_RATIOS else frame.with_units
            missing = rule.missing(table_of_rule) if frame.length else list(rule.needs)
            comparisons, noticed = (0, []) if missing else rule.apply(table_of_rule)
            if comparisons:
                applied[rule.name] = comparisons
                found += noticed
            else:
                lacking[rule.name] = ", ".join(missing) or rule.compares
    found.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    return AuditReport(
        name=frame.name,
        rows=frame.length,
        findings=tuple(found),
        applied=applied,
        not_applied=lacking,
        notes=notes,
    )


PASS_NOISE = 0.1
"""Relative standard deviation of a time beside one of another pass of the same job: a pair of
forwards on a shared CPU differs by 7 to 15 %, and throughput is measured in a pass of its own."""
SETTING_COLUMNS = (
    *("weights", "dtype", "attention", "runtime", "kv_cache", "threads", "wait_policy", "pinning"),
    *("inputs", "image_shape", "data", "corruption", "host", "x_axis", "fixed_values"),
)
BASELINE = "dense"


def measured_table(
    name: str, rows: Iterable[Mapping[str, Any]], label: Callable[[str, str], str]
) -> MeasurementTable:
    """The arms of a sweep, by the columns of the view `arm`; `label` gives the label of a method
    and its parameters (JSON).

    The throughput of a job beside other programs is left out: its pass may have had less of the
    cores than that of the latency. So are functions, of which no counts are known. A row may also
    have `peak_gflops`, the peak that was measured where the arm ran, and of its speed-up `paired`
    and `no_effect`.
    """
    known = [row for row in map(_known, rows) if row["tokens_final"] is not None]
    prefixes = {
        _place(row): row["tokens_final"] - row["tokens"]
        for row in known
        if row["method"] == BASELINE
    }
    found = [_measurement(row, label, prefixes.get(_place(row), 1)) for row in known]
    noise = {"noise": PASS_NOISE, "job_noise": FLOOR.sd}
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


_ARM = ("arm_id", "condition_id")


def profiled_rows(
    profiles: Iterable[Mapping[str, Any]],
    kernels: Iterable[Mapping[str, Any]],
    arms: Iterable[Mapping[str, Any]],
    label: Any,
) -> Iterator[tuple[str, Measurement]]:
    """The tool and a row for each profile, by rows of the views `profile` and `kernel`; `arms` are
    rows of the view `arm`.

    `label` gives the label of a method and its parameters (JSON). The time of the device (on a CPU:
    of operators) stands beside the wall of a forward without a profiler, that of the same arm as it
    was timed where the profile has none; on a GPU that of each kernel too, which profilers hardly
    lengthen, as they do operators.
    """
    timed = {tuple(row[name] for name in _ARM): row for row in map(_known, arms)}
    runs: dict[str, list[dict[str, Any]]] = {}
    for row in map(_known, kernels):
        runs.setdefault(row["profile_id"], []).append(row)
    classes: dict[str, list[dict[str, Any]]] = {}
    for row in map(_known, profiles):
        classes.setdefault(row["profile_id"], []).append(row)
    firsts = {
        profile_id: (classes.get(profile_id) or runs[profile_id])[0]
        for profile_id in dict.fromkeys((*classes, *runs))
    }
    walls = {
        _phase(row): {"wall_ms": row["wall_ms"]} for row in firsts.values() if row.get("wall_ms")
    }
    for profile_id, first in firsts.items():
        beside = {**timed.get(_phase(first)[:-1], {}), **walls.get(_phase(first), {})}
        row = {**beside, **{name: value for name, value in first.items() if value is not None}}
        yield (
            first["tool"],
            _profile_row(row, classes.get(profile_id, []), runs.get(profile_id, []), label),
        )


def _phase(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What profiles of one arm and phase have in common, by any tool."""
    return (*(row.get(name) for name in _ARM), row["phase"])


def _known(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: None if is_missing(value) else value for key, value in row.items()}


def _profile_row(
    row: dict[str, Any], classes: list[dict[str, Any]], runs: list[dict[str, Any]], label: Any
) -> Measurement:
    """`row` has the columns of the first row of a profile, and those of the timed arm where it has
    none.
    """
    of_gpu = row["tool"] != "torch" or row.get("device") == "cuda"
    busy_ms = sum(each["ms"] for each in classes if each["time_class"] == "device")
    # in the setting, so that profiles are compared with each other, and not with arms that were
    # only timed
    origin = f"profile by {row['tool']}{f' in {file}' if (file := row.get('file')) else ''}"
    values: dict[str, Any] = {
        "label": label(row["method"], row["params"])
        if row.get("method")
        else row.get("label") or row.get("side") or "profile",
        "method": row.get("method"),
        "device": row.get("device_name"),
        "model": row.get("model"),
        "setting": ", ".join(
            filter(
                None,
                (condition_key(row), origin, "" if row["phase"] == "forward" else row["phase"]),
            )
        ),
        "image_size": None if row.get("image_shape") else row.get("image_size"),
        "tokens": row.get("prompt_tokens"),
        "batch": row.get("batch_size"),
    }
    values |= {
        "latency_ms": row.get("wall_ms")
        or (row.get("latency_ms") if row["phase"] == "forward" else None),
        "device_ms": busy_ms,
    }
    if of_gpu:
        own = [run for run in runs if run["activity"] == "kernel"]
        values |= {
            "forwards": 1,
            "kernel_ms": sum(run["ms"] for run in own),
            "kernels": round(sum(run["count"] for run in own)),
            "kernel_time_share": row.get("kernel_time_share"),
            "counters": weighted_means([(run["ms"] or 0.0, _counters(run)) for run in own]),
            "gmacs": row.get("gmacs_total") if row["phase"] == "forward" else None,
            "peak_gflops": row.get("peak_gflops"),
        }
    return Measurement.model_validate(
        {key: value for key, value in values.items() if value not in (None, 0.0, {})}
    )


def _counters(run: Mapping[str, Any]) -> dict[str, float]:
    return {name: run[name] for name in COUNTERS if run.get(name) is not None}


def profile_notes(table: MeasurementTable) -> Iterator[str]:
    """How many profiles are among the rows of a table, by their tools."""
    if tools := table.tools:
        by_tool = ", ".join(f"{tools.count(tool)} by {tool}" for tool in sorted(set(tools)))
        yield f"{count(len(tools), 'profile')} among the rows: {by_tool}"
