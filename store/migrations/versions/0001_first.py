"""The first schema: sweeps, comparisons, queue, attempts with their raw samples, and derived rows."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def number(table: str, column: str, least: str = "") -> sa.CheckConstraint:
    bound = f" AND {column} {least}" if least else ""
    return sa.CheckConstraint(
        f"{column} + 0 = {column} AND {column} < 1e308 AND {column} > -1e308{bound}", name=op.f(f"ck_{table}_{column}")
    )


def upgrade() -> None:
    op.create_table(
        "comparison",
        sa.Column("comparison_id", sa.String(), nullable=False),
        sa.Column("question_id", sa.String(), nullable=False),
        sa.Column("curve_id", sa.String(), nullable=False),
        sa.Column("arm_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("device", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("weights", sa.String(), nullable=False),
        sa.Column("image_size", sa.Integer(), nullable=False),
        sa.Column("batch_size", sa.Integer(), nullable=False),
        sa.Column("threads", sa.Integer(), nullable=True),
        sa.Column("dtype", sa.String(), nullable=False),
        sa.Column("attention", sa.String(), nullable=False),
        sa.Column("runtime", sa.String(), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("method", sa.String(), nullable=False),
        sa.Column("params", sa.String(), nullable=False),
        sa.Column("baseline", sa.String(), nullable=False),
        sa.Column("document", sa.String(), nullable=False),
        sa.Column("contents", sa.String(), nullable=False),
        number("comparison", "batch_size", "> 0"),
        number("comparison", "image_size", "> 0"),
        sa.PrimaryKeyConstraint("comparison_id", name=op.f("pk_comparison")),
    )
    op.create_index(op.f("ix_comparison_curve_id"), "comparison", ["curve_id"], unique=False)
    op.create_index(op.f("ix_comparison_question_id"), "comparison", ["question_id"], unique=False)

    op.create_table(
        "environment",
        sa.Column("environment_id", sa.String(), nullable=False),
        sa.Column("device", sa.String(), nullable=False),
        sa.Column("device_name", sa.String(), nullable=False),
        sa.Column("facts", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("environment_id", name=op.f("pk_environment")),
    )
    op.create_table(
        "job",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("device", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("owner", sa.String(), nullable=True),
        sa.Column("renewed_at", sa.Float(), nullable=True),
        sa.Column("parent", sa.Integer(), nullable=True),
        sa.Column("queued_at", sa.Float(), nullable=False),
        sa.Column("document", sa.String(), nullable=False),
        sa.CheckConstraint("state IN ('waiting', 'running', 'done', 'failed', 'cancelled', 'split')", name=op.f("ck_job_state")),
        number("job", "attempts", ">= 0"),
        sa.ForeignKeyConstraint(["parent"], ["job.id"], name=op.f("fk_job_parent")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job")),
    )
    op.create_index(op.f("ix_job_job_id"), "job", ["job_id"], unique=False)
    op.create_index(op.f("ix_job_state_id"), "job", ["state", "id"], unique=False)

    op.create_table(
        "sweep",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("question", sa.String(), nullable=False),
        sa.Column("settings", sa.String(), nullable=False),
        sa.Column("submitted_at", sa.Float(), nullable=False),
        number("sweep", "revision", "> 0"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sweep")),
        sa.UniqueConstraint("name", "revision", name=op.f("uq_sweep_name_revision")),
    )
    op.create_table(
        "attempt",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("job", sa.Integer(), nullable=True),
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("environment", sa.String(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("started_at", sa.Float(), nullable=False),
        sa.Column("ended_at", sa.Float(), nullable=False),
        sa.Column("project_commit", sa.String(), nullable=True),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("flags", sa.String(), nullable=False),
        sa.Column("protocol", sa.String(), nullable=False),
        sa.Column("readings", sa.String(), nullable=False),
        sa.Column("document", sa.String(), nullable=False),
        sa.CheckConstraint("source IN ('measured', 'imported', 'published')", name=op.f("ck_attempt_source")),
        number("attempt", "ended_at", ">= started_at"),
        number("attempt", "n", "> 0"),
        number("attempt", "started_at", "> 0"),
        sa.ForeignKeyConstraint(["environment"], ["environment.environment_id"], name=op.f("fk_attempt_environment")),
        sa.ForeignKeyConstraint(["job"], ["job.id"], name=op.f("fk_attempt_job")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempt")),
        sa.UniqueConstraint("digest", name=op.f("uq_attempt_digest")),
    )
    op.create_index(op.f("ix_attempt_job"), "attempt", ["job"], unique=False)
    op.create_index(op.f("ix_attempt_job_id"), "attempt", ["job_id"], unique=False)

    op.create_table(
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
        sa.CheckConstraint("axis IN ('tokens', 'gmacs')", name=op.f("ck_break_even_row_axis")),
        sa.CheckConstraint("direction IN ('gains', 'loses')", name=op.f("ck_break_even_row_direction")),
        sa.CheckConstraint("verdict IN ('crossing', 'always', 'never', 'unclear')", name=op.f("ck_break_even_row_verdict")),
        number("break_even_row", "points", ">= 0"),
        number("break_even_row", "x", "> 0"),
        number("break_even_row", "x_high", "> 0"),
        number("break_even_row", "x_low", "> 0"),
        sa.ForeignKeyConstraint(["comparison_id"], ["comparison.comparison_id"], name=op.f("fk_break_even_row_comparison_id")),
        sa.ForeignKeyConstraint(["environment"], ["environment.environment_id"], name=op.f("fk_break_even_row_environment")),
        sa.ForeignKeyConstraint(["sweep"], ["sweep.id"], name=op.f("fk_break_even_row_sweep")),
        sa.PrimaryKeyConstraint("sweep", "curve_id", "environment", "axis", "crossing", name=op.f("pk_break_even_row")),
    )
    op.create_index(op.f("ix_break_even_row_curve_id_environment"), "break_even_row", ["curve_id", "environment"], unique=False)

    op.create_table(
        "sweep_comparison_row",
        sa.Column("sweep", sa.Integer(), nullable=False),
        sa.Column("comparison_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["comparison_id"], ["comparison.comparison_id"], name=op.f("fk_sweep_comparison_row_comparison_id")
        ),
        sa.ForeignKeyConstraint(["sweep"], ["sweep.id"], name=op.f("fk_sweep_comparison_row_sweep")),
        sa.PrimaryKeyConstraint("sweep", "comparison_id", name=op.f("pk_sweep_comparison_row")),
    )
    op.create_index(op.f("ix_sweep_comparison_row_comparison_id"), "sweep_comparison_row", ["comparison_id"], unique=False)

    op.create_table(
        "sweep_job",
        sa.Column("sweep", sa.Integer(), nullable=False),
        sa.Column("job", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["job"], ["job.id"], name=op.f("fk_sweep_job_job")),
        sa.ForeignKeyConstraint(["sweep"], ["sweep.id"], name=op.f("fk_sweep_job_sweep")),
        sa.PrimaryKeyConstraint("sweep", "job", name=op.f("pk_sweep_job")),
    )
    op.create_index(op.f("ix_sweep_job_job"), "sweep_job", ["job"], unique=False)

    op.create_table(
        "failure",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("arm", sa.Integer(), nullable=True),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("message", sa.String(), nullable=False),
        sa.Column("detail", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["attempt"], ["attempt.id"], name=op.f("fk_failure_attempt")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_failure")),
    )
    op.create_index(op.f("ix_failure_attempt"), "failure", ["attempt"], unique=False)

    op.create_table(
        "measured_arm",
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("arm", sa.Integer(), nullable=False),
        sa.Column("arm_id", sa.String(), nullable=False),
        sa.Column("gmacs", sa.Float(), nullable=False),
        sa.Column("gmacs_method", sa.Float(), nullable=False),
        sa.Column("parameters", sa.BigInteger(), nullable=False),
        sa.Column("trainable_parameters", sa.BigInteger(), nullable=False),
        sa.Column("batch", sa.Integer(), nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("tokens_final", sa.Integer(), nullable=False),
        sa.Column("threads", sa.Integer(), nullable=False),
        sa.Column("flags", sa.String(), nullable=False),
        number("measured_arm", "batch", "> 0"),
        number("measured_arm", "gmacs", ">= 0"),
        number("measured_arm", "gmacs_method", ">= 0"),
        number("measured_arm", "threads", "> 0"),
        number("measured_arm", "tokens", ">= 0"),
        number("measured_arm", "tokens_final", ">= 0"),
        sa.ForeignKeyConstraint(["attempt"], ["attempt.id"], name=op.f("fk_measured_arm_attempt")),
        sa.PrimaryKeyConstraint("attempt", "arm", name=op.f("pk_measured_arm")),
    )
    op.create_table(
        "metric_row",
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("arm", sa.Integer(), nullable=False),
        sa.Column("metric", sa.String(), nullable=False),
        sa.Column("value", sa.Float(), nullable=False),
        sa.Column("unit", sa.String(), nullable=False),
        sa.Column("low", sa.Float(), nullable=True),
        sa.Column("high", sa.Float(), nullable=True),
        sa.Column("n", sa.Integer(), nullable=True),
        number("metric_row", "high"),
        number("metric_row", "low"),
        number("metric_row", "n", ">= 0"),
        number("metric_row", "value"),
        sa.ForeignKeyConstraint(["attempt"], ["attempt.id"], name=op.f("fk_metric_row_attempt")),
        sa.PrimaryKeyConstraint("attempt", "arm", "metric", name=op.f("pk_metric_row")),
    )
    op.create_table(
        "sample",
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("rounds", sa.Integer(), nullable=False),
        sa.Column("columns", sa.Integer(), nullable=False),
        sa.Column("arms", sa.String(), nullable=False),
        sa.Column("inner", sa.String(), nullable=False),
        sa.Column("stopped", sa.String(), nullable=False),
        sa.Column("seconds", sa.LargeBinary(), nullable=False),
        sa.Column("device_seconds", sa.LargeBinary(), nullable=True),
        sa.Column("run_order", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["attempt"], ["attempt.id"], name=op.f("fk_sample_attempt")),
        sa.PrimaryKeyConstraint("attempt", name=op.f("pk_sample")),
    )
    op.create_table(
        "pairing",
        sa.Column("comparison_id", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("baseline", sa.Integer(), nullable=False),
        sa.Column("arm", sa.Integer(), nullable=False),
        sa.Column("failure", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["attempt"], ["attempt.id"], name=op.f("fk_pairing_attempt")),
        sa.ForeignKeyConstraint(["comparison_id"], ["comparison.comparison_id"], name=op.f("fk_pairing_comparison_id")),
        sa.ForeignKeyConstraint(["failure"], ["failure.id"], name=op.f("fk_pairing_failure")),
        sa.PrimaryKeyConstraint("comparison_id", "attempt", name=op.f("pk_pairing")),
    )
    op.create_index(op.f("ix_pairing_attempt"), "pairing", ["attempt"], unique=False)

    op.create_table(
        "speedup_row",
        sa.Column("comparison_id", sa.String(), nullable=False),
        sa.Column("environment", sa.String(), nullable=False),
        sa.Column("metric", sa.String(), nullable=False),
        sa.Column("question_id", sa.String(), nullable=False),
        sa.Column("measured_at", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("analysis_version", sa.Integer(), nullable=False),
        sa.Column("floor", sa.Float(), nullable=False),
        sa.Column("failure", sa.Integer(), nullable=True),
        sa.Column("threads", sa.Integer(), nullable=True),
        sa.Column("tokens", sa.Integer(), nullable=True),
        sa.Column("tokens_final", sa.Integer(), nullable=True),
        sa.Column("gmacs_baseline", sa.Float(), nullable=True),
        sa.Column("gmacs", sa.Float(), nullable=True),
        sa.Column("gmacs_method", sa.Float(), nullable=True),
        sa.Column("baseline_ms", sa.Float(), nullable=True),
        sa.Column("method_ms", sa.Float(), nullable=True),
        sa.Column("device_ms", sa.Float(), nullable=True),
        sa.Column("speedup", sa.Float(), nullable=True),
        sa.Column("speedup_low", sa.Float(), nullable=True),
        sa.Column("speedup_high", sa.Float(), nullable=True),
        sa.Column("pairs", sa.Integer(), nullable=True),
        sa.Column("rounds", sa.Integer(), nullable=True),
        sa.Column("verdict", sa.String(), nullable=True),
        sa.Column("flags", sa.String(), nullable=False),
        sa.CheckConstraint("source IN ('measured', 'imported', 'published')", name=op.f("ck_speedup_row_source")),
        sa.CheckConstraint("verdict IN ('faster', 'slower', 'same', 'unclear')", name=op.f("ck_speedup_row_verdict")),
        number("speedup_row", "baseline_ms", "> 0"),
        number("speedup_row", "device_ms", "> 0"),
        number("speedup_row", "floor", ">= 0"),
        number("speedup_row", "gmacs", ">= 0"),
        number("speedup_row", "gmacs_baseline", ">= 0"),
        number("speedup_row", "gmacs_method", ">= 0"),
        number("speedup_row", "method_ms", "> 0"),
        number("speedup_row", "pairs", ">= 0"),
        number("speedup_row", "rounds", ">= 0"),
        number("speedup_row", "speedup", "> 0"),
        number("speedup_row", "speedup_high", "> 0"),
        number("speedup_row", "speedup_low", "> 0"),
        number("speedup_row", "threads", ">= 0"),
        number("speedup_row", "tokens", ">= 0"),
        number("speedup_row", "tokens_final", ">= 0"),
        sa.ForeignKeyConstraint(["comparison_id"], ["comparison.comparison_id"], name=op.f("fk_speedup_row_comparison_id")),
        sa.ForeignKeyConstraint(["environment"], ["environment.environment_id"], name=op.f("fk_speedup_row_environment")),
        sa.ForeignKeyConstraint(["failure"], ["failure.id"], name=op.f("fk_speedup_row_failure")),
        sa.PrimaryKeyConstraint("comparison_id", "environment", "metric", name=op.f("pk_speedup_row")),
    )
    op.create_index(
        op.f("ix_speedup_row_question_id_environment_metric_measured_at"),
        "speedup_row",
        ["question_id", "environment", "metric", "measured_at"],
        unique=False,
    )
