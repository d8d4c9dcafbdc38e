"""Pages while more is recorded into their store."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect

from store.open.engine import connect
from store.write.record import record_imported
from tests.webapp.served import WAIT_MS, new_page
from tests.webapp.simulated import job, outcome

Served = Callable[[str], str]


@pytest.mark.slow
def test_more_was_recorded(
    filled: str, served: Served, context: BrowserContext, tmp_path: Path
) -> None:
    """Home and Answer state by themselves how much more was recorded, and show it on a click."""
    url = str(tmp_path / "growing.db")
    shutil.copy(filled, url)
    pages = {path: context.new_page() for path in ("home", "?sweep=quickstart")}
    for number, (path, page) in enumerate(pages.items()):
        page.goto(f"{served(url)}/{path}")
        expect(page.get_by_role("link", name="Runs")).to_be_visible(timeout=3 * WAIT_MS)
        expect(page.get_by_role("table").first).to_be_visible(timeout=3 * WAIT_MS)
        stale = page.get_by_text("1 more result recorded since this page was drawn")
        expect(stale).to_have_count(0)
        engine = connect(url)
        record_imported(engine, [outcome(job(256 + 32 * number, "deit_base_patch16_224"))])
        engine.dispose()
        expect(stale).to_be_visible(timeout=WAIT_MS)
        page.get_by_role("button", name="Show all").click()
        expect(stale).to_have_count(0, timeout=WAIT_MS)
        page.close()
    new_page(context)
