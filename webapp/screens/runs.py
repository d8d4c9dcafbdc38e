"""Page: sweeps and how far they are, failures by class with their logs, and the health of nodes and
devices.
"""

import time
from collections.abc import Collection
from typing import Any

import pandas as pd
import streamlit as st

from store.read import runs
from sweeps.number_format import age, count
from webapp import queries
from webapp.display import plain
from webapp.display.links import point_link
from webapp.widgets import filters
from webapp.widgets.running import progress_words

REFRESH_S = 3
MAX_CLASSES = 20  # classes of failures; a text below would be shown on the page
SWEEPS = {
    "sweep": st.column_config.TextColumn("Sweep"),
    "state": st.column_config.TextColumn("State"),
    "comparisons": st.column_config.NumberColumn(
        "Requested", help="Comparisons that the sweep requests", format="localized"
    ),
    "measured": st.column_config.NumberColumn(
        "Measured", help="Comparisons with an answer that is no failure", format="localized"
    ),
    "failures": st.column_config.NumberColumn(
        "Failures", help="Comparisons with a reason instead of numbers", format="localized"
    ),
    "best": st.column_config.NumberColumn(
        "Best speed-up", help="The largest that is clearly above 1", format="%.2f×"
    ),
    "submitted_at": st.column_config.DatetimeColumn(
        "Submitted, UTC", format="YYYY-MM-DD HH:mm", timezone="UTC"
    ),
    "question": st.column_config.TextColumn("Question", width="large"),
}
NODES = {
    "device_name": st.column_config.TextColumn("Device"),
    "host": st.column_config.TextColumn("Host"),
    "seen": st.column_config.TextColumn("Last result", help="Since its newest attempt ended"),
    "attempts": st.column_config.NumberColumn(
        "Attempts", help="Executions of jobs", format="localized"
    ),
    "quarantined": st.column_config.NumberColumn(
        "Quarantined",
        help="Attempts while the machine was slowed: they count only where there is no other",
        format="localized",
    ),
    "flags": st.column_config.TextColumn(
        "Flags", help="How many attempts have each", width="medium"
    ),
    "calibrated": st.column_config.TextColumn(
        "Calibrated",
        help=(
            "By the newest `breakeven calibrate` of the environment; without one, intervals use a"
            " stated default"
        ),
    ),
    "gflops": st.column_config.NumberColumn(
        "Peak, GFLOP/s", help="The largest that was measured", format="localized"
    ),
    "gb_per_s": st.column_config.NumberColumn("Peak, GB/s", format="localized"),
    "environment": st.column_config.TextColumn("Environment"),
}


@st.fragment(run_every=REFRESH_S)
def in_progress() -> None:
    """What runs now, refreshed every few seconds; the rest of the page stays still."""
    found, now = queries.kept(runs.run_progress, "run_progress"), time.time()
    if not found:
        plain.sentence("Nothing is waiting or running.", "muted")
    for each in found:
        jobs, silent = each.ended + each.running + each.waiting, each.silent_s(now)
        parts = [
            f"{each.sweep} on {each.device}: {each.ended:,} of {count(jobs, 'job')} ended",
            f"{each.running:,} running, {each.waiting:,} waiting",
            *(progress_words(each, now) if each.running else []),
            (
                "no dispatcher holds a job"
                if silent is None
                else f"last sign of its dispatcher {age(silent)} ago"
            ),
        ]
        plain.sentence(", ".join(filter(None, parts)))
        st.progress(each.ended / jobs)


def state(sweep: "pd.Series[Any]", silent: Collection[str]) -> str:
    """The state of a sweep in a word, from the states of its jobs and its counts; `silent` are
    those without a dispatcher.
    """
    working = next((word for word in ("running", "waiting", "failed") if sweep[word] > 0), None)
    if working == "running" and sweep["sweep"] in silent:
        return "interrupted"
    return working or (
        "done" if sweep["measured"] + sweep["failures"] >= sweep["comparisons"] else "incomplete"
    )


def sweep_table(found: pd.DataFrame) -> None:
    """All sweeps with their counts."""
    progress, now = queries.kept(runs.run_progress, "run_progress"), time.time()
    alive = {each.sweep for each in progress if each.running and not each.stale(now)}
    silent = {each.sweep for each in progress if each.stale(now)} - alive
    shown = found.assign(state=[state(row, silent) for _, row in found.iterrows()])
    st.dataframe(shown[list(SWEEPS)], column_config=SWEEPS, hide_index=True, placeholder="–")


def failures(sweep: str) -> None:
    """Failures by reason and message, with the newest log of each, and the command that tries them
    again.
    """
    classes = queries.kept(
        lambda engine: runs.failure_classes(engine, sweep), "failure_classes", sweep
    )
    if not classes:
        plain.sentence(f"No comparison of {sweep} failed.", "muted")
        return
    plain.sentence(
        "Unexpected errors are tried again by every run; other failures count as answers, which"
        " --remeasure measures anew."
    )
    plain.command(f"breakeven run {sweep} --remeasure --only failed")
    for each in classes[:MAX_CLASSES]:
        plain.sentence(f"{each.reason}: {count(each.comparisons, 'comparison')}", "strong")
        plain.sentence(each.message)
        ended = time.strftime("%Y-%m-%d %H:%M", time.gmtime(each.at))
        plain.sentence(
            f"{each.kind}; newest in attempt {each.attempt} on {each.host}, {ended} UTC", "muted"
        )
        links = [
            plain.link(key, point_link(key, each.environment, each.host)) for key in each.examples
        ]
        more = (
            f" and {each.comparisons - len(links):,} more" if each.comparisons > len(links) else ""
        )
        st.html(
            "<p style='margin: 0; overflow-wrap: anywhere'>Comparisons"
            f" {', '.join(links)}{more}</p>"
        )
        if each.detail:
            with st.expander("Log and traceback"):
                plain.text_block(each.detail)
    if len(classes) > MAX_CLASSES:
        plain.sentence(
            f"{len(classes) - MAX_CLASSES:,} more kinds of failures are in the view failures.",
            "muted",
        )


def nodes() -> None:
    """Environments and hosts: when they were seen last, their flags, calibration and peaks."""
    now = time.time()
    rows = [
        {
            **each._asdict(),
            "seen": f"{age(max(0.0, now - each.seen_at))} ago",
            "flags": ", ".join(f"{name} {number:,}" for name, number in each.flags.items()) or None,
            "calibrated": (
                "stated default"
                if each.calibrated_at is None
                else f"{age(max(0.0, now - each.calibrated_at))} ago"
            ),
        }
        for each in queries.kept(runs.health, "health")
    ]
    frame = pd.DataFrame(rows, columns=list(NODES))
    known = [
        name for name in NODES if name not in {"gflops", "gb_per_s"} or frame[name].notna().any()
    ]
    st.dataframe(frame[known], column_config=NODES, hide_index=True, placeholder="–")


plain.heading("Runs")
in_progress()
st.subheader("Sweeps", anchor=False)
_found = queries.sweeps()
sweep_table(_found)
_measured = next(
    (row["name"] for row in queries.measured_sweeps() if row["measured"]),
    str(_found["sweep"].iloc[0]),
)
_heading, _choice = st.columns([3, 1], vertical_alignment="bottom")
with _choice:
    _sweep, _notes = filters.choose_sweep(list(_found["sweep"]), _measured)
with _heading:
    st.subheader("Failures", anchor=False)
for _note in _notes:
    plain.sentence(_note, "muted")
failures(_sweep)
st.subheader("Nodes and devices", anchor=False)
nodes()
