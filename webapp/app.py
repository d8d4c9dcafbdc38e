"""The app: checks the store, chooses the sweep and the common filters, and runs the page."""

from pathlib import Path
from typing import Literal, NamedTuple

import streamlit as st

from store.errors import EmptyStoreError, StoreError
from webapp import filters, plain, queries


class Screen(NamedTuple):
    """A page: its script in `screens/`, its title, its address, and what is chosen above it."""

    script: str
    title: str
    path: str
    needs: Literal["store", "sweep", "scope"]
    """`store`: nothing is chosen; `sweep`: the sweep; `scope`: the sweep and the common filters."""


SCREENS = (
    Screen("answer", "Answer", "", "scope"),
    Screen("choose", "Choose", "choose", "store"),
    Screen("promise", "Promise", "promise", "scope"),
    Screen("explain", "Explain", "explain", "scope"),
    Screen("accuracy", "Accuracy", "accuracy", "sweep"),
    Screen("language", "Language", "language", "scope"),
    Screen("point", "Evidence", "point", "store"),
    Screen("compare", "Compare", "compare", "store"),
    Screen("runs", "Runs", "runs", "store"),
    Screen("sql", "SQL", "sql", "store"),
)


def _nothing(problem: str, *, known: bool) -> None:
    """In place of a page: what happened to the store, and what to do."""
    plain.heading("This store cannot be shown" if known else "Nothing to show yet")
    plain.sentence(problem)
    if not known:
        st.markdown("Measure your first break-even with one command; it takes about two minutes:")
        st.code("breakeven run sweeps/quickstart.yaml", language="bash")
    st.button("Look again", icon=":material/refresh:")


def _run(page: st.Page, needs: str) -> None:
    found = queries.measured_sweeps()
    if not found:
        _nothing("The store holds no sweep.", known=False)
        return
    if needs != "store":
        names = [row["name"] for row in found]
        default = next((row["name"] for row in found if row["measured"]), names[0])
        st.session_state["default_sweep"] = default
        heading, choice = st.columns([3, 1], vertical_alignment="bottom")
        with choice:
            sweep, notes = filters.choose_sweep(names, default)
        with heading:
            plain.heading(next(row["question"] for row in found if row["name"] == sweep) or sweep)
        for note in notes:
            plain.sentence(note, "muted")
        if needs == "scope":
            filters.choose_scope(sweep)
    page.run()


st.set_page_config(page_title="Breakeven", page_icon=str(Path(__file__).with_name("icon.svg")), layout="wide")
pages = {
    st.Page(f"screens/{screen.script}.py", title=screen.title, url_path=screen.path or None, default=not screen.path): screen
    for screen in SCREENS
}
st.html(plain.PAGE_STYLE)
page_shown = st.navigation(list(pages), position="top")
try:
    _run(page_shown, next(screen.needs for page, screen in pages.items() if page.url_path == page_shown.url_path))
except EmptyStoreError as problem:
    _nothing(f"{problem}.", known=False)
except StoreError as problem:
    _nothing(f"{problem}.", known="does not exist" not in str(problem))
