"""The page Home: every sweep with the answer that its own page gives, read by one query a view."""

from pathlib import Path

from sqlalchemy import event

from store.open.engine import connect, connect_readonly
from store.write.submission import NewSweep, submit_sweep
from tests.webapp import stored
from tests.webapp.conftest import Open
from tests.webapp.page_elements import html_texts
from webapp import queries
from webapp.widgets.answers import overviews

PAGE = "screens/home.py"


def test_every_sweep_has_its_answer(opened: Open, large: str) -> None:
    """The headline is that of the page Answer of the sweep; it has its age, and whether it is
    new.
    """
    names = tuple(row["name"] for row in stored.read(large, queries.measured_sweeps))
    known = stored.read(large, overviews, names)
    words = " ".join(html_texts(opened(large, PAGE)))
    assert f"{len(names)} of {len(names)} sweeps new in the last seven days" in words
    for name in names:
        assert f"{known[name].headline} " in words
        assert known[name].headline in html_texts(opened(large, sweep=name))
        assert any(value for _, points in known[name].curves for _, value in points)


def test_a_sweep_without_a_speedup(opened: Open, tmp_path: Path) -> None:
    url = str(tmp_path / "waiting.db")
    submit_sweep(connect(url), NewSweep("trial", "text", "What pays?"), [], [])
    assert "No speed-up was measured" in " ".join(html_texts(opened(url, PAGE)))


def test_one_query_for_all_sweeps(large: str) -> None:
    """Its number does not grow with the sweeps."""
    counted = []
    for names in (("large",), ("large", "repeated", "language", "running")):
        engine = connect_readonly(large)
        statements: list[str] = []
        event.listen(
            engine, "before_cursor_execute", lambda *given, kept=statements: kept.append(given[2])
        )
        assert set(overviews.__wrapped__(engine, names)) == set(names)
        counted.append(sum("FROM" in text for text in statements))
        engine.dispose()
    assert counted[0] == counted[1] == 3
