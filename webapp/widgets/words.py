"""Words beside charts that several pages have: how far the sweep of the page is while it runs,
and what the words mean.
"""

import time
from contextlib import suppress
from html import escape
from typing import Any

import streamlit as st

from store.errors import StoreError
from store.read import runs
from sweeps.model.metrics import INTERVAL
from sweeps.number_format import age, count, duration
from webapp.display import plain
from webapp.queries import kept
from webapp.widgets import filters

_REFRESH_S = 5
_LINE = "display:flex; gap:0.75rem; align-items:center; opacity:0.75; font-size:0.875rem"
_BAR = "flex:0 0 8rem; height:4px; border-radius:2px; background:rgba(128,133,145,.3)"
MEANING = (
    "Arm: a method with its parameters, or the unmodified model in another runtime or type of"
    " numbers.\n"
    "Baseline: what an arm is compared with in pairs of runs; `dense` is the unmodified "
    "model.\n"
    "Pays from x on: every point from there is faster; `at most` and `at least` are bounds, "
    "where the points allow no more.\n"
    "Likely from: the likeliest place between two measured points, by the cost model (time: a"
    " fixed cost + a cost of work) where that fits; the claim is the bracket of the points.\n"
    "Not shown to pay: no point is faster, and none can gain more than 5 %.\n"
    "Cannot tell: the data do not decide; `run --refine` measures longer there, and adds "
    "sizes inside a bracket.\n"
    f"[low, high]: of speed-ups a {INTERVAL} interval; of break-evens one that is wrong for at"
    " most 1 curve in 20.\n"
    "Faster, slower: the whole interval is above, or below, 1; `same`: it lies within the "
    "grey band; `unclear`: neither.\n"
    "MACs: multiply-accumulates, of which papers call 1e9 a GFLOP; what they promise is the "
    "ratio of MACs.\n"
    "A control, a ceiling: arms that are not for use: a control drops tokens at random, a "
    "ceiling costs nothing by itself."
)
"""Of the words of the pages, a line each."""


@kept
def run_progress(engine: Any) -> list[runs.RunProgress]:
    """See `store.read.runs.run_progress`."""
    return list(runs.run_progress(engine))


def progress_words(each: runs.RunProgress, now: float) -> list[str]:
    """What its jobs do; a run whose dispatcher gives no sign any more has no time left."""
    if each.stale(now):
        silent = age(each.silent_s(now) or 0.0)
        return [f"no sign for {silent}", "run the sweep again to go on"]
    if not each.running:
        return ["no job runs"]
    return [] if each.left_s is None else [f"about {duration(each.left_s)} left"]


def ended_words(each: runs.RunProgress) -> tuple[str, float]:
    """How many jobs of a run ended, and their share."""
    jobs = each.ended + each.running + each.waiting
    words = f"{each.sweep} on {each.device}: {each.ended:,} of {count(jobs, 'job')} ended"
    return words, each.ended / jobs


@st.fragment(run_every=_REFRESH_S)
def show_running_sweeps() -> None:
    """A thin line for each device on which the chosen sweep has jobs that run or wait, kept up to
    date; those of other sweeps are on the page Runs.
    """
    try:
        found = run_progress()
    except StoreError as problem:
        plain.sentence(f"{problem}.", "muted")
        return
    for each in found:
        if each.sweep != filters.chosen_sweep():
            continue
        ended, share = ended_words(each)
        drawn = (
            f'<div style="width:{100 * share:.0f}%; height:4px; border-radius:2px;'
            ' background:#1a70b8"></div>'
        )
        text = escape("; ".join([ended, *progress_words(each, time.time())]))
        st.html(
            f'<div style="{_LINE}"><div style="{_BAR}">{drawn}</div><span'
            f' style="overflow-wrap:anywhere">{text}</span></div>'
        )


last_recorded_attempt = kept(runs.last_recorded_attempt)
"""See `store.read.runs.last_recorded_attempt`."""


@st.fragment(run_every=_REFRESH_S)
def show_whether_stale(shown: int) -> None:
    """A line once more was measured than the attempts up to `shown`, which the page shows, with a
    button that draws it anew: figures stay still while they are read.
    """
    with suppress(StoreError):
        if (more := last_recorded_attempt() - shown) > 0:
            with st.container(horizontal=True, vertical_alignment="center"):
                results = count(more, "more result")
                plain.sentence(f"{results} recorded since this page was drawn.", "strong")
                if st.button("Show all", key="newer", type="tertiary", icon=":material/refresh:"):
                    st.rerun()


def show_glossary() -> None:
    """What the words of the pages mean, in a box that is closed at first."""
    with st.expander("Words"):
        plain.sentence(MEANING)
