"""What a page shows, read from Streamlit's own test harness."""

import json
import re
from html import unescape
from typing import Any

import pandas as pd
from streamlit.testing.v1 import AppTest


def page_text(app: AppTest) -> str:
    """All words of a page, without tags."""
    kinds = (app.title, app.header, app.subheader, app.markdown, app.info, app.text, app.code)
    words = [
        str(getattr(element, "value", "") or element.proto.body)
        for kind in kinds
        for element in kind
    ]
    return " ".join([*words, *html_texts(app)])


def html_texts(app: AppTest) -> list[str]:
    """The text of each element made of HTML, a space instead of tags."""
    bodies = [re.sub("<style>.*?</style>", " ", element.proto.body) for element in app.get("html")]
    texts = [unescape(re.sub(" +", " ", re.sub("<[^>]*>", " ", body))).strip() for body in bodies]
    return [text for text in texts if text]


def cells(app: AppTest) -> dict[str, str]:
    """The sentence on the break-even of each arm in the table."""
    bodies = "".join(element.proto.body for element in app.get("html"))
    found = re.findall(r"<th scope=row>.*?</span> (.*?)</th>.*?<td[^>]* title=\"(.*?)\">", bodies)
    return {unescape(arm.partition(" <")[0]): unescape(text) for arm, text in found}


OPEN_TABLE = {"table-speedup-tokens": "true"}
"""Of the address of the page Answer: the table below its chart along tokens is open."""


def point_tables(app: AppTest, label: str = "Points") -> list[pd.DataFrame]:
    """The tables of this label, by default those that are open below charts, as they are shown."""
    return html_tables(app, f'aria-label="{label}"')


def html_tables(app: AppTest, mark: str = "<table") -> list[pd.DataFrame]:
    """The tables made of HTML that contains this mark, as they are shown."""
    found = []
    for element in app.get("html"):
        if mark in element.proto.body and "<table" in element.proto.body:
            heads, *rows = [
                [
                    unescape(re.sub("<[^>]*>", "", cell))
                    for cell in re.findall(r"<t[hd].*?</t[hd]>", row)
                ]
                for row in re.findall(r"<tr>.*?</tr>", element.proto.body)
            ]
            padded = [row + [""] * (len(heads) - len(row)) for row in rows]
            found.append(pd.DataFrame(padded, columns=heads))
    return found


def states(app: AppTest) -> dict[str, str]:
    """The state of each sweep by the cards of the page Runs."""
    bodies = "".join(element.proto.body for element in app.get("html"))
    return dict(re.findall(r"<h3[^>]*>(.*?): (\w+)</h3>", unescape(bodies)))


def charts(app: AppTest) -> list[dict[str, Any]]:
    """The Vega-Lite specs of all charts, from top to bottom."""
    return [json.loads(element.proto.spec) for element in app.get("vega_lite_chart")]
