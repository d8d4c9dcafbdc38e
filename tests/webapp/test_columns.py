"""Tables of all pages: where a number is declared, each cell is a number."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from sweeps.model.metrics import METRICS
from tests.webapp.conftest import Made, Open
from tests.webapp.page_elements import html_tables
from tests.webapp.quality_stores import accuracy_store, language_store
from webapp import screens
from webapp.display.columns import COLUMNS, column_of

NAMES = sorted({*COLUMNS, *METRICS})
NUMBERS = {column.title for column in map(column_of, NAMES) if column.table_format}
NUMBER = re.compile(r"[-−]?[\d,\u202f]*\.?\d+(e[-−+]\d+)?( ?[%×])?")
RAW = re.compile(r"\{:|[.,~]\d[~]?[fgr]\b|\bnan\b|\bNone\b|\d\.\d{8}")
"""A format, a missing value of Python, or a float as Python prints it."""
PAGES = (
    "",
    *(f"screens/{path.name}" for path in sorted(Path(screens.__path__[0]).glob("[!_]*.py"))),
)


@pytest.mark.parametrize("name", NAMES)
def test_formats_print_the_value(name: str) -> None:
    """What a format of a table prints is the number, and nothing of the format."""
    form = column_of(name).table_format
    assert form is None or NUMBER.fullmatch(form.format(12.5)), form


@pytest.fixture(params=["accurate", "lengths", "filled", "h100"])
def url(request: pytest.FixtureRequest, made: Made) -> str:
    makers: dict[str, Callable[[Path], str]] = {
        "accurate": accuracy_store,
        "lengths": language_store,
    }
    if (make := makers.get(request.param)) is not None:
        return str(made(f"{request.param}.db", make))
    return str(request.getfixturevalue(request.param))


def test_cells_are_numbers(opened: Open, url: str) -> None:
    """On pages with all tables open, a cell of a column of numbers is one or a dash, and no cell
    of any table is a format or a float as Python prints it.
    """
    cells = 0
    for page in PAGES:
        names = opened(url, page).session_state._state.filtered_state
        tables = [name for name in names if name.startswith("table-")]
        app = opened(url, page, **dict.fromkeys(tables, "true"))
        for table in html_tables(app):
            for title, value in ((name, cell) for name in table for cell in table[name]):
                cells += 1
                assert not RAW.search(value), (page, title, value)
                assert title not in NUMBERS or value == "–" or NUMBER.fullmatch(value), (
                    *(page, title, value),
                )
    assert cells > 50
