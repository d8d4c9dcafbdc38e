"""Break-evens by runtime on page Answer."""

from pathlib import Path

from sweeps.model.condition import Runtime
from sweeps.model.job import DENSE, Job
from tests.webapp import stored
from tests.webapp.simulated import SIZES, job, outcome, store_sweep, tome, topk
from webapp.charts import panels
from webapp.display.axis_curves import curves_along
from webapp.screens import answer

ARMS = (DENSE, topk(0.5), tome(0.02))


def with_runtime(size: int, runtime: Runtime) -> Job:
    requested = job(size, arms=ARMS)
    condition = requested.condition.model_copy(update={"runtime": runtime})
    return requested.model_copy(update={"condition": condition})


def table_of(url: str, name: str, runtimes: tuple[Runtime, ...]) -> list[list[str]] | None:
    """Rows of the table, each with its runtime, below the names of the columns."""
    jobs = [with_runtime(size, runtime) for runtime in runtimes for size in SIZES]
    store_sweep(url, name, jobs, outcome)
    points, break_evens = curves_along(*stored.labelled_speedups(name, url), "tokens")
    (panel,) = panels.curve_panels(points, break_evens)
    found = answer.break_evens_by_runtime(answer.answers_of_panel(panel, "tokens"))
    if found is None:
        return None
    return [["", *found.columns], *found.reset_index().to_numpy().tolist()]


def test_each_runtime_has_a_row(tmp_path: Path) -> None:
    """With the bracket that its curve has in the view; one runtime alone needs no table."""
    url = str(tmp_path / "runtimes.db")
    assert table_of(url, "one", ("eager",)) is None
    found = table_of(url, "two", ("eager", "openvino"))
    assert found is not None
    head, *rows = found
    assert sorted(row[0] for row in rows) == ["eager float32", "openvino float32"]
    _, break_evens = stored.labelled_speedups("two", url)
    claims = break_evens[(break_evens["axis"] == "tokens") & (break_evens["method"] == "topk")]
    assert set(claims["verdict"]) == {"crossing"}
    brackets = {
        f"{low:.0f} to {high:.0f}" for low, high in zip(claims.x_low, claims.x_high, strict=True)
    }
    place = next(number for number, label in enumerate(head) if label.startswith("topk"))
    assert {row[place] for row in rows} == brackets
