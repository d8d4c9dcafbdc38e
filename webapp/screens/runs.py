"""Page: a card for each sweep with how far it is, failures by class with their logs, and the health
of nodes and devices.
"""

import time
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import streamlit as st

from store.read import runs
from sweeps.number_format import age, count, duration, image_text, moment, seconds_at
from webapp import queries
from webapp.display import plain
from webapp.display.links import page_link, point_link
from webapp.queries import kept
from webapp.widgets import filters, queueing
from webapp.widgets.answers import Overview, overview_image, overviews
from webapp.widgets.tables import grid_html
from webapp.widgets.words import ended_words, progress_words, run_progress
from workers.methods.arm_labels import params_label

MAX_CURVES = 20  # cards with curves
QUIET = 'style="opacity:.75;font-size:.875rem"'
MARK = "display:inline-block;width:10px;height:10px;"
MAX_CLASSES = 20  # classes of failures that are shown
CURVES = (240, 72)  # pixels of the curves of a sweep
# of the bar of a sweep: what the comparisons of each colour are
COLORS = {
    "answered": "#1a70b8",
    "unclear": "#808591",
    "insufficient": "#cf7c28",
    "failed": "#b3261e",
    "waiting": "rgba(128,133,145,.3)",
}
NODES = (
    *("device", "host", "last result", "attempts", "quarantined", "flags", "calibrated"),
    *("peak, GFLOP/s", "peak, GB/s", "environment"),
)


# See `store.read.runs.failure_classes`.
failure_classes = kept(runs.failure_classes)


# See `store.read.runs.health`.
health = kept(runs.health)


def counts_of(sweep: Mapping[str, Any]) -> dict[str, int]:
    """How many comparisons of a sweep each colour of its bar stands for; no job waits for those
    that are `unanswered`.
    """
    measured, failed = sweep["measured"], sweep["failures"]
    undecided = {name: sweep[name] for name in ("unclear", "insufficient")}
    rest = "waiting" if sweep["waiting"] + sweep["running"] else "unanswered"
    return {
        "answered": measured - sum(undecided.values()),
        **undecided,
        "failed": failed,
        rest: sweep["comparisons"] - measured - failed,
    }


def state_of(sweep: Mapping[str, Any], jobs: Sequence[runs.RunProgress], now: float) -> str:
    """The state of a sweep in a word, from the states of its jobs and its counts."""
    running = [each for each in jobs if each.running]
    if running and all(each.stale(now) for each in running):
        return "interrupted"
    for word in ("running", "waiting"):
        if sweep[word]:
            return word
    return "incomplete" if counts_of(sweep).get("unanswered") else "done"


@st.fragment(run_every=queueing.REFRESH_S)
def _cards() -> None:
    """A card for each sweep, those with open jobs first, kept up to date; the rest of the page
    stays still.
    """
    now, jobs = time.time(), run_progress()
    if not jobs and not queueing.open_submissions():
        plain.sentence("Nothing is waiting or running.", "muted")
    found = sorted(queries.sweeps(), key=lambda sweep: not sweep["waiting"] + sweep["running"])
    shown = tuple(sweep["name"] for sweep in found[:MAX_CURVES])
    known = overviews(shown)
    for sweep in found:
        own = [each for each in jobs if each.sweep == sweep["name"]]
        with st.container(border=True):
            _card(sweep, own, known.get(sweep["name"]), now)


def _log_line(line: runs.LogLine) -> str:
    words = f"{moment(line.ended_at)}  {line.job}, {duration(line.seconds)}"
    return f"{words}; {line.flags}" if line.flags else words


