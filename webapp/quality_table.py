"""Table of speed and quality: each arm's speed-up beside the change of its quality, or why there is none."""

import pandas as pd

from webapp.quality_frames import QualityOfArms, figures_beside
from webapp.tables import show_table

TABLE_COLUMNS = ("arm", "against", "model", "image_size", "prompt_tokens", "batch_size", "speedup", "interval", "word")
EQUAL_LEFT_OUT = frozenset({"model", "host", "batch_size", "kv_cache", "against", "image_size", "prompt_tokens"})
"""Columns that are left out where all values are equal."""


def speed_and_quality(points: pd.DataFrame, quality: QualityOfArms) -> None:
    """Rows of `with_quality_words`, arms of one baseline together, those without quality last."""
    spec = quality.spec.name
    shown = points.assign(change=points["change_text"], unknown=points["worse"].isna())
    shown = shown.sort_values(["unknown", "against", "arm"])
    beside = [name for name in figures_beside(shown) if name != spec]
    columns = [*TABLE_COLUMNS, *dict.fromkeys((spec, "change", *beside)), "quality_verdict", "control_change"]
    known = [name for name in columns if name in shown and (name == "speedup" or shown[name].notna().any())]
    show_table(shown, known, EQUAL_LEFT_OUT)
