"""What every page promises in a real browser: the answer on the first screen, words that are
legible in both themes, and all of it by keyboard.
"""

from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.webapp.point_address import point_query
from tests.webapp.served import CHART, POINTS, WAIT_MS, new_page
from webapp.display.links import point_link

CONTRAST = Path(__file__).with_name("contrast.js").read_text()
LABEL = "(e => e.ariaLabel || (e.tagName === 'SECTION' ? '' : e.innerText))(document.activeElement)"
"""Of what has the focus; the main section has none."""
HEIGHT = 900
DARK = "getComputedStyle(document.querySelector('[data-testid=stApp]')).colorScheme === 'dark'"
ANSWERS = {
    "home": "2 of 2 sweeps new in the last seven days",
    "?sweep=quickstart": "topk keep_rate=0.5 pays from 36 tokens on",
    "choose?model=deit_tiny_patch16_224&tokens=196&batch=1": "Use topk keep_rate=0.5",
    "promise?sweep=quickstart": "How much of what the MACs promise arrives?",
    "explain?sweep=quickstart": "Why is it faster, or not?",
    "runs?sweep=quickstart": "quickstart: done",
    "compare": "",
    "point": "topk keep_rate=0.5",
    "sql": "SQL",
    "evidence": "faster: ",
}
"""By address: a text of a heading, or of a table, that answers the question of the page."""


def opened_page(context: BrowserContext, address: str) -> Page:
    page = new_page(context, 1440, HEIGHT)
    page.goto(address)
    ended(page)
    return page


def ended(page: Page) -> None:
    """Wait until the page's script has run."""
    idle = page.locator("[data-test-script-state=notRunning]")
    expect(idle).to_have_count(1, timeout=WAIT_MS)
    page.wait_for_timeout(500)
    expect(idle).to_have_count(1, timeout=WAIT_MS)


@pytest.mark.parametrize("path", ANSWERS)
def test_answers_are_seen_and_legible(
    app: str, filled: str, context: BrowserContext, path: str
) -> None:
    """The answer stands in the first 900 pixels; every word has a contrast of 4.5 in both
    themes.
    """
    text = ANSWERS[path]
    if path == "evidence":
        where = "compared = 'ratio' AND verdict = 'faster' AND flags = ''"
        path = point_link(*point_query(filled, where).values())
    page = opened_page(context, f"{app}/{path}")
    if text:
        answer = page.get_by_text(text).first
        expect(answer).to_be_visible(timeout=WAIT_MS)
        box = answer.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] < HEIGHT
    assert page.evaluate(CONTRAST) == {}
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(DARK, timeout=WAIT_MS)
    page.keyboard.press("r")  # runs the script again, which chooses the colours of words
    ended(page)
    assert page.evaluate(CONTRAST) == {}
    page.close()


def test_the_evidence_of_a_point_on_one_screen(
    app: str, filled: str, context: BrowserContext
) -> None:
    """Verdict, checks and pairs."""
    page = opened_page(context, f"{app}/{point_link(*point_query(filled).values())}")
    expect(page.locator(CHART).first).to_be_visible(timeout=WAIT_MS)
    box = page.locator(CHART).first.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] < HEIGHT
    expect(page.get_by_text("✓ Interval")).to_be_visible()
    page.get_by_role("tab", name="Times").click()
    expect(page.locator(CHART)).to_have_count(3, timeout=WAIT_MS)
    drawn = page.locator(CHART).last.bounding_box()
    assert drawn is not None
    assert drawn["width"] > 600
    page.close()


def test_choices_stay_at_the_top(app: str, context: BrowserContext) -> None:
    """Sweep and batch in one line, which is seen wherever the page is scrolled to."""
    page = opened_page(context, f"{app}/?sweep=batches")
    sweep, batch = (page.get_by_role("combobox", name=name) for name in ("Sweep", "Batch"))
    expect(batch).to_be_visible(timeout=WAIT_MS)
    expect(page.locator(CHART)).to_have_count(2, timeout=WAIT_MS)
    page.get_by_text("How to read this").scroll_into_view_if_needed()
    first, second = (found.bounding_box() for found in (sweep, batch))
    assert first is not None
    assert second is not None
    assert 0 < first["y"] == second["y"] < 150
    page.close()


def test_by_keyboard_alone(app: str, context: BrowserContext) -> None:
    """Tab reaches the choices, the table of arms and its links, and the table of points with the
    links of the chart, which Enter opens.
    """
    page = opened_page(context, f"{app}/?sweep=quickstart")
    expect(page.locator(CHART)).to_have_count(2, timeout=WAIT_MS)
    links = [page.locator(POINTS).count() / 2]
    reached: list[str] = []
    for _ in range(60):
        page.keyboard.press("Tab")
        label = page.evaluate(LABEL)
        reached.append(str(label or "").strip().split("\n")[-1])
        if reached[-1].endswith("Points as a table"):
            break
    wanted = ["Sweep", "Arms", "Why?", "Evidence", "Points as a table"]
    ends = [
        next((word for word in wanted if text.endswith(word)), text)
        for text in reached[reached.index("SQL") + 1 :]
    ]
    assert list(dict.fromkeys(word for word in ends if word in wanted)) == wanted, " | ".join(
        reached
    )
    page.keyboard.press("Enter")
    table = page.get_by_role("region", name="Points")
    expect(table).to_be_visible(timeout=WAIT_MS)
    assert table.get_by_role("link", name="Evidence").count() >= links[0]
    for _ in range(2):  # the table, which scrolls, and its first link
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/point?id=*&environment=*&host=simulated", timeout=WAIT_MS)
    page.close()


def test_a_hollow_point_is_hit_beside_its_middle(app: str, context: BrowserContext) -> None:
    """Nine pixels from the middle of a point that is not clear a click opens its evidence."""
    page = opened_page(context, f"{app}/?sweep=quickstart&method=tome")
    expect(page.locator(CHART)).to_have_count(2, timeout=WAIT_MS)
    box = page.locator(POINTS).first.bounding_box()
    assert box is not None
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.click(middle[0] + 6, middle[1] + 6)
    page.wait_for_url("**/point?id=*", timeout=WAIT_MS)
    page.close()
