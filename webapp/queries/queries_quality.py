"""What the pages Accuracy and Language read beside the points of a scope: quality of a model's
arms, and arms by themselves.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from store.read.quality import beside_controls, quality_metrics, states
from store.read.queries import panel_rows
from sweeps.model.kinds import Modality, kinds_of
from sweeps.number_format import is_missing
from webapp.display.arm_style import QUALIFIERS, label_arms
from webapp.queries import kept
from webapp.queries.quality_frames import QualityOfArms
from workers.methods import tuning_control

_MODEL = ("model", "weights")


def models(sweep: str, modality: Modality, url: str | None = None) -> pd.DataFrame:
    """`model`, `weights` and `state` of the comparisons of quality that the sweep requests for
    models of a modality.
    """
    (kind,) = _kinds(modality)

    def read(engine: Any) -> pd.DataFrame:
        return states(engine, sweep, kind)

    return kept(read, "models", sweep, modality, url=url)


def _kinds(modality: Modality) -> list[Any]:
    (kind, _), *_ = quality_metrics(kinds_of(modality)[0].name)
    return [kind.name]


def quality_of(
    sweep: str, modality: Modality, model: Mapping[str, Any], url: str | None = None
) -> QualityOfArms:
    """The quality of the arms of a model (`model` and `weights`), with where each comparison
    stands.
    """
    ((kind, spec),) = quality_metrics(kinds_of(modality)[0].name)
    fixed = {"kind": kind.name, **{name: model[name] for name in _MODEL}}
    stand = models(sweep, modality, url)

    def read(engine: Any) -> QualityOfArms:
        effects = panel_rows(engine, sweep, "effect", fixed, {})
        own = stand[(stand["model"] == fixed["model"]) & (stand["weights"] == fixed["weights"])]
        return QualityOfArms(
            kind, spec, effects, own, beside_controls(engine, sweep, tuning_control)
        )

    return kept(read, "quality_of", sweep, modality, *fixed.values(), url=url)


def accuracies(sweep: str, model: Mapping[str, Any], url: str | None = None) -> pd.DataFrame:
    """Rows of the view `accuracy` of a model's arms, with `arm` and `against`."""
    ((kind, _),) = quality_metrics(kinds_of("vision")[0].name)
    fixed = {"kind": kind.name, **{name: model[name] for name in _MODEL}}

    def read(engine: Any) -> pd.DataFrame:
        rows = panel_rows(engine, sweep, "accuracy", fixed, {})
        missing = {name: None for name in QUALIFIERS if name not in rows}
        return label_arms(rows.assign(**missing), rows.iloc[:0].assign(**missing))[0]

    return kept(read, "accuracies", sweep, *fixed.values(), url=url).copy(deep=False)


def generation(sweep: str, fixed: Mapping[str, Any], url: str | None = None) -> pd.DataFrame:
    """Rows of the view `generation` with these values, each arm alone, with `arm` and
    `flags`.
    """

    def read(engine: Any) -> pd.DataFrame:
        rows = panel_rows(engine, sweep, "generation", fixed, {})
        flags = rows["arm_flags"].fillna("") + "," + rows["job_flags"].fillna("")
        named = rows.drop(columns="arm").assign(
            baseline="",
            baseline_id="",
            flags=[", ".join(filter(None, text.split(","))) for text in flags],
        )
        return label_arms(named, named.iloc[:0])[0]

    key = tuple((name, None if is_missing(value) else value) for name, value in fixed.items())
    return kept(read, "generation", sweep, key, url=url).copy(deep=False)
