"""Filters: one panel by default, the fullest; choices narrow what follows; what does not exist is
reported.
"""

import pandas as pd
import pytest

from tests.webapp import stored
from tests.webapp.conftest import Open
from tests.webapp.page_elements import charts, page_text
from webapp import queries
from webapp.widgets.filters import FilterPlan, plan_choices


@pytest.fixture(scope="module")
def counts(filled: str) -> pd.DataFrame:
    return stored.read(filled, queries.panels, "batches")


def chosen(plan: FilterPlan) -> dict[str, str]:
    return {choice.key: choice.value for choice in plan.choices}


def test_the_fullest_panel_is_the_default(counts: pd.DataFrame) -> None:
    """Batch 1 is measured at all sizes, batch 2 lacks one; a column with one value offers no
    choice.
    """
    plan = plan_choices("batches", counts, {})
    assert chosen(plan) == {"panels": "one panel", "batch": "1"}
    assert plan.scope.fixed["batch_size"] == 1
    assert plan.scope.fixed["new_tokens"] is None


def test_a_facet_leaves_its_column_free(counts: pd.DataFrame, filled: str) -> None:
    """With a panel for each batch the batch is not fixed, and the points of both are read."""
    plan = plan_choices("batches", counts, {"panels": ["batch"]})
    assert plan.scope.facet == "batch_size"
    assert "batch_size" not in plan.scope.fixed
    points, break_evens = stored.read(filled, queries.scope_points, plan.scope)
    assert set(points["batch_size"]) == set(break_evens["batch_size"]) == {1, 2}


def test_rows_of_a_scope(counts: pd.DataFrame, filled: str) -> None:
    """Values of the address are taken where they exist; rows of views are those of the conditions
    and arms.
    """
    requested = {"batch": ["2"], "method": ["topk", "magic"], "model": ["resnet"]}
    plan = plan_choices("batches", counts, requested)
    scope = plan.scope
    assert chosen(plan)["batch"] == "2"
    assert scope.chosen["method"] == ("topk",)
    assert scope.fixed["model"] == "deit_small_patch16_224"
    points, _ = stored.read(filled, queries.scope_points, scope)
    assert set(points["batch_size"]) == {2}
    assert set(points["arm"]) == {"topk keep_rate=0.5", "topk keep_rate=0.7"}
    assert len(stored.read(filled, queries.scope_rows, scope, "effect")) == len(points)
    assert "speedup.batch_size = 2" in queries.scope_sql(scope)


def test_facets_on_the_page(opened: Open, filled: str) -> None:
    """A panel for each batch: a headline, and curves along two axes."""
    app = opened(filled, sweep="batches", panels="batch")
    assert page_text(app).count("Simulated CPU · float32") == 2
    assert len(charts(app)) == 4


def test_an_arm_of_the_address(opened: Open, filled: str) -> None:
    """An arm in the address is highlighted; one that is not there is reported, as are a sweep, a
    batch and a parameter; the newest measured sweep, which is shown instead, stands in the address.
    """
    app = opened(filled, sweep="quickstart", arm="topk keep_rate=0.7")
    assert app.selectbox(key="arm").value == "topk keep_rate=0.7"
    assert "jobs ended" not in page_text(app)
    app = opened(filled, sweep="qickstart", batch="77", bacth="1", arm="nothing")
    words = page_text(app)
    for reported in (
        "The address has sweep=qickstart, which is not known here; batches is shown.",
        "The address has batch=77, which is not known here; 1 is shown.",
        "The address has bacth, which this page does not take.",
        "The address has arm=nothing, which is not known here.",
        "batches on cpu: 15 of 16 jobs ended",
    ):
        assert reported in words
    assert app.query_params["sweep"] == "batches"
