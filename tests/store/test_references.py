"""Published tables in the store: whole, replaceable, and apart from all that was measured."""

import pytest
from sqlalchemy import Engine

from store.write.references import import_references, reference_points, stored_references
from sweeps.importers.measurement import Measurement, ReferenceSet
from sweeps.importers.tables import load_reference, shipped_references
from tests.fixtures.sql_rows import rows
from tests.store.conftest import a_job, an_outcome, keep


def a_set(throughput: float = 80.0) -> ReferenceSet:
    return ReferenceSet(
        name="mine",
        title="A table",
        owner="A. Author",
        where="table 2",
        latency="per_image",
        baseline="dense",
        rows=(
            Measurement(
                label="dense",
                model="deit_tiny_patch16_224",
                tokens=196,
                gmacs=1.25,
                throughput=100.0,
                top1=72.0,
            ),
            Measurement(
                label="topk",
                method="topk",
                model="deit_tiny_patch16_224",
                tokens=196,
                gmacs=0.7,
                throughput=throughput,
            ),
        ),
    )


def test_a_table_comes_back_as_it_was(engine: Engine) -> None:
    """All that ships is stored and read again without a loss; importing it twice changes
    nothing.
    """
    sets = [load_reference(name) for name in shipped_references()]
    assert set(import_references(engine, sets).values()) == {True}
    assert stored_references(engine) == sorted(sets, key=lambda each: each.name)
    assert set(import_references(engine, sets).values()) == {False}
    assert len(rows(engine, "SELECT * FROM reference")) == sum(len(each.rows) for each in sets)


def test_the_view_names_the_source(engine: Engine) -> None:
    """A row of the view has its source, `published` as its environment, the arm, and the speed-up
    that follows from the table.
    """
    import_references(engine, [a_set()])
    dense, topk = rows(engine, "SELECT * FROM reference ORDER BY entry")
    assert {row["environment"] for row in (dense, topk)} == {"published: A table"}
    assert {row["source"] for row in (dense, topk)} == {"published"}
    assert (topk["method"], topk["place"], topk["owner"], topk["latency_unit"]) == (
        "topk",
        "table 2",
        "A. Author",
        "per_image",
    )
    assert (topk["speedup"], topk["gmacs_baseline"], topk["top1_baseline"]) == (
        pytest.approx(0.8),
        1.25,
        72.0,
    )
    assert (dense["speedup"], bool(dense["is_baseline"])) == (None, True)
    assert list(reference_points(engine)["label"]) == ["topk"]


def test_a_newer_version_replaces_the_older(engine: Engine) -> None:
    """A table of the same name takes the place of the former one, with all of its rows."""
    import_references(engine, [a_set()])
    shorter = a_set(90.0).model_copy(update={"rows": a_set(90.0).rows[1:]})
    assert import_references(engine, [shorter]) == {"mine": True}
    assert stored_references(engine) == [shorter]


def test_published_rows_touch_nothing_measured(engine: Engine) -> None:
    """No view of measurements changes when published tables come in, and no environment is
    added.
    """
    keep(engine, an_outcome(a_job()))
    views = (
        "effect",
        "speedup",
        "break_even",
        "cost_model",
        "accuracy",
        "quality",
        "arm",
        "metric",
        "failures",
    )
    before = {view: rows(engine, f"SELECT * FROM {view}") for view in (*views, "environment")}
    import_references(engine, [load_reference(name) for name in shipped_references()])
    assert {
        view: rows(engine, f"SELECT * FROM {view}") for view in (*views, "environment")
    } == before