def _card(
    sweep: Mapping[str, Any],
    jobs: Sequence[runs.RunProgress],
    known: Overview | None,
    now: float,
) -> None:
    name, counts = sweep["name"], {word: n for word, n in counts_of(sweep).items() if n}
    submitted = moment(seconds_at(sweep["submitted_at"]))
    bar, key = [], []
    for word, number in counts.items():
        color = COLORS.get(word, COLORS["waiting"])
        bar.append(f'<div style="flex:{number} 0 2px;background:{color}"></div>')
        mark = f'<span style="{MARK}background:{color}"></span>'
        key.append(f"<span>{mark} {number:,} {word}</span>")
    lines = []
    for each in jobs:
        holder = []
        if each.began_at is not None:
            host, _, process = each.owner.partition(":")
            by = f"process {process.partition(':')[0]}"
            holder = [f"{by} holds {host.partition('/')[0]} since {moment(each.began_at)}"]
        states = f"{each.running:,} running, {each.waiting:,} waiting"
        words = [ended_words(each)[0], states, *holder, *progress_words(each, now)]
        lines.append(f"<div>{escape(' · '.join(words))}</div>")
        lines += [f"<div {QUIET}>{escape(text)}</div>" for text in map(_log_line, each.visits)]
    best = plain.link(known.headline, page_link("", sweep=name)) if known else "No speed-up yet"
    st.html(
        f'<div style="display:flex;flex-wrap:wrap;gap:.5rem 1.5rem;overflow-wrap:anywhere">'
        f'<div style="flex:1 1 15rem">'
        f"<h3 style='font-size:1rem;padding:0'>{escape(name)}: {state_of(sweep, jobs, now)}</h3>"
        f"<div>{best}</div>"
        f'<div style="display:flex;height:10px;margin:.5rem 0">{"".join(bar)}</div>'
        f'<div style="display:flex;flex-wrap:wrap;gap:0 1rem">{"".join(key)}'
        f"<span {QUIET}>submitted {submitted}</span></div>{''.join(lines)}</div>"
        f"<div>{overview_image(known, CURVES) if known else ''}</div></div>"
    )


def _failed(row: Mapping[str, Any]) -> str:
    """Arm and condition of a comparison that failed."""
    size = (
        f"{row['prompt_tokens']} token{'' if row['prompt_tokens'] == 1 else 's'}"
        if row["prompt_tokens"]
        else ""
    )
    if row["image_size"]:
        size = image_text(row["image_size"], row["image_shape"])
    arm = params_label(row["method"], row["params"])
    return f"{arm} · {row['model']} · {size} · batch {row['batch_size']} · {row['runtime']}"


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
    if queueing.submissions_allowed() and st.button("Queue the failed ones again"):
        text = queries.find_sweep(sweep)["text"]
        number = queueing.queue_sweep(sweep, text, ["--remeasure", "--only", "failed"])
        plain.sentence(f"{number} {sweep}: queued, priority 0")
    for each in classes[:MAX_CLASSES]:
        plain.sentence(f"{each.reason}: {count(each.comparisons, 'comparison')}", "strong")
        plain.sentence(each.message)
        newest = f"newest in attempt {each.attempt} on {each.host}, {moment(each.at)} UTC"
        plain.sentence(f"{each.kind}; {newest}", "muted")
        links = [
            plain.link(_failed(row), point_link(row["comparison_id"], each.environment, each.host))
            for row in each.examples
        ]
        more = (
            f" and {each.comparisons - len(links):,} more" if each.comparisons > len(links) else ""
        )
        st.html(f"<p style='margin: 0; overflow-wrap: anywhere'>{'<br>'.join(links)}{more}</p>")
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
        counts = (f"{each.attempts:,}", f"{each.quarantined:,}")
        peaks = ["–" if one is None else f"{one:,.0f}" for one in (each.gflops, each.gb_per_s)]
        cells = (each.device_name, each.host, seen, *counts, flags or "–", calibrated, *peaks)
        rows.append([plain.name(cell) for cell in (*cells, each.environment)])
    st.html(grid_html("Nodes", NODES, rows))


def _show() -> None:
    plain.heading("What runs, and what is still open?")
    queueing.show_queue()
    _cards()
    listed = queries.measured_sweeps()
    names = [row["name"] for row in listed]
    measured = (row["name"] for row in listed if row["measured"])
    heading, choice = st.columns([3, 1], vertical_alignment="bottom")
    with choice:
        sweep = filters.choose_sweep(names, next(measured, names[0]))
    with heading:
        st.subheader("Failures", anchor=False)
    _failures(sweep)
    st.subheader("Nodes and devices", anchor=False)
    _nodes()


if __name__ == "__main__":
    _show()
