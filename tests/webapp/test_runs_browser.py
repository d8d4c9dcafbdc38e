"""The pages Runs and SQL in a real browser: dark and narrow, live progress without losing
choices, results to keep.
"""

import csv
from pathlib import Path

from playwright.sync_api import Browser, expect

from store.open.engine import connect
from store.rows.owners import owner
from store.write.queue import claim
from store.write.record import record
from store.write.submission import NewSweep, submit_sweep
from tests.webapp.served import FITS, WAIT_MS, Watch, choose, served_app
from tests.webapp.simulated import job, outcome


def test_runs_and_sql(app: str, browser: Browser) -> None:
    """Both come up at 800 px with nothing cut off; an example is chosen, runs, stands in the
    address and is kept as CSV.
    """
    context = browser.new_context(color_scheme="dark", viewport={"width": 800, "height": 900})
    page = context.new_page()
    watch = Watch(page, app)
    page.goto(f"{app}/runs?sweep=quickstart")
    expect(page.get_by_text("breakeven run quickstart --remeasure --only failed")).to_be_visible(
        timeout=WAIT_MS
    )
    expect(page.get_by_role("heading", name="Nodes and devices")).to_be_visible()
    page.wait_for_function(FITS, timeout=WAIT_MS)
    page.get_by_role("link", name="SQL", exact=True).click()
    choose(page, "Queries to begin with", "Where it pays")
    expect(page.get_by_text("5 rows, 8 columns")).to_be_visible(timeout=WAIT_MS)
    assert "sql=SELECT" in page.url
    page.wait_for_function(FITS, timeout=WAIT_MS)
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV", exact=True).click()
    with download.value.path().open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 5
    watch.check()
    context.close()


def test_progress_is_live(browser: Browser, tmp_path: Path) -> None:
    """The counts follow the queue by themselves, while what was opened on the page stays open."""
    url = str(tmp_path / "work.db")
    engine = connect(url)
    jobs = [job(size) for size in (32, 64, 96)]
    row = submit_sweep(engine, NewSweep("live", "name: live", "Does it pay?"), jobs, jobs)
    page = browser.new_page()
    with served_app(url, tmp_path) as address:
        watch = Watch(page, address)
        page.goto(f"{address}/runs")
        expect(page.get_by_text("live on cpu: 0 of 3 jobs ended")).to_be_visible(timeout=WAIT_MS)
        for ended in (1, 2):
            (queued,) = claim(engine, row, owner=owner(), limit=1)
            record(engine, queued.row, owner(), outcome(queued.job))
            expect(page.get_by_text(f"live on cpu: {ended} of 3 jobs ended")).to_be_visible(
                timeout=WAIT_MS
            )
        watch.check()
        page.close()
    engine.dispose()
