"""The page History, on a store in which one of two arms becomes slower on a known day."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect
from sqlalchemy import event

from store.open.engine import connect_readonly
from store.read.evidence.history import measured_days, sweep_trends
from tests.fixtures.nightly import RATES, chain
from tests.webapp.conftest import Open
from tests.webapp.page_elements import page_text
from tests.webapp.served import CHART, WAIT_MS, Watch, box_of, new_page
from webapp.charts.compare import trend_info
from webapp.display.arm_style import ArmStyle

FELL = "topk keep_rate=0.5, 196 tokens: 4.9 % slower since 27 Sep 14:16"
WHAT = "commit 0000005 → 0000006, torch 2.14.0 → 2.15.0"


@pytest.fixture(scope="module")
def falling(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Ten days, the first arm 5 % slower from the seventh on."""
    path = tmp_path_factory.mktemp("falling") / "x.db"
    chain(path, 0, falls=6)
    return str(path)


def test_the_chart(falling: str) -> None:
    """One rule, between the last day before and the first one after, with what changed beside it;
    every measurement with its interval.
    """
    engine = connect_readonly(falling)
    trends = sweep_trends(engine, "nightly")
    assert measured_days(engine, "nightly") == 9
    engine.dispose()
    named = {f"arm {number}": each for number, each in enumerate(trends)}
    info = trend_info(named, {arm: ArmStyle("#1a70b8", [1, 0]) for arm in named})
    assert len(info.rows) == 10 * len(RATES)
    assert (info.rows["low"] < info.rows["speedup"]).all()
    assert (info.rows["speedup"] < info.rows["high"]).all()
    (lines,), (texts,) = info.lines, info.texts
    (moved,) = (arm for arm, each in named.items() if each.changes)
    days = info.rows.loc[info.rows["arm"] == moved, "at"].to_list()
    assert set(lines.rows["at"]) == {days[5] + (days[6] - days[5]) / 2}
    assert set(lines.rows["arm"]) == {moved}
    assert list(texts.rows["text"]) == [WHAT]
    assert list(texts.rows["late"]) == [True]


def test_only_what_is_shown_is_read(large: str) -> None:
    """The trends of a few comparisons are those among all of the sweep, read by as many queries as
    they need; the page asks for those of its scope.
    """
    engine, queries_of = connect_readonly(large), []
    every = {each.question_id: each for each in sweep_trends(engine, "large", "latency")}
    few = frozenset(list(every)[:3])
    assert len(every) > 500
    event.listen(engine, "before_cursor_execute", lambda *given: queries_of.append(given[2]))
    assert sweep_trends(engine, "large", "latency", few) == [every[one] for one in sorted(few)]
    assert len(queries_of) < 20
    engine.dispose()


def test_the_page(falling: str, served: Callable[[str], str], context: BrowserContext) -> None:
    """The fall is the headline and what assistive technology reads; Answer leads there; arms are
    chosen by chips, which stand in the address.
    """
    address = served(falling)
    page = new_page(context, 1440, 900)
    watch = Watch(page, address)
    page.goto(f"{address}/?sweep=nightly")
    page.get_by_role("link", name="How it moved in 10 days").click(timeout=WAIT_MS)
    page.wait_for_url("**/history?sweep=nightly*")
    expect(page.get_by_role("heading", name=FELL)).to_be_visible(timeout=WAIT_MS)
    expect(page.get_by_text(f"Changed: {WHAT}").first).to_be_visible()
    chart = page.locator("[data-testid=stVegaLiteChart]:has(.marks):not(.st-key-unseen *)")
    expect(page.locator(CHART)).to_have_count(1, timeout=WAIT_MS)
    assert chart.get_attribute("aria-label") == FELL
    table = page.get_by_role("region", name="Comparisons")
    assert box_of(table)["y"] < 900
    expect(table.get_by_role("row")).to_have_count(1 + len(RATES))
    beside = page.locator("[data-testid=stVegaLiteChart] text", has_text=WHAT)
    expect(beside).to_have_count(1, timeout=WAIT_MS)
    page.get_by_role("button", name="Remove topk keep_rate=0.5").click()
    page.wait_for_url("**arms=topk+keep_rate%3D0.7*", timeout=WAIT_MS)
    expect(beside).to_have_count(0, timeout=WAIT_MS)
    watch.check()


def test_a_fall_of_one_day_is_possible(opened: Open, tmp_path: Path) -> None:
    """A sentence beside the summary, and no headline."""
    chain(tmp_path / "x.db", 0, falls=9)
    words = page_text(opened(str(tmp_path / "x.db"), "screens/history.py", sweep="nightly"))
    assert "topk keep_rate=0.5, 196 tokens: possible: " in words
    assert "a second day like it would be a change." in words
    assert "Changed: " not in words
