"""The app in a real browser: each page in both themes and widths, links, Back, choices, files, and
nothing from another host.
"""

import csv
import re
from collections.abc import Callable
from typing import Literal

import pytest
from playwright.sync_api import BrowserContext, Error, Page, expect

from tests.webapp.explained_store import explained_store
from tests.webapp.point_address import point_query
from tests.webapp.quality_stores import accuracy_store, language_store
from tests.webapp.served import CHART, FITS, POINTS, WAIT_MS, Watch, choose, new_page
from tests.webapp.two_sides import two_sides_store
from webapp.display.links import point_link

Served = Callable[[str], str]
STORES = {
    "explained": explained_store,
    "accurate": accuracy_store,
    "lengths": language_store,
    "sides": two_sides_store,
}
TOPK = "topk+keep_rate%3D0.5"
DEIT = "model=deit_tiny_patch16_224"
PAGES = {
    "?sweep=quickstart": ("filled", "not shown to pay at any point measured, 4 to 196 tokens", 2),
    f"explain?sweep=explained&arm={TOPK}&more=Roofline": ("explained", "Audit: ", 3),
    "accuracy?sweep=accurate": ("accurate", "Corrupted images", 4),
    "language?sweep=lengths": ("lengths", "Stacks and their parts", 3),
    "compare?by=environment": ("sides", "2 of 10 common questions differ", 1),
    f"choose?{DEIT}&tokens=196&batch=1": ("filled", "Use topk keep_rate=0.5: at least 1.", 1),
    "promise?sweep=quickstart": ("filled", "Break-even map", 2),
    "runs?sweep=quickstart": ("filled", "Nodes and devices", 0),
    "point": ("filled", "Is it noise?", 2),
}
"""By address: the store, a text of the page, and how many charts it has."""
CONCLUSIONS = {
    "?sweep=quickstart": "Speed-up along tokens: topk keep_rate=0.5 pays from 36 tokens on",
    f"explain?sweep=explained&arm={TOPK}&more=Roofline": "Arm less baseline, ms: ",
    "accuracy?sweep=accurate": "No arm surpasses ",
    "language?sweep=lengths": "Tokens per second of decoding: ",
    "compare?by=environment": "2 of 10 common questions differ",
    f"choose?{DEIT}&tokens=196&batch=1": "Use topk keep_rate=0.5",
    "promise?sweep=quickstart": "Pays from: ",
    "point": "Slower: ",
}
"""By address: the beginning of what one of its charts is called for assistive technology."""
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
GROUND = "getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"


@pytest.fixture(scope="module")
def address(served: Served, filled: str, tmp_path_factory: pytest.TempPathFactory) -> Served:
    """The address of the app on a store by its name."""
    made = {"filled": filled}

    def serve(name: str) -> str:
        if name not in made:
            made[name] = STORES[name](tmp_path_factory.mktemp(name) / "store.db")
        return served(made[name])

    return serve


