"""The app in a real browser: each page with its answer on the first screen, legible in both themes,
with nothing from another host; links, Back, choices, files, and all of it by keyboard.
"""

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import BrowserContext, Download, Error, Page, expect

from tests.webapp.explained_store import explained_store
from tests.webapp.point_address import point_query
from tests.webapp.quality_stores import accuracy_store, language_store
from tests.webapp.served import (
    CHART,
    FITS,
    POINTS,
    WAIT_MS,
    Watch,
    box_of,
    choose,
    ended,
    new_page,
)
from tests.webapp.two_sides import two_sides_store
from webapp.display.links import point_link

Served = Callable[[str], str]
STORES: dict[str, tuple[Callable[[Path], str], ...]] = {
    "kinds": (explained_store, accuracy_store, language_store),
    "sides": (two_sides_store,),
}
"""What fills a store, by its name."""


class Shown(NamedTuple):
    """What a page shows."""

    store: str
    answer: str
    """A text within the first 900 pixels."""
    conclusion: str = ""
    """The beginning of what one of its charts is called for assistive technology."""
    charts: int = 0


EXPLAIN = "explain?sweep=explained&arm=topk+keep_rate%3D0.5&more=Roofline"
CHOOSE = "choose?model=deit_tiny_patch16_224&tokens=196&batch=1"
TOKENS = "topk keep_rate=0.5 pays at 36 to 196 tokens"
PAGES = {
    "?sweep=quickstart": Shown("filled", TOKENS, f"Speed-up along tokens: {TOKENS}", 2),
    "home": Shown("filled", "2 of 2 sweeps new in the last seven days"),
    CHOOSE: Shown("filled", "Use topk keep_rate=0.5: at least 1.", "Use topk keep_rate=0.5", 1),
    "promise?sweep=quickstart": Shown("filled", "How much of what the MACs", "Pays from: ", 2),
    EXPLAIN: Shown("kinds", "Why is it faster, or not?", "Arm less baseline, ms: ", 3),
    "accuracy?sweep=accurate": Shown("kinds", "lose top-1", "No arm surpasses ", 4),
    "language?sweep=lengths": Shown("kinds", "lose quality", "Tokens per second of decoding", 3),
    "compare?by=environment": Shown("sides", *("2 of 10 common questions differ",) * 2, 1),
    "runs?sweep=quickstart": Shown("filled", "quickstart: done"),
    "sql": Shown("filled", "One SELECT over the views"),
    "evidence": Shown("filled", "faster: ", "Faster: ", 2),
}
"""By address."""
HEIGHT = 900
CONTRAST = Path(__file__).with_name("contrast.js").read_text()
UNSET = (
    r"(?<![\d.])\d{4,}(\.\d+)? ms",
    r"\d,\d{3}(?!\d)",
    r"(?<![\w.=-])-\d",
    r"\d{4}-\d\d-\d\d[T ]\d",
)
"""What no page shows: milliseconds and thousands without a space, a minus sign of the keyboard, a
time of ISO 8601."""
VISIBLE = """() => {
  const found = [], nodes = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (nodes.nextNode()) {
    const beside = nodes.currentNode.parentElement.closest("pre, code, style, script, noscript");
    if (!beside) found.push(nodes.currentNode.textContent);
  }
  return found;
}"""
"""Its texts outside code."""
NAMES = "all => all.map(e => e.closest('[data-testid=stVegaLiteChart]').ariaLabel || '')"
"""Of charts."""
DARK = "getComputedStyle(document.querySelector('[data-testid=stApp]')).colorScheme === 'dark'"
LIGHTER = (
    "[...document.querySelectorAll('style')].some(e => e.innerHTML.includes('brightness(1.5)'))"
)
"""Whether the words of charts have the colours for the dark theme."""
LABEL = "(e => e.ariaLabel || (e.tagName === 'SECTION' ? '' : e.innerText))(document.activeElement)"
"""Of what has the focus; the main section has none."""


@pytest.fixture(scope="module")
def address(served: Served, filled: str, tmp_path_factory: pytest.TempPathFactory) -> Served:
    """The address of the app on a store by its name."""
    made = {"filled": filled}

    def serve(name: str) -> str:
        if name not in made:
            path = tmp_path_factory.mktemp(name) / "store.db"
            made[name], *_ = [fill(path) for fill in STORES[name]]
        return served(made[name])

    return serve


