"""Page: send a sweep file into the queue, once its plan is shown; with `--allow-submit` alone."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from sweeps.errors import UserError
from webapp.display import plain
from webapp.widgets import queueing

MAX_MB = 1  # of a sweep file


def _read_file() -> None:
    """Put the chosen file into the field."""
    if (file := st.session_state["sweep-file"]) is not None:
        st.session_state["sweep-text"] = file.getvalue().decode(errors="replace")


def _check(text: str) -> None:
    """Keep what was checked until the text changes."""
    st.session_state.pop("checked", None)
    try:
        st.session_state["checked"] = text, queueing.check_sweep(text)
    except UserError as problem:
        plain.sentence(str(problem), "strong")


def _offer(text: str, plan: Mapping[str, Any]) -> None:
    """The plan, and the button that queues it."""
    for line in (plan["text"], *(f"warning: {warning}" for warning in plan["warnings"])):
        plain.sentence(line)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        priority = int(
            st.number_input("Priority, larger first", value=0, key="priority", width=160)
        )
        by = st.text_input("Your name", key="by", width=240, max_chars=60)
        if st.button("Queue it", type="primary"):
            queueing.queue_sweep(plan["name"], text, priority=priority, by=by)
            del st.session_state["checked"]
            st.rerun()


def _show() -> None:
    plain.heading("Which sweep is to be measured?")
    st.file_uploader(
        *("A sweep file", ["yaml", "yml"]),
        key="sweep-file",
        max_upload_size=MAX_MB,
        on_change=_read_file,
    )
    text = st.text_area("Sweep", key="sweep-text", height=300, placeholder="schema: 1\nname: …")
    if st.button("Check") and text.strip():
        _check(text)
    checked, plan = st.session_state.get("checked", ("", None))
    if plan is not None and checked == text:
        _offer(text, plan)
    queueing.show_queue()


if __name__ == "__main__":
    _show()
