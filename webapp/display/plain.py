"""Text that is data (questions, names, errors, logs) on a page: never Markdown or HTML; its numbers
and times as all pages show them, in commands and logs letter by letter.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Literal

import streamlit as st

from store.rows.location import database_option
from webapp.display.links import page_link
from webapp.display.texts import typeset

Tone = Literal["", "muted", "strong"]
_LOOK = "overflow-wrap: anywhere; white-space: pre-wrap; margin: 0; "
UNSEEN = "unseen"
"""Key of a container that takes no room and is not seen."""
STICKY = "filters"
"""Key of the container that stays at the top: its widgets are in one line, labels beside them."""
_STYLE = f"""
:has(> .st-key-{UNSEEN}) {{position: absolute; width: 1px; height: 1px; overflow: clip;
  opacity: 0; pointer-events: none}}
@media (min-width: 641px) {{
  :has(> .st-key-{STICKY}) {{position: sticky; top: 3.75rem; z-index: 9}}
}}
.st-key-{STICKY} {{background: light-dark(#fff, #171614); padding: 0.25rem 0}}
.st-key-{STICKY} [data-testid=stSelectbox] {{display: flex; align-items: center; gap: 0.4rem}}
.st-key-{STICKY} [data-testid=stSelectbox] > .react-aria-ComboBox {{flex: 1; min-width: 0}}
.st-key-{STICKY} label {{margin: 0; min-height: 0; flex: none}}
[data-testid=stCaptionContainer] {{opacity: 0.75}}
[data-testid=stWidgetLabelRequired] {{display: none}}
[data-testid=stTextArea] textarea {{font-family: monospace}}
[data-testid=stMainBlockContainer] {{padding-top: 4rem}}
[data-testid=stVegaLiteChart] svg {{overflow: visible}}
#vg-tooltip-element {{max-width: min(40rem, calc(50vw - 1.5rem))}}
#vg-tooltip-element tr:nth-child(n + 9) {{display: none}}
#vg-tooltip-element td {{max-height: none; overflow-wrap: anywhere; white-space: normal}}
#vg-tooltip-element td.key {{max-width: 12rem}}
#vg-tooltip-element td.value {{max-width: 28rem}}"""


_WORDS = '[data-testid=stVegaLiteChart] svg text:not([fill="#ffffff"], [fill="#10131a"])'
"""Of charts, but for those on a ground of their own, `webapp.charts.promise`."""


def page_style(*, dark: bool) -> str:
    """Of all pages: no mark of required choices, which all have a value; hover texts of charts have
    at most eight rows, which wrap within half of the window; words of charts are legible in the
    colour of their arm.
    """
    words = f"brightness({1.5 if dark else 0.65})"
    return f"<style>{_STYLE}{_WORDS} {{filter: {words}}}</style>"


TABLE_STYLE = (
    "<style>.rows{border-collapse:collapse;width:100%;margin:0}.rows td,.rows"
    " th{text-align:left;vertical-align:top;padding:6px 20px 6px 0;border:0;border-bottom:1px solid"
    " rgba(128,133,145,.25);overflow-wrap:anywhere;font-size:.9rem}.rows"
    " th{font-weight:600;width:13rem}.rows"
    " td:last-child{padding-right:0;min-width:4rem}</style>"
)
_TONES = {
    "": "",
    "muted": "opacity: 0.68; font-size: 0.875rem; ",
    "strong": "font-weight: 600; font-size: 1.25rem; line-height: 1.5; ",
}


def heading(text: str, sweep: str = "") -> None:
    """The title of a page, below the way to it: all sweeps, this one."""
    way = [link("Home", "home"), link(sweep, page_link("", sweep=sweep), MAX_NAME)] if sweep else []
    st.html(
        f'<nav style="{_LOOK}{_TONES["muted"]}">{" › ".join(way)}</nav><h1 style="{_LOOK}font-size:'
        f' 1.25rem; font-weight: 400; line-height: 1.3; padding: 0">{escape(text)}</h1>'
    )


def escaped(text: str) -> str:
    """HTML of a text."""
    return escape(typeset(text))


def headline(text: str) -> None:
    """The answer of a page."""
    look = "font-size: 1.5rem; font-weight: 600; padding: 0"
    st.html(f'<h2 style="{_LOOK}{look}">{escaped(text)}</h2>')


def sentence(text: str, tone: Tone = "") -> None:
    """A paragraph."""
    st.html(f'<p style="{_LOOK}{_TONES[tone]}">{escaped(text)}</p>')


def text_block(text: str) -> None:
    """Several lines as they are: a log, a traceback, a file."""
    st.code(text, language=None, wrap_lines=True)


def command(text: str) -> None:
    """Lines to copy: a click selects all of them; commands name the store that is shown. `st.code`
    would have the browser fetch 1.5 MB for their colours first.
    """
    store = database_option(None)
    text = re.sub("^breakeven .*", lambda line: line[0] + store, text, flags=re.MULTILINE)
    look = "user-select: all; font-size: 0.875rem; padding: 0.75rem 1rem; border-radius: 0.5rem; "
    st.html(f'<pre style="{_LOOK}{look}background: rgba(128, 128, 128, 0.12)">{escape(text)}</pre>')


MAX_NAME = 60


def name(text: str, most: int = MAX_NAME) -> str:
    """HTML of a name: of a long one the beginning, with all of it as hover text."""
    if len(text) <= most:
        return escaped(text)
    return f'<span title="{escaped(text)}">{escaped(text[: most - 1])}…</span>'


def link(label: str, address: str, most: int = 200) -> str:
    """HTML of a link to a page of this app, for `st.html`; the address is one of
    `webapp.display.links`. Of its label at most so many characters are shown.
    """
    shown = name(label, most)
    return f'<a href="{escape(address)}" target="_self" style="color: inherit">{shown}</a>'


def chips(marked: Iterable[tuple[bool, str, str]]) -> None:
    """Words in frames, each with a hover text; those that are marked stand out."""
    look = "border:1px solid rgba(128,133,145,.4);border-radius:1rem;padding:1px 10px;background:"
    signs = {True: ("!", "rgba(194,80,12,.2)"), False: ("✓", "none")}
    found = []
    for mark, word, hover in marked:
        sign, ground = signs[mark]
        shown = f"{sign} {escaped(word)}"
        found.append(f'<span title="{escaped(hover)}" style="{look}{ground}">{shown}</span>')
    row = "display:flex;flex-wrap:wrap;gap:4px 6px;font-size:.875rem"
    st.html(f'<div style="{row}">{"".join(found)}</div>')


def table(rows: Iterable[Sequence[str]]) -> None:
    """A table of texts that wrap, the first of each row as its head."""
    lines = [
        f"<tr><th>{escaped(head)}</th>{''.join(f'<td>{escaped(cell)}</td>' for cell in cells)}</tr>"
        for head, *cells in rows
    ]
    st.html(f"{TABLE_STYLE}<table class=rows>{''.join(lines)}</table>")


def download(label: str, data: str | bytes | Callable[[], bytes], file: str, mime: str) -> None:
    """A button for a file."""
    st.download_button(
        label, data, file, mime, on_click="ignore", icon=":material/download:", key=f"file-{file}"
    )
