"""The pages Choose and Promise in Chromium: both themes, a changed input, a click on evidence, and Back."""

from typing import Literal

import pytest
from playwright.sync_api import Browser, expect

WAIT_MS = 30_000


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 800)])
def test_choose_and_promise_in_a_browser(app: str, browser: Browser, scheme: Literal["light", "dark"], width: int) -> None:
    """Links with values filled in show the answer; a refusal leads to the nearest size; nothing leaves this machine."""
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 1000})
    page = context.new_page()
    requested: list[str] = []
    wrong: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(f"{app}/choose?model=deit_tiny_patch16_224&tokens=300&batch=1")
    expect(page.get_by_text("No answer")).to_be_visible(timeout=WAIT_MS)
    page.get_by_role("button", name="196 tokens").click()
    expect(page.get_by_text("Use topk keep_rate=0.5: 1.5")).to_be_visible(timeout=WAIT_MS)
    assert "tokens=196" in page.url
    page.get_by_text("Policy", exact=True).click()
    expect(page.get_by_text("1 rule (a condition and a batch each)")).to_be_visible(timeout=WAIT_MS)
    assert page.evaluate("(main => main.scrollWidth - main.clientWidth)(document.querySelector('[data-testid=stMain]'))") == 0
    page.goto(f"{app}/promise?sweep=quickstart")
    chart = page.locator("[data-testid=stVegaLiteChart]").first
    expect(chart.locator("canvas, svg").first).to_be_visible(timeout=WAIT_MS)
    expect(page.get_by_text("of the promised saving arrives").first).to_be_visible(timeout=WAIT_MS)
    page.get_by_text("Break-even map").wait_for(timeout=WAIT_MS)
    assert page.locator("[data-testid=stException]").count() == 0
    assert wrong == []
    assert [url for url in requested if not url.startswith((app, "data:", "blob:"))] == []
    context.close()
