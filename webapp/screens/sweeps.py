"""Page: the progress of each sweep, and its failures with their reasons."""

from typing import Any

import pandas as pd
import streamlit as st

from webapp import filters, queries

REFRESH_S = 3
COUNTED = {
    "waiting": ("Waiting", "Jobs that have not started"),
    "running": ("Running", "Jobs that run now"),
    "done": ("Done", "Jobs with an answer"),
    "failed": ("Failed", "Jobs that ended without an answer; run the sweep again to retry them"),
}
LIST = {
    "sweep": st.column_config.TextColumn("Sweep"),
    "question": st.column_config.TextColumn("Question", width="large"),
    "state": st.column_config.TextColumn("State"),
    "comparisons": st.column_config.NumberColumn("Requested", help="Comparisons that the sweep requests", format="%d"),
    "measured": st.column_config.NumberColumn("Measured", help="Comparisons with a speed-up", format="%d"),
    "failures": st.column_config.NumberColumn("Failures", help="Comparisons with a reason instead of a speed-up", format="%d"),
    "submitted_at": st.column_config.DatetimeColumn("Submitted, UTC", format="YYYY-MM-DD HH:mm", timezone="UTC"),
}
FAILED = {
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
    """The state of a sweep in one word, from the states of its jobs."""
    return next((word for word in ("running", "waiting", "failed") if sweep[word] > 0), "done")


@st.fragment(run_every=REFRESH_S)
def status(sweep: str) -> None:
    """Job counts of one sweep, refreshed every few seconds; the rest of the page stays still."""
    counts = queries.sweeps().set_index("sweep").loc[sweep, list(queries.JOB_STATES)].astype(int).to_dict()
    for place, (name, (label, meaning)) in zip(st.columns(len(COUNTED)), COUNTED.items(), strict=True):
        place.metric(label, f"{counts[name]:,}", help=meaning, border=True)
    jobs = sum(counts.values())
    ended = jobs - counts["waiting"] - counts["running"]
    text = f"{ended:,} of {jobs:,} jobs ended" if jobs else "All comparisons were measured before"
    st.progress(ended / jobs if jobs else 1.0, text=text)


_sweep = filters.chosen_sweep()
status(_sweep)

st.subheader("Failures", anchor=False)
failures = queries.view_rows(_sweep, "failures").sort_values("at", ascending=False, kind="stable")
if failures.empty:
    st.markdown("None.")
else:
    minutes = failures["at"].str[:16].str.replace("T", " ")
    st.dataframe(failures.assign(at=minutes)[list(FAILED)], column_config=FAILED, hide_index=True)

st.subheader("All sweeps", anchor=False)
found = queries.sweeps()
st.dataframe(found.assign(state=found.apply(state, axis=1))[list(LIST)], column_config=LIST, hide_index=True)
