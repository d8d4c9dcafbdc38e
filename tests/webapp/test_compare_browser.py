"""Two sides in a real browser: chosen, gone back from, narrow and dark."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Error, Page, expect

from tests.webapp.served import CHART, FITS, WAIT_MS, Watch, served_app
from tests.webapp.two_sides import two_sides_store


@pytest.fixture(scope="module")
def sides_app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("sides")
    with served_app(two_sides_store(folder / "sides.db"), folder) as address:
        yield address


def compare_revisions(page: Page) -> None:
    """Chooses them, again where the click met a page that was just about to run."""
    for _ in range(4):
        page.get_by_role("radio", name="Revisions").click()
        try:
            page.wait_for_url("**/compare?by=revision*", timeout=WAIT_MS / 4)
        except Error:
            continue
        return
    raise AssertionError(f"the choice never reached the address {page.url}")


def test_two_sides(sides_app: str, browser: Browser) -> None:
    """The differences come up at 800 px without anything cut off; another choice goes into the
    address, and Back returns.
    """
    context = browser.new_context(color_scheme="dark", viewport={"width": 800, "height": 900})
    page = context.new_page()
    watch = Watch(page, sides_app)
    page.goto(f"{sides_app}/compare?by=environment")
    expect(page.get_by_text("2 of 10 common questions differ")).to_be_visible(timeout=WAIT_MS)
    expect(page.locator(CHART).first).to_be_visible(timeout=WAIT_MS)
    page.wait_for_function(FITS, timeout=WAIT_MS)
    page.get_by_role("radio", name="Revisions").click()
    expect(page.get_by_text("one and the same answer on both sides")).to_be_visible(timeout=WAIT_MS)
    page.wait_for_url("**/compare?by=revision*")
    page.locator("[data-test-script-state=notRunning]").wait_for(timeout=WAIT_MS)
    page.go_back()
    expect(page.get_by_text("2 of 10 common questions differ")).to_be_visible(timeout=WAIT_MS)
    page.locator("[data-test-script-state=notRunning]").wait_for(timeout=WAIT_MS)
    for _ in range(3):  # also before the page has ended its run
        compare_revisions(page)
        page.go_back()
        expect(page.get_by_text("2 of 10 common questions differ")).to_be_visible(timeout=WAIT_MS)
        page.locator("[data-test-script-state=notRunning]").wait_for(timeout=WAIT_MS)
        assert "by=environment" in page.url
    page.get_by_role("link", name="history").first.click()
    expect(page.get_by_role("heading", name="History of one question")).to_be_visible(
        timeout=WAIT_MS
    )
    watch.check()
    context.close()
