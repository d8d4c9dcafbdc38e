"""Placement: curves are measured on one host each, jobs are pinned to it, and arms name the implementation that ran."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def number(table: str, column: str, least: str = "") -> sa.CheckConstraint:
    bound = f" AND {column} {least}" if least else ""
    return sa.CheckConstraint(
        f"{column} + 0 = {column} AND {column} < 1e308 AND {column} > -1e308{bound}", name=op.f(f"ck_{table}_{column}")
    )


def upgrade() -> None:
    for name in ("curve_group", "resources"):
        op.add_column("job", sa.Column(name, sa.String(), nullable=False, server_default=""))
    for name in ("pinned_host", "pinned_environment", "pinned_by"):
        op.add_column("job", sa.Column(name, sa.String(), nullable=True))
    op.create_index(op.f("ix_job_curve_group_resources"), "job", ["curve_group", "resources"], unique=False)
    op.add_column("measured_arm", sa.Column("route", sa.String(), nullable=True))
    speedup()
    break_even()


def speedup() -> None:
    """A new table with the old rows, since the host is part of the key: that of the pair's newest attempt."""
    counts = ("threads", "tokens", "tokens_final")
    gmacs = ("gmacs_baseline", "gmacs", "gmacs_method")
    figures = ("baseline_ms", "method_ms", "device_ms", "speedup", "speedup_low", "speedup_high")
    texts = ("comparison_id", "environment", "metric", "question_id", "measured_at", "source")
    kept = (*texts, "analysis_version", "floor", "failure", *counts, *gmacs, *figures, "pairs", "rounds", "verdict", "flags")
    op.execute(f"CREATE TEMPORARY TABLE kept_speedup AS SELECT {', '.join(kept)} FROM speedup_row")  # noqa: S608 - made of constants
    op.drop_table("speedup_row")
    op.create_table(
        "speedup_row",
        *(sa.Column(name, sa.String(), nullable=False) for name in texts),
        sa.Column("analysis_version", sa.Integer(), nullable=False),
        sa.Column("floor", sa.Float(), nullable=False),
        sa.Column("failure", sa.Integer(), nullable=True),
        *(sa.Column(name, sa.Integer(), nullable=True) for name in counts),
        *(sa.Column(name, sa.Float(), nullable=True) for name in (*gmacs, *figures)),
        *(sa.Column(name, sa.Integer(), nullable=True) for name in ("pairs", "rounds")),
        sa.Column("verdict", sa.String(), nullable=True),
        sa.Column("flags", sa.String(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("route", sa.String(), nullable=True),
        sa.CheckConstraint("source IN ('measured', 'imported', 'published')", name=op.f("ck_speedup_row_source")),
        sa.CheckConstraint(
            "verdict IN ('faster', 'slower', 'same', 'unclear', 'insufficient')", name=op.f("ck_speedup_row_verdict")
        ),
        *(number("speedup_row", name, "> 0") for name in figures),
        *(number("speedup_row", name, ">= 0") for name in (*counts, *gmacs, "floor", "pairs", "rounds")),
        sa.ForeignKeyConstraint(["comparison_id"], ["comparison.comparison_id"], name=op.f("fk_speedup_row_comparison_id")),
        sa.ForeignKeyConstraint(["environment"], ["environment.environment_id"], name=op.f("fk_speedup_row_environment")),
        sa.ForeignKeyConstraint(["failure"], ["failure.id"], name=op.f("fk_speedup_row_failure")),
        sa.PrimaryKeyConstraint("comparison_id", "environment", "metric", "host", name=op.f("pk_speedup_row")),
    )
    host = """coalesce((SELECT t.host FROM pairing AS p JOIN attempt AS t ON t.id = p.attempt
                        WHERE p.comparison_id = k.comparison_id AND t.environment = k.environment
                        ORDER BY t.ended_at DESC, t.id DESC LIMIT 1), '')"""
    columns = ", ".join(kept)
    op.execute(f"INSERT INTO speedup_row ({columns}, host) SELECT {columns}, {host} FROM kept_speedup AS k")  # noqa: S608 - made of constants
    op.execute("DROP TABLE kept_speedup")
    op.create_index(
        op.f("ix_speedup_row_question_id_environment_host_metric_measured_at"),
        "speedup_row",
        ["question_id", "environment", "host", "metric", "measured_at"],
        unique=False,
    )


def break_even() -> None:
    """A new table with the old rows, since the host is part of the key: that of the point by which the curve is known.

    What is missing along GMACs saved is counted when the curve is next derived.
    """
    texts = ("curve_id", "environment", "axis")
    numbers = ("x", "x_low", "x_high")
    words = ("comparison_id", "verdict", "why", "metric")
    ends = ("threads", *numbers, "direction", "grid_limited", "varies")
    kept = ("sweep", *texts, "crossing", *words, *ends, "points", "floor", "analysis_version")
    op.execute(f"CREATE TEMPORARY TABLE kept_break_even AS SELECT {', '.join(kept)} FROM break_even_row")  # noqa: S608 - made of constants
    op.drop_table("break_even_row")
    op.create_table(
        "break_even_row",
        sa.Column("sweep", sa.Integer(), nullable=False),
        *(sa.Column(name, sa.String(), nullable=False) for name in texts),
        sa.Column("crossing", sa.Integer(), nullable=False),
        sa.Column("comparison_id", sa.String(), nullable=False),
        sa.Column("threads", sa.Integer(), nullable=True),
        sa.Column("verdict", sa.String(), nullable=False),
        *(sa.Column(name, sa.Float(), nullable=True) for name in numbers),
        sa.Column("direction", sa.String(), nullable=True),
        sa.Column("grid_limited", sa.Boolean(), nullable=True),
        sa.Column("points", sa.Integer(), nullable=False),
        sa.Column("why", sa.String(), nullable=False),
        sa.Column("floor", sa.Float(), nullable=False),
        sa.Column("analysis_version", sa.Integer(), nullable=False),
        sa.Column("metric", sa.String(), nullable=False),
        sa.Column("varies", sa.String(), nullable=True),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("points_missing", sa.Integer(), nullable=False),
        sa.CheckConstraint("axis IN ('tokens', 'gmacs', 'gmacs_saved')", name=op.f("ck_break_even_row_axis")),
        sa.CheckConstraint("direction IN ('gains', 'loses')", name=op.f("ck_break_even_row_direction")),
        sa.CheckConstraint("verdict IN ('crossing', 'always', 'never', 'unclear')", name=op.f("ck_break_even_row_verdict")),
        *(number("break_even_row", name, ">= 0") for name in ("points", "points_missing")),
        *(number("break_even_row", name) for name in numbers),
        sa.ForeignKeyConstraint(["comparison_id"], ["comparison.comparison_id"], name=op.f("fk_break_even_row_comparison_id")),
        sa.ForeignKeyConstraint(["environment"], ["environment.environment_id"], name=op.f("fk_break_even_row_environment")),
        sa.ForeignKeyConstraint(["sweep"], ["sweep.id"], name=op.f("fk_break_even_row_sweep")),
        sa.PrimaryKeyConstraint(
            *("sweep", "curve_id", "environment", "axis", "crossing", "metric", "host"), name=op.f("pk_break_even_row")
        ),
    )
    host = """coalesce((SELECT r.host FROM speedup_row AS r WHERE r.comparison_id = k.comparison_id
                        AND r.environment = k.environment AND r.metric = k.metric), '')"""
    columns = ", ".join(kept)
    op.execute(
        f"""INSERT INTO break_even_row ({columns}, host, points_missing)
            SELECT {columns}, {host}, 0 FROM kept_break_even AS k"""  # noqa: S608 - made of constants
    )
    op.execute("DROP TABLE kept_break_even")
    op.execute(
        """UPDATE break_even_row SET points_missing = (
             SELECT count(DISTINCT c.question_id) FROM sweep_comparison_row AS l
             JOIN comparison AS c ON c.comparison_id = l.comparison_id
             WHERE l.sweep = break_even_row.sweep AND c.curve_id = break_even_row.curve_id AND NOT EXISTS (
               SELECT 1 FROM speedup_row AS r WHERE r.question_id = c.question_id
                 AND r.environment = break_even_row.environment AND r.host = break_even_row.host))
           WHERE axis <> 'gmacs_saved'"""
    )
    op.create_index(op.f("ix_break_even_row_curve_id_environment"), "break_even_row", ["curve_id", "environment"], unique=False)
