"""Published tables in the store: written whole, read whole."""

import json
from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine, delete, select

from store.rows.frames import read_frame
from store.rows.row_mapping import insert_into
from store.rows.transactions import fetch, writing
from store.schema.tables import REFERENCE
from store.views.public import TABLES
from sweeps.importers.measurement import Measurement, ReferenceSet
from sweeps.model.identity import canonical

if TYPE_CHECKING:
    import pandas as pd

_SAME = tuple(name for name in Measurement.model_fields if name in REFERENCE.c)
_OF_SET = ("title", "owner", "year", "url", "software", "counter")


def import_references(engine: Engine, sets: Iterable[ReferenceSet]) -> dict[str, bool]:
    """Store published tables, all in one transaction; one of the same name is replaced. Returns
    which of them changed the store.
    """
    changed = {}
    with writing(engine) as connection:
        for each in sets:
            known = connection.execute(
                select(REFERENCE.c.digest).where(REFERENCE.c.reference == each.name).limit(1)
            ).scalar()
            changed[each.name] = known != each.set_digest
            if changed[each.name]:
                connection.execute(delete(REFERENCE).where(REFERENCE.c.reference == each.name))
                connection.execute(
                    insert_into(REFERENCE),
                    [_columns(each, row, place) for place, row in enumerate(each.rows, 1)],
                )
    return changed


def _columns(each: ReferenceSet, row: Measurement, place: int) -> dict[str, Any]:
    beside = None if each.is_baseline(row) else each.beside(row)
    return {
        **{name: getattr(row, name) for name in _SAME},
        "reference": each.name,
        "entry": place,
        "environment": each.environment,
        "source": "published",
        **{name: getattr(each, name) for name in _OF_SET},
        "place": each.where,
        "device_name": row.device,
        "is_baseline": each.is_baseline(row),
        "batch_size": row.batch,
        "latency_unit": each.latency,
        "gmacs_baseline": None if beside is None else beside.gmacs,
        "speedup": each.derived_speedup(row),
        "speedup_stated": row.speedup,
        "top1_baseline": None if beside is None else beside.top1,
        "counters": canonical(dict(row.counters)),
        "digest": each.set_digest,
        "payload": row.model_dump_json(exclude_unset=True),
        "set_payload": each.model_dump_json(exclude={"rows"}, exclude_unset=True),
    }


def stored_references(engine: Engine) -> list[ReferenceSet]:
    """All published tables of the store, by name."""
    found = select(REFERENCE.c.reference, REFERENCE.c.set_payload, REFERENCE.c.payload).order_by(
        REFERENCE.c.reference, REFERENCE.c.entry
    )
    sets = []
    for _, group in groupby(fetch(engine, found), key=lambda row: row.reference):
        members = list(group)
        content = json.loads(members[0].set_payload) | {
            "rows": [json.loads(row.payload) for row in members]
        }
        sets.append(ReferenceSet.model_validate(content))
    return sets


def reference_points(engine: Engine) -> "pd.DataFrame":
    """Rows of the view `reference` that have a speed-up: what can be drawn beside measured
    points.
    """
    view = TABLES["reference"]
    found = select(view).where(view.c.speedup.is_not(None)).order_by(view.c.reference, view.c.entry)
    return read_frame(engine, found)
