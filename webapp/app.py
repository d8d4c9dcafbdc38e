"""The app: checks the store, chooses the sweep and the common filters, and runs the page."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

import streamlit as st

from store.errors import NoStoreError, StoreError
from webapp import queries
from webapp.display import plain
from webapp.widgets import address, filters, queueing, words


class Screen(NamedTuple):
    """A page: its script in `screens/`, its title, its address, and what is chosen above it."""

    script: str
    title: str
    path: str
    needs: Literal["queue", "store", "sweep", "scope"]
    """`queue`: no sweep that was measured; `store`: nothing is chosen; `sweep`: the sweep; `scope`:
    the sweep and the common filters."""
    question: str = ""
    """The title above a sweep's choices; empty: that of the sweep."""
    draws: tuple[Literal["charts", "tables"], ...] = ()
    """What is on it as soon as it opens."""


SCREENS = (
    Screen("home", "Home", "home", "store"),
    Screen("answer", "Answer", "", "scope", draws=("charts",)),
    Screen("choose", "Choose", "choose", "store", draws=("charts", "tables")),
    Screen(
        *("promise", "Promise", "promise", "scope"),
        "How much of what the MACs promise arrives?",
        ("charts",),
    ),
    Screen(
        *("explain", "Explain", "explain", "scope"),
        "Why is it faster, or not?",
        ("charts",),
    ),
    Screen(
        *("accuracy", "Accuracy", "accuracy", "sweep"),
        "What does it cost in accuracy?",
        ("charts", "tables"),
    ),
    Screen(
        *("language", "Language", "language", "scope"),
        "What does it gain and cost in a language model?",
        ("charts",),
    ),
    Screen("point", "Evidence", "point", "store", draws=("charts",)),
    Screen("compare", "Compare", "compare", "store"),
    Screen("history", "History", "history", "scope", "When did a speed-up move?", ("charts",)),
    Screen("runs", "Runs", "runs", "store"),
    Screen("sql", "SQL", "sql", "store", draws=("tables",)),
    *([Screen("submit", "Submit", "submit", "queue")] if queueing.submissions_allowed() else ()),
)


def _nothing(problem: str, *, known: bool) -> None:
    """Instead of a page: what happened to the store, and what to do."""
    plain.heading("This store cannot be shown" if known else "Nothing to show yet")
    plain.sentence(problem)
    if not known:
        st.markdown("Measure your first break-even with one command; it takes about two minutes:")
        plain.command("breakeven run quickstart")
    st.button("Look again", icon=":material/refresh:")


_SMALLEST = {"data": {"values": []}, "mark": "point", "width": 1, "height": 1}


@contextmanager
def _drawing_loaded(screen: Screen) -> Iterator[None]:
    """Has the browser fetch what draws charts and tables while the page reads the store, and not
    after it.
    """
    if "loaded" in st.session_state or not screen.draws:
        yield
        return
    st.session_state["loaded"] = True
    with st.container(key=plain.UNSEEN):
        places = {part: st.empty() for part in screen.draws}
    if "charts" in places:
        places["charts"].vega_lite_chart(_SMALLEST)
    if "tables" in places:
        places["tables"].dataframe([0])
    try:
        yield
    finally:
        for place in places.values():
            place.empty()


def _run(page: st.Page, screen: Screen) -> None:
    st.set_page_config(page_title=f"{page.title} · Breakeven")
    if screen.needs == "queue":
        page.run()
        return
    found = queries.measured_sweeps()
    if not found:
        _nothing("The store holds no sweep.", known=False)
        return
    if screen.needs != "store":
        names = [row["name"] for row in found]
        default = next((row["name"] for row in found if row["measured"]), names[0])
        heading = st.container()
        with st.container(
            key=plain.STICKY, horizontal=True, vertical_alignment="center", gap="small"
        ):
            sweep = filters.choose_sweep(names, default)
            st.set_page_config(page_title=f"{page.title} · {sweep}")
            with heading:
                question = next(row["question"] for row in found if row["name"] == sweep)
                plain.heading(screen.question or question or sweep, sweep)
            if screen.needs == "scope":
                filters.choose_scope(sweep)
    notes = st.container()
    with notes:
        words.show_whether_stale(words.last_recorded_attempt())
    page.run()
    with notes:
        if lines := address.refused(filters.PARAMETERS):
            plain.sentence("\n".join(lines), "muted")
    address.write_address()


st.set_page_config(
    page_title="Breakeven", page_icon=str(Path(__file__).with_name("icon.svg")), layout="wide"
)
pages = {
    st.Page(
        f"screens/{screen.script}.py",
        title=screen.title,
        url_path=screen.path or None,
        default=not screen.path,
    ): screen
    for screen in SCREENS
}
address.open_address()
st.html(plain.page_style(dark=st.context.theme.type == "dark"))
current_page = st.navigation(list(pages), position="top")
try:
    screen_shown = next(
        screen for page, screen in pages.items() if page.url_path == current_page.url_path
    )
    with _drawing_loaded(screen_shown):
        _run(current_page, screen_shown)
except NoStoreError as problem:
    _nothing(f"{problem}.", known=False)
except StoreError as problem:
    _nothing(f"{problem}.", known=True)
