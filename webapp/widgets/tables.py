"""Tables of points, as pages show them; what has a verdict has its tint."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape

import pandas as pd
import streamlit as st

from sweeps.model.metrics import METRICS
from sweeps.number_format import count, is_missing
from webapp.charts.points import with_links
from webapp.display import plain, texts
from webapp.display.columns import COLUMNS, ShownColumn, column_of

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
LEFT_OUT_IF_EQUAL = ("model", "host", "batch_size", "kv_cache", "against", "flags")
"""Columns of the tables that are left out where all values are equal."""
MAX_ROWS = 400
STYLE = (
    "<style>.grid{max-height:430px;overflow:auto}"
    ".arms{border-collapse:collapse;width:100%;font-size:.875rem}.arms th,.arms"
    " td{text-align:left;padding:5px 18px 5px 6px;border:0;border-bottom:1px solid"
    " rgba(128,133,145,.25);overflow-wrap:break-word;min-width:3.5rem}.arms thead"
    " th{font-weight:400;opacity:.75}.arms tbody"
    " th{font-weight:600;max-width:22rem}.arms"
    " img{display:block}@media(max-width:640px){.grid{max-height:75vh}.arms thead,.arms"
    " td:empty{display:none}.arms :is(tbody,tr,th,td){display:block;overflow-wrap:anywhere}.arms"
    " :is(th,td){max-width:none;border:0;padding:2px 6px}.arms tr{padding:8px 0;border-bottom:1px"
    ' solid rgba(128,133,145,.4)}.arms img{display:inline}.arms td:not([data-head=""])::before{'
    "content:attr(data-head);opacity:.75}.arms img,.arms td::before{margin-right:8px}}</style>"
)
"""In a narrow window each row is a block of lines, each cell with its head before it."""


def show_table(
    shown: pd.DataFrame,
    names: Iterable[str],
    may_be_equal: Collection[str] = (),
    label: str = "Arms",
) -> None:
    """These columns, but for those that are left out where all values are equal, with the links of
    rows that have one; speed-ups as exact as their intervals.
    """
    columns = {
        name: column_of(name) if {name} & (COLUMNS.keys() | METRICS) else ShownColumn(name)
        for name in names
        if name not in (*LEFT_OUT_IF_EQUAL, *may_be_equal) or shown[name].nunique() > 1
    }
    digits = max([texts.SHOWN.digits, *shown.get("digits", ())])
    rows = []
    for record in shown.to_dict("records"):
        look = f" style='background:{TINTS.get(record.get('verdict', ''), 'none')}'"
        cells = []
        for name, column in columns.items():
            value = record[name]
            plain_form = "{:,.4g}" if isinstance(value, float) else "{}"
            form = f"{{:.{digits}f}}×" if name == "speedup" else column.table_format or plain_form
            text = "–" if is_missing(value) else plain.name(form.format(value))
            cells.append(f"<td{look if name in JUDGED else ''}>{text}</td>")
        if address := record.get("href"):
            cells.append(f"<td>{plain.link('Evidence', address)}</td>")
        rows.append(cells)
    heads = {column.title: column.help or "" for column in columns.values()}
    st.html(grid_html(label, heads | ({"": ""} if "href" in shown else {}), rows))


def linked_table(data: pd.DataFrame) -> None:
    """The points of a chart, each with the link that it has there; columns that pages have no name
    for only where there is no other.
    """
    shown = with_links(data.head(MAX_ROWS))
    if set(shown) >= texts.REQUIRED_COLUMNS:
        shown = texts.with_enough_pairs(texts.with_words(shown))
        known = [name for name in POINT_COLUMNS if name in shown and shown[name].notna().any()]
        known = [name for name in known if name != "tokens" or "prompt_tokens" not in known]
    else:
        known = [name for name in map(str, shown) if name in COLUMNS or name in METRICS]
    show_table(shown, known or [name for name in map(str, shown) if name != "href"], label="Points")
    if len(data) > MAX_ROWS:
        plain.sentence(f"and {count(len(data) - MAX_ROWS, 'more row')}: CSV has all", "muted")


def grid_html(label: str, heads: Collection[str], rows: Iterable[Sequence[str]]) -> str:
    """A table that scrolls: heads as text, with the hover texts of a mapping; cells of HTML, with
    or without their tags.
    """
    hover: Mapping[str, str] = heads if isinstance(heads, Mapping) else {}
    head = "".join(
        f'<th scope=col title="{escape(hover.get(text, ""))}">{escape(text)}</th>' for text in heads
    )
    body = []
    for row in rows:
        cells = [cell if cell.startswith("<t") else f"<td>{cell}</td>" for cell in row]
        named = zip(heads, cells, strict=False)  # a row without a link has no last cell
        body.append(
            "".join(
                cell.replace("<td", f'<td data-head="{escape(head)}"', 1) for head, cell in named
            )
        )
    return (
        f'{STYLE}<div class=grid tabindex=0 role=region aria-label="{label}">'
        f"<table class=arms><thead><tr>{head}"
        f"</tr></thead><tbody><tr>{'</tr><tr>'.join(body)}</tr></tbody></table></div>"
    )
