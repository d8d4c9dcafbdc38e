"""HTML of published pages: tables, charts and drawings. Every text is escaped; nothing is fetched
from elsewhere.
"""

import json
import math
import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from html import escape
from pathlib import Path
from string import Template
from typing import Any

import altair as alt

from store.rows.row_mapping import timestamp
from sweeps.number_format import moment
from webapp.charts.points import omit_empty_rows
from webapp.display.links import POINT_KEY

ASSETS = Path(__file__).with_name("assets")
TEMPLATES = ("page.html", "query.html", "card.md", "badge.svg")
"""Files of `ASSETS` that pages are made from; the others are published as they are."""


CELL_WORDS: dict[object, str] = {True: "yes", False: "no", None: ""}


def fill_template(name: str, **values: object) -> str:
    """One of `TEMPLATES` with these values, which are HTML."""
    return Template((ASSETS / name).read_text(encoding="utf-8")).substitute(values)


def page(title: str, body: Iterable[str], up: str = "") -> str:
    """A page; `up` leads from its folder to the root, such as `../../`."""
    return fill_template("page.html", title=escape(title), body="\n".join(body), up=up)


def text_table(heads: Sequence[str], rows: Iterable[Sequence[object]], raw: int = -1) -> str:
    """A table of texts; the cells of column `raw` are HTML. Empty without rows."""
    lines = [
        "".join(
            f"<td>{cell if at == raw else escape(str(CELL_WORDS.get(cell, cell)))}"
            for at, cell in enumerate(row)
        )
        for row in rows
    ]
    named = "".join(f"<th scope=col>{escape(head)}" for head in heads)
    return (
        "<div class=scroll tabindex=0 role=region aria-label=Table><table>"
        f"<thead><tr>{named}<tbody><tr>{'<tr>'.join(lines)}</table></div>"
        if lines
        else ""
    )


def fold(title: str, inner: str) -> str:
    """What a click or a key unfolds; empty without any."""
    return inner and f"<details><summary>{escape(title)}</summary>{inner}</details>"


def code_block(text: str) -> str:
    """Lines as they are."""
    return f"<pre tabindex=0>{escape(text)}</pre>"


def sweep_address(name: str, file: str = "index.html") -> str:
    """A file of a sweep, from the root: hosts take no other characters alike."""
    digest = sha256(name.encode()).hexdigest()[:6]
    folder = name if re.fullmatch(r"[\w-]{1,80}", name, re.ASCII) else f"sweep-{digest}"
    return f"sweeps/{folder}/{file}"


def point_address(comparison_id: str, environment: str, host: str) -> str:
    """The page of a point from the root, by the alias of its host."""
    return f"points/{comparison_id}-{environment[:6]}-{host.rpartition('-')[2] or 'any'}.html"


def chart(drawn: Any, description: str) -> str:
    """An Altair chart, which the browser draws, on a page two folders below the root; its points
    lead to their evidence.
    """
    omit_empty_rows(drawn)
    with alt.data_transformers.enable("default", max_rows=None):
        spec = drawn.to_dict(validate=False)
    for rows in spec["datasets"].values():
        for row in rows:
            if "href" in row:
                row["href"] = f"../../{point_address(*map(row.get, POINT_KEY))}"
            # numbers as exact as they are drawn, and none that is missing
            known = {key: cell for key, cell in row.items() if cell is not None and cell != ""}
            row.clear()
            row |= {k: float(f"{v:.6g}") if isinstance(v, float) else v for k, v in known.items()}
    # a name in the data cannot end the script
    text = json.dumps(spec, separators=(",", ":")).replace("<", "\\u003c")
    return (
        f'<figure class=chart role=group aria-label="{escape(description)}"><script'
        f' type="application/json">{text}</script></figure>'
    )


def dated(seconds: float) -> str:
    """A time, to which the browser adds the year and how long ago it is."""
    return f'<time datetime="{timestamp(seconds)}">{moment(seconds)}</time>'


def log_place(value: float, low: float, high: float, length: float) -> float:
    """Pixels from the upper end of a logarithmic axis; beyond it, its end."""
    return length * math.log(high / min(max(value, low), high)) / math.log(high / low)


def badge(left: str, right: str) -> str:
    """An SVG of two texts beside each other, such as `topk 0.5 | pays at 36 to 196 tokens`."""
    split, end = (round(6.9 * len(text)) + 14 for text in (left, right))
    places = {"split": split, "start": split + 7, "width": split + end}
    return fill_template("badge.svg", left=escape(left), right=escape(right), **places)
