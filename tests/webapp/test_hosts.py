"""Charts and pages of what two hosts measured: a panel for each, named, and what its curves lack in
words.
"""

import pytest

from store.open.engine import connect
from store.write.record import record
from tests.webapp import stored
from tests.webapp.conftest import Open
from tests.webapp.page_elements import page_text
from tests.webapp.simulated import job, outcome, store_sweep
from webapp.charts import panels

SIZES = (64, 96, 128, 160, 192)


@pytest.fixture(scope="module")
def two_hosts(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A sweep measured whole on one host, and at three of its five sizes on another."""
    url = str(tmp_path_factory.mktemp("hosts") / "hosts.db")
    store_sweep(url, "hosts", [job(size) for size in SIZES], outcome)
    engine = connect(url)
    for size in SIZES[:3]:
        record(engine, None, None, outcome(job(size)).model_copy(update={"host": "lost"}))
    engine.dispose()
    return url


def test_each_host_has_its_panel(two_hosts: str) -> None:
    """No panel mixes points of two hosts; titles name them, and one host alone goes unnamed."""
    points, break_evens = stored.labelled_speedups("hosts", two_hosts)
    found = list(panels.curve_panels(points, break_evens))
    assert [(panel.about["host"], len(panel.points)) for panel in found] == [
        ("lost", 15),
        ("simulated", 25),
    ]
    assert {frozenset(panel.break_evens["host"]) for panel in found} == {
        frozenset(["lost"]),
        frozenset(["simulated"]),
    }
    titles = [
        str(view["vconcat"][0]["title"]["subtitle"])
        for view in stored.drawn_speedups(points, break_evens).to_dict()["vconcat"]
    ]
    assert ["host lost" in titles[0], "host simulated" in titles[1]] == [True, True]
    alone = stored.drawn_speedups(points[points["host"] == "simulated"], break_evens).to_dict()
    assert "host" not in str(alone["vconcat"][0]["vconcat"][0]["title"])


def test_the_page_names_what_a_curve_lacks(opened: Open, two_hosts: str) -> None:
    """One host is shown, by default that with most points; sentences of incomplete curves end with
    what is missing.
    """
    assert "missing" not in page_text(opened(two_hosts, sweep="hosts"))
    words = page_text(opened(two_hosts, sweep="hosts", host="lost"))
    assert words.count("incomplete, 2 of 5 points are missing on host lost") >= 3
    assert "missing on host simulated" not in words
