"""The page Promise on real stores: shares of methods, the chart with links, and the map along any
two axes.
"""

import re

from tests.webapp.conftest import Open
from tests.webapp.page_elements import page_text

PAGE = "screens/promise.py"


def test_shares_and_map(opened: Open, filled: str) -> None:
    """A sentence for each method, with the points that it rests on; two charts: the promise and the
    map.
    """
    page = opened(filled, PAGE, sweep="quickstart")
    words = page_text(page)
    assert "random (control): " in words
    assert "of the promised saving arrives at the median (" in words
    assert "tome: none of the promised saving arrives at the median" in words
    shares = re.search(r"topk (\d+) %, tome (−\d+) % of the promised saving arrives ", words)
    assert shares is not None
    assert f"topk: {shares[1]} % of" in words
    assert f"at the median, {shares[2]} %" in words
    assert len(page.get("vega_lite_chart")) == 2
    assert not page.exception


def test_axes_of_the_map_are_in_the_address(opened: Open, filled: str) -> None:
    """Rows and columns are chosen among what varies in the sweep, and a link keeps them."""
    page = opened(filled, PAGE, sweep="batches", down="Method", across="Arm")
    assert page.selectbox(key="down").options == ["Arm", "Method", "Batch"]
    assert (page.selectbox(key="down").value, page.selectbox(key="across").value) == (
        "Method",
        "Arm",
    )
    page.selectbox(key="down").set_value("Batch").run()
    assert not page.exception
    assert page.selectbox(key="across").options == ["Arm", "Method"]


def test_a_panel_for_each_batch(opened: Open, filled: str) -> None:
    """With panels by batch there is a chart of the promise for each, and one map."""
    page = opened(filled, PAGE, sweep="batches", panels="batch")
    assert len(page.get("vega_lite_chart")) == 3
    assert "Batch: 2" in page_text(page)
