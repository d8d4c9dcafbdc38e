"""Tables with the columns that planning and the queue use, without SQLModel, whose import takes a
quarter of a second.

A test compares them with the models, which define the types, keys and checks.
"""

from sqlalchemy import ColumnElement, FromClause, TableClause, column, exists, select, table

STATES = ("waiting", "running", "done", "failed", "cancelled", "split")
"""Of a job in the queue. `failed`: it ended without an answer; `split`: its children answer its
questions."""


def _table(name: str, columns: str) -> TableClause:
    return table(name, *map(column, columns.split()))


SWEEP = _table("sweep", "id name revision text question settings submitted_at")
JOB = _table(
    "job",
    "id job_id kind device state attempts owner renewed_at parent queued_at payload "
    "curve_group resources pinned_host pinned_environment pinned_by exclusive",
)
SWEEP_JOB = _table("sweep_job", "sweep job")
SWEEP_COMPARISON = _table("sweep_comparison_row", "sweep comparison_id")
COMPARISON = _table(
    "comparison",
    "comparison_id arm_id kind model weights batch_size dtype attention runtime seed method params"
    " data new_tokens kv_cache decoding exclusive spare_cores wait_policy pinning inputs baseline"
    " baseline_id panel_id question_id payload content_hashes",
)
ARM_LABEL = _table("arm_label", "arm_id label")
PANEL_PROGRESS = _table(
    "panel_progress", "sweep panel_id comparison_id comparisons measured failures"
)
PANEL_ROWS = _table(
    "panel_row", "sweep panel_id environment host metric threads points measured_at best"
)
ENVIRONMENT = _table("environment", "environment_id device device_name facts")
CALIBRATION = _table(
    "calibration",
    "calibration_id environment size_class created_at process_sd tau tau_low tau_high freedom"
    " processes contrasts",
)
ATTEMPT = _table("attempt", "id job round environment host started_at ended_at protocol flags")
PAIR = _table("comparison_attempt", "comparison_id attempt baseline arm failure")
ARM_RESULT = _table("arm_result", "attempt arm implementation")
SAMPLE = _table("sample", "attempt rounds")
PREDICTIONS = _table("image_predictions", "attempt images unreadable classes")
TEXT_SCORES = _table("text_scores", "attempt complete")
FAILURES = _table("failures", "comparison_id")
"""The view."""
FAILURE = _table("failure", "id attempt reason message detail")
EFFECT = _table(
    "effect_row",
    "comparison_id environment host metric compared measured_at tokens gmacs_baseline gmacs"
    " gmacs_overhead effect effect_low effect_high effect_se effect_freedom n rounds verdict flags"
    " failure",
)


def newest_revision(sweep: FromClause) -> ColumnElement[bool]:
    """Whether a row of `sweep` is the newest revision of its name."""
    newer = SWEEP.alias("newer")
    later = select(newer.c.id).where(
        newer.c.name == sweep.c.name, newer.c.revision > sweep.c.revision
    )
    return ~exists(later.correlate_except(newer))
