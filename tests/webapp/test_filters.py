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


def test_what_was_requested(counts: pd.DataFrame) -> None:
    """Values of the address are taken where they exist."""
    plan = plan_choices(
        "batches", counts, {"batch": ["2"], "method": ["topk", "magic"], "model": ["resnet"]}
    )
    assert chosen(plan)["batch"] == "2"
    assert plan.scope.chosen["method"] == ("topk",)
    assert plan.scope.fixed["model"] == "deit_small_patch16_224"


def test_a_facet_leaves_its_column_free(counts: pd.DataFrame, filled: str) -> None:
    """With a panel for each batch the batch is not fixed, and the points of both are read."""
    plan = plan_choices("batches", counts, {"panels": ["batch"]})
    assert plan.scope.facet == "batch_size"
    assert "batch_size" not in plan.scope.fixed
    points, break_evens = stored.read(filled, queries.scope_points, plan.scope)
    assert set(points["batch_size"]) == set(break_evens["batch_size"]) == {1, 2}


def test_rows_of_a_scope(counts: pd.DataFrame, filled: str) -> None:
    """Rows of views in a scope are those of its conditions and arms; its SQL returns the same."""
    scope = plan_choices("batches", counts, {"batch": ["2"], "method": ["topk"]}).scope
    points, _ = stored.read(filled, queries.scope_points, scope)
    assert set(points["batch_size"]) == {2}
    assert set(points["arm"]) == {"topk keep_rate=0.5", "topk keep_rate=0.7"}
    assert len(stored.read(filled, queries.scope_rows, scope, "effect")) == len(points)
    sql = queries.scope_sql(scope)
    assert "speedup.batch_size = 2" in sql
    assert stored.read(filled, queries.scope_points, scope)[0]["speedup"].equals(points["speedup"])


def test_facets_on_the_page(opened: Open, filled: str) -> None:
    """A panel for each batch: a headline, and curves along two axes."""
    app = opened(filled, sweep="batches", panels="batch")
    assert page_text(app).count("Simulated CPU · float32") == 2
    assert len(charts(app)) == 4


def test_an_arm_of_the_address(opened: Open, filled: str) -> None:
    """An arm in the address is highlighted; one that is not there is reported."""
    app = opened(filled, sweep="quickstart", arm="topk keep_rate=0.7")
    assert app.selectbox(key="arm").value == "topk keep_rate=0.7"
    assert "The address has arm=nothing, which is not known here." in page_text(
        opened(filled, sweep="quickstart", arm="nothing")
    )


def test_a_running_sweep_is_named(opened: Open, filled: str) -> None:
    """The strip counts the jobs of a sweep that runs."""
    assert "batches on cpu: 15 of 16 jobs ended" in page_text(opened(filled, sweep="batches"))
    assert "jobs ended" not in page_text(opened(filled, sweep="quickstart"))
