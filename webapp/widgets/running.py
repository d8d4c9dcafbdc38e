"""A thin strip with how far the sweep of the page is while it runs, and about how long it will
take, kept up to date.
"""

import time
from html import escape

import streamlit as st

from store.errors import StoreError
from store.read import runs
from sweeps.number_format import age, count, duration
from webapp import queries
from webapp.display import plain
from webapp.widgets import filters

_REFRESH_S = 5
_LINE = "display:flex; gap:0.75rem; align-items:center; opacity:0.75; font-size:0.875rem"
_BAR = "flex:0 0 8rem; height:4px; border-radius:2px; background:rgba(128,133,145,.3)"


def progress_words(each: runs.RunProgress, now: float) -> list[str]:
    """What its jobs do; a run whose dispatcher gives no sign any more has no time left."""
    if each.stale(now):
        silent = age(each.silent_s(now) or 0.0)
        return [
            f"{count(each.running, 'job')} without a sign of the dispatcher for {silent}",
            "run the sweep again to go on",
        ]
    if not each.running:
        return ["no job runs"]
    return [] if each.left_s is None else [f"about {duration(each.left_s)} left"]


@st.fragment(run_every=_REFRESH_S)
def running_strip() -> None:
    """A line for each device on which the chosen sweep has jobs that run or wait; those of other
    sweeps are on the page Runs.
    """
    try:
        found = queries.kept(runs.run_progress, "run_progress")
    except StoreError as problem:
        plain.sentence(f"{problem}.", "muted")
        return
    for each in found:
        if each.sweep != filters.chosen_sweep():
            continue
        jobs = each.ended + each.running + each.waiting
        share = (
            f'<div style="width:{100 * each.ended / jobs:.0f}%; height:4px; border-radius:2px;'
            ' background:#1a70b8"></div>'
        )
        ended = f"{each.sweep} on {each.device}: {each.ended:,} of {count(jobs, 'job')} ended"
        text = escape("; ".join([ended, *progress_words(each, time.time())]))
        st.html(
            f'<div style="{_LINE}"><div style="{_BAR}">{share}</div><span'
            f' style="overflow-wrap:anywhere">{text}</span></div>'
        )
