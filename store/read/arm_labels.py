"""Labels of arms in the view `speedup`: words that the command line makes, which knows the defaults
of methods.
"""

from collections.abc import Callable, Mapping

from sqlalchemy import Engine, bindparam, delete, select

from store.rows.row_mapping import insert_new
from store.rows.transactions import reading, writing
from store.schema.tables import ARM_LABEL, COMPARISON


def store_arm_labels(engine: Engine, labels: Mapping[str, str]) -> None:
    """Store the label of each `arm_id`; nothing is written where they are stored already."""
    with reading(engine) as connection:
        known = {row.arm_id: row.label for row in connection.execute(select(ARM_LABEL))}
    changed = {arm: label for arm, label in labels.items() if known.get(arm) != label}
    if not changed:
        return
    with writing(engine) as connection:
        connection.execute(
            delete(ARM_LABEL).where(ARM_LABEL.c.arm_id == bindparam("arm")),
            [{"arm": arm} for arm in changed],
        )
        insert_new(
            connection,
            ARM_LABEL,
            [{"arm_id": arm, "label": label} for arm, label in changed.items()],
        )


def label_stored_arms(engine: Engine, label: Callable[[str, str], str]) -> None:
    """Store the label of every arm in the store, made by `label` from its method and its canonical
    parameters.
    """
    arms = select(COMPARISON.c.arm_id, COMPARISON.c.method, COMPARISON.c.params).distinct()
    with reading(engine) as connection:
        labels = {row.arm_id: label(row.method, row.params) for row in connection.execute(arms)}
    store_arm_labels(engine, labels)
