"""Key of arms: their lines and colours beside their labels, in a list below a chart, where long
labels wrap.
"""

from collections.abc import Mapping
from html import escape

import streamlit as st

from webapp.display.arm_style import ArmStyle

LOOKS = {(1, 0): "solid", (7, 3): "dashed", (3, 2): "dotted", (9, 3, 2, 3): "double"}
"""Of borders, by the dashes of lines."""


def show_key(styles: Mapping[str, ArmStyle]) -> None:
    """A line for each arm."""
    st.html(
        '<div style="display: grid; gap: 2px 0; font-size:'
        f' 0.875rem">{"".join(map(_line, styles, styles.values()))}</div>'
    )


def _line(label: str, style: ArmStyle) -> str:
    look = LOOKS.get(tuple(style.dash), "dashed")
    sample = f'<span style="flex: none; width: 34px; border-top: 3px {look} {style.color}"></span>'
    text = f'<span style="overflow-wrap: anywhere">{escape(label)}</span>'
    return f'<div style="display: flex; gap: 8px; align-items: center">{sample}{text}</div>'
