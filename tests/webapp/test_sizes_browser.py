"""Sizes in a real browser: a narrow window scrolls in one direction, words are whole and have at
least 12 pixels, hover boxes are small and lie in the window, maps label every row.
"""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.webapp.conftest import Made
from tests.webapp.served import CHART, FITS, POINTS, WAIT_MS, box_of, ended, new_page
from tests.webapp.walked_stores import STORES

NARROW, WIDE = (390, 844), (1440, 900)
SIZES = Path(__file__).with_name("sizes.js").read_text()
MAX_HOVER_ROWS = 8
HOVER = "#vg-tooltip-element.visible"
FONTS = "all => all.map(e => parseFloat(getComputedStyle(e).fontSize))"
HOVER_ROWS = f"{HOVER} tr:visible"
MAP = "[data-testid=stVegaLiteChart][aria-label^='Pays from'] svg"
MAP_ROWS = """svg => {
  const spans = (all) => [...svg.querySelectorAll(all)].map(e => e.getBoundingClientRect())
    .map(box => [Math.round(box.top), Math.round(box.bottom)]);
  const distinct = (all) => [...new Set(all.map(String))].map(text => text.split(",").map(Number));
  const cells = [...svg.querySelectorAll(".mark-rect path")];
  const left = Math.min(...cells.map(e => e.getBoundingClientRect().left));
  const labels = [...svg.querySelectorAll(".role-axis-label text")]
    .filter(e => e.textContent && e.getBoundingClientRect().right < left);
  for (const label of labels) label.classList.add("of-a-row");
  return [distinct(spans(".mark-rect path")), spans(".of-a-row")];
}"""
"""Upper and lower ends of the rows of a map, and of their labels."""
ANSWERS = {"?sweep=quickstart_gpu": ("H", 2), "?sweep=lengths": ("M", 2)}
WORDS = {
    **ANSWERS,
    "promise?sweep=quickstart_gpu": ("H", 2),
    "language?sweep=lengths": ("M", 3),
    "history?sweep=quickstart_gpu": ("H", 1),
}
MORE_WORDS = {
    "choose": ("H", 2),
    "explain?sweep=quickstart_gpu": ("H", 1),
    "explain?sweep=quickstart_gpu&more=Cost+model": ("H", 2),
    "?sweep=runtimes": ("M", 2),
    "?sweep=noisy": ("M", 1),
    "?sweep=accurate": ("M", 1),
    "?sweep=explained": ("M", 2),
    "promise?sweep=runtimes": ("M", 2),
    "promise?sweep=explained": ("M", 2),
    "explain?sweep=explained&more=Roofline": ("M", 3),
    "explain?sweep=explained&more=Classes+of+time": ("M", 3),
    "accuracy?sweep=accurate": ("M", 4),
    "history?sweep=runtimes": ("M", 1),
    "history?sweep=nightly": ("N", 1),
    "compare": ("N", 1),
}
"""Store and number of charts by address."""
Opened = Callable[..., Page]


@pytest.fixture
def opened(made: Made, served: Callable[[str], str], context: BrowserContext) -> Opened:
    """Opens a page of a store in a window of this size, until all of its charts are drawn."""

    def run(path: str, store: str, charts: int, size: tuple[int, int]) -> Page:
        address = served(str(made(f"{store}.db", STORES[store])))
        page = new_page(context, *size)
        page.goto(f"{address}/{path}")
        expect(page.locator(CHART)).to_have_count(charts, timeout=WAIT_MS)
        ended(page)
        page.wait_for_function(FITS, timeout=WAIT_MS)
        return page

    return run


@pytest.mark.parametrize("path", ["home", *ANSWERS])
def test_a_narrow_window(opened: Opened, path: str) -> None:
    """Of a phone: nothing on Home and Answer scrolls sideways, no word is under 12 pixels, none of
    a chart is cut.
    """
    page = opened(path, *ANSWERS.get(path, ("H", 0)), NARROW)
    assert page.evaluate(SIZES) == {"small": {}, "wide": {}, "cut": {}}


def check_words(page: Page) -> None:
    """None is cut or small; a map labels every row in its middle."""
    found = page.evaluate(SIZES)
    assert (found["small"], found["cut"]) == ({}, {})
    for chart in page.locator(MAP).all():
        rows, labels = map(sorted, chart.evaluate(MAP_ROWS))
        assert len(labels) == len(rows) > 0
        assert all(
            low <= sum(label) / 2 <= high for (low, high), label in zip(rows, labels, strict=True)
        )
        assert all(one[1] <= other[0] for one, other in pairwise(labels))


@pytest.mark.parametrize("path", WORDS)
def test_words_are_whole(opened: Opened, path: str) -> None:
    """In a wide window no title, label or legend of a chart and no chosen option is cut, and a
    break-even map labels every row.
    """
    check_words(opened(path, *WORDS[path], WIDE))


@pytest.mark.slow
@pytest.mark.parametrize("path", MORE_WORDS)
def test_more_words_are_whole(opened: Opened, path: str) -> None:
    """The same on the other pages with charts, of more stores."""
    check_words(opened(path, *MORE_WORDS[path], WIDE))


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_hover_boxes(opened: Opened, size: tuple[int, int]) -> None:
    """At the points next to the four corners of each chart a hover box has at most eight rows and
    lies in the window, in words of 12 pixels or more.
    """
    page = opened("?sweep=quickstart_gpu", *ANSWERS["?sweep=quickstart_gpu"], size)
    for number in (0, 1):
        points = page.locator(CHART).nth(number).locator(POINTS.partition(" svg ")[2]).all()
        boxes = list(map(box_of, points))
        middles = [(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2) for box in boxes]
        for across, up, block in (
            (-1, -1, "center"),
            (1, -1, "center"),
            (-1, 1, "end"),
            (1, 1, "end"),
        ):
            corner = max(
                range(len(points)), key=lambda i: across * middles[i][0] + up * middles[i][1]
            )
            points[corner].evaluate(f"e => e.scrollIntoView({{block: '{block}'}})")
            points[corner].hover(force=True)
            page.locator(HOVER).wait_for(timeout=WAIT_MS)
            assert 1 < page.locator(HOVER_ROWS).count() <= MAX_HOVER_ROWS
            assert min(page.locator(f"{HOVER} td").evaluate_all(FONTS)) >= 12
            box = box_of(page.locator(HOVER))
            assert min(box["x"], box["y"]) >= 0
            assert box["x"] + box["width"] <= size[0]
            assert box["y"] + box["height"] <= size[1]
            page.mouse.move(1, 1)
            page.locator(HOVER).wait_for(state="detached", timeout=WAIT_MS)
