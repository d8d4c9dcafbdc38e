"""The app as people see it: served by its command, for a real browser."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from playwright.sync_api import (
    BrowserContext,
    ConsoleMessage,
    Error,
    FloatRect,
    Locator,
    Page,
    expect,
)

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
CHART = (
    ":is([data-testid=stVegaLiteChart] canvas, [data-testid=stVegaLiteChart]"
    " svg):not(.st-key-unseen *)"
)
"""Drawn charts, without the one that only has their code fetched."""
FITS = (
    "(main => main && main.scrollWidth ==="
    " main.clientWidth)(document.querySelector('[data-testid=stMain]'))"
)
"""Whether the page is no wider than its window."""
POINTS = "[data-testid=stVegaLiteChart] svg path[aria-label='Open the evidence of this point']"
"""Points of charts that lead to their evidence."""


@contextmanager
def served_app(url: str, folder: Path, *options: str) -> Iterator[str]:
    """The address of the app on a store, started in `folder` with more options; it must end cleanly
    at Ctrl-C.
    """
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "webapp",
        "app",
        "--no-browser",
        "--port",
        str(port),
        "--db",
        url,
        *options,
    ]
    log = folder / f"app-{port}.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            command,
            stdout=out,
            stderr=out,
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        )
    try:
        yield _answering(f"http://localhost:{port}", process, log)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            ended = process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        assert ended in (0, 130), log.read_text()
        assert "Traceback" not in log.read_text(), log.read_text()


def _answering(address: str, process: "subprocess.Popen[bytes]", log: Path) -> str:
    for _ in range(600):
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=1):
                return address
        except urllib.error.HTTPError:
            return address  # it answers, to those who know its token
        except OSError:
            time.sleep(0.1)
    raise AssertionError(log.read_text())


def new_page(
    context: BrowserContext,
    width: int = 1280,
    height: int = 720,
    scheme: Literal["light", "dark"] = "light",
) -> Page:
    """A page of this size in pixels, in the tab of the one before, which has loaded the scripts."""
    page = context.pages[0] if context.pages else context.new_page()
    page.goto("about:blank")  # the server of the page before may have ended
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme=scheme)
    return page


def box_of(place: Locator) -> FloatRect:
    """Where it is drawn, in pixels."""
    box = place.bounding_box()
    assert box is not None
    return box


def ended(page: Page) -> None:
    """Wait until the page's script has run."""
    idle = page.locator("[data-test-script-state=notRunning]")
    expect(idle).to_have_count(1, timeout=WAIT_MS)
    page.wait_for_timeout(500)
    expect(idle).to_have_count(1, timeout=WAIT_MS)


def choose(page: Page, name: str, option: str) -> None:
    """Choose an option of a list, which is opened again where the page scrolled after the click,
    which closes it.
    """
    offered = page.get_by_role("option", name=option)
    for _ in range(5):
        page.get_by_role("combobox", name=name).click(timeout=WAIT_MS)
        try:
            offered.click(timeout=WAIT_MS / 5)
        except Error:
            continue
        return
    raise AssertionError(f"{name} never offered {option}")


class Watch:
    """What a page requested from elsewhere, and its errors; begins when it is made."""

    def __init__(self, page: Page, address: str) -> None:
        self.page, self.address = page, address
        self.foreign: list[str] = []
        self.errors: list[str] = []
        page.on("request", lambda request: self._requested(request.url))
        page.on("console", self._message)
        page.on("pageerror", lambda problem: self.errors.append(str(problem)))

    def _requested(self, url: str) -> None:
        if not url.startswith(
            (self.address, self.address.replace("http", "ws", 1), "data:", "blob:")
        ):
            self.foreign.append(url)

    def _message(self, message: ConsoleMessage) -> None:
        # Opened at a page's own address, Streamlit first looks for its server below that address,
        # and is refused.
        if message.type == "error" and "/_stcore/" not in message.location.get("url", ""):
            self.errors.append(message.text)

    def check(self) -> None:
        """Nothing wider than the window once its charts are laid out, no foreign request, no error,
        no exception on the page.
        """
        self.page.wait_for_function(FITS, timeout=WAIT_MS)
        assert self.foreign == [], self.foreign
        assert self.errors == [], self.errors
        assert self.page.locator("[data-testid=stException]").count() == 0
