"""A sweep that a real `breakeven run` measures, watched in a real browser from its first job to its
answer.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect

from store.open.engine import connect_readonly
from store.read.queries import sweep_list
from tests.orchestrator.commands import ROOT, SWEEP
from tests.webapp.served import CHART, WAIT_MS, Watch, new_page, served_app

pytestmark = pytest.mark.ray

RUN_MS = 200_000


def test_a_run_is_watched_until_it_ends(context: BrowserContext, tmp_path: Path) -> None:
    """The page follows the dispatcher without a reload; what was opened on it stays open; then the
    answer is there.
    """
    (tmp_path / "tiny.yaml").write_text(SWEEP.replace("[32, 48, 64]", "[32, 48]"))
    url, log = str(tmp_path / "breakeven.db"), tmp_path / "run.log"
    command = [sys.executable, "-m", "orchestrator", "run", "tiny.yaml", "--db", url]
    with log.open("w") as out:
        run = subprocess.Popen(
            command,
            cwd=tmp_path,
            stdout=out,
            stderr=out,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    try:
        while not (tmp_path / "breakeven.db").exists():
            assert run.poll() is None, log.read_text()
            time.sleep(0.1)
        with served_app(url, tmp_path) as address:
            page, engine = new_page(context), connect_readonly(url)
            watch = Watch(page, address)
            while not sweep_list(engine):
                assert run.poll() is None, log.read_text()
                time.sleep(0.1)
            engine.dispose()
            page.goto(f"{address}/runs")
            expect(page.get_by_text("tiny on cpu:")).to_contain_text("running,", timeout=RUN_MS)
            expect(page.get_by_text("Nothing is waiting or running.")).to_be_visible(timeout=RUN_MS)
            assert run.wait(timeout=60) in (0, 1), log.read_text()
            page.get_by_role("link", name="Answer", exact=True).click()
            expect(
                page.get_by_role("heading", name="Does it run from one end to the other?")
            ).to_be_visible(timeout=WAIT_MS)
            expect(page.locator(CHART).first).to_be_visible(timeout=WAIT_MS)
            watch.check()
    finally:
        run.terminate()
        run.wait(timeout=60)
    assert "Traceback" not in log.read_text()
