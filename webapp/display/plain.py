"""Text that is data (questions, names, errors, logs) on a page: shown letter by letter, never as
Markdown or HTML.
"""

from html import escape
from typing import Literal

import streamlit as st

Tone = Literal["", "muted", "strong"]
_LOOK = "overflow-wrap: anywhere; white-space: pre-wrap; margin: 0; "
UNSEEN = "unseen"
"""Key of a container that takes no room and is not seen."""
PAGE_STYLE = f"""<style>
:has(> .st-key-{UNSEEN}) {{position: absolute; width: 1px; height: 1px; overflow: clip;
  opacity: 0; pointer-events: none}}
[data-testid=stWidgetLabelRequired] {{display: none}}
[data-testid=stMainBlockContainer] {{padding-top: 4rem}}
#vg-tooltip-element {{max-width: 40rem}}
#vg-tooltip-element td.key {{max-width: 12rem; white-space: normal}}
#vg-tooltip-element td.value {{max-width: 28rem; max-height: none; overflow-wrap: anywhere;
  white-space: normal}}
</style>"""
"""Of all pages: no mark of required choices, which all have a value; hover texts of charts wrap in
place of being cut."""
_TONES = {
    "": "",
    "muted": "opacity: 0.68; font-size: 0.875rem; ",
    "strong": "font-weight: 600; font-size: 1.25rem; line-height: 1.5; ",
}


def heading(text: str) -> None:
    """The title of a page."""
    st.html(
        f'<h1 style="{_LOOK}font-size: 1.75rem; font-weight: 600; line-height: 1.3; padding:'
        f' 0">{escape(text)}</h1>'
    )


def sentence(text: str, tone: Tone = "") -> None:
    """A paragraph."""
    st.html(f'<p style="{_LOOK}{_TONES[tone]}">{escape(text)}</p>')


def text_block(text: str) -> None:
    """Several lines as they are: a log, a traceback, a file."""
    st.code(text, language=None, wrap_lines=True)


def command(text: str) -> None:
    """Lines to copy: a click selects all of them. `st.code` would have the browser fetch 1.5 MB for
    their colours first.
    """
    look = "user-select: all; font-size: 0.875rem; padding: 0.75rem 1rem; border-radius: 0.5rem; "
    st.html(f'<pre style="{_LOOK}{look}background: rgba(128, 128, 128, 0.12)">{escape(text)}</pre>')


def link(label: str, address: str) -> str:
    """HTML of a link to a page of this app, for `st.html`; the address is one of
    `webapp.display.links`.
    """
    return f'<a href="{escape(address)}" target="_self" style="color: inherit">{escape(label)}</a>'
