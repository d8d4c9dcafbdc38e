"""Sweeps: how far each sweep is, and what failed for which reason."""

import streamlit as st

from webapp import filters, frames

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
    "submitted_at": st.column_config.DatetimeColumn("Submitted, UTC", format="YYYY-MM-DD HH:mm", timezone="UTC"),
    **{
        state: st.column_config.NumberColumn(label, help=words, format="%d", width="small")
        for state, (label, words) in COUNTS.items()
    },
}
FAILURES = {
    "method": st.column_config.TextColumn("Method"),
    "params": st.column_config.TextColumn("Parameters"),
    "model": st.column_config.TextColumn("Model"),
    "batch_size": st.column_config.NumberColumn("Batch", format="%d"),
    "image_size": st.column_config.NumberColumn("Image, px", format="%d"),
    "reason": st.column_config.TextColumn("Reason"),
    "message": st.column_config.TextColumn("Message", width="large"),
    "device_name": st.column_config.TextColumn("Device"),
    "at": st.column_config.TextColumn("When, UTC"),
}


@st.fragment(run_every=REFRESH_S)
def status(sweep: str) -> None:
    """The counts of one sweep, read anew every few seconds; nothing else on the page moves by itself."""
    counts = frames.sweeps().set_index("sweep").loc[sweep, list(frames.STATES)].astype(int).to_dict()
    for place, (state, (label, words)) in zip(st.columns(len(COUNTS)), COUNTS.items(), strict=True):
        place.metric(label, f"{counts[state]:,}", help=words, border=True)
    jobs = sum(counts.values())
    ended = jobs - counts["waiting"] - counts["running"]
    st.progress(
        ended / jobs if jobs else 1.0, text=f"{ended:,} of {jobs:,} jobs ended" if jobs else "Every question was answered already"
    )


found = frames.sweeps()
if found.empty:
    st.title("No sweeps yet", anchor=False)
    st.markdown("Run one, and it appears here while it runs:")
    st.code("breakeven run sweeps/quickstart.yaml", language="bash")
    st.stop()

heading, choice = st.columns([3, 1], vertical_alignment="bottom")
with choice:
    sweep = filters.choose_sweep(list(found["sweep"]))
heading.header(sweep, anchor=False)
status(sweep)

st.subheader("Failures", anchor=False)
failures = frames.failures(sweep)
if failures.empty:
    st.markdown("None.")
else:
    st.dataframe(
        failures.assign(at=failures["at"].str[:16].str.replace("T", " "))[list(FAILURES)], column_config=FAILURES, hide_index=True
    )

st.subheader("All sweeps", anchor=False)
st.dataframe(found.assign(state=found.apply(frames.state, axis=1))[list(LIST)], column_config=LIST, hide_index=True)
