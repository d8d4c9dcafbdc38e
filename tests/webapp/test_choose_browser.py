"""The pages Choose and Promise in Chromium: dark, both widths, a changed input, a click on evidence, and
Back.
"""

from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, expect

from sweeps.model.job import DENSE, Job
from sweeps.model.outcome import Failure, Outcome
from tests.webapp import simulated
from tests.webapp.served import FITS

WAIT_MS = 30_000


def test_choose_and_promise_in_a_browser(app: str, browser: Browser) -> None:
    """Links with values filled in show the answer; a refusal leads to the nearest size; nothing
    leaves this machine.
    """
    context = browser.new_context(color_scheme="dark", viewport={"width": 800, "height": 1000})
    page = context.new_page()
    requested: list[str] = []
    wrong: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(f"{app}/choose?model=deit_tiny_patch16_224&tokens=300&batch=1")
    expect(page.get_by_text("No answer")).to_be_visible(timeout=WAIT_MS)
    page.get_by_role("button", name="196 tokens").click()
    expect(page.get_by_text("Use topk keep_rate=0.5: at least 1.")).to_be_visible(timeout=WAIT_MS)
    assert "tokens=196" in page.url
    page.get_by_text("Policy", exact=True).click()
    expect(page.get_by_text("1 rule (a condition and a batch each)")).to_be_visible(timeout=WAIT_MS)
    page.wait_for_function(FITS, timeout=WAIT_MS)
    page.set_viewport_size({"width": 1440, "height": 1000})
    page.wait_for_function(FITS, timeout=WAIT_MS)
    page.goto(f"{app}/promise?sweep=quickstart")
    chart = page.locator("[data-testid=stVegaLiteChart]").first
    expect(chart.locator("canvas, svg").first).to_be_visible(timeout=WAIT_MS)
    expect(page.get_by_text("of the promised saving arrives").first).to_be_visible(timeout=WAIT_MS)
    page.get_by_text("Break-even map").wait_for(timeout=WAIT_MS)
    assert page.locator("[data-testid=stException]").count() == 0
    assert wrong == []
    assert [url for url in requested if not url.startswith((app, "data:", "blob:"))] == []
    context.close()


HOSTILE = (
    "![x](http://127.0.0.2:9/x.png)<img src=http://127.0.0.2:9/y.png> **b** [l](http://127.0.0.2:9)"
)
FAILING = simulated.tome(0.06)


def hostile_answer(job: Job) -> Outcome:
    """One arm fails at the largest size with Markdown and HTML in its message; the host is called
    the same.
    """
    failure = Failure(arm=2, reason="error", message=HOSTILE)
    failing = {FAILING: failure} if job.condition.image_size == 224 else None
    return simulated.outcome(job, failing=failing).model_copy(update={"host": HOSTILE})


def test_text_of_a_store_is_shown_as_text(served: Any, browser: Browser, tmp_path: Path) -> None:
    """Markdown and HTML in names, hosts and errors is printed letter by letter, and nothing is
    requested from elsewhere.
    """
    url = str(tmp_path / "hostile.db")
    jobs = [
        simulated.job(size, HOSTILE, 1, (DENSE, simulated.topk(0.5), FAILING))
        for size in simulated.SIZES
    ]
    simulated.store_sweep(url, "hostile", jobs, hostile_answer)
    address = served(url)
    page = browser.new_page()
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    page.goto(f"{address}/choose?tokens=196&batch=1")
    expect(page.get_by_text("Use topk keep_rate=0.5: at least 1.")).to_be_visible(timeout=WAIT_MS)
    expect(page.get_by_text(f"failed: error ({HOSTILE}")).to_be_visible(timeout=WAIT_MS)
    page.goto(f"{address}/promise?sweep=hostile")
    expect(page.get_by_text("of the promised saving arrives").first).to_be_visible(timeout=WAIT_MS)
    page.get_by_text("Break-even map").wait_for(timeout=WAIT_MS)
    assert [each for each in requested if not each.startswith((address, "data:", "blob:"))] == []
    page.close()
