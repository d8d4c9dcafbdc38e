"""Draws the README's pictures of the app: three pages of a store, in a real browser.

    python -m tests.webapp.screenshots [DATABASE]

Without a database it simulates one (`tests.webapp.simulated`), in which the truth is known. The
files go to docs/images.
"""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.webapp import stored
from tests.webapp.served import CHART, CHROMIUM, FLAGS, WAIT_MS, served_app
from tests.webapp.simulated import SIZES, job, quickstart_answer, store_sweep
from webapp import queries

IMAGES = Path(__file__).parents[2] / "docs" / "images"
PAGES = {
    "answer": ("", "light", 1440),
    "promise": ("promise", "light", 900),
    "explain": ("explain", "dark", 1400),
}
"""Name of the file: address of the page, theme, and height in pixels."""
WIDTH = 1280


def draw(page: Page, address: str, out: Path) -> None:
    """One page into a file, when its charts are there."""
    page.goto(address)
    page.locator(CHART).first.wait_for(timeout=3 * WAIT_MS)
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(2000)
    page.screenshot(path=out)


def main() -> int:
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        url = sys.argv[1] if len(sys.argv) > 1 else str(Path(folder) / "simulated.db")
        if len(sys.argv) < 2:
            store_sweep(url, "quickstart", [job(size) for size in SIZES], quickstart_answer)
        sweep = stored.read(url, queries.measured_sweeps)[0]["name"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        with served_app(url, Path(folder)) as address:
            for name, (path, scheme, height) in PAGES.items():
                view = browser.new_context(
                    viewport={"width": WIDTH, "height": height},
                    color_scheme="dark" if scheme == "dark" else "light",
                )
                draw(view.new_page(), f"{address}/{path}?sweep={sweep}", IMAGES / f"{name}.png")
                view.close()
                print(IMAGES / f"{name}.png")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
