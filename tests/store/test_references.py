"""Published tables in the store: whole, replaceable, and apart from all that was measured."""

import pytest
from sqlalchemy import Engine

from store.views.public import VIEWS
from store.write.references import import_references, reference_points, stored_references
from sweeps.importers.measurement import Measurement, ReferenceSet
from sweeps.importers.tables import load_reference, shipped_references
from tests.fixtures.sql_rows import rows
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


def test_the_view_names_the_source(engine: Engine) -> None:
    """A row of the view has its source, `published` as its environment, the arm, and the speed-up
    that follows from the table. A table of the same name replaces it, with all of its rows.
    """
    import_references(engine, [a_set()])
    dense, topk = rows(engine, "SELECT * FROM reference ORDER BY entry")
    assert {(row["environment"], row["source"]) for row in (dense, topk)} == {
        ("published: A table", "published")
    }
    names = ["method", "place", "owner", "latency_unit", "gmacs_baseline", "top1_baseline"]
    expected = ["topk", "table 2", "A. Author", "per_image", 1.25, 72.0]
    assert [topk[name] for name in names] == expected
    assert topk["speedup"] == pytest.approx(0.8)
    assert (dense["speedup"], bool(dense["is_baseline"])) == (None, True)
    assert list(reference_points(engine)["label"]) == ["topk"]
    shorter = a_set(90.0).model_copy(update={"rows": a_set(90.0).rows[1:]})
    assert import_references(engine, [shorter]) == {"mine": True}
    assert stored_references(engine) == [shorter]
