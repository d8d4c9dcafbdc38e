"""Rule on hardware counters: they differ between arms and sizes."""

from collections.abc import Iterator

import numpy as np

from sweeps.analysis.audit.frame import AuditColumn, AuditFrame
from sweeps.analysis.audit.rule import Checked, MeasurementFinding
from sweeps.analysis.audit.tolerance import in_words, place_of_row
from sweeps.model.profile import COUNTERS

MIN_ROWS = 3
MIN_COUNTERS = 3
SAME_WITHIN = 0.015
"""Part by which all counters of two arms may differ and still count as the same."""


def same_counters(frame: AuditFrame, rows: AuditColumn) -> Checked:
    """Counters of a forward are not the same for every arm and size.

    Source: other tokens are other shapes, and other shapes other tiles, waves and hit rates; a
    counter that is the same to its last digit in `MIN_ROWS` rows, or all counters of an arm and its
    baseline within `SAME_WITHIN`, are of the same few kernels. Cannot decide: which kernels were
    profiled.
    """
    kinds = frame.codes(
        ("label", "method", "image_size", "tokens", "keep_rate", "r", "sparsity", "gmacs"), rows
    )
    _, first = np.unique(kinds, return_index=True)
    rows = rows[np.sort(first)]
    known = {name: frame.column(name)[rows] for name in COUNTERS if name in frame.values}
    frozen = []
    for name, values in known.items():
        own = values[~np.isnan(values)]
        if (
            len(own) >= MIN_ROWS
            and 0 < own[0] < 100
            and own[0] != round(own[0])
            and (own == own[0]).all()
        ):
            frozen.append(f"{name} is {own[0]:g} % in all of {len(own)} rows")
    columns = np.array([values for values in known.values() if not np.isnan(values).any()])
    alike = _alike(columns, frame, rows) if len(columns) >= MIN_COUNTERS else None

    def found() -> Iterator[MeasurementFinding]:
        facts = list(frozen)
        if alike is not None:
            one, other = (place_of_row(frame.row(int(rows[place]))) for place in alike)
            facts.append(
                f"all {len(columns)} counters of {one} and {other} are within"
                f" {100 * SAME_WITHIN:g} %"
            )
        if facts:
            fact = (
                f"{in_words(facts)}, whatever arm and size are: they are of kernels that both have"
                " in common"
            )
            wrong = rows if frozen else rows[list(alike or ())]
            yield MeasurementFinding(
                "doubtful",
                wrong,
                fact,
                "name the kernels, and profile all of one forward of each arm",
            )

    return Checked(len(rows) * len(known) if len(rows) > 1 else 0, found())


def _alike(columns: AuditColumn, frame: AuditFrame, rows: AuditColumn) -> tuple[int, int] | None:
    """The first two rows of different arms whose counters are all the same; neighbours by the first
    counter are compared.
    """
    arms = frame.codes(("label", "method"), rows)
    order = np.argsort(columns[0], kind="stable")
    one, other = order[:-1], order[1:]
    apart = np.abs(columns[:, one] - columns[:, other]).max(
        axis=0, initial=0, where=columns[:, one] == 0
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.nan_to_num(np.abs(np.log(columns[:, one] / columns[:, other])), nan=0.0).max(
            axis=0
        )
    same = np.flatnonzero((ratio <= SAME_WITHIN) & (apart == 0) & (arms[one] != arms[other]))
    return (int(one[same[0]]), int(other[same[0]])) if len(same) else None
