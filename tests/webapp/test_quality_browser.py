"""The pages Accuracy and Language in a real browser: dark, both widths, and a choice that
stays in the address.
"""

from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, expect

from tests.webapp.quality_stores import accuracy_store, language_store
from tests.webapp.served import CHART, FITS, WAIT_MS, Watch, choose


@pytest.fixture(scope="module")
def addresses(
    served: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("quality")
    return {
        "accuracy": served(accuracy_store(folder / "accuracy.db")) + "/accuracy?sweep=accurate",
        "language": served(language_store(folder / "language.db")) + "/language?sweep=lengths",
    }


PARTS = {"accuracy": ("Corrupted images", 4), "language": ("Stacks and their parts", 3)}
"""By page its last heading, and how many charts it has."""


@pytest.mark.parametrize("name", PARTS)
def test_the_pages_in_a_browser(
    addresses: dict[str, str],
    browser: Browser,
    name: str,
) -> None:
    """All parts come up, nothing is wider than the window, no error, no request beyond this
    host.
    """
    last, charts = PARTS[name]
    context = browser.new_context(color_scheme="dark", viewport={"width": 800, "height": 900})
    page = context.new_page()
    watch = Watch(page, addresses[name].partition(f"/{name}?")[0])
    page.goto(addresses[name])
    expect(page.get_by_role("heading", name=last)).to_be_visible(timeout=WAIT_MS)
    expect(page.locator(CHART)).to_have_count(charts, timeout=WAIT_MS)
    page.wait_for_function(FITS, timeout=WAIT_MS)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.wait_for_function(FITS, timeout=WAIT_MS)
    watch.check()
    context.close()


def test_another_figure(addresses: dict[str, str], browser: Browser) -> None:
    """A choice changes the chart's title and the address."""
    page = browser.new_page()
    page.goto(addresses["language"])
    expect(page.locator(CHART)).to_have_count(PARTS["language"][1], timeout=WAIT_MS)
    choose(page, "Figure", "Characters per second")
    page.wait_for_function("location.search.includes('figure=Characters')", timeout=WAIT_MS)
    page.close()
