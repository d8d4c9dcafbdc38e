"""Tables of points, as pages show them; what has a verdict has its tint."""

from collections.abc import Collection, Iterable, Sequence
from html import escape
from typing import Any

import pandas as pd
import streamlit as st

from sweeps.model.metrics import METRICS
from sweeps.number_format import count, is_missing
from webapp.charts.points import with_links
from webapp.display import plain, texts
from webapp.display.columns import COLUMNS, column_of

POINT_COLUMNS = (
    "arm",
    "against",
    "model",
    "host",
    "batch_size",
    "image_size",
    "image_shape",
    "prompt_tokens",
    "tokens",
    "new_tokens",
    "kv_cache",
    "gmacs_saved",
    "gmacs_baseline",
    "baseline_ms",
    "arm_ms",
    "speedup",
    "interval",
    "word",
    "pairs",
    "flags",
)
JUDGED = ("speedup", "estimate", "interval", "word")
"""Columns that have the tint of the verdict."""
TINTS = {
    "faster": "rgba(26,112,184,.14)",
    "slower": "rgba(194,80,12,.16)",
    "unclear": "rgba(128,133,145,.12)",
}
"""Of cells by verdict, on both themes."""
LETTER_PX, WIDEST_PX = 8, 520
"""Pixels of a letter of an arm's label, which Streamlit would cut, and of the widest label."""
LEFT_OUT_IF_EQUAL = ("model", "host", "batch_size", "kv_cache", "against", "flags")
"""Columns of the tables that are left out where all values are equal."""
HEIGHT = 430
"""Pixels of a table of HTML, in which more rows are scrolled."""
MAX_ROWS = 400
STYLE = (
    "<style>.arms{border-collapse:collapse;width:100%;font-size:.875rem}.arms th,.arms"
    " td{text-align:left;padding:5px 18px 5px 6px;border:0;border-bottom:1px solid"
    " rgba(128,133,145,.25);overflow-wrap:anywhere}.arms thead"
    " th{font-weight:400;opacity:.75}.arms tbody th{font-weight:600;max-width:22rem}.arms"
    " img{display:block}</style>"
)


def show_table(
    shown: pd.DataFrame, names: Sequence[str], may_be_equal: Collection[str] = ()
) -> None:
    """These columns, but for those that are left out where all values are equal; speed-ups as exact
    as their intervals.
    """
    chosen, forms = _shown_columns(shown, names, may_be_equal)
    config = {}
    for name in chosen:
        column = column_of(name)
        if forms[name]:
            config[name] = st.column_config.NumberColumn(
                column.title, format=forms[name], help=column.help
            )
            continue
        width = None
        if name == "arm":
            width = min(LETTER_PX * max(map(len, shown[name])), WIDEST_PX)
        config[name] = st.column_config.TextColumn(column.title, help=column.help, width=width)
    tints = ("background-color:" + _verdicts(shown).map(TINTS)).fillna("")
    looks = pd.DataFrame({name: tints if name in JUDGED else "" for name in chosen}, shown.index)
    tinted = shown[chosen].style.apply(lambda _: looks, axis=None)
    st.dataframe(tinted, column_config=config, hide_index=True, placeholder="–")


def _verdicts(shown: pd.DataFrame) -> pd.Series:
    return shown.get("verdict", pd.Series("", shown.index))


def _shown_columns(
    shown: pd.DataFrame, names: Iterable[str], may_be_equal: Collection[str] = ()
) -> tuple[list[str], dict[str, str | None]]:
    """The columns that are shown, and the formats of those with numbers."""
    chosen = [
        name
        for name in names
        if name not in (*LEFT_OUT_IF_EQUAL, *may_be_equal) or shown[name].nunique() > 1
    ]
    forms = {name: column_of(name).table_format for name in chosen}
    if "speedup" in chosen:
        forms["speedup"] = f"%.{max([texts.SHOWN.digits, *shown.get('digits', ())])}f×"
    return chosen, forms


def linked_table(data: pd.DataFrame) -> None:
    """The points of a chart, each with the link that it has there; columns that pages have no name
    for only where there is no other.
    """
    shown = with_links(data.head(MAX_ROWS))
    if {"speedup", "verdict", "floor", "flags", "params"} <= set(shown):
        shown = texts.with_enough_pairs(texts.with_words(shown))
        known = [name for name in POINT_COLUMNS if name in shown and shown[name].notna().any()]
        known = [name for name in known if name != "tokens" or "prompt_tokens" not in known]
    else:
        known = [name for name in map(str, shown) if name in COLUMNS or name in METRICS]
    if known:
        chosen, forms = _shown_columns(shown, known)
    else:
        chosen = [name for name in map(str, shown) if name != "href"]
        forms = dict.fromkeys(chosen)
    rows = []
    for record, verdict in zip(shown.to_dict("records"), _verdicts(shown), strict=True):
        cells = []
        for name in chosen:
            look = TINTS.get(verdict, "none") if name in JUDGED else "none"
            cells.append(f"<td style='background:{look}'>{_cell(record[name], forms[name])}</td>")
        if address := record.get("href"):
            cells.append(f"<td>{plain.link('Evidence', address)}</td>")
        rows.append(cells)
    heads = [column_of(name).title if known else name for name in chosen]
    st.html(grid_html("Points", [*heads, ""], rows))
    if len(data) > MAX_ROWS:
        plain.sentence(f"and {count(len(data) - MAX_ROWS, 'more row')}: CSV has all", "muted")


def _cell(value: Any, form: str | None) -> str:
    if is_missing(value):
        return "–"
    if form == "percent":
        return f"{100 * value:.1f} %"
    return plain.name(form % value if form else str(value))


def grid_html(label: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table that scrolls: heads as text, cells of HTML, with or without their tags."""
    head = "".join(f"<th scope=col>{escape(text)}</th>" for text in heads)
    body = [
        "".join(cell if cell.startswith("<t") else f"<td>{cell}</td>" for cell in row)
        for row in rows
    ]
    return (
        f'{STYLE}<div tabindex=0 role=region aria-label="{label}"'
        f' style="max-height:{HEIGHT}px;overflow:auto"><table class=arms><thead><tr>{head}'
        f"</tr></thead><tbody><tr>{'</tr><tr>'.join(body)}</tr></tbody></table></div>"
    )
