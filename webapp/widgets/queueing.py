"""All that the app writes: sweeps sent from a page into the queue, and what becomes of submissions;
refused unless the app was started with `--allow-submit`.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any

import streamlit as st

from store.errors import NoStoreError, StoreError
from store.open.engine import Engine, connect, disposing
from store.write import submissions
from store.write.submissions import Submission
from sweeps.language.expand import refuse_files
from sweeps.language.yaml_reader import read
from sweeps.number_format import moment
from webapp.display import plain
from webapp.queries import kept

FILE = "sweep.yaml"
"""What a sweep from a page is called in messages."""
PLAN_S = 60
"""A sweep that takes longer to plan is not queued from a page."""
REFRESH_S = 3
_opened = Event()
allow_submissions = _opened.set
"""Called once, by `breakeven app --allow-submit`, which also requires a token."""
submissions_allowed = _opened.is_set

open_submissions = kept(submissions.submissions)
"""Submissions that are queued, running or paused, in the order in which they run."""


def check_sweep(text: str) -> dict[str, Any]:
    """What `breakeven plan --format json` prints of a sweep, in a process of its own, since pages
    import no planner.

    Raises `SweepError` for one that names files of the server, and `StoreError` with the message of
    `breakeven plan` for what that refuses.
    """
    refuse_files(read(FILE, text))
    with TemporaryDirectory() as folder:
        path = Path(folder) / FILE
        path.write_text(text, encoding="utf-8")
        command = (sys.executable, "-P", "-m", "orchestrator", "plan", str(path))
        try:
            ended = subprocess.run(
                [*command, "--format", "json"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=PLAN_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            problem = f"{FILE}: planning it takes longer than {PLAN_S} s; submit it by: breakeven"
            raise StoreError(f"{problem} submit FILE") from None
        if ended.returncode:
            problem = ended.stderr.strip() or f"its plan ended with code {ended.returncode}"
            raise StoreError(problem.replace(f"{folder}/", "").removeprefix("breakeven: "))
    plan: dict[str, Any] = json.loads(ended.stdout)
    return plan


def queue_sweep(
    name: str, text: str, options: Sequence[str] = (), *, priority: int = 0, by: str = ""
) -> int:
    """Queue a sweep for `breakeven serve`. Returns its number. Raises `StoreError` where the app
    may not.
    """
    with _queue() as engine:
        return submissions.submit_to_queue(
            engine, name, text, options, priority=priority, by=sender(by)
        )


def change_submission(number: int, state: str) -> None:
    """Cancel, pause or resume a submission. Raises `StoreError` where that cannot be, or the app
    may not.
    """
    with _queue() as engine:
        submissions.change_state(engine, number, state, f"by {sender()}")


def sender(name: str = "") -> str:
    """Who sends something from the page, by the name given or the address."""
    return f"{name.strip() or st.context.ip_address or 'this machine'} (page)"


@contextmanager
def _queue() -> Iterator[Engine]:
    """The store, open for writing."""
    if not submissions_allowed():
        raise StoreError("this app only reads; `breakeven app --allow-submit` lets it submit")
    with disposing(connect()) as engine:
        yield engine


@st.fragment(run_every=REFRESH_S)
def show_queue() -> None:
    """The open submissions, kept up to date, each with what may become of it where the app may
    change that.
    """
    try:
        shown = open_submissions()
    except NoStoreError:
        return  # the first submission makes one
    for found in shown:
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            _show_submission(found)


def _show_submission(found: Submission) -> None:
    words = (
        f"priority {found.priority}",
        f"by {found.submitted_by}",
        f"submitted {moment(found.submitted_at)}",
        found.why,
    )
    plain.sentence(f"{found.id} {found.name}: {found.state}\n{' · '.join(filter(None, words))}")
    if not submissions_allowed():
        return
    pause = ("Resume", "queued") if found.state == "paused" else ("Pause", "paused")
    chosen = [pause[1]] if st.button(pause[0], key=f"{pause[0]}-{found.id}") else []
    with st.popover("Cancel", key=f"ask-{found.id}"):
        if st.button(f"Cancel {found.id} {found.name}", key=f"Cancel-{found.id}"):
            chosen.append("cancelled")
    for state in chosen:
        try:
            change_submission(found.id, state)
        except StoreError as problem:
            plain.sentence(f"{problem}.")
        else:
            st.rerun(scope="fragment")
