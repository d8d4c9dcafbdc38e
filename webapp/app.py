"""The app: checks the store, chooses the sweep and the common filters, and runs the page."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

import streamlit as st

from store.errors import NoStoreError, StoreError
from webapp import queries
from webapp.display import plain
from webapp.widgets import filters


class Screen(NamedTuple):
    """A page: its script in `screens/`, its title, its address, and what is chosen above it."""

    script: str
    title: str
    path: str
    needs: Literal["store", "sweep", "scope"]
    """`store`: nothing is chosen; `sweep`: the sweep; `scope`: the sweep and the common filters."""
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
    Screen("point", "Evidence", "point", "store", draws=("charts", "tables")),
    Screen("compare", "Compare", "compare", "store"),
    Screen("runs", "Runs", "runs", "store", draws=("tables",)),
    Screen("sql", "SQL", "sql", "store", draws=("tables",)),
)


# Parameters of the address that are read without a widget.
UNBOUND = {
    *("sweep", "id", "environment", "host", "question", "metric", "panels", "by", "a", "b"),
    *(key for key, _ in (*filters.FILTERS.values(), *filters.ARMS.values())),
}
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
