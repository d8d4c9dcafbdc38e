"""The audit of a table: all rules on it, what they found, and which could not be applied."""

from collections.abc import Mapping

from pydantic import Field

from sweeps.audit import batches, comparisons, device_time, records, sizes
from sweeps.audit.rule import SEVERITIES, AuditFinding, AuditRule
from sweeps.identity import FrozenModel
from sweeps.number_format import count
from sweeps.references.measurement import MeasurementTable

AUDIT_RULES: tuple[AuditRule, ...] = (
    AuditRule(batches.throughput_times_latency, ("throughput", "latency_ms", "batch")),
    AuditRule(batches.flat_throughput, ("throughput", "latency_ms", "batch")),
    AuditRule(batches.steady_state, ("throughput", "batch")),
    AuditRule(batches.counted_items, ("batch", "batch_counted")),
    AuditRule(device_time.device_work, ("kernel_ms", "gmacs", "batch")),
    AuditRule(device_time.device_within_wall, ("kernel_ms|device_ms", "forwards|device_ms", "latency_ms")),
    AuditRule(device_time.totals_per_forward, ("kernel_ms", "latency_ms")),
    AuditRule(device_time.profile_coverage, ("covered",)),
    AuditRule(device_time.beyond_peak, ("gmacs", "peak_gflops", "throughput|latency_ms")),
    AuditRule(comparisons.beyond_macs, ("gmacs", "throughput|latency_ms|speedup"), beside=("baseline",)),
    AuditRule(comparisons.stated_ratio, ("speedup|latency_change",)),
    AuditRule(comparisons.break_even_without_data, ("tokens|image_size|batch|gmacs",), beside=("break_evens",)),
    AuditRule(comparisons.stage_tokens, ("tokens", "tokens_final", "keep_rate", "stages")),
    AuditRule(sizes.time_of_sizes, ("tokens|image_size", "throughput|latency_ms"), beside=("baseline",)),
    AuditRule(sizes.nothing_removed, ("paired", "no_effect")),
    AuditRule(records.sampling_error, ("top1", "images")),
    AuditRule(records.duplicated_rows, ("throughput|latency_ms|kernel_ms|top1|perplexity|memory_mb",)),
)
"""All rules, in the order in which they are listed."""


class AuditReport(FrozenModel):
    """What an audit checked and found."""

    name: str
    rows: int
    findings: tuple[AuditFinding, ...]
    """Worst first."""
    applied: Mapping[str, int]
    """Rows that each rule was applied to."""
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
        if not self.findings:
            return f"{applied} applied, nothing found"
        by_severity = {word: sum(found.severity == word for found in self.findings) for word in SEVERITIES}
        words = [
            count(by_severity["contradiction"], "contradiction") if by_severity["contradiction"] else "no contradiction",
            *([f"{by_severity['doubtful']} doubtful"] if by_severity["doubtful"] else []),
            *([count(by_severity["note"], "note")] if by_severity["note"] else []),
        ]
        return f"{', '.join(words)} in {count(self.rows, 'row')}, by {count(len(self.applied), 'rule')}"


def audit_table(table: MeasurementTable, notes: tuple[str, ...] = ()) -> AuditReport:
    """All rules on a table. A latency whose unit is not stated is taken for what its products with the throughput show."""
    inferred = batches.inferred_latency(table) if table.latency is None else None
    if inferred is not None:
        table = table.model_copy(update={"latency": inferred})
        notes = (*notes, "the latency is of a whole batch: throughput × latency is the batch size in every row")
    elif table.latency is None and any(row.latency_ms and row.batch and row.batch > 1 for row in table.rows):
        notes = (*notes, "what the latency is the time of (a batch or an image) is neither stated nor clear from the numbers")
    lacking = {rule.name: rule.missing(table) for rule in AUDIT_RULES}
    found = [finding for rule in AUDIT_RULES for finding in rule.findings(table)]
    return AuditReport(
        name=table.name,
        rows=len(table.rows),
        findings=tuple(sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))),
        applied={rule.name: len(rule.rows_of_table(table)) for rule in AUDIT_RULES if not lacking[rule.name]},
        not_applied={name: ", ".join(fields) for name, fields in lacking.items() if fields},
        notes=notes,
    )
