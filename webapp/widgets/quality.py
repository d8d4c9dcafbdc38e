"""What the pages Accuracy and Language read and show alike: arms with their speed and quality, and
which of them no other surpasses.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from store.read.quality import (
    beside_controls,
    conclude_quality,
    join_quality,
    quality_metrics,
    quality_rows,
    states,
    with_controls,
    with_states,
)
from store.read.queries import panel_rows
from store.rows.frames import rows_of
from sweeps.analysis.advice import Figure, unsurpassed
from sweeps.analysis.labels import BITS, conclude_interval
from sweeps.analysis.rows import ConditionRow, JoinedQuality
from sweeps.model.kinds import KindSpec, Modality, kinds_of
from sweeps.model.metrics import METRICS, MetricSpec
from sweeps.text.effects import effect_word
from webapp.charts.points import Measure, with_links
from webapp.charts.quality import pareto_info
from webapp.display import plain, texts
from webapp.display.arm_style import arm_styles
from webapp.queries import Scope, kept
from webapp.widgets.chart_block import show_chart
from webapp.widgets.tables import show_table
from workers.methods import tuning_control

FRONT_NOTE = (
    "Filled: no other arm is at least as good by both and clearly better by one, by intervals that"
    " hold together with 95 %. Hollow: another is."
)
BASELINE_POINT = "unmodified model"
"""The baseline as a point of its own."""
CONDITION_COLUMNS = (
    *("against", "model", "image_size", "image_shape", "prompt_tokens", "batch_size"),
)
"""Columns of the table of speed and quality that are left out where all values are equal."""


@dataclass(frozen=True, kw_only=True)
class QualityOfPoint(JoinedQuality, texts.PointRow):
    """A point with the quality of its arm."""


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


def quality_metric(modality: Modality) -> tuple[KindSpec, MetricSpec]:
    """The metric that is compared by difference for models of a modality, with its kind."""
    (found,) = quality_metrics(kinds_of(modality)[0].name)
    return found


@kept
def models(engine: Any, sweep: str, modality: Modality) -> pd.DataFrame:
    """`model`, `weights` and `state` of the comparisons of quality that the sweep requests for
    models of a modality.
    """
    return states(engine, sweep, quality_metric(modality)[0].name)


@kept
def quality_of(
    engine: Any, sweep: str, modality: Modality, model: str, weights: str
) -> QualityOfArms:
    """The quality of the arms of a model, with where each comparison stands."""
    kind, spec = quality_metric(modality)
    fixed = {"kind": kind.name, "model": model, "weights": weights}
    effects = panel_rows(engine, sweep, "effect", fixed, {})
    stand = models(sweep, modality)
    own = stand[(stand["model"] == model) & (stand["weights"] == weights)]
    return QualityOfArms(kind, spec, effects, own, beside_controls(engine, sweep, tuning_control))


def with_quality_words(points: pd.DataFrame, quality: QualityOfArms) -> pd.DataFrame:
    """Rows of the view `speedup` with the newest quality of the same arm and baseline, in numbers
    and in words.

    Beside the columns of `join_quality`: `state` and `reason`, `loss_text` (numbers with interval),
    `quality_verdict` (a word), `worse`, `worse_low` and `worse_high` (by how much the arm is worse,
    as a number), `control_change`, and those of `webapp.display.texts.with_words`.
    """
    rows = quality_rows(quality.effects, quality.spec.name)
    found = with_controls(join_quality(with_states(points, quality.states), rows), quality.controls)
    judged = rows_of(found, QualityOfPoint)
    conclusions = [conclude_quality(row, quality.spec) for row in judged]
    numbers = {
        name: pd.Series(values, index=found.index, dtype=float)
        for name, values in (
            ("worse", [each.value for each in conclusions]),
            ("worse_low", [each.low for each in conclusions]),
            ("worse_high", [each.high for each in conclusions]),
        )
    }
    return texts.with_enough_pairs(texts.with_words(found)).assign(
        loss_text=[each.numbers for each in conclusions],
        quality_verdict=[effect_word(each) for each in conclusions],
        control_change=pd.Series(map(against_control, judged), index=found.index, dtype=object),
        **numbers,
    )


def against_control(row: QualityOfPoint) -> str | None:
    """A tuned arm against the control of its tuning; `None` for other arms."""
    if row.control is None:
        return None
    if row.change is None:
        return "control not measured"
    return texts.loss_phrase(conclude_interval(BITS, row.change, row.change_low, row.change_high))


def with_front(points: pd.DataFrame, measures: Sequence[Measure]) -> pd.DataFrame:
    """Points with `front`: whether no other surpasses them by these measures, whose intervals count
    where they are known; a figure without an interval is taken as exact.
    """
    figures: defaultdict[str, dict[tuple[str, str], Figure]] = defaultdict(dict)
    known = points.dropna(subset=[measure.column for measure in measures])
    for measure in measures:
        sign = 1 if measure.better == "higher" else -1  # so that more is better
        values = sign * known[measure.column].astype(float)
        ends = [sign * known[name].astype(float) for name in measure.interval if name in known]
        for place, value, *both in zip(known.index, values, *ends, strict=True):
            exact = not both or any(map(pd.isna, both))
            low, high = (value, value) if exact else sorted(both)
            figure = Figure(value, low, high, None if exact else measure.alpha)
            figures[str(place)][measure.column, ""] = figure
    front = set(unsurpassed(figures))
    return points.assign(front=[str(place) in front for place in points.index])


def data_text(row: ConditionRow) -> str:
    """The data of an evaluation: `digits`, `digits with fog, severity 3`."""
    if row.corruption is None:
        return str(row.data)
    return f"{row.data} with {row.corruption}, severity {row.severity}"


def beside_unmodified(points: pd.DataFrame, **values: float | None) -> pd.DataFrame:
    """Points, and one of the unmodified model with these values."""
    unmodified = pd.DataFrame([{"arm": BASELINE_POINT, "method": "dense", **values}])
    return pd.concat([points, unmodified], ignore_index=True)


def show_front(
    points: pd.DataFrame, x: Measure, y: Measure, name: str, scope_or_sweep: Scope | str
) -> None:
    """Arms by two figures, and which of them no other surpasses."""
    found = with_front(points, (x, y))
    colors = {name: style.color for name, style in arm_styles(found).items()}
    chart = pareto_info(with_links(found), x, y, colors=colors)
    answer = f"No arm surpasses {', '.join(found.loc[found['front'], 'arm'])}"
    show_chart(chart, name, found, scope_or_sweep, answer)
    plain.sentence(FRONT_NOTE, "muted")


def speed_and_quality(points: pd.DataFrame, spec: MetricSpec) -> None:
    """A table of `with_quality_words`: arms of one baseline together, those without quality
    last.
    """
    shown = points.assign(loss=points["loss_text"], unknown=points["worse"].isna())
    shown = shown.sort_values(["unknown", "against", "arm"])
    # metrics that are read for each item and not compared, but for margins, where less is a loss
    beside = [
        name
        for name, each in METRICS.items()
        if each.read == "item" and each.better and not name.startswith("margin")
    ]
    columns = dict.fromkeys(
        (
            *("arm", *CONDITION_COLUMNS, "speedup", "interval", "word", spec.name, "loss"),
            *beside,
            *("quality_verdict", "control_change"),
        )
    )
    known = [
        name
        for name in columns
        if name in shown and (name == "speedup" or shown[name].notna().any())
    ]
    show_table(shown, known, CONDITION_COLUMNS)
