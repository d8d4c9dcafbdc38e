"""Accuracy: data of a condition, evaluations, their derived rows, and break-even along the share of GMACs saved."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def number(table: str, column: str, least: str = "") -> sa.CheckConstraint:
    bound = f" AND {column} {least}" if least else ""
    return sa.CheckConstraint(
        f"{column} + 0 = {column} AND {column} < 1e308 AND {column} > -1e308{bound}", name=op.f(f"ck_{table}_{column}")
    )


def upgrade() -> None:
    for name, kind in (("data", sa.String()), ("corruption", sa.String()), ("severity", sa.Integer())):
        op.add_column("comparison", sa.Column(name, kind, nullable=True))
    op.create_index(op.f("ix_comparison_method_model_image_size"), "comparison", ["method", "model", "image_size"], unique=False)

    op.create_table(
        "evaluation",
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("images", sa.Integer(), nullable=False),
        sa.Column("unreadable", sa.Integer(), nullable=False),
        sa.Column("classes", sa.Integer(), nullable=False),
        sa.Column("listing", sa.String(), nullable=False),
        sa.Column("document", sa.LargeBinary(), nullable=False),
        number("evaluation", "images", "> 0"),
        number("evaluation", "unreadable", ">= 0"),
        sa.ForeignKeyConstraint(["attempt"], ["attempt.id"], name=op.f("fk_evaluation_attempt")),
        sa.PrimaryKeyConstraint("attempt", name=op.f("pk_evaluation")),
    )
    accuracy()
    break_even()


def accuracy() -> None:
    whole = ("images", "unreadable", "tokens", "tokens_final", "lost", "gained")
    shares = ("top1_baseline", "top1", "top1_low", "top1_high", "top5_baseline", "top5", "mcnemar_p")
    gmacs = ("gmacs_baseline", "gmacs", "gmacs_method")
    signed = (
        *("top1_drop", "top1_drop_low", "top1_drop_high", "kl", "kl_low", "kl_high"),
        *("margin_change", "margin_change_low", "margin_change_high", "margin_change_tail"),
    )
    op.create_table(
        "accuracy_row",
        sa.Column("comparison_id", sa.String(), nullable=False),
        sa.Column("environment", sa.String(), nullable=False),
        sa.Column("question_id", sa.String(), nullable=False),
        sa.Column("measured_at", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("analysis_version", sa.Integer(), nullable=False),
        sa.Column("floor", sa.Float(), nullable=False),
        sa.Column("failure", sa.Integer(), nullable=True),
        *(sa.Column(name, sa.Integer(), nullable=True) for name in whole),
        *(sa.Column(name, sa.Float(), nullable=True) for name in (*gmacs, *shares, *signed)),
        sa.Column("verdict", sa.String(), nullable=True),
        sa.Column("flags", sa.String(), nullable=False),
        sa.CheckConstraint("source IN ('measured', 'imported', 'published')", name=op.f("ck_accuracy_row_source")),
        sa.CheckConstraint("verdict IN ('better', 'worse', 'same', 'unclear')", name=op.f("ck_accuracy_row_verdict")),
        *(number("accuracy_row", name, ">= 0") for name in ("floor", *whole, *gmacs, *shares)),
        *(number("accuracy_row", name) for name in signed),
        sa.ForeignKeyConstraint(["comparison_id"], ["comparison.comparison_id"], name=op.f("fk_accuracy_row_comparison_id")),
        sa.ForeignKeyConstraint(["environment"], ["environment.environment_id"], name=op.f("fk_accuracy_row_environment")),
        sa.ForeignKeyConstraint(["failure"], ["failure.id"], name=op.f("fk_accuracy_row_failure")),
        sa.PrimaryKeyConstraint("comparison_id", "environment", name=op.f("pk_accuracy_row")),
    )
    op.create_index(
        op.f("ix_accuracy_row_question_id_environment_measured_at"),
        "accuracy_row",
        ["question_id", "environment", "measured_at"],
        unique=False,
    )


def break_even() -> None:
    """A new table with the old rows: SQLite cannot change a CHECK, and names of keys must stay free on PostgreSQL."""
    connection = op.get_bind()
    kept = [dict(row._mapping) for row in connection.execute(sa.text("SELECT * FROM break_even_row"))]
    op.drop_table("break_even_row")
    table = op.create_table(
        "break_even_row",
        sa.Column("sweep", sa.Integer(), nullable=False),
        sa.Column("curve_id", sa.String(), nullable=False),
        sa.Column("environment", sa.String(), nullable=False),
        sa.Column("axis", sa.String(), nullable=False),
        sa.Column("crossing", sa.Integer(), nullable=False),
        sa.Column("comparison_id", sa.String(), nullable=False),
        sa.Column("threads", sa.Integer(), nullable=True),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.Column("x", sa.Float(), nullable=True),
        sa.Column("x_low", sa.Float(), nullable=True),
        sa.Column("x_high", sa.Float(), nullable=True),
        sa.Column("direction", sa.String(), nullable=True),
        sa.Column("grid_limited", sa.Boolean(), nullable=True),
        sa.Column("points", sa.Integer(), nullable=False),
        sa.Column("why", sa.String(), nullable=False),
        sa.Column("floor", sa.Float(), nullable=False),
        sa.Column("analysis_version", sa.Integer(), nullable=False),
        sa.Column("varies", sa.String(), nullable=True),
        sa.CheckConstraint("axis IN ('tokens', 'gmacs', 'gmacs_saved')", name=op.f("ck_break_even_row_axis")),
        sa.CheckConstraint("direction IN ('gains', 'loses')", name=op.f("ck_break_even_row_direction")),
        sa.CheckConstraint("verdict IN ('crossing', 'always', 'never', 'unclear')", name=op.f("ck_break_even_row_verdict")),
        number("break_even_row", "points", ">= 0"),
        number("break_even_row", "x"),
        number("break_even_row", "x_high"),
        number("break_even_row", "x_low"),
        sa.ForeignKeyConstraint(["comparison_id"], ["comparison.comparison_id"], name=op.f("fk_break_even_row_comparison_id")),
        sa.ForeignKeyConstraint(["environment"], ["environment.environment_id"], name=op.f("fk_break_even_row_environment")),
        sa.ForeignKeyConstraint(["sweep"], ["sweep.id"], name=op.f("fk_break_even_row_sweep")),
        sa.PrimaryKeyConstraint("sweep", "curve_id", "environment", "axis", "crossing", name=op.f("pk_break_even_row")),
    )
    if kept:
        connection.execute(sa.insert(table), [{**row, "varies": None} for row in kept])
    op.create_index(op.f("ix_break_even_row_curve_id_environment"), "break_even_row", ["curve_id", "environment"], unique=False)
