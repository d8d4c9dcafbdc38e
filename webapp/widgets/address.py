"""The address of a page: every choice as a query parameter, so that a link, a reload and Back show
the same; nothing else reads or writes it.

The session keeps the address. The one of the browser is read where a session begins and where Back
or Forward leads; it is written once, at the end of a run. A choice that a page does not offer is
left out of it, those of other pages stay.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, TypeVar

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

_Default = TypeVar("_Default", str, str | None)
NAMES = (
    *("sweep", "arm", "arms", "axis", "flagged", "references", "id", "environment", "host"),
    *("question", "by", "a", "b", "of", "sort", "find", "sql", "device", "tokens", "max_drop"),
    *("condition", "every", "down", "across", "size", "more", "profile", "x", "figure", "beside"),
    *("images", "prompt", "table"),
)
"""Parameters of pages, besides those of the common filters; `table` begins that of an open one."""
_KEPT, _OPENED, _SHOWN = "address", "address opened", "address shown"


def open_address() -> None:
    """Called first in each run, before the page is known to the browser."""
    context = get_script_run_ctx()
    if _KEPT not in st.session_state or (context and context.is_history_navigation):
        st.session_state[_KEPT] = given = {
            name: st.query_params.get_all(name) for name in st.query_params
        }
        st.session_state.setdefault(_OPENED, dict(given))
    if not st.query_params:  # left out by the navigation, which adds what is written now
        write_address()


def write_address() -> None:
    """Called last in each run."""
    if _kept() != {name: st.query_params.get_all(name) for name in st.query_params}:
        st.query_params.from_dict(_kept())


def _kept() -> dict[str, list[str]]:
    kept: dict[str, list[str]] = st.session_state[_KEPT]
    return kept


def asked(name: str) -> Sequence[str]:
    """The values of a parameter."""
    return _kept().get(name, ())


def put(name: str, *values: str) -> None:
    """Let a parameter have these values; without any it is left out."""
    if values:
        _kept()[name] = list(values)
    else:
        _kept().pop(name, None)


def one_of(name: str, options: Collection[str], default: _Default) -> str | _Default:
    """The value of a parameter where it is among the options, else the default, which takes the
    place of another value.
    """
    for value in asked(name)[-1:]:
        if value in options:
            return value
        put(name, *filter(None, [default]))
    return default


def widget(name: str, value: Any, default: Any = None) -> dict[str, Any]:
    """Arguments of the widget that shows the value of a parameter and changes it; the default is
    left out of the address.
    """
    if st.session_state.get(name) != value:
        st.session_state[name] = value
    return {"key": name, "on_change": _choose, "args": (name, value, default)}


def _choose(name: str, shown: Any, default: Any) -> None:
    """A user chose what the widget now has; it is called too where another page has this widget,
    and in the run of a fragment with what a browser that is behind has of the rest of the page.
    """
    context = get_script_run_ctx()
    in_fragment = bool(context and context.fragment_ids_this_run)
    value = st.session_state[name]
    if value == shown or (in_fragment and name.partition("-")[0] != "table"):
        return
    if name == "sweep":  # the other choices belonged to the sweep before
        _kept().clear()
    if value is True:
        put(name, "true")
    elif value is None or value is False or value == default:
        put(name)
    else:
        put(name, *map(str, value if isinstance(value, list) else [value]))
    if in_fragment:
        write_address()  # the end of the run is not reached


def refused(parameters: Iterable[str]) -> list[str]:
    """A line for all that the address had in vain when the session began, until another choice
    changes it; `parameters` are those of the common filters.
    """
    now = {name: list(values) for name, values in _kept().items()}
    if st.session_state.setdefault(_SHOWN, now) != now:
        return []
    lines = []
    for name, values in st.session_state[_OPENED].items():
        known = now.get(name, [])
        shown = f"; {', '.join(known)} is shown" if known else ""
        if wrong := ", ".join(value for value in values if value not in known):
            lines.append(f"The address has {name}={wrong}, which is not known here{shown}.")
        elif not {name, name.partition("-")[0]} & {*NAMES, *parameters}:
            lines.append(f"The address has {name}, which this page does not take.")
    return lines
