"""The work of a page ends soon after the tab that shows it."""

import time
from collections.abc import Callable
from urllib.parse import quote_plus

import psutil
import pytest
from playwright.sync_api import BrowserContext

from tests.fixtures import big_store
from tests.webapp.conftest import Made
from webapp.screens.sql import SECONDS as SQL_SECONDS

SECONDS = 5.0
QUERY = quote_plus(
    "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 2000000000)"
    " SELECT max(n) FROM c"
)


def server_at(address: str) -> psutil.Process:
    """The process that listens there."""
    port = int(address.rpartition(":")[2])
    (pid,) = {
        each.pid
        for each in psutil.net_connections("tcp")
        if each.status == psutil.CONN_LISTEN and each.laddr[1:] == (port,)
    }
    return psutil.Process(pid)


def cpu_share(process: psutil.Process, seconds: float) -> float:
    """The cores that a process uses on average in the next seconds."""
    before, began = process.cpu_times(), time.monotonic()
    time.sleep(seconds)
    after, took = process.cpu_times(), time.monotonic() - began
    return (after.user + after.system - before.user - before.system) / took


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "limit_s"), [("history?sweep=large", SECONDS), (f"sql?sql={QUERY}", SQL_SECONDS)]
)
def test_work_ends_soon_after_its_tab(
    served: Callable[[str], str],
    context: BrowserContext,
    made: Made,
    path: str,
    limit_s: float,
) -> None:
    """A tab is closed while its page computes: History of 8 500 effects, and a query without an
    end. The server does nothing any more after a few seconds, and after the time that a query has.
    """
    address = served(str(made("closed.db", lambda file: big_store.fill(file, 6000))))
    server, page = server_at(address), context.new_page()
    page.goto(f"{address}/{path}", wait_until="commit")
    until = time.monotonic() + 60
    while cpu_share(server, 1.0) < 0.5:
        assert time.monotonic() < until
    page.close()
    time.sleep(limit_s)
    assert cpu_share(server, SECONDS) < 0.5
