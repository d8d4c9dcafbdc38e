"""Tables of the store: what is planned and queued; `measured.py` and `derived.py` have what is
measured and derived.

Names that end in `_row` are tables behind a public view of the shorter name
(`store/views/public.py`). Rows are built from validated models only, because SQLModel's table
models validate nothing. The store's own enumerations are checked by the database; words of the
domain types (kind, dtype, reason ...) are not, so that a new one needs no migration. Payloads are
JSON in text columns; times are seconds since the epoch (UTC) unless the column states another unit.
"""

from collections.abc import Iterable

from sqlalchemy import CheckConstraint, Index, UniqueConstraint
from sqlmodel import Field, SQLModel

from store.schema.tables import STATES, SUBMISSION_STATES

SOURCES = ("measured", "imported", "published")

SQLModel.metadata.naming_convention = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


def one_of(column: str, words: Iterable[str]) -> CheckConstraint:
    """A CHECK that `column` holds one of `words`: enumerations stay readable text, and a typing
    error stays out.
    """
    listed = ", ".join(f"'{word}'" for word in words)
    return CheckConstraint(f"{column} IN ({listed})", name=column)


def finite_number(column: str, least: str = "") -> CheckConstraint:
    """A CHECK that `column` is a finite number or NULL, and fulfils `least` (such as `> 0`).

    Adding 0 distinguishes numbers from text, which SQLite accepts in any column, and works on every
    database.
    """
    bound = f" AND {column} {least}" if least else ""
    return CheckConstraint(
        f"{column} + 0 = {column} AND {column} < 1e308 AND {column} > -1e308{bound}", name=column
    )


def finite_numbers(columns: str, least: str = "") -> list[CheckConstraint]:
    """A `finite_number` for each of the columns, whose names stand in one text."""
    return [finite_number(column, least) for column in columns.split()]


class SweepRow(SQLModel, table=True):
    """A sweep as it was submitted; the same name with another text is a new revision, and the
    newest is what is reported.
    """

    __tablename__ = "sweep"
    __table_args__ = (UniqueConstraint("name", "revision"), finite_number("revision", "> 0"))

    id: int | None = Field(default=None, primary_key=True)
    name: str
    revision: int
    text: str
    question: str
    settings: str
    """Retry and limits, as canonical JSON."""
    submitted_at: float


class SubmissionRow(SQLModel, table=True):
    """A sweep that waits for a server or was run by one: `breakeven submit`, `breakeven serve`."""

    __tablename__ = "submission"
    __table_args__ = (
        one_of("state", SUBMISSION_STATES),
        *finite_numbers("priority submitted_at started_at ended_at renewed_at"),
        Index(None, "state", "priority", "id"),
    )

    id: int | None = Field(default=None, primary_key=True)
    name: str
    """Of the sweep."""
    text: str
    """Its file."""
    options: str
    """What `breakeven run` gets besides, as a JSON list."""
    priority: int
    """The largest comes first; of equal ones the oldest."""
    state: str
    why: str = ""
    """Why it is in this state, where that needs a word."""
    submitted_by: str
    submitted_at: float
    started_at: float | None = None
    ended_at: float | None = None
    owner: str | None = None
    """The server that runs it."""
    renewed_at: float | None = None
    """When that last gave a sign."""
    log: str = ""
    """The last lines that the run printed."""


class ArmColumns(SQLModel):
    """Columns of an arm and of the condition it runs under, its overrides applied; fields that play
    no part are NULL.
    """

    arm_id: str
    kind: str
    device: str
    model: str
    weights: str
    image_size: float | None
    """Pixels of a side; where height and width differ (`image_shape`), of the square with as many
    pixels. NULL for a language model."""
    batch_size: int
    dtype: str
    attention: str
    runtime: str
    seed: int
    method: str
    params: str
    """Canonical JSON of what is requested of the arm: parameters, overrides and replicate
    number."""
    data: str | None = None
    """What accuracy or quality is measured on, or the text of a workload."""
    corruption: str | None = None
    severity: int | None = None
    prompt_tokens: int | None = None
    new_tokens: int | None = None
    kv_cache: str | None = None
    decoding: str | None = None
    condition_id: str
    """Equal for arms under the same condition before their overrides."""
    exclusive: str | None = None
    """`device`: timed with a GPU and a share of the cores to itself; NULL: with the whole node."""
    spare_cores: int | None = None
    """Cores that were to have no thread; NULL where `threads` were requested, or one per core."""
    wait_policy: str | None = None
    """`active`: threads that wait keep their cores busy; NULL: they sleep."""
    pinning: str | None = None
    """`cores`: each thread stayed on a core of its own; NULL: the system placed them."""
    inputs: str | None = None
    """`zeros`: the values of timed images; NULL: drawn from the normal distribution."""
    image_shape: str | None = None
    """Height and width of an image that is no square, such as `64x96`."""
    axis_values: str | None = None
    """Of own models: the numbers of axes with free names, as canonical JSON."""
    fixed_values: str | None = None
    """Those of them that are the same along a curve; NULL: none."""
    x_axis: str | None = None
    """What `tokens` counts: one of these axes, or `tokens`; NULL for other models."""


