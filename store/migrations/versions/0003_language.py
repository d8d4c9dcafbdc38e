"""Language models: their conditions, times by metric, scores of text, and a metric for each break-even."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def number(table: str, column: str, least: str = "") -> sa.CheckConstraint:
    bound = f" AND {column} {least}" if least else ""
    return sa.CheckConstraint(
        f"{column} + 0 = {column} AND {column} < 1e308 AND {column} > -1e308{bound}", name=op.f(f"ck_{table}_{column}")
    )


def upgrade() -> None:
    comparison()
    break_even()
    measured()
    quality()


def comparison() -> None:
    """Images no longer needed, and a prompt.

    SQLite cannot drop a NOT NULL, so there the table is made anew. Rows of other tables point to it: their keys are looked at
    when the transaction ends, by when the rows they point to are back.
    """
    connection = op.get_bind()
    words = ("kv_cache", "decoding", "baseline_id", "condition_id")
    counts = ("prompt_tokens", "new_tokens")
    if connection.dialect.name != "sqlite":
        op.alter_column("comparison", "image_size", existing_type=sa.Integer(), nullable=True)
        for name in (*counts, *words):
            op.add_column("comparison", sa.Column(name, sa.Integer() if name in counts else sa.String(), nullable=True))
        for name in counts:
            op.create_check_constraint(op.f(f"ck_comparison_{name}"), "comparison", number("comparison", name, "> 0").sqltext)
        return
    texts = ("question_id", "curve_id", "arm_id", "kind", "device", "model", "weights")
    more = ("dtype", "attention", "runtime")
    documents = ("method", "params", "baseline", "document", "contents")
    kept = (
        *("comparison_id", *texts, "image_size", "batch_size", "threads", *more, "seed", *documents),
        *("data", "corruption", "severity"),
    )
    op.execute("PRAGMA defer_foreign_keys = ON")
    op.execute(f"CREATE TEMPORARY TABLE kept_comparison AS SELECT {', '.join(kept)} FROM comparison")  # noqa: S608 - made of constants
    op.drop_table("comparison")
    op.create_table(
        "comparison",
        sa.Column("comparison_id", sa.String(), nullable=False),
        *(sa.Column(name, sa.String(), nullable=False) for name in texts),
        sa.Column("image_size", sa.Integer(), nullable=True),
        sa.Column("batch_size", sa.Integer(), nullable=False),
        sa.Column("threads", sa.Integer(), nullable=True),
        *(sa.Column(name, sa.String(), nullable=False) for name in more),
        sa.Column("seed", sa.Integer(), nullable=False),
        *(sa.Column(name, sa.String(), nullable=False) for name in documents),
        sa.Column("data", sa.String(), nullable=True),
        sa.Column("corruption", sa.String(), nullable=True),
        sa.Column("severity", sa.Integer(), nullable=True),
        *(sa.Column(name, sa.Integer(), nullable=True) for name in counts),
        *(sa.Column(name, sa.String(), nullable=True) for name in words),
        *(number("comparison", name, "> 0") for name in ("batch_size", "image_size", *counts)),
        sa.PrimaryKeyConstraint("comparison_id", name=op.f("pk_comparison")),
    )
    op.execute(f"INSERT INTO comparison ({', '.join(kept)}) SELECT {', '.join(kept)} FROM kept_comparison")  # noqa: S608 - made of constants
    op.execute("DROP TABLE kept_comparison")
    op.create_index(op.f("ix_comparison_curve_id"), "comparison", ["curve_id"], unique=False)
    op.create_index(op.f("ix_comparison_question_id"), "comparison", ["question_id"], unique=False)
    op.create_index(op.f("ix_comparison_method_model_image_size"), "comparison", ["method", "model", "image_size"], unique=False)


def break_even() -> None:
    """A new table with the old rows, since the metric is part of the key."""
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
        sa.Column("metric", sa.String(), nullable=False),
        sa.Column("varies", sa.String(), nullable=True),
        sa.CheckConstraint("axis IN ('tokens', 'gmacs', 'gmacs_saved')", name=op.f("ck_break_even_row_axis")),
        sa.CheckConstraint("direction IN ('gains', 'loses')", name=op.f("ck_break_even_row_direction")),
        sa.CheckConstraint("verdict IN ('crossing', 'always', 'never', 'unclear')", name=op.f("ck_break_even_row_verdict")),
        number("break_even_row", "points", ">= 0"),
        *(number("break_even_row", name) for name in ("x", "x_low", "x_high")),
        sa.ForeignKeyConstraint(["comparison_id"], ["comparison.comparison_id"], name=op.f("fk_break_even_row_comparison_id")),
        sa.ForeignKeyConstraint(["environment"], ["environment.environment_id"], name=op.f("fk_break_even_row_environment")),
        sa.ForeignKeyConstraint(["sweep"], ["sweep.id"], name=op.f("fk_break_even_row_sweep")),
        sa.PrimaryKeyConstraint("sweep", "curve_id", "environment", "axis", "crossing", "metric", name=op.f("pk_break_even_row")),
    )
    if kept:
        connection.execute(sa.insert(table), [{**row, "metric": "latency"} for row in kept])
    op.create_index(op.f("ix_break_even_row_curve_id_environment"), "break_even_row", ["curve_id", "environment"], unique=False)


def measured() -> None:
    """Times by metric, scores of text, and the condition of each arm that spoke."""
    op.create_table(
        "sample_series",
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("metric", sa.String(), nullable=False),
        sa.Column("seconds", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["attempt"], ["attempt.id"], name=op.f("fk_sample_series_attempt")),
        sa.PrimaryKeyConstraint("attempt", "metric", name=op.f("pk_sample_series")),
    )
    op.create_table(
        "scores",
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("windows", sa.Integer(), nullable=False),
        sa.Column("characters", sa.Integer(), nullable=False),
        sa.Column("complete", sa.Boolean(), nullable=False),
        sa.Column("listing", sa.String(), nullable=False),
        sa.Column("document", sa.LargeBinary(), nullable=False),
        number("scores", "windows", "> 0"),
        number("scores", "characters", ">= 0"),
        sa.ForeignKeyConstraint(["attempt"], ["attempt.id"], name=op.f("fk_scores_attempt")),
        sa.PrimaryKeyConstraint("attempt", name=op.f("pk_scores")),
    )
    op.create_table(
        "spoken_arm",
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("arm", sa.Integer(), nullable=False),
        *(
            sa.Column(name, sa.String(), nullable=False)
            for name in ("arm_id", "condition_id", "setting_id", "device", "model", "weights")
        ),
        *(sa.Column(name, sa.String(), nullable=False) for name in ("method", "params")),
        sa.Column("data", sa.String(), nullable=True),
        sa.Column("prompt_tokens", sa.Integer(), nullable=True),
        sa.Column("new_tokens", sa.Integer(), nullable=True),
        sa.Column("decoding", sa.String(), nullable=True),
        sa.Column("batch_size", sa.Integer(), nullable=False),
        sa.Column("kv_cache", sa.String(), nullable=True),
        *(sa.Column(name, sa.String(), nullable=False) for name in ("dtype", "attention", "runtime")),
        sa.Column("seed", sa.Integer(), nullable=False),
        *(number("spoken_arm", name, "> 0") for name in ("batch_size", "prompt_tokens", "new_tokens")),
        sa.ForeignKeyConstraint(["attempt"], ["attempt.id"], name=op.f("fk_spoken_arm_attempt")),
        sa.PrimaryKeyConstraint("attempt", "arm", name=op.f("pk_spoken_arm")),
    )
    op.create_index(op.f("ix_spoken_arm_setting_id"), "spoken_arm", ["setting_id"], unique=False)


def quality() -> None:
    counts = ("windows", "unscored", "bytes", "characters", "tokens_baseline", "tokens")
    change = tuple(f"bits_per_byte_change{end}" for end in ("", "_low", "_high"))
    agreement = tuple(f"top1_agreement{end}" for end in ("", "_low", "_high"))
    kl = ("kl", "kl_low", "kl_high")
    levels = ("bits_per_byte_baseline", "bits_per_byte", "perplexity_baseline", "perplexity", *agreement)
    op.create_table(
        "quality_row",
        *(sa.Column(name, sa.String(), nullable=False) for name in ("comparison_id", "environment", "question_id")),
        *(sa.Column(name, sa.String(), nullable=False) for name in ("measured_at", "source")),
        sa.Column("analysis_version", sa.Integer(), nullable=False),
        sa.Column("floor", sa.Float(), nullable=False),
        sa.Column("failure", sa.Integer(), nullable=True),
        *(sa.Column(name, sa.Integer(), nullable=True) for name in counts),
        *(sa.Column(name, sa.Float(), nullable=True) for name in (*levels, *change, *kl)),
        sa.Column("verdict", sa.String(), nullable=True),
        sa.Column("flags", sa.String(), nullable=False),
        sa.CheckConstraint("source IN ('measured', 'imported', 'published')", name=op.f("ck_quality_row_source")),
        sa.CheckConstraint("verdict IN ('better', 'worse', 'same', 'unclear')", name=op.f("ck_quality_row_verdict")),
        *(number("quality_row", name, ">= 0") for name in ("floor", *counts, *levels)),
        *(number("quality_row", name) for name in (*change, *kl)),
        sa.ForeignKeyConstraint(["comparison_id"], ["comparison.comparison_id"], name=op.f("fk_quality_row_comparison_id")),
        sa.ForeignKeyConstraint(["environment"], ["environment.environment_id"], name=op.f("fk_quality_row_environment")),
        sa.ForeignKeyConstraint(["failure"], ["failure.id"], name=op.f("fk_quality_row_failure")),
        sa.PrimaryKeyConstraint("comparison_id", "environment", name=op.f("pk_quality_row")),
    )
    op.create_index(
        op.f("ix_quality_row_question_id_environment_measured_at"),
        "quality_row",
        ["question_id", "environment", "measured_at"],
        unique=False,
    )
