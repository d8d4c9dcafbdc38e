"""The page Explain in a real browser: dark, both widths, another arm, and a link that shows
the same.
"""

import pytest
from playwright.sync_api import Browser, expect

from tests.webapp.explained_store import explained_store
from tests.webapp.served import CHART, FITS, WAIT_MS, Watch, choose


@pytest.fixture(scope="module")
def address(served, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(served(explained_store(tmp_path_factory.mktemp("explained") / "explain.db")))


def test_the_page_in_a_browser(address: str, browser: Browser) -> None:
    """All parts come up, nothing is wider than the window, no error, no request beyond this
    host.
    """
    context = browser.new_context(color_scheme="dark", viewport={"width": 800, "height": 900})
    page = context.new_page()
    watch = Watch(page, address)
    page.goto(f"{address}/explain?sweep=explained&arm=topk+keep_rate%3D0.5")
    for heading in (
        "Speed-up: reached, promised",
        "Where the wall time goes",
        "What runs longer, what shorter",
        "Roofline",
        "Audit of this sweep",
    ):
        expect(page.get_by_role("heading", name=heading)).to_be_visible(timeout=WAIT_MS)
    expect(page.locator(CHART)).to_have_count(7, timeout=WAIT_MS)
    page.wait_for_function(FITS, timeout=WAIT_MS)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.wait_for_function(FITS, timeout=WAIT_MS)
    watch.check()
    context.close()


def test_another_arm(address: str, browser: Browser) -> None:
    """A choice changes the sentences and the address; Back returns to the arm before."""
    page = browser.new_page()
    watch = Watch(page, address)
    page.goto(f"{address}/explain?sweep=explained&arm=topk+keep_rate%3D0.5")
    expect(page.get_by_text("topk keep_rate=0.5 against dense")).to_be_visible(timeout=WAIT_MS)
    choose(page, "Arm", "tome r_ratio=0.06")
    expect(page.get_by_text("tome r_ratio=0.06 against dense")).to_be_visible(timeout=WAIT_MS)
    page.wait_for_function("decodeURIComponent(location.search).includes('tome')", timeout=WAIT_MS)
    watch.check()
    page.close()
