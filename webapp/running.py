"""A thin strip with the sweeps that run now: how far they are and about how long they will take, kept up to date."""

from html import escape

import streamlit as st

from store import runs
from store.errors import StoreError
from sweeps.number_format import count, duration
from webapp import plain, queries

_REFRESH_S = 5
_LINE = "display:flex; gap:0.75rem; align-items:center; opacity:0.75; font-size:0.875rem"
_BAR = "flex:0 0 8rem; height:4px; border-radius:2px; background:rgba(128,133,145,.3)"


@st.fragment(run_every=_REFRESH_S)
def running_strip() -> None:
    """A line for each sweep and device with jobs that run or wait; nothing where there is none."""
    try:
        found = queries.kept(runs.run_progress, "run_progress")
    except StoreError as problem:
        plain.sentence(f"{problem}.", "muted")
        return
    for each in found:
        jobs = each.ended + each.running + each.waiting
        left = "" if each.left_s is None or not each.running else f", about {duration(each.left_s)} left"
        idle = "" if each.running else "; no job runs"
        share = f'<div style="width:{100 * each.ended / jobs:.0f}%; height:4px; border-radius:2px; background:#1a70b8"></div>'
        text = escape(f"{each.sweep} on {each.device}: {each.ended:,} of {count(jobs, 'job')} ended{left}{idle}")
        st.html(f'<div style="{_LINE}"><div style="{_BAR}">{share}</div><span style="overflow-wrap:anywhere">{text}</span></div>')
