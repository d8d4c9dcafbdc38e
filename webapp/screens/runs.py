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
from webapp.queries import kept
from webapp.widgets import filters
from webapp.widgets.words import ended_words, progress_words, run_progress

REFRESH_S = 3
MAX_CLASSES = 20  # classes of failures that are shown
_TEXT, _NUMBER = st.column_config.TextColumn, st.column_config.NumberColumn
SWEEPS = {
    "sweep": _TEXT("Sweep"),
    "state": _TEXT("State"),
    "comparisons": _NUMBER(
        "Requested", help="Comparisons that the sweep requests", format="localized"
    ),
    "measured": _NUMBER(
        "Measured", help="Comparisons with an answer that is no failure", format="localized"
    ),
    "failures": _NUMBER(
        "Failures", help="Comparisons with a reason instead of numbers", format="localized"
    ),
    "best": _NUMBER("Best speed-up", help="The largest that is clearly above 1", format="%.2f×"),
    "submitted_at": st.column_config.DatetimeColumn(
        "Submitted, UTC", format="YYYY-MM-DD HH:mm", timezone="UTC"
    ),
    "question": _TEXT("Question", width="large"),
}
NODES = {
    "device_name": _TEXT("Device"),
    "host": _TEXT("Host"),
    "seen": _TEXT("Last result", help="Since its newest attempt ended"),
    "attempts": _NUMBER("Attempts", help="Executions of jobs", format="localized"),
    "quarantined": _NUMBER(
        "Quarantined",
        help="Attempts while the machine was slowed: they count only where there is no other",
        format="localized",
    ),
    "flags": _TEXT("Flags", help="How many attempts have each", width="medium"),
    "calibrated": _TEXT(
        "Calibrated",
        help=(
            "By the newest `breakeven calibrate` of the environment; without one, intervals use a"
            " stated default"
        ),
    ),
    "gflops": _NUMBER("Peak, GFLOP/s", help="The largest that was measured", format="localized"),
    "gb_per_s": _NUMBER("Peak, GB/s", format="localized"),
    "environment": _TEXT("Environment"),
}


@kept
def failure_classes(engine: Any, sweep: str) -> list[runs.FailureClass]:
    """See `store.read.runs.failure_classes`."""
    return runs.failure_classes(engine, sweep)


@kept
def health(engine: Any) -> list[runs.Health]:
    """See `store.read.runs.health`."""
    return runs.health(engine)


@st.fragment(run_every=REFRESH_S)
def _in_progress() -> None:
    """What runs now, refreshed every few seconds; the rest of the page stays still."""
    found, now = run_progress(), time.time()
    if not found:
        plain.sentence("Nothing is waiting or running.", "muted")
    for each in found:
        silent, (ended, share) = each.silent_s(now), ended_words(each)
        sign = "" if silent is None else f"last sign of its dispatcher {age(silent)} ago"
        parts = [
            ended,
            f"{each.running:,} running, {each.waiting:,} waiting",
            *(progress_words(each, now) if each.running else []),
            sign or "no dispatcher holds a job",
        ]
        plain.sentence(", ".join(parts))
        st.progress(share)


def _state(sweep: "pd.Series[Any]", silent: Collection[str]) -> str:
    """The state of a sweep in a word, from the states of its jobs and its counts; `silent` are
    those without a dispatcher.
    """
    working = next((word for word in ("running", "waiting", "failed") if sweep[word] > 0), None)
    if working == "running" and sweep["sweep"] in silent:
        return "interrupted"
    return working or (
        "done" if sweep["measured"] + sweep["failures"] >= sweep["comparisons"] else "incomplete"
    )


def _sweep_table(found: pd.DataFrame) -> None:
    """All sweeps with their counts."""
    progress, now = run_progress(), time.time()
    alive = {each.sweep for each in progress if each.running and not each.stale(now)}
    silent = {each.sweep for each in progress if each.stale(now)} - alive
    shown = found.assign(state=[_state(row, silent) for _, row in found.iterrows()])
    st.dataframe(shown[list(SWEEPS)], column_config=SWEEPS, hide_index=True, placeholder="–")


def _failures(sweep: str) -> None:
    """Failures by reason and message, with the newest log of each, and the command that tries them
    again.
    """
    classes = failure_classes(sweep)
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


def _nodes() -> None:
    """Environments and hosts: when they were seen last, their flags, calibration and peaks."""
    rows, now = [], time.time()
    for each in health():
        calibrated = "stated default"
        if each.calibrated_at is not None:
            calibrated = f"{age(max(0.0, now - each.calibrated_at))} ago"
        flags = ", ".join(f"{name} {number:,}" for name, number in each.flags.items())
        seen = f"{age(max(0.0, now - each.seen_at))} ago"
        rows.append(
            each._asdict() | {"seen": seen, "flags": flags or None, "calibrated": calibrated}
        )
    frame = pd.DataFrame(rows, columns=list(NODES))
    known = [
        name for name in NODES if name not in {"gflops", "gb_per_s"} or frame[name].notna().any()
    ]
    st.dataframe(frame[known], column_config=NODES, hide_index=True, placeholder="–")


def _show() -> None:
    plain.heading("Runs")
    _in_progress()
    st.subheader("Sweeps", anchor=False)
    found = queries.sweeps()
    _sweep_table(found)
    names = list(found["sweep"])
    measured = (row["name"] for row in queries.measured_sweeps() if row["measured"])
    heading, choice = st.columns([3, 1], vertical_alignment="bottom")
    with choice:
        sweep, notes = filters.choose_sweep(names, next(measured, names[0]))
    with heading:
        st.subheader("Failures", anchor=False)
    for note in notes:
        plain.sentence(note, "muted")
    _failures(sweep)
    st.subheader("Nodes and devices", anchor=False)
    _nodes()


if __name__ == "__main__":
    _show()
