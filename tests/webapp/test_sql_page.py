"""The page SQL: examples that run, results to keep, and errors in plain words."""

import io

import pandas as pd
import pytest

from store.errors import StoreError
from store.read.user_sql import EXAMPLES, Result, run_query
from store.views.public import TABLES
from sweeps.model.flags import split_flags, wrong
from sweeps.stats.pooling import realised_of
from tests.webapp import stored
from tests.webapp.conftest import Open
from tests.webapp.page_elements import page_text
from webapp.screens import sql as sql_page
from webapp.screens.sql import frame_of, parquet

PAGE = "screens/sql.py"


def test_examples_find_rows(opened: Open, large: str) -> None:
    """Each runs with the name of a sweep, which the page puts there, and fits a Parquet file, as
    every view does.
    """
    for title, sql in EXAMPLES.items():
        found = frame_of(run_query(large, sql.replace("{sweep}", "large"), seconds=10, rows=200))
        assert not found.empty, title
    for view in TABLES:
        found = frame_of(run_query(large, f"SELECT * FROM {view} LIMIT 200"))
        assert len(pd.read_parquet(io.BytesIO(parquet(found)))) == len(found)
    app = opened(large, PAGE)
    app.selectbox(key="example").set_value("Where it pays").run()
    assert not app.dataframe[0].value.empty


def test_the_share_that_arrives_is_that_of_promise(opened: Open, filled: str) -> None:
    """The median over the points whose promise is more than nothing, those left out that a flag
    marks as wrong.
    """
    sql = EXAMPLES["How much of the promise arrives"].replace("{sweep}", "quickstart")
    found = {
        (row["method"], row["metric"]): row
        for row in frame_of(run_query(filled, sql, seconds=10, rows=100)).to_dict("records")
    }
    points = stored.labelled_speedups("quickstart", filled)[0]
    right = points[~points["flags"].map(lambda flags: wrong(split_flags(flags))).astype(bool)]
    parts = {
        (own["method"].iloc[0], own["metric"].iloc[0]): own
        for _, own in right.groupby(["method", "metric"])
    }
    shares = {
        key: share for key, own in parts.items() if (share := realised_of(own["realised_share"]))
    }
    assert shares.keys() == found.keys()
    assert len(right) < len(points)
    for key, share in shares.items():
        assert (found[key]["median"], found[key]["points"]) == (
            pytest.approx(share.median, abs=0.005),
            share.points,
        )


def test_errors_are_plain(opened: Open, filled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also that of a query that takes longer than it may, a fiftieth of the page's limit here."""
    endless = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    )
    monkeypatch.setattr(sql_page, "SECONDS", sql_page.SECONDS / 50)
    monkeypatch.setenv("BREAKEVEN_DB", filled)
    for sql, why in (
        ("DELETE FROM sweep", "only reading is allowed"),
        ("SELECT spedup FROM speedup", "did you mean speedup"),
        (endless, "it took longer than 0.2 s"),
    ):
        with pytest.raises(StoreError, match=why):
            sql_page.result_of(sql)
    app = opened(filled, PAGE, sql="SELECT 1; SELECT 2")
    assert "one statement at a time" in page_text(app)
    assert not app.dataframe


def test_results_can_be_kept() -> None:
    """Columns of one name, blobs, and columns of mixed types fit a Parquet file; texts stay as they
    are.
    """
    result = Result(
        ("a", "a", "blob", "mixed"),
        [(1, "x", b"123", 1), (None, "=1+1", None, "one")],
        truncated=False,
    )
    found = frame_of(result)
    assert list(found.columns) == ["a", "a (2)", "blob", "mixed"]
    again = pd.read_parquet(io.BytesIO(parquet(found)))
    assert again["mixed"].tolist() == ["1", "one"]
    assert again["blob"].iloc[0] == "3 bytes"
    assert again["a (2)"].tolist() == ["x", "=1+1"]
