"""Panels of sweeps with their counts, the share of a promised speed-up that arrived, and labels of arms."""

import sqlalchemy as sa
from alembic import op

from store.derive.panels import derive_all_panels
from store.panel_ids import panel_id
from store.tables.planned import METADATA
from sweeps.stats.promise import delivered, macs_speedup

revision = "0011"
down_revision = "0010"

NEW = ("panel_progress", "panel_row", "arm_label")


def upgrade() -> None:
    op.add_column("comparison", sa.Column("panel_id", sa.String(), nullable=True))
    op.add_column("effect_row", sa.Column("delivered", sa.Float(), nullable=True))
    for table in ("break_even_row", "cost_model_row"):
        op.create_index(op.f(f"ix_{table}_comparison_id"), table, ["comparison_id"])
    some = sa.text("failure IS NOT NULL")
    op.create_index(op.f("ix_effect_row_failure"), "effect_row", ["failure"], sqlite_where=some, postgresql_where=some)
    op.create_index(
        op.f("ix_comparison_arm_id_model_weights_image_size"), "comparison", ["arm_id", "model", "weights", "image_size"]
    )
    op.create_index(op.f("ix_comparison_panel_id"), "comparison", ["panel_id"])
    connection = op.get_bind()
    METADATA.create_all(connection, [METADATA.tables[name] for name in NEW])
    known = sa.MetaData()
    comparison, effect = (sa.Table(name, known, autoload_with=connection) for name in ("comparison", "effect_row"))
    panels = [
        {"key": row["comparison_id"], "value": panel_id(row)} for row in connection.execute(sa.select(comparison)).mappings().all()
    ]
    if panels:
        named = comparison.update().where(comparison.c.comparison_id == sa.bindparam("key"))
        connection.execute(named.values(panel_id=sa.bindparam("value")), panels)
    key = ("comparison_id", "environment", "host", "metric")
    ratios = sa.select(effect).where(effect.c.compared == "ratio", effect.c.effect.is_not(None))
    shares = []
    for row in connection.execute(ratios).mappings().all():
        promise = macs_speedup(row["gmacs_baseline"], (row["gmacs"] or 0.0) + (row["gmacs_overhead"] or 0.0))
        shares.append({**{f"key_{name}": row[name] for name in key}, "value": delivered(row["effect"], promise)})
    if shares:
        chosen = effect.update().where(*(effect.c[name] == sa.bindparam(f"key_{name}") for name in key))
        connection.execute(chosen.values(delivered=sa.bindparam("value")), shares)
    derive_all_panels(connection)
