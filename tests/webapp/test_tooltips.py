"""Hover texts: rows without a value at a point are left out there, in pages and in files."""

import json
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd
from playwright.sync_api import Browser

from webapp.charts.points import omit_empty_rows, with_known_rows
from webapp.plot import render_chart

FIELDS = ("word", "none", "empty", "number", "nan")


def chart(point: int) -> alt.Chart:
    """One large mark: at point 0 two of its rows have no value, at point 1 all have."""
    columns = {
        "word": ["a", "b"],
        "none": [None, "x"],
        "empty": ["", "y"],
        "number": [0.0, 2.5],
        "nan": [float("nan"), 1.0],
    }
    rows = pd.DataFrame(columns).iloc[[point]]
    tips = [
        alt.Tooltip(f"{name}:{'Q' if name in {'number', 'nan'} else 'N'}", title=name.upper())
        for name in FIELDS
    ]
    mark: alt.Chart = (
        alt.Chart(rows, width=200, height=200).mark_rect(width=200, height=200).encode(tooltip=tips)
    )
    return mark


def test_the_specification() -> None:
    """Lists of rows become one expression; single fields, values and data stay."""
    spec = {
        "layer": [
            {"encoding": {"tooltip": [{"field": "a", "type": "nominal"}]}},
            {"encoding": {"tooltip": {"value": None}}},
        ]
    }
    found: Any = with_known_rows(spec | {"datasets": {"d": [{"encoding": {"tooltip": [1]}}]}})
    assert found["layer"][0]["encoding"]["tooltip"] == {
        "value": {
            "expr": """merge(isValid(datum["a"]) && datum["a"] !== '' ? {"a": datum["a"]} : {})"""
        }
    }
    assert found["layer"][1] == spec["layer"][1]
    assert found["datasets"] == {"d": [{"encoding": {"tooltip": [1]}}]}


def test_a_chart_keeps_its_rows_for_others() -> None:
    """Only the specification of the chart that is drawn changes; it stays valid."""
    drawn = chart(0)
    copy = drawn.copy()
    omit_empty_rows(drawn)
    assert "merge(" in json.dumps(drawn.to_dict())
    assert "merge(" not in json.dumps(copy.to_dict())


def test_in_the_browser(browser: Browser, tmp_path: Path) -> None:
    """In a saved file: zero is a value, `null`, NaN and an empty text are none."""
    file, page = tmp_path / "chart.html", browser.new_page()
    for point, rows in enumerate(
        ("WORD a|NUMBER 0", "WORD b|NONE x|EMPTY y|NUMBER 2.5|NAN 1"),
    ):
        file.write_bytes(render_chart(chart(point), "html"))
        page.goto(file.as_uri())
        page.locator(".mark-rect path").first.hover()
        page.locator("#vg-tooltip-element.visible").wait_for()
        shown = page.locator("#vg-tooltip-element tr").all()
        assert "|".join(" ".join(row.inner_text().split()) for row in shown) == rows
    page.close()
