"""Pages on a big store, in Chromium: first load above an empty Streamlit page, a filter change, and
the server's memory.

Run from the project's folder, on a quiet machine: uv run python -m tests.benchmarks.pages STORE
[PAGE ...] Make the store with: uv run python -m tests.fixtures.big_store STORE --comparisons 100000
Each page has a server of its own: `first` is the first load since its start, `again` a new visit to
the warm server.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil
from playwright.sync_api import Browser, Page, sync_playwright

from tests.webapp.served import CHROMIUM, FLAGS
from webapp.__main__ import STREAMLIT_OPTIONS

ROOT = Path(__file__).parents[2]
EMPTY = "import streamlit as st\n\nst.html('<h1>Empty</h1>')\n"
FIRST_S, FILTER_S, MEMORY_MB = 2.0, 1.0, 500.0
"""Limits on 100 000 comparisons: a first load above that of the empty page, a filter change, the
server's resident memory."""
WAIT_MS = 180_000
PAGES = {
    "Answer": "",
    "Choose": "choose",
    "Promise": "promise",
    "Explain": "explain",
    "Evidence": "point",
    "Compare": "compare",
    "Accuracy": "accuracy",
    "Language": "language",
    "Runs": "runs",
    "SQL": "sql?sql=SELECT+*+FROM+speedup+LIMIT+1000",
}
WATCH = """
window.runs = 0; window.state = '';
setInterval(() => {
  const app = document.querySelector('[data-testid=stApp]');
  const now = app ? app.getAttribute('data-test-script-state') : '';
  if (now === 'running' && window.state !== 'running') window.runs += 1;
  window.state = now;
}, 5);
"""
"""Counts the runs of the page's script."""
SHOWN = """(runs) => (window.runs > runs && window.state === 'notRunning'
    || runs === 0 && window.state === 'initial')
  && document.querySelector('[data-testid=stMain] h1')
  && !document.querySelector('[data-testid=stSkeleton]')
  && [...document.querySelectorAll('[data-testid=stVegaLiteChart]')].every(chart => chart.querySelector('canvas, svg'))"""
"""The script has ended, and what it wrote is drawn. That of the empty page ends before its state is
seen."""


class Figures(NamedTuple):
    """Of a page: seconds and MB; `None` where there is no filter to change, or the page showed an
    error.
    """

    first: float
    again: float
    filtered: float | None
    memory: float
    error: str


@contextmanager
def served(command: list[str], url: str, folder: Path) -> Iterator[tuple[str, int]]:
    """The address and process of a server that runs this command with a port."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    env = os.environ | {"PYTHONPATH": str(ROOT), "BREAKEVEN_DB": url}
    with (folder / "server.log").open("a") as log:
        process = subprocess.Popen(
            [*command, str(port)], stdout=log, stderr=log, cwd=folder, env=env
        )
    try:
        while True:
            try:
                with urllib.request.urlopen(f"http://localhost:{port}/_stcore/health", timeout=1):
                    break
            except OSError:
                assert process.poll() is None, (folder / "server.log").read_text()
                time.sleep(0.05)
        yield f"http://localhost:{port}", process.pid
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)


def load(browser: Browser, address: str) -> tuple[Page, float]:
    """A new visit, and seconds until all of it is drawn."""
    page = browser.new_context(viewport={"width": 1440, "height": 1000}).new_page()
    page.add_init_script(WATCH)
    began = time.perf_counter()
    page.goto(address)
    page.wait_for_function(SHOWN, arg=0, timeout=WAIT_MS)
    return page, time.perf_counter() - began


def change_filter(page: Page) -> float | None:
    """Seconds from the choice of another batch, or another model, until all is drawn; `None`
    without this filter.
    """
    for name in ("Batch", "Model"):
        box = page.get_by_role("combobox", name=name, exact=False)
        if box.count() == 0:
            continue
        chosen = box.first.input_value()
        box.first.click()
        options = page.get_by_role("option")
        options.first.wait_for(timeout=WAIT_MS)
        other = [text for text in options.all_inner_texts() if text != chosen]
        if not other:
            page.keyboard.press("Escape")
            continue
        runs = page.evaluate("window.runs")
        began = time.perf_counter()
        page.get_by_role("option", name=other[0], exact=True).click()
        page.wait_for_function(SHOWN, arg=runs, timeout=WAIT_MS)
        return time.perf_counter() - began
    return None


def measure(browser: Browser, command: list[str], path: str, url: str, folder: Path) -> Figures:
    """One page on a server that was just started."""
    with served(command, url, folder) as (address, pid):
        page, first = load(browser, f"{address}/{path}")
        page.context.close()
        page, again = load(browser, f"{address}/{path}")
        filtered = change_filter(page)
        exception = page.locator("[data-testid=stException]")
        error = exception.first.inner_text().splitlines()[0] if exception.count() else ""
        page.context.close()
        return Figures(first, again, filtered, psutil.Process(pid).memory_info().rss / 1e6, error)


def main(url: str, names: list[str]) -> None:
    options = [f"--{name}={value}" for name, value in STREAMLIT_OPTIONS.items()]
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        (folder / "empty.py").write_text(EMPTY)
        empty = [
            sys.executable,
            "-m",
            "streamlit",
            "run",
            "empty.py",
            *options,
            "--server.headless=true",
            "--server.port",
        ]
        app = [sys.executable, "-m", "webapp", "app", "--no-browser", "--db", url, "--port"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        load_average = os.getloadavg()[0]
        print(
            f"{url}; load average {load_average:.1f} on {os.cpu_count()} cores; at most {FIRST_S:g}"
            " s above the empty page,"
        )
        print(f"{FILTER_S:g} s for a filter and {MEMORY_MB:g} MB wanted for 100 000 comparisons")
        print(
            f"{'page':10} {'first s':>8} {'above':>7} {'again s':>8} {'above':>7} {'filter s':>9}"
            f" {'MB':>6}"
        )
        reference = measure(browser, empty, "", url, folder)
        print(
            f"{'(empty)':10} {reference.first:8.2f} {'':7} {reference.again:8.2f} {'':7} {'':9}"
            f" {reference.memory:6.0f}",
            flush=True,
        )
        for page in names or PAGES:
            found = measure(browser, app, PAGES[page], url, folder)
            filtered = "" if found.filtered is None else f"{found.filtered:.2f}"
            above = (found.first - reference.first, found.again - reference.again)
            beyond = (
                above[0] > FIRST_S
                or above[1] > FIRST_S
                or (found.filtered or 0) > FILTER_S
                or found.memory > MEMORY_MB
            )
            line = (
                f"{page:10} {found.first:8.2f} {above[0]:7.2f} {found.again:8.2f} {above[1]:7.2f}"
                f" {filtered:>9} {found.memory:6.0f}"
            )
            print(
                f"{line}{'  beyond' if beyond else ''}{'  ' + found.error if found.error else ''}",
                flush=True,
            )
        browser.close()


if __name__ == "__main__":
    main(str(Path(sys.argv[1]).resolve()), sys.argv[2:])
