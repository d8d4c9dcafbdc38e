"""The frame of the app in a real browser: links, Back, unknown values, both themes, and nothing
from another host.
"""

import re
from typing import Literal

import pytest
from playwright.sync_api import Browser, expect

from tests.webapp.served import CHART, FITS, POINTS, WAIT_MS, Watch, choose


def test_a_link_to_a_page_comes_first(app: str, browser: Browser) -> None:
    """A link that leads straight to a page below works as the very first thing that the server is
    requested.
    """
    page = browser.new_page()
    page.goto(f"{app}/runs?sweep=quickstart")
    expect(page.get_by_text("15 of 16 jobs ended")).to_be_visible(timeout=WAIT_MS)
    expect(page.get_by_role("link", name="Answer")).to_be_visible()
    page.close()


def test_the_newest_measured_sweep_is_in_the_address(app: str, browser: Browser) -> None:
    """An address without choices gets those that are shown."""
    page = browser.new_page()
    page.goto(app)
    expect(page.get_by_role("combobox", name="Batch")).to_be_visible(timeout=WAIT_MS)
    page.wait_for_url("**/?sweep=batches&batch=1")
    page.close()


def test_what_an_address_has_in_vain(app: str, browser: Browser) -> None:
    """A sweep and a batch that do not exist are reported, and what is shown instead stands in the
    address.
    """
    page = browser.new_page()
    page.goto(f"{app}/?sweep=qickstart&batch=77")
    expect(
        page.get_by_text("The address names the sweep qickstart, which this store does not have")
    ).to_be_visible(timeout=WAIT_MS)
    expect(
        page.get_by_text("Batch 77 of the address is not in this sweep; 1 is shown.")
    ).to_be_visible()
    page.wait_for_url("**/?sweep=batches&batch=1")
    page.close()


def test_a_point_leads_to_its_evidence_and_back(app: str, browser: Browser) -> None:
    """A click on a point opens its evidence; Back returns to the same choices, also from another
    page.
    """
    page = browser.new_page()
    watch = Watch(page, app)
    address = f"{app}/?sweep=batches&batch=2&method=topk"
    page.goto(address)
    expect(page.get_by_text("batch 2").first).to_be_visible(timeout=WAIT_MS)
    page.locator(POINTS).last.click(timeout=WAIT_MS)  # a filled mark: an open one has a hole
    page.wait_for_url("**/point?id=*&environment=*&host=simulated")
    expect(page.get_by_role("heading", name="Every pair in the order of time")).to_be_visible(
        timeout=WAIT_MS
    )
    page.go_back()
    expect(page.get_by_text("batch 2").first).to_be_visible(timeout=WAIT_MS)
    assert page.url == address
    page.get_by_role("link", name="Runs").click()
    page.wait_for_url("**/runs?sweep=batches")
    page.get_by_role("link", name="Answer").click()
    page.wait_for_url("**/?sweep=batches&batch=*")
    watch.check()
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_in_a_browser(app: str, browser: Browser, scheme: Literal["light", "dark"]) -> None:
    """The answer comes up with text and chart, in the theme requested, no wider than the window; no
    other host is contacted.
    """
    context = browser.new_context(color_scheme=scheme)
    page = context.new_page()
    watch = Watch(page, app)
    page.goto(f"{app}/?sweep=quickstart")
    expect(
        page.get_by_text("not shown to pay at any point measured, 4 to 196 tokens").first
    ).to_be_visible(timeout=WAIT_MS)
    expect(page.locator(CHART).first).to_be_visible(timeout=WAIT_MS)
    page.set_viewport_size({"width": 800, "height": 900})
    page.wait_for_function("document.querySelector('[data-testid=stMain]').clientWidth <= 800")
    page.wait_for_function(FITS, timeout=WAIT_MS)
    ground = page.evaluate(
        "getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
    )
    red = int(ground.removeprefix("rgb(").split(",")[0])
    assert (red > 200) == (scheme == "light")
    watch.check()
    context.close()


def test_choices_and_files_of_the_chart(app: str, browser: Browser) -> None:
    """An arm is highlighted by a choice that stands in the address, and each file of the chart is
    made when it is requested.
    """
    page = browser.new_page(viewport={"width": 1440, "height": 2400})
    watch = Watch(page, app)
    page.goto(f"{app}/?sweep=quickstart")
    choose(page, "Highlight", "topk keep_rate=0.7")
    expect(page).to_have_url(re.compile("arm=topk"), timeout=WAIT_MS)
    for label, begins in (
        ("CSV", b"comparison_id"),
        ("SVG", b"<svg"),
        ("PNG", b"\x89PNG"),
        ("Bundle", b"PK"),
    ):
        button = page.get_by_role("button", name=label, exact=True)
        if not button.is_visible():
            page.get_by_role("button", name="Files").first.click(timeout=WAIT_MS)
        with page.expect_download(timeout=3 * WAIT_MS) as download:
            button.click()
        path = download.value.path()
        assert path.read_bytes().startswith(begins)
        assert download.value.suggested_filename.startswith("quickstart-speedup-tokens")
    watch.check()
    page.close()
