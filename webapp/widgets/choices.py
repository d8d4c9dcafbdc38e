"""Choice of one option, bound to the address, for what a page adds to the common filters."""

from collections.abc import Sequence

import streamlit as st

from webapp.display import plain


def choose_one(label: str, options: Sequence[str], key: str, default: str | None = None) -> str:
    """One of the options; there is no widget for one option. A value of the address that is none of
    them is reported.
    """
    first = default if default is not None and default in options else options[0]
    note = f"{key}_note"
    if st.session_state.get(key) not in options:
        given = st.query_params.get(key)
        value = str(given) if given in options else first
        unknown = given is not None and given != value
        text = f"{label} {given} of the address is not among what was measured; {value} is shown."
        st.session_state[note] = text if unknown else ""
        st.session_state[key] = value
        if given != value and len(options) > 1:
            st.query_params[key] = value
            if unknown:
                st.rerun()  # else the widget would read, and remove, what the address had
    if st.session_state[key] != first:
        st.session_state[note] = ""
    if st.session_state.get(note):
        plain.sentence(st.session_state[note], "muted")
    if len(options) == 1:
        return options[0]
    return str(
        st.selectbox(
            label, options, index=None, key=key, bind="query-params", required=True, width=360
        )
    )
