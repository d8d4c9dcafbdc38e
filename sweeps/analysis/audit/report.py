"""The audit of a table: all rules on it, what they found, and which could not be applied."""

from collections.abc import Mapping
from dataclasses import replace

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
from sweeps.importers.measurement import MeasurementTable
from sweeps.model.identity import FrozenModel
from sweeps.number_format import count

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
        records.percentiles_in_order, ("latency_p95_ms|latency_p99_ms",), "two percentiles of a row"
    ),
    AuditRule(
        records.duplicated_rows,
        ("throughput|latency_ms|kernel_ms|top1|perplexity|memory_mb",),
        "two rows",
    ),
)
"""All rules, in the order in which they are listed, with what each compares."""


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
    inferred = throughput.inferred_latency(frame) if frame.latency is None else None
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
            missing = rule.missing(frame) if frame.length else list(rule.needs)
            checked = None if missing else rule.apply(frame)
            if checked is not None and checked.comparisons:
                applied[rule.name] = checked.comparisons
                found += rule.findings(frame, checked.found)
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