@pytest.mark.parametrize("path", PAGES)
def test_pages(address: Served, filled: str, context: BrowserContext, path: str) -> None:
    """The answer stands in the first 900 pixels, all charts come up with a name; nothing is wider
    than a narrow or a wide window, every word has a contrast of 4.5 in both themes, no number is
    set as in the terminal; no error, no request beyond this host.
    """
    found = PAGES[path]
    if path == "evidence":
        where = "compared = 'ratio' AND verdict = 'faster' AND flags = ''"
        path = point_link(*point_query(filled, where).values())
    page = new_page(context, 1440, HEIGHT)
    watch = Watch(page, address(found.store))
    page.goto(f"{address(found.store)}/{path}")
    answer = page.get_by_text(found.answer).first
    expect(answer).to_be_visible(timeout=WAIT_MS)
    expect(page.locator(CHART)).to_have_count(found.charts, timeout=WAIT_MS)
    ended(page)
    box = box_of(answer)
    assert box["y"] + box["height"] < HEIGHT
    for text in page.evaluate(VISIBLE):
        assert not any(re.search(pattern, text) for pattern in UNSET), text
    names = page.locator(CHART).evaluate_all(NAMES)
    assert [name for name in names if not name or name.startswith("Vega")] == []
    assert not found.charts or any(name.startswith(found.conclusion) for name in names), names
    for width in (800, 1440):
        page.set_viewport_size({"width": width, "height": HEIGHT})
        page.wait_for_function(FITS, timeout=WAIT_MS)
    ended(page)
    assert page.evaluate(CONTRAST) == {}
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(DARK, timeout=WAIT_MS)
    page.keyboard.press("r")  # runs the script again, which chooses the colours of words
    page.wait_for_function(LIGHTER, timeout=WAIT_MS)
    ended(page)
    assert page.evaluate(CONTRAST) == {}
    watch.check()


def test_the_first_screen(app: str, filled: str, context: BrowserContext) -> None:
    """Of Answer: headline and the curves along tokens and GMACs, side by side, begin in the upper
    half, and the table of arms; of a point: its pairs, and checks. Choices stay at the top.
    """
    page = new_page(context, 1440, HEIGHT)
    page.goto(f"{app}/?sweep=batches")
    expect(page.locator(CHART)).to_have_count(2, timeout=WAIT_MS)
    ended(page)
    charts = [page.locator(CHART).nth(number) for number in (0, 1)]
    headline = page.get_by_role("heading", level=2).first
    places = [headline, *charts, page.get_by_role("region", name="Arms")]
    first, tokens, gmacs, table = map(box_of, places)
    assert first["y"] < tokens["y"] == gmacs["y"] < HEIGHT / 2
    assert tokens["x"] + tokens["width"] <= gmacs["x"]
    assert table["y"] < HEIGHT
    assert page.title() == "Answer · batches"
    page.get_by_text("How to read this").scroll_into_view_if_needed()
    chosen = [page.get_by_role("combobox", name=name) for name in ("Sweep", "Batch")]
    sweep, batch = map(box_of, chosen)
    assert 0 < sweep["y"] == batch["y"] < 150
    page.goto(f"{app}/{point_link(*point_query(filled).values())}")
    expect(page.get_by_text("✓ Interval")).to_be_visible(timeout=WAIT_MS)
    pairs = box_of(page.locator(CHART).first)
    assert pairs["y"] + pairs["height"] < HEIGHT
    page.get_by_role("tab", name="Times").click()
    expect(page.locator(CHART)).to_have_count(3, timeout=WAIT_MS)
    assert box_of(page.locator(CHART).last)["width"] > 600


def test_a_point_leads_to_its_evidence_and_back(app: str, context: BrowserContext) -> None:
    """A click on a point, also beside the middle of a hollow one, opens its evidence; Back returns
    to the same choices, also from another page.
    """
    page = new_page(context, 1440, HEIGHT)
    watch = Watch(page, app)
    address = f"{app}/?sweep=batches&batch=2&method=tome"
    page.goto(address)
    expect(page.locator(CHART)).to_have_count(2, timeout=WAIT_MS)
    ended(page)
    box = box_of(page.locator(POINTS).first)
    page.mouse.click(box["x"] + box["width"] / 2 + 6, box["y"] + box["height"] / 2 + 6)
    page.wait_for_url("**/point?id=*&environment=*&host=simulated", timeout=WAIT_MS)
    expect(page.get_by_role("tab", name="Is it noise?")).to_be_visible(timeout=WAIT_MS)
    with page.expect_download() as download:
        page.get_by_role("button", name="All pairs as CSV").click()
    with download.value.path().open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 40
    assert {"attempt", "round", "ratio", "baseline_s", "arm_s"} <= lines[0].keys()
    page.go_back()
    expect(page.get_by_text("batch 2").first).to_be_visible(timeout=WAIT_MS)
    assert page.url == address
    page.get_by_role("link", name="Runs").click()
    page.wait_for_url("**/runs?sweep=batches*")
    page.get_by_role("link", name="Answer").click()
    page.wait_for_url("**/?sweep=batches&batch=*")
    watch.check()


