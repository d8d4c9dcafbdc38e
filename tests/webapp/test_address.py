"""Choices and the address of a page."""

from types import SimpleNamespace
from typing import Any

import pytest

from webapp.widgets import address


@pytest.mark.parametrize(
    ("name", "fragments", "kept"),
    [("size", [], True), ("size", ["clock"], False), ("table-a", ["table"], True)],
)
def test_a_fragment_changes_its_own_choices(
    name: str, fragments: list[str], kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that runs by a timer comes with what the browser has of the whole page, which may be an
    option that the page has no more.
    """
    context = SimpleNamespace(fragment_ids_this_run=fragments, is_history_navigation=False)
    written: dict[str, Any] = {}
    state = {"address": {"sweep": ["tiny"]}, name: "289 tokens"}
    monkeypatch.setattr(address, "st", SimpleNamespace(session_state=state))
    monkeypatch.setattr(address, "get_script_run_ctx", lambda: context)
    monkeypatch.setattr(address, "write_address", lambda: written.update(kept=state["address"]))
    arguments = address.widget(name, "289 tokens")
    state[name] = "289 tokens, 1"
    arguments["on_change"](*arguments["args"])
    assert (name in state["address"]) is kept
    assert bool(written) is (kept and bool(fragments))
