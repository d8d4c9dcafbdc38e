"""The published folder in a real browser without a network: from disk and from Python's web server,
in both themes, by keyboard, with hostile names.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from tests.webapp.hostile import REMOTE, hostile_store
from tests.webapp.publishing import file_server, published
from tests.webapp.served import WAIT_MS, Watch, box_of

FITS = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
GROUND = "getComputedStyle(document.body).backgroundColor"
DRAWN = "figure.chart svg.marks"
POINTS = f"{DRAWN} path[aria-label='Open the evidence of this point']"
ROWS = "#out tbody tr"


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[str]:
    with file_server(folder) as address:
        yield address


def offline(browser: Browser, address: str, **options: object) -> BrowserContext:
    """A context from which nothing but `address` can be reached."""
    context = browser.new_context(**options)

    def only_there(route: Route) -> None:
        if route.request.url.startswith((address, "data:", "blob:")):
            route.continue_()
        else:
            route.abort()

    context.route("**/*", only_there)
    # without a network; a server on this machine would be cut off too
    context.set_offline(address.startswith("file:"))
    return context


def healthy(page: Page, watch: Watch) -> None:
    page.wait_for_function(FITS, timeout=WAIT_MS)
    assert (watch.foreign, watch.errors) == ([], [])


@pytest.mark.parametrize(("place", "scheme"), [("disk", "light"), ("server", "dark")])
def test_every_kind_of_page(
    browser: Browser, folder: Path, server: str, place: str, scheme: str
) -> None:
    """Opens with its charts in the theme requested, is no wider than the window, and requests
    nothing elsewhere.
    """
    address = folder.as_uri() if place == "disk" else server
    point = next((folder / "points").iterdir()).name
    context = offline(browser, address, color_scheme=scheme, viewport={"width": 800, "height": 900})
    page = context.new_page()
    watch = Watch(page, address)
    for path, text, charts in (
        ("index.html", "topk keep_rate=0.5 pays at 36 to 196 tokens", 0),
        ("sweeps/quickstart/index.html", "topk keep_rate=0.5 pays at 36 to 196 tokens", 2),
        ("sweeps/batches/index.html", "of 2 conditions", 4),
        (f"points/{point}", "What would show that it is noise", 0),
        ("query.html", "Query all results in SQL", 0),
    ):
        page.goto(f"{address}/{path}")
        expect(page.get_by_text(text).first).to_be_visible(timeout=WAIT_MS)
        expect(page.locator(DRAWN)).to_have_count(charts, timeout=WAIT_MS)
        for width in (800, 1440):
            page.set_viewport_size({"width": width, "height": 900})
            healthy(page, watch)
        red = int(page.evaluate(GROUND).removeprefix("rgb(").split(",")[0])
        assert (red > 200) == (scheme == "light")
    context.close()


def test_points_lead_to_their_evidence(browser: Browser, folder: Path) -> None:
    """By the pointer in a chart and back, by keyboard in the table of its points. The headline, both
    charts and the first arm of the table lie within 900 pixels.
    """
    context = offline(browser, folder.as_uri(), viewport={"width": 1440, "height": 900})
    page = context.new_page()
    start = f"{folder.as_uri()}/sweeps/quickstart/index.html"
    page.goto(start)
    expect(page.locator(DRAWN)).to_have_count(2, timeout=WAIT_MS)
    seen = (page.locator("h2"), page.locator(DRAWN).last, page.locator("tbody tr"))
    boxes = [box_of(each.first) for each in seen]
    assert max(box["y"] + box["height"] for box in boxes) <= 900
    page.locator(POINTS).nth(3).click(force=True)
    expect(page.get_by_text("What would show that it is noise")).to_be_visible(timeout=WAIT_MS)
    assert "/points/" in page.url
    page.go_back()
    assert page.url == start
    page.get_by_text("Points as a table").focus()
    page.keyboard.press("Enter")
    link = page.locator(".points-table a").first
    expect(link).to_be_visible(timeout=WAIT_MS)
    assert page.locator(".points-table tbody tr").count() == 34  # one failed, five are flagged
    link.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("How it was measured")).to_be_visible(timeout=WAIT_MS)
    context.close()


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


def test_sql_in_the_browser(browser: Browser, server: str, folder: Path) -> None:
    """The example, an own query, one with an error, one without an end; all of it without a request elsewhere. From disk
    the page names the web server that it needs.
    """
    context = offline(browser, server)
    page = context.new_page()
    watch = Watch(page, server)
    page.goto(f"{server}/query.html")
    expect(page.locator(ROWS).first).to_be_visible(timeout=WAIT_MS)
    expect(page.locator("#needs-server")).to_be_hidden()
    page.locator("#sql").fill("SELECT count(*) AS n FROM speedup WHERE method = 'topk'")
    page.keyboard.press("Control+Enter")
    expect(page.locator(ROWS)).to_have_text(["46"])
    page.locator("#sql").fill("SELECT absent FROM speedup")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#out")).to_contain_text("no such column: absent")
    page.locator("#sql").fill(ENDLESS)
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#out")).to_contain_text("The query was ended after 5 s", timeout=WAIT_MS)
    page.get_by_label("Example").select_option(label="Tables and columns")
    expect(page.locator(ROWS)).to_have_count(15)
    healthy(page, watch)
    context.close()
    context = offline(browser, folder.as_uri())
    page = context.new_page()
    page.goto(f"{folder.as_uri()}/query.html")
    expect(page.locator("#needs-server")).to_contain_text("python -m http.server")
    context.close()


def test_hostile_names_are_text(browser: Browser, tmp_path: Path) -> None:
    """No request elsewhere, no element made of a name, no script run."""
    root = tmp_path / "site"
    published(root, hostile_store(str(tmp_path / "hostile.db")))
    with file_server(root) as address:
        context = offline(browser, address, viewport={"width": 800, "height": 900})
        pages = [
            *root.glob("*.html"),
            *root.glob("sweeps/*/*.html"),
            *list(root.glob("points/*"))[:2],
        ]
        assert len(pages) == 5
        page = context.new_page()
        watch = Watch(page, address)
        for path in pages:
            page.goto(f"{address}/{path.relative_to(root).as_posix()}")
            page.wait_for_load_state("networkidle")
            healthy(page, watch)
            assert page.evaluate("window.harmed") is None
            assert page.locator(f"[src*='{REMOTE}'], [href*='{REMOTE}']").count() == 0
        context.close()
