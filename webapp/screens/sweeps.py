"""Sweeps: how far each sweep is, and what failed for which reason."""

from typing import Any

import pandas as pd
import streamlit as st

from webapp import filters, queries

REFRESH_S = 3
COUNTS = {
    "waiting": ("Waiting", "Jobs that have not started"),
    "running": ("Running", "Jobs at work now"),
    "done": ("Done", "Jobs with an answer"),
    "failed": ("Failed", "Jobs that ended without an answer; running the sweep again tries them again"),
}
LIST = {
    "sweep": st.column_config.TextColumn("Sweep"),
    "question": st.column_config.TextColumn("Question", width="large"),
    "state": st.column_config.TextColumn("State"),
    "comparisons": st.column_config.NumberColumn("Asked", help="Comparisons that the sweep asks for", format="%d"),
    "measured": st.column_config.NumberColumn("Measured", help="Comparisons with a speed-up", format="%d"),
    "failures": st.column_config.NumberColumn("Failures", help="Comparisons with a reason instead of a speed-up", format="%d"),
    "submitted_at": st.column_config.DatetimeColumn("Submitted, UTC", format="YYYY-MM-DD HH:mm", timezone="UTC"),
}
FAILURES = {
    "at": st.column_config.TextColumn("When, UTC"),
    "method": st.column_config.TextColumn("Method"),
    "params": st.column_config.TextColumn("Parameters"),
    "model": st.column_config.TextColumn("Model"),
    "batch_size": st.column_config.NumberColumn("Batch", format="%d"),
    "image_size": st.column_config.NumberColumn("Image, px", format="%d"),
    "prompt_tokens": st.column_config.NumberColumn("Prompt, tokens", format="%d"),
    "reason": st.column_config.TextColumn("Reason"),
    "message": st.column_config.TextColumn("Message"),
    "device_name": st.column_config.TextColumn("Device"),
}


def state(sweep: "pd.Series[Any]") -> str:
    """Where a sweep stands, in a word, from its jobs."""
    return next((word for word in ("running", "waiting", "failed") if sweep[word] > 0), "done")


@st.fragment(run_every=REFRESH_S)
def status(sweep: str) -> None:
    """The counts of one sweep, read anew every few seconds; nothing else on the page moves by itself."""
    counts = queries.sweeps().set_index("sweep").loc[sweep, list(queries.STATES)].astype(int).to_dict()
    for place, (name, (label, words)) in zip(st.columns(len(COUNTS)), COUNTS.items(), strict=True):
        place.metric(label, f"{counts[name]:,}", help=words, border=True)
    jobs = sum(counts.values())
    ended = jobs - counts["waiting"] - counts["running"]
    said = f"{ended:,} of {jobs:,} jobs ended" if jobs else "Every question was answered already"
    st.progress(ended / jobs if jobs else 1.0, text=said)


sweep = filters.chosen_sweep()
status(sweep)

st.subheader("Failures", anchor=False)
failures = queries.failures(sweep)
if failures.empty:
    st.markdown("None.")
else:
    minutes = failures["at"].str[:16].str.replace("T", " ")
    st.dataframe(failures.assign(at=minutes)[list(FAILURES)], column_config=FAILURES, hide_index=True)

st.subheader("All sweeps", anchor=False)
found = queries.sweeps()
st.dataframe(found.assign(state=found.apply(state, axis=1))[list(LIST)], column_config=LIST, hide_index=True)
