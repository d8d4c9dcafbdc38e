"""Page: every sweep with its curves in small, its answer, its age, and what is new."""

import time
from html import escape

import streamlit as st

from sweeps.number_format import age, count, moment, seconds_at
from webapp import queries
from webapp.display import plain
from webapp.display.links import page_link
from webapp.widgets.answers import overview_image, overviews
from webapp.widgets.tables import grid_html

NEW_S = 7 * 86400
SIZE = (150, 54)


def _show() -> None:
    found, now = queries.measured_sweeps(), time.time()
    known = overviews(tuple(row["name"] for row in found))
    lines, new = [], []
    for row in found:
        name, submitted = row["name"], seconds_at(row["submitted_at"])
        overview = known.get(name)
        last = overview.measured_at if overview else submitted
        if now - max(last, submitted) < NEW_S:
            new.append(name)
        words = overview.headline if overview else "No speed-up was measured"
        lines.append(
            [
                overview_image(overview, SIZE) if overview else "",
                f"{plain.link(name, page_link('', sweep=name), 60)}<br>{escape(row['question'])}",
                f"<b>{escape(words)}</b>",
                f"{age(max(0.0, now - submitted))}<br>{moment(submitted)}",
                f"{moment(last)}{'<br><b>new</b>' if name in new else ''}",
            ]
        )
    plain.heading("What pays, by every sweep of this store?")
    plain.headline(f"{len(new)} of {count(len(found), 'sweep')} new in the last seven days")
    heads = ["speed-up", "sweep", "answer", "age", "last answer, UTC"]
    st.html(grid_html("Sweeps", heads, lines))


if __name__ == "__main__":
    _show()
