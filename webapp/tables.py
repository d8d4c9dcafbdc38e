"""Tables of points and of quality beside speed, as pages show them."""

from collections.abc import Collection, Mapping, Sequence

import pandas as pd
import streamlit as st

from store.quality_join import conclude_quality, join_quality, quality_rows, with_controls, with_states
from sweeps.kinds import KindSpec, Payload
from sweeps.metrics import METRICS, MetricSpec
from webapp import queries, texts
from webapp.axis_curves import SIZES
from webapp.columns import column_of

POINT_COLUMNS = (
    *("arm", "against", "model", "host", "batch_size", "image_size", "prompt_tokens", "tokens", "new_tokens", "kv_cache"),
    *("gmacs_saved", "gmacs_baseline", "baseline_ms", "arm_ms", "speedup", "interval", "word", "pairs", "flags"),
)
QUALITY_COLUMNS = ("arm", "against", "model", "image_size", "prompt_tokens", "speedup")
ITEMS: Mapping[Payload, str] = {"predictions": "images", "text_scores": "windows of text"}
"""What a kind of job that is not timed reads."""
LEFT_OUT_IF_EQUAL = ("model", "host", "batch_size", "kv_cache", "against", "flags")
"""Columns of the tables that are left out where all values are equal."""


def point_table(points: pd.DataFrame) -> None:
    """The points as numbers, without empty columns."""
    shown = texts.with_words(points)
    known = [name for name in POINT_COLUMNS if name in shown.columns and (name == "flags" or shown[name].notna().any())]
    show_table(shown, [name for name in known if name != "tokens" or "prompt_tokens" not in known])


def show_table(shown: pd.DataFrame, names: Sequence[str], may_be_equal: Collection[str] = ()) -> None:
    """These columns, but for those that are left out where all values are equal; speed-ups as exact as their intervals."""
    formats = {"speedup": f"%.{max(texts.SHOWN.digits, *shown['digits'])}f×"}
    chosen = [name for name in names if name not in (*LEFT_OUT_IF_EQUAL, *may_be_equal) or shown[name].nunique() > 1]
    config = {}
    for name in chosen:
        column = column_of(name)
        form = formats.get(name, column.table_format)
        number = st.column_config.NumberColumn(column.title, format=form, help=column.help)
        config[name] = number if form else st.column_config.TextColumn(column.title, help=column.help)
    st.dataframe(shown[chosen], column_config=config, hide_index=True, placeholder="–")


def quality_table(points: pd.DataFrame, sweep: str, metric: str, kind: KindSpec, spec: MetricSpec) -> None:
    """Speed-up and change of a metric of each arm, if the sweep requests it; a state where there are no numbers."""
    found = with_states(points, queries.comparison_states(sweep, kind.name))
    if (found["state"] == "not requested").all():
        return
    effects = queries.view_rows(sweep, "effect")
    rows = quality_rows(effects[effects["kind"] == kind.name], spec.name)
    found = with_controls(join_quality(found, rows), queries.controls(sweep))
    st.subheader(f"Speed and {kind.name}", anchor=False)
    read = "" if found["n"].isna().all() else f" {spec.label.capitalize()} of {found['n'].max():,.0f} {ITEMS[kind.payload]}."
    st.caption(f"Speed-up: {METRICS[metric].label}.{read}")
    conclusions = [conclude_quality(row, spec) for row in found.itertuples()]
    shown = (
        texts.with_words(found)
        .assign(
            change=[conclusion.numbers for conclusion in conclusions],
            quality_verdict=[conclusion.word for conclusion in conclusions],
            control_change=pd.Series(map(texts.against_control, found.to_dict("records")), index=found.index).replace("", None),
        )
        .sort_values(["against", "arm"])
    )
    beside = [name for name, other in METRICS.items() if name in rows.columns and other.read == "item" and other.better]
    columns = [*QUALITY_COLUMNS, *dict.fromkeys((spec.name, "change", *beside)), "quality_verdict", "control_change"]
    known = [name for name in columns if name in shown and (name == "speedup" or shown[name].notna().any())]
    show_table(shown, known, SIZES)