@pytest.mark.parametrize(
    ("path", "scheme"), [("runs?sweep=batches", "light"), *((path, "dark") for path in PAGES)]
)
def test_pages_in_a_browser(
    address: Served,
    filled: str,
    context: BrowserContext,
    path: str,
    scheme: Literal["light", "dark"],
) -> None:
    """All parts come up in the theme requested, nothing is wider than a narrow or a wide window,
    no error, no request beyond this host.
    """
    store, text, charts = PAGES.get(path, ("filled", "Nodes and devices", 0))
    key, path = path, point_link(*point_query(filled).values()) if path == "point" else path
    page = new_page(context, 800, 900, scheme)
    watch = Watch(page, address(store))
    page.goto(f"{address(store)}/{path}")
    expect(page.get_by_text(text).first).to_be_visible(timeout=WAIT_MS)
    expect(page.locator(CHART)).to_have_count(charts, timeout=WAIT_MS)
    for width in (800, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(FITS, timeout=WAIT_MS)
    for text in page.evaluate(VISIBLE):
        assert not any(re.search(pattern, text) for pattern in UNSET), text
    names = page.locator(CHART).evaluate_all(NAMES)
    assert [name for name in names if not name or name.startswith("Vega")] == []
    conclusion = CONCLUSIONS.get(key, "")
    assert not charts or any(name.startswith(conclusion) for name in names), names
    red = int(page.evaluate(GROUND).removeprefix("rgb(").split(",")[0])
    assert (red > 200) == (scheme == "light")
    watch.check()
    page.close()


def test_a_link_to_a_page_comes_first(app: str, context: BrowserContext) -> None:
    """A link that leads straight to a page below works as the very first thing that the server is
    requested.
    """
    page = new_page(context)
    page.goto(f"{app}/runs?sweep=quickstart")
    expect(page.get_by_text("15 of 16 jobs ended")).to_be_visible(timeout=WAIT_MS)
    expect(page.get_by_role("link", name="Answer")).to_be_visible()
    page.close()


def test_the_answer_stands_on_the_first_screen(app: str, context: BrowserContext) -> None:
    """Headline and the curves along tokens and GMACs, side by side, begin in the upper half; the
    table of arms begins on the screen.
    """
    page = new_page(context, 1440, 900)
    page.goto(f"{app}/?sweep=quickstart")
    expect(page.locator(CHART)).to_have_count(2, timeout=WAIT_MS)
    places = [page.locator(CHART).nth(number).bounding_box() for number in (0, 1)]
    headline = page.get_by_role("heading", level=2).first.bounding_box()
    table = page.get_by_role("region", name="Arms").bounding_box()
    tokens, gmacs = [place for place in places if place is not None]
    assert headline is not None
    assert table is not None
    assert headline["y"] < tokens["y"] == gmacs["y"] < 450
    assert tokens["x"] + tokens["width"] <= gmacs["x"]
    assert table["y"] < 900
    assert page.title() == "Answer · quickstart"
    page.close()


def test_what_an_address_has_in_vain(app: str, context: BrowserContext) -> None:
    """A sweep and a batch that do not exist are reported; the newest measured sweep, which is shown
    instead, stands in the address.
    """
    page = new_page(context)
    page.goto(f"{app}/?sweep=qickstart&batch=77&bacth=1&axis=depth")
    for reported in (
        "The address has sweep=qickstart, which is not known here; batches is shown.",
        "The address has batch=77, which is not known here; 1 is shown.",
        "The address has bacth, which this page does not take.",
        "The address has axis=depth, which is not known here.",
    ):
        expect(page.get_by_text(reported)).to_be_visible(timeout=WAIT_MS)
    page.wait_for_url("**/?sweep=batches&batch=1&bacth=1")
    page.close()


def test_a_point_leads_to_its_evidence_and_back(app: str, context: BrowserContext) -> None:
    """A click on a point opens its evidence; Back returns to the same choices, also from another
    page.
    """
    page = new_page(context)
    watch = Watch(page, app)
    address = f"{app}/?sweep=batches&batch=2&method=topk"
    page.goto(address)
    expect(page.get_by_text("batch 2").first).to_be_visible(timeout=WAIT_MS)
    page.locator(POINTS).last.click(timeout=WAIT_MS)  # a filled mark: an open one has a hole
    page.wait_for_url("**/point?id=*&environment=*&host=simulated")
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
    page.wait_for_url("**/runs?sweep=batches")
    page.get_by_role("link", name="Answer").click()
    page.wait_for_url("**/?sweep=batches&batch=*")
    watch.check()
    page.close()


def test_choices_and_files_of_the_chart(app: str, context: BrowserContext) -> None:
    """An arm is highlighted by a choice that stands in the address, and each file of the chart is
    made when it is requested.
    """
    page = new_page(context, 1440, 2400)
    watch = Watch(page, app)
    page.goto(f"{app}/?sweep=quickstart")
    choose(page, "Highlight", "topk keep_rate=0.7")
    expect(page).to_have_url(re.compile("arm=topk"), timeout=WAIT_MS)
    # a click on what the page is about to draw anew is lost
    expect(page.locator("[data-test-script-state=notRunning]")).to_have_count(1, timeout=WAIT_MS)
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


def test_a_refusal_leads_to_what_was_measured(app: str, context: BrowserContext) -> None:
    page = new_page(context)
    watch = Watch(page, app)
    page.goto(f"{app}/choose?{DEIT}&tokens=300&batch=1")
    expect(page.get_by_text("No answer")).to_be_visible(timeout=WAIT_MS)
    page.get_by_role("button", name="196 tokens").click()
    answer = page.get_by_role("heading", name="Use topk keep_rate=0.5: at least 1.")
    expect(answer).to_be_visible(timeout=WAIT_MS)
    assert "tokens=196" in page.url
    watch.check()
    page.close()


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
    for ended in (True, False, False, False):
        expect(page.get_by_text("2 of 10 common questions differ")).to_be_visible(timeout=WAIT_MS)
        page.locator("[data-test-script-state=notRunning]").wait_for(timeout=WAIT_MS)
        compare_revisions(page)
        if ended:
            page.get_by_text("one and the same answer on both sides").wait_for(timeout=WAIT_MS)
        page.go_back()
        page.wait_for_url("**/compare?by=environment*")
    page.get_by_role("link", name="history", exact=True).first.click()
    heading = page.get_by_role("heading", name="History of one question")
    expect(heading).to_be_visible(timeout=WAIT_MS)
    watch.check()
    page.close()


def test_a_query_is_chosen_run_and_kept(app: str, context: BrowserContext) -> None:
    """It stands in the address."""
    page = new_page(context, 800, 900)
    watch = Watch(page, app)
    page.goto(f"{app}/sql?sweep=quickstart")
    choose(page, "Queries to begin with", "Where it pays")
    expect(page.get_by_text("10 rows, 8 columns")).to_be_visible(timeout=WAIT_MS)
    assert "sql=SELECT" in page.url
    page.wait_for_function(FITS, timeout=WAIT_MS)
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV", exact=True).click()
    with download.value.path().open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 10
    watch.check()
    page.close()