CONDITION_CHECKS = ("image_size", "batch_size", "prompt_tokens", "new_tokens")


class ComparisonRow(ArmColumns, table=True):
    """One question together with what makes an answer to it stale; the condition columns are those
    of the arm.
    """

    __tablename__ = "comparison"
    __table_args__ = (
        *(finite_number(column, "> 0") for column in CONDITION_CHECKS),
        Index(None, "method", "model", "image_size"),
        Index(None, "arm_id", "model", "weights", "image_size"),
    )

    comparison_id: str = Field(primary_key=True)
    question_id: str = Field(index=True)
    curve_id: str = Field(index=True)
    """Equal for comparisons that differ in the image size or the prompt's length alone: the points
    of one curve."""
    threads: int | None
    """Requested threads; NULL means one per core."""
    baseline: str
    """Readable text; in brackets where the baseline differs from the condition columns."""
    baseline_method: str
    """`method` of the baseline; `dense`: the unmodified model, whatever setting it ran with."""
    baseline_id: str
    """`arm_id` of the baseline."""
    quality_arm_id: str
    """Equal for arms whose outputs are the same: all but runtime, KV cache and the machine."""
    quality_pair_id: str
    """Equal for a speed-up and the accuracy or quality that belongs to it: `quality_arm_id` and the
    same of the baseline."""
    panel_id: str = Field(index=True)
    """Equal for comparisons that differ in sizes, parameters alone (`store.rows.row_mapping`)."""
    payload: str
    """The comparison, as canonical JSON."""
    content_hashes: str


class SweepComparisonRow(SQLModel, table=True):
    """The comparisons of a sweep: many to many."""

    __tablename__ = "sweep_comparison_row"

    sweep: int = Field(primary_key=True, foreign_key="sweep.id")
    comparison_id: str = Field(primary_key=True, foreign_key="comparison.comparison_id", index=True)


class EnvironmentRow(SQLModel, table=True):
    """Fingerprint of what can change a time."""

    __tablename__ = "environment"

    environment_id: str = Field(primary_key=True)
    device: str
    device_name: str
    facts: str


class JobRow(SQLModel, table=True):
    """The queue: one row for each block of arms that is to be run together."""

    __tablename__ = "job"
    __table_args__ = (
        one_of("state", STATES),
        finite_number("attempts", ">= 0"),
        Index(None, "state", "id"),
        Index(None, "curve_group", "resources"),
    )

    id: int | None = Field(default=None, primary_key=True)
    job_id: str = Field(index=True)
    kind: str
    device: str
    state: str
    attempts: int
    """Recorded executions so far."""
    owner: str | None
    """The dispatcher that holds the lease while the job is running."""
    renewed_at: float | None
    """When the owner, or of a waiting job the dispatcher that pinned it, was last known to be
    alive."""
    parent: int | None = Field(foreign_key="job.id")
    """The job that was split to make this one."""
    queued_at: float
    payload: str
    """The job, as JSON."""
    curve_group: str = ""
    """Equal for jobs whose comparisons can lie on one curve (`rows.placement.curve_group`); empty
    for kinds without curves."""
    resources: str = ""
    """Labels that a node must have to run it, as canonical JSON; empty where any node will do."""
    pinned_host: str | None = None
    """Only a node on this host and in the next environment may run it, as the rest of its group
    runs there; NULL: not pinned."""
    pinned_environment: str | None = None
    pinned_by: str | None = None
    """The dispatcher that pinned it; the pin holds against the plans of others while that one is
    alive (`renewed_at`)."""
    exclusive: str | None = None
    """`device`: it may run beside timing jobs on the node's other GPUs."""


class SweepJobRow(SQLModel, table=True):
    """The jobs that a sweep waits for: many to many, since equal jobs are queued once."""

    __tablename__ = "sweep_job"

    sweep: int = Field(primary_key=True, foreign_key="sweep.id")
    job: int = Field(primary_key=True, foreign_key="job.id", index=True)
