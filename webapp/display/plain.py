"""Text that is data (questions, names, errors, logs) on a page: shown letter by letter, never as
Markdown or HTML.
"""

from collections.abc import Callable, Iterable, Sequence
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
TABLE_STYLE = (
    "<style>.rows{border-collapse:collapse;width:100%;margin:0}.rows td,.rows"
    " th{text-align:left;vertical-align:top;padding:6px 20px 6px 0;border:0;border-bottom:1px solid"
    " rgba(128,133,145,.25);overflow-wrap:anywhere;font-size:.9rem}.rows"
    " th{font-weight:600;width:13rem}.rows td:last-child{padding-right:0}.rows"
    " .mark{white-space:nowrap;overflow-wrap:normal}.rows .quiet{opacity:.68}</style>"
)
_TONES = {
    "": "",
    "muted": "opacity: 0.68; font-size: 0.875rem; ",
    "strong": "font-weight: 600; font-size: 1.25rem; line-height: 1.5; ",
}


def heading(text: str) -> None:
    """The title of a page."""
    st.html(
        f'<h1 style="{_LOOK}font-size: 1.25rem; font-weight: 400; line-height: 1.3; padding:'
        f' 0">{escape(text)}</h1>'
    )


def headline(text: str) -> None:
    """The answer of a page."""
    look = "font-size: 1.5rem; font-weight: 600; padding: 0"
    st.html(f'<h2 style="{_LOOK}{look}">{escape(text)}</h2>')


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


def table(
    rows: Iterable[Sequence[str]], *, quiet: int | None = None, mark: int | None = None
) -> None:
    """A table of texts that wrap, the first of each row as its head; column `quiet` is muted,
    `mark` holds a word in one line.
    """
    looks = {quiet: " class=quiet", mark: " class=mark"}
    lines = []
    for head, *cells in rows:
        own = [
            f"<td{looks.get(place, '')}>{escape(cell)}</td>" for place, cell in enumerate(cells, 1)
        ]
        lines.append(f"<tr><th>{escape(head)}</th>{''.join(own)}</tr>")
    html_table(lines)


def html_table(lines: Iterable[str]) -> None:
    """A table of rows of HTML."""
    st.html(f"{TABLE_STYLE}<table class=rows>{''.join(lines)}</table>")


def download(label: str, data: str | bytes | Callable[[], bytes], file: str, mime: str) -> None:
    """A button for a file."""
    st.download_button(
        label, data, file, mime, on_click="ignore", icon=":material/download:", key=f"file-{file}"
    )
