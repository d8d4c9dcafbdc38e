"""Rules on what a table records: accuracies against their sampling error, and rows that stand there twice."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from scipy.special import ndtri

from sweeps.audit.rule import Noticed
from sweeps.audit.tolerance import allowed, grouped, noise_of, place_of_row
from sweeps.references.measurement import Measurement, MeasurementTable

SAMPLING_CONFIDENCE = 0.95
MOST_PAIRS = 3
"""Pairs that are worked out in one finding."""
MEASURED = ("latency_ms", "throughput", "kernel_ms", "device_ms", "top1", "kl", "perplexity", "memory_mb")


def sampling_error(_: MeasurementTable, rows: Sequence[Measurement]) -> Iterator[Noticed]:
    """A difference of two accuracies is larger than the sampling error of the images that they are about.

    Source: two shares of n images differ by chance with a standard error of sqrt(p (1 - p) 2 / n) if images were drawn apart. On
    the same images the error is smaller: it follows from the images that only one of both has right, which a table does not hold.
    Cannot decide: whether such a paired test would find a difference.
    """
    width = float(-ndtri((1 - SAMPLING_CONFIDENCE) / 2))
    for group in grouped(rows, lambda row: (row.model, row.images, row.setting, row.image_size, row.tuned)).values():
        ranked = sorted(group, key=lambda row: row.top1 or 0.0)
        close = []
        for lower, higher in pairwise(ranked):
            share = ((lower.top1 or 0) + (higher.top1 or 0)) / 200
            error = 100 * math.sqrt(2 * share * (1 - share) / (higher.images or 1))
            difference = (higher.top1 or 0) - (lower.top1 or 0)
            if 0 < difference < width * error:
                close.append((lower, higher, difference, error))
        if close:
            shown = "; ".join(
                f"{_arm(higher)} {higher.top1:g} % and {_arm(lower)} {lower.top1:g} %: {difference:.2f} points are "
                f"{difference / error:.1f} standard errors of {error:.2f}"
                for lower, higher, difference, error in close[:MOST_PAIRS]
            )
            where = ", ".join(str(part) for part in (group[0].model, group[0].setting) if part)
            more = f"; and {len(close) - MOST_PAIRS} more pairs" if len(close) > MOST_PAIRS else ""
            found = {id(row): row for pair in close for row in pair[:2]}
            yield Noticed(
                "note",
                tuple(found.values()),
                f"{f'{where}: ' if where else ''}{shown}{more}, for {group[0].images:,} images drawn apart",
                "count the images that only one of both has right (McNemar's test)",
            )


def _arm(row: Measurement) -> str:
    """The label with what distinguishes arms of one label."""
    numbers = (("keep rate", row.keep_rate), ("r", row.r), ("sparsity", row.sparsity))
    return " ".join([row.label or row.method or "a row", *(f"{name} {value:g}" for name, value in numbers if value is not None)])


def duplicated_rows(table: MeasurementTable, rows: Sequence[Measurement]) -> Iterator[Noticed]:
    """A condition stands in the table once.

    Source: rows of one arm, condition and size are the same measurement. Cannot decide: which of two different ones counts; whether
    a copied number under another condition is a coincidence.
    """
    for group in grouped(rows, _condition).values():
        if len(group) < 2:
            continue
        noise = noise_of(table, group)
        apart = []
        for field in MEASURED:
            values = [value for row in group if (value := getattr(row, field)) is not None]
            if len(values) > 1 and max(values) > 0:
                ratio = math.log(max(values) / min(values)) if min(values) > 0 else math.inf
                timed = field in {"latency_ms", "throughput", "kernel_ms", "device_ms"}
                if ratio > (allowed((min(values), max(values)), noise, len(rows)) if timed else 0):
                    apart.append(f"{field} {min(values):g} and {max(values):g}")
        equal = all(row.model_dump(exclude={"note"}) == group[0].model_dump(exclude={"note"}) for row in group)
        if equal or apart:
            yield Noticed(
                "note" if equal else "doubtful",
                tuple(group),
                f"{place_of_row(group[0])} stands there {len(group)} times"
                + (", each time the same" if equal else f" with {'; '.join(apart)}"),
                "leave the copies out" if equal else "state what distinguishes the rows, or how they were averaged",
            )


def _condition(row: Measurement) -> str:
    """All that a row states but what was measured."""
    measured = {*MEASURED, "kernels", "speedup", "latency_change", "noise", "note", "counters", "batch_counted"}
    return row.model_dump_json(exclude=measured)
