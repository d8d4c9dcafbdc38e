"""Below the pairs that a sweep requires no number of a speed-up stands on a page, and nothing
follows from its interval.
"""

import re

import pytest

from sweeps.model.job import DENSE, Job, Protocol
from tests.webapp import stored
from tests.webapp.conftest import Open
from tests.webapp.page_elements import OPEN_TABLE, charts, html_texts, page_text, point_tables
from tests.webapp.simulated import ROUNDS, SIZES, job, outcome, store_sweep, tome, topk
from webapp.charts import panels
from webapp.charts.curves import draw_panel
from webapp.charts.panels import ranked_arms
from webapp.display.arm_style import arm_styles
from webapp.screens import answer, explain

REQUIRED = 100
ARMS = (DENSE, topk(0.5), tome(0.02))
MULTIPLIER = re.compile(r"\d(×|x\b)")
REACHED = f"{ROUNDS} of {REQUIRED} pairs"


def requiring(size: int, pairs: int) -> Job:
    return job(size, arms=ARMS).model_copy(
        update={"protocol": Protocol(pairs_min=pairs, pairs_max=300)}
    )


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Sweep `few`, all of whose points have 40 of 100 pairs, and sweep `mixed`, where those of the
    largest size have.
    """
    url = str(tmp_path_factory.mktemp("few") / "few.db")
    store_sweep(url, "few", [requiring(size, REQUIRED) for size in SIZES[:3]], outcome)
    store_sweep(url, "one", [requiring(SIZES[3], REQUIRED)], outcome)
    store_sweep(
        url,
        "mixed",
        [requiring(size, REQUIRED if size == SIZES[-1] else 30) for size in SIZES[4:]],
        outcome,
    )
    return url


def test_nothing_is_ranked_or_claimed_by_them(short: str) -> None:
    """Neither the best arm nor its best speed-up nor the arm that falls short most is one with too
    few pairs.
    """
    points, break_evens = stored.labelled_speedups("mixed", short)
    few = points["verdict"] == "insufficient"
    absurd = points.assign(
        speedup=points["speedup"].mask(few, 50.0), speedup_low=points["speedup_low"].mask(few, 40.0)
    )
    nothing = break_evens.iloc[:0]
    assert ranked_arms(absurd, nothing) == ranked_arms(points[~few], nothing)
    promised = explain.add_promises(points)
    wrongly = promised.assign(
        promised=promised["promised"].mask(few & (points["method"] == "topk"), 1e6)
    )
    assert explain.most_surprising(wrongly) == explain.most_surprising(promised[~few])
    (panel,) = panels.curve_panels(absurd, break_evens)
    known = answer.answers_of_panel(panel, "tokens")
    rows = answer.arm_rows(known, arm_styles(points), {}, "mixed")
    assert {row.last for row in rows} == {REACHED}
    assert max(speedup for row in rows for _, speedup in row.curve if speedup) < 5


def test_their_intervals_are_not_drawn(short: str) -> None:
    """A wide interval of too few pairs neither stands in the chart nor stretches its axis, and the
    line ends there.
    """
    points, break_evens = stored.labelled_speedups("mixed", short)
    few = points["verdict"] == "insufficient"
    ends = {"speedup_low": 0.01, "speedup_high": 100.0}
    wide = points.assign(**{name: points[name].mask(few, end) for name, end in ends.items()})
    (view,) = panels.panel_infos(wide, break_evens)
    spec = draw_panel(view).to_dict()
    (marks,) = [layer for layer in spec["layer"] if "shape" in layer["encoding"]]
    for row in spec["datasets"][marks["data"]["name"]]:
        assert (row["speedup_low"] is None) == (row["word"] == "too few pairs")
    assert max(marks["encoding"]["y"]["scale"]["domain"]) < 3
    lines = [each for each in spec["layer"] if each["mark"]["type"] == "line"]
    lines = [each for each in lines if "strokeDash" in each["encoding"]]
    drawn = [row for layer in lines for row in spec["datasets"][layer["data"]["name"]]]
    open_ends = [row["x"] for row in drawn if row["speedup"] is None]
    assert sorted(open_ends) == sorted(points.loc[few, "tokens"])


@pytest.mark.parametrize("sweep", ["few", "one"])
def test_pages_show_pairs(opened: Open, short: str, sweep: str) -> None:
    """Answer, Promise, Explain and Evidence, along sizes and at one size: counts, and no multiplier
    but what MACs promise.
    """
    answer = opened(short, sweep=sweep, **OPEN_TABLE)
    words = page_text(answer)
    assert REACHED in words
    assert not MULTIPLIER.search(words)
    (table,) = point_tables(answer)
    assert "Speed-up" not in table
    assert set(table["Verdict"]) == {"too few pairs"}
    assert "promised saving arrives" not in page_text(
        opened(short, "screens/promise.py", sweep=sweep)
    )
    query = {"sweep": sweep, "arm": "topk keep_rate=0.5", "more": "In words"}
    explain = opened(short, "screens/explain.py", **query)
    assert "was measured" not in " ".join(html_texts(explain))
    assert not charts(explain)
    points, _ = stored.labelled_speedups(sweep, short)
    point = opened(short, "screens/point.py", id=points["comparison_id"].iloc[0])
    assert REACHED in page_text(point)
    assert charts(point)