def test_choices_and_files_of_the_chart(app: str, context: BrowserContext) -> None:
    """An arm is highlighted by a choice that stands in the address, and each file of the chart is
    made when it is requested.
    """
    page = new_page(context, 1440, 2400)
    watch = Watch(page, app)
    page.goto(f"{app}/?sweep=quickstart")
    choose(page, "Highlight", "topk keep_rate=0.7")
    expect(page).to_have_url(re.compile("arm=topk"), timeout=WAIT_MS)
    ended(page)  # a click on what the page is about to draw anew is lost
    begins = {"CSV": b"comparison_id", "SVG": b"<svg", "PNG": b"\x89PNG", "Bundle": b"PK"}
    for label, first in begins.items():
        download = downloaded(page, label)
        assert download.path().read_bytes().startswith(first)
        assert download.suggested_filename.startswith("quickstart-speedup-tokens")
    watch.check()


def downloaded(page: Page, label: str) -> Download:
    """A file of the chart. Streamlit drops a file that is made on request when two runs of pages
    end before the browser has fetched it, which a busy machine gives them time for: then the user,
    and this, click again.
    """
    for _ in range(4):
        button = page.get_by_role("button", name=label, exact=True)
        if not button.is_visible():
            page.get_by_role("button", name="Files").first.click(timeout=WAIT_MS)
        with page.expect_download(timeout=3 * WAIT_MS) as download:
            button.click()
        if download.value.failure() is None:
            break
    return download.value


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


def test_two_sides(address: Served, context: BrowserContext) -> None:
    """Another choice goes into the address, and Back returns, also before the page has ended its
    run.
    """
    page, sides = new_page(context), address("sides")
    watch = Watch(page, sides)
    page.goto(f"{sides}/compare?by=environment")
    for whole in (True, False):
        expect(page.get_by_text("2 of 10 common questions differ")).to_be_visible(timeout=WAIT_MS)
        page.locator("[data-test-script-state=notRunning]").wait_for(timeout=WAIT_MS)
        compare_revisions(page)
        if whole:
            page.get_by_text("one and the same answer on both sides").wait_for(timeout=WAIT_MS)
        page.go_back()
        page.wait_for_url("**/compare?by=environment*")
    page.get_by_role("link", name="history", exact=True).first.click()
    heading = page.get_by_role("heading", name="History of one question")
    expect(heading).to_be_visible(timeout=WAIT_MS)
    watch.check()


def test_by_keyboard_alone(app: str, context: BrowserContext) -> None:
    """Tab reaches the choices, the table of arms and its links, and the table of points with the
    links of the chart, which Enter opens.
    """
    page = new_page(context, 1440, HEIGHT)
    page.goto(f"{app}/?sweep=quickstart")
    expect(page.locator(CHART)).to_have_count(2, timeout=WAIT_MS)
    ended(page)
    links = page.locator(POINTS).count() / 2
    reached: list[str] = []
    while len(reached) < 60 and not " ".join(reached[-1:]).endswith("Points as a table"):
        page.keyboard.press("Tab")
        reached.append(str(page.evaluate(LABEL) or "").strip().split("\n")[-1])
    wanted = ["Sweep", "Arms", "Why?", "Evidence", "Points as a table"]
    ends = [
        next((word for word in wanted if text.endswith(word)), text)
        for text in reached[reached.index("SQL") + 1 :]
    ]
    found = list(dict.fromkeys(word for word in ends if word in wanted))
    assert found == wanted, " | ".join(reached)
    page.keyboard.press("Enter")
    table = page.get_by_role("region", name="Points")
    expect(table).to_be_visible(timeout=WAIT_MS)
    assert table.get_by_role("link", name="Evidence").count() >= links
    for _ in range(2):  # the table, which scrolls, and its first link
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/point?id=*&environment=*&host=simulated", timeout=WAIT_MS)
