"""The app as people see it: started by its command, looked at with a real browser, in light and in dark."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
WAIT_MS = 20_000


@pytest.fixture(scope="module")
def app(filled: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the app, started from another folder; it must end cleanly at Ctrl-C."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "webapp", "app", "--no-browser", "--port", str(port), "--db", filled]
    log = tmp_path_factory.mktemp("log") / "app.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=out, cwd=log.parent, env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
        )
    try:
        yield _answering(f"http://localhost:{port}", process, log)
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) in (0, 130), log.read_text()
        assert "Traceback" not in log.read_text()


def _answering(address: str, process: "subprocess.Popen[bytes]", log: Path) -> str:
    for _ in range(200):
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=1):
                return address
        except OSError:
            time.sleep(0.1)
    raise AssertionError(log.read_text())


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is missing; install it with: apt-get install chromium")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


def test_a_link_to_a_page_comes_first(app: str, browser: Browser) -> None:
    """A link that leads straight to the Sweeps page works as the very first thing that the server is requested."""
    page = browser.new_page()
    page.goto(f"{app}/sweeps?sweep=quickstart")
    expect(page.get_by_text("8 of 8 jobs ended")).to_be_visible(timeout=WAIT_MS)
    expect(page.get_by_role("link", name="Break-even")).to_be_visible()
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_in_a_browser(app: str, browser: Browser, scheme: Literal["light", "dark"]) -> None:
    """Both pages come up with text and chart, in the theme requested, no wider than the window; no other host is contacted."""
    context = browser.new_context(color_scheme=scheme)
    page = context.new_page()
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    page.goto(f"{app}/?sweep=quickstart")
    expect(page.get_by_text("never pays from 4 to 196 tokens").first).to_be_visible(timeout=WAIT_MS)
    expect(page.locator("[data-testid=stVegaLiteChart] canvas, [data-testid=stVegaLiteChart] svg").first).to_be_visible(
        timeout=WAIT_MS
    )
    page.set_viewport_size({"width": 800, "height": 900})
    page.wait_for_function("document.querySelector('[data-testid=stMain]').clientWidth <= 800")
    assert page.evaluate("(main => main.scrollWidth - main.clientWidth)(document.querySelector('[data-testid=stMain]'))") == 0
    ground = page.evaluate("getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor")
    red = int(ground.removeprefix("rgb(").split(",")[0])
    assert (red > 200) == (scheme == "light")
    page.get_by_role("link", name="Sweeps").click()
    expect(page.get_by_text("8 of 8 jobs ended")).to_be_visible(timeout=WAIT_MS)
    expect(page.get_by_text("Failures").first).to_be_visible()
    assert page.locator("[data-testid=stException]").count() == 0
    assert [url for url in requested if not url.startswith((app, "data:", "blob:"))] == []
    context.close()
