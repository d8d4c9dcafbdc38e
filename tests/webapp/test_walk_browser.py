"""Walks of a browser by clicks: each page, each navigation, Back, and each list of choices; and a
reload after each choice.
"""

from collections.abc import Callable

import pytest
from playwright.sync_api import BrowserContext

from tests.webapp.conftest import Made
from tests.webapp.served import new_page
from tests.webapp.walked_stores import STORES
from tests.webapp.walks import PAGES, Walk

Start = Callable[[str], Walk]


@pytest.fixture
def walk(made: Made, served: Callable[[str], str], context: BrowserContext) -> Start:
    """Begins a walk on a store by its letter."""

    def start(letter: str) -> Walk:
        path = made(f"{letter}.db", STORES[letter])
        return Walk(new_page(context, 1700, 900), served(str(path)))

    return start


def test_clicks_that_failed(walk: Start) -> None:
    """Back onto Explain, another arm there, from a batch to Choose, a language sweep on Choose, and
    another size of History end in no exception; Back leads to the address that was left.
    """
    on = walk("M")
    on.open("explain?sweep=runtimes")
    before = on.page.url
    on.select("Arm", "topk keep_rate=0.7, eager")
    on.navigate("Runs")
    on.back()
    assert "arm=topk" in on.page.url
    on.back()
    assert on.page.url == before
    on.navigate("Answer")
    on.select("Batch", "1")
    on.navigate("Choose")
    on.select("Model", "llama-220m")
    on.open("history?sweep=runtimes")
    on.select("Size", "36 tokens")
    assert on.problems == []


def shown(walk: Walk) -> list[str]:
    """What a page shows: texts, lists, and what charts are called."""
    names = walk.page.locator("[data-testid=stVegaLiteChart]").evaluate_all(
        "all => all.map(e => e.ariaLabel || '')"
    )
    boxes = walk.page.get_by_role("combobox").evaluate_all("all => all.map(e => e.value || '')")
    return [walk.main.inner_text(), *boxes, *names]


@pytest.mark.slow
def test_a_reload_shows_the_same(walk: Start) -> None:
    """After the sweep was changed twice on Answer, Promise and Explain, and after another arm was
    chosen on Explain: same page, same figures, and the sweep stands in the address.
    """
    on = walk("M")
    on.open("?sweep=runtimes")
    for title in ("Answer", "Promise", "Explain"):
        on.navigate(title)
        choices = [("Sweep", "explained"), ("Sweep", "runtimes")]
        if title == "Explain":
            choices.append(("Arm", "tome r_ratio=0.06, eager"))
        for name, option in choices:
            on.select(name, option)
            before = shown(on)
            assert title == "Explain" or f"sweep={option}" in on.page.url
            on.page.reload()
            on.check()
            assert shown(on) == before, on.clicks
    assert on.problems == []


@pytest.mark.slow
@pytest.mark.parametrize(("turn", "letter"), [*enumerate(STORES)])
def test_every_click(walk: Start, turn: int, letter: str) -> None:
    """From each page a sixth of the others and Back, and another option of a sixth of the lists and
    Back, which differ between stores: no exception.
    """
    on, titles = walk(letter), list(PAGES)
    for number, path in enumerate(PAGES.values()):
        on.open(path)
        for step in range(1 + turn, len(titles), len(STORES)):
            on.navigate(titles[(number + step) % len(titles)])
            on.back()
        for name in on.selects[turn :: len(STORES)]:
            if on.select_another(name):
                on.back()
    assert on.problems == []
