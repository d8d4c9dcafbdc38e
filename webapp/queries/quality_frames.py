"""Frames of the pages Accuracy and Language: arms with their speed and quality, and which of them
no other surpasses.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from store.read.quality import (
    conclude_quality,
    join_quality,
    quality_rows,
    with_controls,
    with_states,
)
from sweeps.analysis.advice import Figure, unsurpassed
from sweeps.model.kinds import KindSpec
from sweeps.model.metrics import METRICS, MetricSpec
from sweeps.number_format import image_text, is_missing
from webapp.charts.pareto import Measure
from webapp.display import texts
from webapp.queries.answers import data_text

FRONT_NOTE = (
    "Filled: no other arm is at least as good by both and clearly better by one, by intervals that"
    " hold together with 95 %. Hollow: another is."
)
BASELINE_POINT = "unmodified model"
"""The baseline as a point of its own."""


class QualityOfArms(NamedTuple):
    """How the change of a metric of quality belongs to arms."""

    kind: KindSpec
    spec: MetricSpec
    effects: pd.DataFrame
    """Rows of the view `effect` of this kind."""
    states: pd.DataFrame
    """Rows of `store.read.quality.states` of this kind."""
    controls: pd.DataFrame
    """Rows of `store.read.quality.beside_controls`."""


def with_quality_words(points: pd.DataFrame, quality: QualityOfArms) -> pd.DataFrame:
    """Rows of the view `speedup` with the newest quality of the same arm and baseline, in numbers
    and in words.

    Beside the columns of `join_quality`: `state` and `reason`, `loss_text` (numbers with interval),
    `quality_verdict` (a word), `worse`, `worse_low` and `worse_high` (by how much the arm is worse,
    as a number), `control_change`, and those of `webapp.display.texts.with_words`.
    """
    rows = quality_rows(quality.effects, quality.spec.name)
    found = with_controls(join_quality(with_states(points, quality.states), rows), quality.controls)
    conclusions = [conclude_quality(row, quality.spec) for row in found.itertuples()]
    return texts.with_enough_pairs(texts.with_words(found)).assign(
        loss_text=[each.numbers for each in conclusions],
        quality_verdict=[each.word for each in conclusions],
        worse=pd.Series([each.value for each in conclusions], index=found.index, dtype=float),
        worse_low=pd.Series([each.low for each in conclusions], index=found.index, dtype=float),
        worse_high=pd.Series([each.high for each in conclusions], index=found.index, dtype=float),
        control_change=pd.Series(
            map(texts.against_control, found.to_dict("records")), index=found.index
        ).replace("", None),
    )


def evaluation_text(row: Any) -> str:
    """What was classified: `digits, 32 px`, `digits with fog, severity 3, 32 px`."""
    return f"{data_text(row)}, {image_text(row.image_size, row.image_shape)}"


def with_front(points: pd.DataFrame, measures: Sequence[Measure]) -> pd.DataFrame:
    """Points with `front`: whether no other surpasses them by these measures, whose intervals count
    where they are known.
    """
    figures = {}
    for place, row in zip(points.index, points.to_dict("records"), strict=True):
        known = {
            measure.column: _signed(measure, row)
            for measure in measures
            if not is_missing(row.get(measure.column))
        }
        if len(known) == len(measures):
            figures[str(place)] = {(name, ""): ends for name, ends in known.items()}
    front = set(unsurpassed(figures))
    return points.assign(front=[str(place) in front for place in points.index])


def _signed(measure: Measure, row: Mapping[Any, Any]) -> Figure:
    """So that more is better; a figure without an interval is taken as exact."""
    value, known = (
        float(row[measure.column]),
        not any(is_missing(row.get(name)) for name in measure.ends),
    )
    low, high = (float(row[name]) for name in measure.ends) if known else (value, value)
    alpha = measure.alpha if known else None
    return (
        Figure(value, low, high, alpha)
        if measure.better == "higher"
        else Figure(-value, -high, -low, alpha)
    )


def beside_unmodified(points: pd.DataFrame, **values: float | None) -> pd.DataFrame:
    """Points, and one of the unmodified model with these values."""
    return pd.concat(
        [points, pd.DataFrame([{"arm": BASELINE_POINT, "method": "dense", **values}])],
        ignore_index=True,
    )


def figures_beside(rows: pd.DataFrame) -> list[str]:
    """Metrics that are read for each item and not compared, of which `rows` have columns."""
    return [
        name
        for name, other in METRICS.items()
        if name in rows.columns and other.read == "item" and other.better
    ]
