"""Key of arms: their lines and colours beside their labels, in a list below a chart, where long labels wrap."""

from collections.abc import Mapping
from html import escape

import streamlit as st

from webapp.arm_style import ArmStyle


def show_key(styles: Mapping[str, ArmStyle]) -> None:
    """A line for each arm."""
    st.html(f'<div style="display: grid; gap: 2px 0; font-size: 0.875rem">{"".join(map(_line, styles, styles.values()))}</div>')


def _line(label: str, style: ArmStyle) -> str:
    dashes = "" if style.dash == [1, 0] else f' stroke-dasharray="{" ".join(map(str, style.dash))}"'
    sample = (
        '<svg width="34" height="10" style="flex: none" aria-hidden="true">'
        f'<line x1="1" y1="5" x2="33" y2="5" stroke="{style.color}" stroke-width="3"{dashes}/></svg>'
    )
    text = f'<span style="overflow-wrap: anywhere">{escape(label)}</span>'
    return f'<div style="display: flex; gap: 8px; align-items: center">{sample}{text}</div>'
