"""Hostile names in every field of a store, on every page of the app: shown letter by letter, and
nothing is requested elsewhere.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import BrowserContext, expect

from store.open.engine import connect_readonly
from store.read.queries import panel_rows, sweep_list
from tests.webapp.hostile import REMOTE, hostile_store
from tests.webapp.served import FITS, WAIT_MS, Watch, new_page

APP = Path(__file__).parents[2] / "webapp" / "app.py"
PATHS = re.findall(r'Screen\("\w+", "\w+", "(\w*)"', APP.read_text(encoding="utf-8"))
PATHS.remove("submit")  # which is there with --allow-submit alone, see test_submit.py


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    return hostile_store(str(tmp_path_factory.mktemp("hostile") / "hostile.db"))


@pytest.fixture(scope="module")
def point(hostile: str) -> dict[str, Any]:
    """A point of the store."""
    engine = connect_readonly(hostile)
    sweep = str(sweep_list(engine)[0]["name"])
    row, *_ = panel_rows(engine, sweep, "speedup", {}, {}).to_dict("records")
    engine.dispose()
    return {str(name): value for name, value in row.items()}


@pytest.mark.parametrize("path", PATHS, ids=[path or "answer" for path in PATHS])
def test_names_are_text(
    served: Callable[[str], str],
    context: BrowserContext,
    hostile: str,
    point: dict[str, Any],
    path: str,
) -> None:
    """No request beyond the server, no element made of a name, no script run, at 800 pixels no page
    wider than the window.
    """
    address = served(hostile)
    page = new_page(context, 800, 900)
    watch = Watch(page, address)
    query = {"arm": f"<img src=http://{REMOTE}/q.png>", "model": f"![m](http://{REMOTE}/m.png)"}
    if path == "point":
        query = {
            name: str(point[key])
            for name, key in (("id", "comparison_id"), ("environment",) * 2, ("host",) * 2)
        }
    if path == "sql":
        query = {
            "sql": (
                f"SELECT '![r](http://{REMOTE}/r.png)' AS \"<img src=http://{REMOTE}/n.png>\", *"
                " FROM failures"
            )
        }
    page.goto(f"{address}/{path}?{urlencode(query)}")
    shown = page.locator("[data-testid=stDataFrame]") if path == "sql" else page.get_by_text(REMOTE)
    expect(shown.first).to_be_attached(timeout=WAIT_MS)
    expect(page.locator("[data-testid=stStatusWidget]")).to_have_count(0, timeout=WAIT_MS)
    page.wait_for_timeout(500)
    watch.check()
    made = (
        f"[src*='{REMOTE}'], [href*='{REMOTE}/d'], [href^='javascript:'], [data-testid=stApp]"
        " script"
    )
    assert page.locator(made).count() == 0
    assert page.evaluate("window.harmed === undefined")
    page.wait_for_function(FITS, timeout=WAIT_MS)
