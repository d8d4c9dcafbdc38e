"""Published tables in the store: whole, replaceable, and apart from all that was measured."""

import pytest
from sqlalchemy import Engine

from store.views.public import VIEWS
from store.write.references import import_references, reference_points, stored_references
from sweeps.importers.measurement import Measurement, ReferenceSet
from sweeps.importers.tables import load_reference, shipped_references
from tests.store.conftest import a_job, an_outcome, keep, table


def a_set(throughput: float = 80.0) -> ReferenceSet:
    of = {"model": "deit_tiny_patch16_224", "tokens": 196}
    dense = Measurement(label="dense", gmacs=1.25, throughput=100.0, top1=72.0, **of)
    topk = Measurement(label="topk", method="topk", gmacs=0.7, throughput=throughput, **of)
    return ReferenceSet(
        name="mine",
        title="A table",
        owner="A. Author",
        where="table 2",
        latency="per_image",
        baseline="dense",
        rows=(dense, topk),
    )


def test_a_table_comes_back_as_it_was(engine: Engine) -> None:
    """All that ships is stored and read again without a loss; importing it twice changes nothing,
    no view of measurements has it, and no environment is added.
    """
    keep(engine, an_outcome(a_job()))
    measured = [*sorted(set(VIEWS) - {"reference"}), "environment"]
    before = {view: table(engine, f"SELECT * FROM {view}") for view in measured}
    sets = [load_reference(name) for name in shipped_references()]
    assert set(import_references(engine, sets).values()) == {True}
    assert stored_references(engine) == sorted(sets, key=lambda each: each.name)
    assert set(import_references(engine, sets).values()) == {False}
    assert len(table(engine, "SELECT * FROM reference")) == sum(len(each.rows) for each in sets)
    assert {view: table(engine, f"SELECT * FROM {view}") for view in measured} == before


def test_a_table_of_the_same_name_replaces_the_former(engine: Engine) -> None:
    """With all of its rows; the speed-up follows from the times of the table, and has its source."""
    import_references(engine, [a_set()])
    shorter = a_set(90.0).model_copy(update={"rows": a_set(90.0).rows[1:]})
    assert import_references(engine, [shorter, a_set(50.0).model_copy(update={"name": "b"})]) == {
        "mine": True,
        "b": True,
    }
    assert stored_references(engine)[1] == shorter
    columns = "environment, source, method, place, latency_unit, gmacs_baseline, top1_baseline"
    found = table(engine, f"SELECT {columns}, speedup FROM reference WHERE speedup IS NOT NULL")
    of = ("published: A table", "published", "topk", "table 2", "per_image", 1.25, 72.0)
    assert found == [(*of, pytest.approx(0.5))]
    assert list(reference_points(engine)["label"]) == ["topk"]
