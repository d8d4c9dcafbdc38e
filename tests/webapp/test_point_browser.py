"""The evidence of a point in a real browser: dark and narrow, searched for, and its raw pairs
downloaded.
"""

import csv

from playwright.sync_api import Browser, expect

from tests.webapp.point_address import point_query
from tests.webapp.served import CHART, FITS, WAIT_MS, Watch
from webapp.display.links import point_link


def test_the_evidence_of_a_point(app: str, filled: str, browser: Browser) -> None:
    """Charts and the rule come up at 800 px without anything cut off, and the raw pairs are made
    when requested.
    """
    context = browser.new_context(color_scheme="dark", viewport={"width": 800, "height": 900})
    page = context.new_page()
    watch = Watch(page, app)
    page.goto(f"{app}/{point_link(*point_query(filled).values())}")
    expect(page.get_by_role("heading", name="The rule, worked out")).to_be_visible(timeout=WAIT_MS)
    expect(page.locator(CHART).first).to_be_visible(timeout=WAIT_MS)
    page.wait_for_function(FITS, timeout=WAIT_MS)
    with page.expect_download() as download:
        page.get_by_role("button", name="All pairs as CSV").click()
    with download.value.path().open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 40
    assert {"attempt", "round", "ratio", "baseline_s", "arm_s"} <= lines[0].keys()
    watch.check()
    context.close()


def test_a_point_is_found_by_words(app: str, browser: Browser) -> None:
    """The words stand in the address, and a hit leads to its evidence."""
    page = browser.new_page()
    watch = Watch(page, app)
    page.goto(f"{app}/point")
    field = page.get_by_role("textbox", name="Find a comparison")
    field.fill("topk", timeout=WAIT_MS)
    field.press("Enter")
    page.get_by_role("link", name="topk keep_rate=0.5, deit_tiny_patch16_224").first.click(
        timeout=WAIT_MS
    )
    expect(page.get_by_role("heading", name="topk keep_rate=0.5 against dense")).to_be_visible(
        timeout=WAIT_MS
    )
    watch.check()
    page.close()
