"""One table of effects in place of three, arms of every kind with their condition, and names of the field."""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

from store.quality_ids import quality_ids
from store.row_mapping import arm_columns
from sweeps.job import Job

revision = "0006"
down_revision = "0005"

RENAMED_COLUMNS = {
    "comparison": {"document": "payload", "contents": "content_hashes"},
    "job": {"document": "payload"},
    "attempt": {"document": "payload", "readings": "system_metrics"},
    "break_even_row": {"varies": "varied_parameter"},
}
"""Renamed columns."""
VALUES = {"attention": {"manual": "eager"}, "decoding": {"replay": "teacher_forcing"}}
"""Renamed values of conditions."""
FLAGS = {
    "unsteady": "warmup_not_converged",
    "tokens_differ": "token_trace_mismatch",
    "identity_violated": "consistency_check_failed",
    "fresh_skipped": "isolated_run_skipped",
}
METRICS = {
    "margin_change_tail": "margin_change_p05",
    "gmacs_method_ttft": "gmacs_overhead_ttft",
    "gmacs_method_tpot": "gmacs_overhead_tpot",
    "effective_gb_per_s": "achieved_gb_per_s",
    "machine_gb_per_s": "peak_gb_per_s",
    "rss_fresh": "rss_isolated",
    "peak_rss_fresh": "peak_rss_isolated",
    "cuda_peak_allocated_fresh": "cuda_peak_allocated_isolated",
    "cuda_peak_reserved_fresh": "cuda_peak_reserved_isolated",
}
TEXTS = ("kind", "device", "model", "weights", "dtype", "attention", "runtime", "method", "params")
COUNTS = ("image_size", "prompt_tokens", "new_tokens")
MAYBE = ("data", "corruption", "kv_cache", "decoding", "condition_id", "exclusive")
COUNTED = ("gmacs", "gmacs_overhead", "parameters", "trainable_parameters", "batch", "tokens", "tokens_final", "threads")
SPEED = {
    **{
        name: name for name in ("metric", "host", "threads", "tokens", "tokens_final", "gmacs_baseline", "gmacs", "rounds", "route")
    },
    "gmacs_overhead": "gmacs_method",
    "baseline_value": "baseline_ms",
    "arm_value": "method_ms",
    "device_value": "device_ms",
    "effect": "speedup",
    "effect_low": "speedup_low",
    "effect_high": "speedup_high",
    "n": "pairs",
    "verdict": "verdict",
}
"""By column of `effect_row` that of `speedup_row`."""
WORK = {"tokens": "tokens", "tokens_final": "tokens_final", "gmacs_baseline": "gmacs_baseline", "gmacs": "gmacs"}
WORK |= {"gmacs_overhead": "gmacs_method"}


def interval(name: str) -> dict[str, str]:
    return {"arm_value": name, "arm_low": f"{name}_low", "arm_high": f"{name}_high"}


def sides(name: str) -> dict[str, str]:
    return {"baseline_value": f"{name}_baseline", "arm_value": name}


ITEMS: dict[str, tuple[dict[str, str], dict[str, tuple[str, dict[str, str]]]]] = {
    "accuracy_row": (
        {"n": "images", **WORK},
        {
            "top1": ("%", {**sides("top1"), **interval("top1"), "verdict": "verdict"}),
            "top5": ("%", sides("top5")),
            "kl": ("nat", interval("kl")),
            "margin_change": ("logit", interval("margin_change")),
            "margin_change_p05": ("logit", {"arm_value": "margin_change_tail"}),
            "mcnemar_p": ("1", {"arm_value": "mcnemar_p"}),
            "only_baseline_correct": ("images", {"arm_value": "lost"}),
            "only_arm_correct": ("images", {"arm_value": "gained"}),
            "unreadable": ("images", {"arm_value": "unreadable"}),
        },
    ),
    "quality_row": (
        {"n": "windows"},
        {
            "bits_per_byte": ("bit", {**sides("bits_per_byte"), "verdict": "verdict"}),
            "perplexity": ("1", sides("perplexity")),
            "tokens_scored": ("1", sides("tokens")),
            "top1_agreement": ("%", interval("top1_agreement")),
            "kl": ("nat", interval("kl")),
            "windows_skipped": ("windows", {"arm_value": "unscored"}),
            "bytes_scored": ("B", {"arm_value": "bytes"}),
            "characters_scored": ("1", {"arm_value": "characters"}),
        },
    ),
}
"""By table the columns that all of its metrics share, and by metric its unit and columns; the first metric is the compared one."""


def number(table: str, column: str, least: str = "") -> sa.CheckConstraint:
    bound = f" AND {column} {least}" if least else ""
    return sa.CheckConstraint(
        f"{column} + 0 = {column} AND {column} < 1e308 AND {column} > -1e308{bound}", name=op.f(f"ck_{table}_{column}")
    )


def there(name: str) -> sa.Table:
    """A table as it is in the database."""
    return sa.Table(name, sa.MetaData(), autoload_with=op.get_bind())


def columns(names: tuple[str, ...], type_: type[Any], *, nullable: bool = False) -> list[sa.Column[Any]]:
    return [sa.Column(name, type_(), nullable=nullable) for name in names]


def upgrade() -> None:
    for table, names in RENAMED_COLUMNS.items():
        for old, new in names.items():
            op.alter_column(table, old, new_column_name=new)
    moved(
        "evaluation", "image_predictions", ("images", "unreadable", "classes", "listing"), {"images": "> 0", "unreadable": ">= 0"}
    )
    moved("scores", "text_scores", ("windows", "characters", "complete", "listing"), {"windows": "> 0", "characters": ">= 0"})
    comparison_attempt()
    arm_result()
    renamed_values()
    effect_row()
    comparison()


def moved(old: str, new: str, kept: tuple[str, ...], checks: dict[str, str]) -> None:
    """A table of raw data under a new name, with those of its constraints."""
    types: dict[str, type[Any]] = {"listing": sa.String, "complete": sa.Boolean}
    op.create_table(
        new,
        sa.Column("attempt", sa.Integer(), nullable=False),
        *(sa.Column(name, types.get(name, sa.Integer)(), nullable=False) for name in kept),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        *(number(new, name, least) for name, least in checks.items()),
        sa.ForeignKeyConstraint(["attempt"], ["attempt.id"], name=op.f(f"fk_{new}_attempt")),
        sa.PrimaryKeyConstraint("attempt", name=op.f(f"pk_{new}")),
    )
    source, target = there(old), there(new)
    found = sa.select(source.c.attempt, *(source.c[name] for name in kept), source.c.document)
    op.execute(target.insert().from_select(["attempt", *kept, "payload"], found))
    op.drop_table(old)


def comparison_attempt() -> None:
    names = ("comparison_id", "attempt", "baseline", "arm", "failure")
    op.create_table(
        "comparison_attempt",
        sa.Column("comparison_id", sa.String(), nullable=False),
        *columns(("attempt", "baseline", "arm"), sa.Integer),
        *columns(("failure",), sa.Integer, nullable=True),
        *(
            sa.ForeignKeyConstraint([name], [to], name=op.f(f"fk_comparison_attempt_{name}"))
            for name, to in (("attempt", "attempt.id"), ("comparison_id", "comparison.comparison_id"), ("failure", "failure.id"))
        ),
        sa.PrimaryKeyConstraint("comparison_id", "attempt", name=op.f("pk_comparison_attempt")),
    )
    source = there("pairing")
    op.execute(there("comparison_attempt").insert().from_select(list(names), sa.select(*(source.c[name] for name in names))))
    op.drop_table("pairing")
    op.create_index(op.f("ix_comparison_attempt_attempt"), "comparison_attempt", ["attempt"], unique=False)


def renamed_values() -> None:
    """Values of conditions, flags and names of metrics in the columns that hold them; payloads keep the names of their time."""
    for table in ("comparison", "arm_result"):
        rows = there(table)
        for column, names in VALUES.items():
            for old, new in names.items():
                op.execute(rows.update().where(rows.c[column] == old).values({column: new}))
        for old, new in VALUES["attention"].items():
            params = sa.func.replace(rows.c.params, f'"attention":"{old}"', f'"attention":"{new}"')
            op.execute(rows.update().where(rows.c.params.contains(f'"attention":"{old}"')).values(params=params))
    rows = there("comparison")
    for old, new in VALUES["attention"].items():
        text = sa.func.replace(rows.c.baseline, f"attention={old}", f"attention={new}")
        op.execute(rows.update().where(rows.c.baseline.contains(f"attention={old}")).values(baseline=text))
    for table in ("attempt", "arm_result", "speedup_row", "accuracy_row", "quality_row"):
        rows = there(table)
        for old, new in FLAGS.items():
            op.execute(rows.update().where(rows.c.flags.contains(old)).values(flags=sa.func.replace(rows.c.flags, old, new)))
    rows = there("metric_row")
    for old, new in METRICS.items():
        op.execute(rows.update().where(rows.c.metric == old).values(metric=new))


def arm_result() -> None:
    """An arm and the condition it ran under in one table; where no table held the condition, it is read from the payload."""
    op.create_table(
        "arm_result",
        *columns(("attempt", "arm"), sa.Integer),
        *columns(("arm_id", "arm_condition_id", *TEXTS), sa.String),
        *columns(("batch_size", "seed"), sa.Integer),
        *columns((*COUNTS, "severity"), sa.Integer, nullable=True),
        *columns((*MAYBE, "route"), sa.String, nullable=True),
        *columns(("gmacs", "gmacs_overhead"), sa.Float),
        *columns(("parameters", "trainable_parameters"), sa.BigInteger),
        *columns(("batch", "tokens", "tokens_final", "threads"), sa.Integer),
        *columns(("flags",), sa.String),
        *(number("arm_result", name, "> 0") for name in ("batch_size", *COUNTS, "batch", "threads")),
        *(number("arm_result", name, ">= 0") for name in ("gmacs", "gmacs_overhead", "tokens", "tokens_final")),
        sa.ForeignKeyConstraint(["attempt"], ["attempt.id"], name=op.f("fk_arm_result_attempt")),
        sa.PrimaryKeyConstraint("attempt", "arm", name=op.f("pk_arm_result")),
    )
    connection, target = op.get_bind(), there("arm_result")
    measured, language, attempt = there("measured_arm"), there("spoken_arm"), there("attempt")
    names = ("attempt", "arm", "arm_id", "flags", "route", *COUNTED)
    kept: dict[str, Any] = {name: measured.c[name] for name in names if name in measured.c}
    kept["gmacs_overhead"] = measured.c.gmacs_method
    fields = (*TEXTS, *MAYBE, *COUNTS, "batch_size", "seed")
    condition: dict[str, Any] = {name: language.c[name] for name in fields if name in language.c}
    condition |= {"arm_condition_id": language.c.setting_id, "kind": sa.literal("generation")}
    both = {**kept, **condition}
    same = sa.and_(language.c.attempt == measured.c.attempt, language.c.arm == measured.c.arm)
    found = sa.select(*(column.label(name) for name, column in both.items())).select_from(measured.join(language, same))
    connection.execute(target.insert().from_select(list(both), found))
    others = measured.outerjoin(language, same).join(attempt, attempt.c.id == measured.c.attempt)
    rest = sa.select(*(column.label(name) for name, column in kept.items())).select_from(others).where(language.c.attempt.is_(None))
    for row in connection.execute(sa.select(attempt.c.id, attempt.c.payload)).all():
        arms = connection.execute(rest.where(measured.c.attempt == row.id)).mappings().all()
        if arms:
            job = Job.model_validate(json.loads(row.payload)["job"])
            connection.execute(target.insert(), [{**arm_columns(job, arm["arm"]), **arm} for arm in arms])
    for table in ("spoken_arm", "measured_arm"):
        op.drop_table(table)
    op.create_index(op.f("ix_arm_result_arm_condition_id"), "arm_result", ["arm_condition_id"], unique=False)


def effect_row() -> None:
    figures = ("baseline_value", "arm_value", "arm_low", "arm_high", "device_value", "effect", "effect_low", "effect_high")
    counts, macs = ("threads", "tokens", "tokens_final", "n", "rounds"), ("gmacs_baseline", "gmacs", "gmacs_overhead")
    words = {
        "source": ("measured", "imported", "published"),
        "compared": ("ratio", "difference"),
        "verdict": ("faster", "slower", "insufficient", "better", "worse", "same", "unclear"),
    }
    keys = ("comparison_id", "environment", "host", "metric")
    links = {"comparison_id": "comparison.comparison_id", "environment": "environment.environment_id", "failure": "failure.id"}
    common = ("comparison_id", "environment", "question_id", "measured_at", "source", "analysis_version", "failure", "flags")
    op.create_table(
        "effect_row",
        *columns((*keys, "question_id", "measured_at", "source", "unit", "flags"), sa.String),
        *columns(("analysis_version",), sa.Integer),
        *columns(("compared", "verdict", "route"), sa.String, nullable=True),
        *columns(("failure", *counts), sa.Integer, nullable=True),
        *columns(("floor", *macs, *figures), sa.Float, nullable=True),
        *(
            sa.CheckConstraint(f"{name} IN ({', '.join(map(repr, allowed))})", name=op.f(f"ck_effect_row_{name}"))
            for name, allowed in words.items()
        ),
        *(number("effect_row", name, ">= 0") for name in ("floor", *counts, *macs)),
        *(number("effect_row", name) for name in figures),
        sa.CheckConstraint(
            "compared <> 'ratio' OR (effect > 0 AND baseline_value > 0 AND arm_value > 0)", name=op.f("ck_effect_row_ratio")
        ),
        *(sa.ForeignKeyConstraint([name], [to], name=op.f(f"fk_effect_row_{name}")) for name, to in links.items()),
        sa.PrimaryKeyConstraint(*keys, name=op.f("pk_effect_row")),
    )
    target = there("effect_row")

    def insert(table: sa.Table, from_: dict[str, Any], *where: sa.ColumnElement[bool]) -> None:
        both = {**{name: table.c[name] for name in common}, **from_}
        found = sa.select(*(column.label(name) for name, column in both.items())).where(*where)
        op.execute(target.insert().from_select(list(both), found))

    speed = there("speedup_row")
    given: dict[str, Any] = {"unit": sa.literal("ms"), "compared": sa.literal("ratio"), "floor": speed.c.floor}
    insert(speed, {**given, **{new: speed.c[old] for new, old in SPEED.items()}})
    for name, (shared, metrics) in ITEMS.items():
        table = there(name)
        for place, (metric, (unit, named)) in enumerate(metrics.items()):
            from_: dict[str, Any] = {new: table.c[old] for new, old in {**shared, **named}.items()}
            from_ |= {"metric": sa.literal(metric), "unit": sa.literal(unit), "host": sa.literal("")}
            from_["rounds"] = sa.case((table.c[shared["n"]].is_not(None), 1))
            if place == 0:
                insert(table, {**from_, **change(table), "compared": sa.literal("difference"), "floor": table.c.floor})
            else:
                insert(table, from_, sa.or_(*(table.c[old].is_not(None) for old in named.values())))
    for name in ("speedup_row", *ITEMS):
        op.drop_table(name)
    index = ("question_id", "environment", "host", "measured_at")
    op.create_index(op.f(f"ix_effect_row_{'_'.join(index)}"), "effect_row", list(index), unique=False)


def change(table: sa.Table) -> dict[str, Any]:
    """The arm's figure less the baseline's, with its interval."""
    if "top1_drop" in table.c:
        return {"effect": 0 - table.c.top1_drop, "effect_low": 0 - table.c.top1_drop_high, "effect_high": 0 - table.c.top1_drop_low}
    return {f"effect{end}": table.c[f"bits_per_byte_change{end}"] for end in ("", "_low", "_high")}


def comparison() -> None:
    """What joins a speed-up with the quality that belongs to it."""
    for name in ("quality_arm_id", "quality_pair_id"):
        op.add_column("comparison", sa.Column(name, sa.String(), nullable=True))
    connection, rows = op.get_bind(), there("comparison")
    found = [
        {"key": row["comparison_id"], **quality_ids(row, row["baseline"])} for row in connection.execute(sa.select(rows)).mappings()
    ]
    if found:
        values: dict[str, Any] = {name: sa.bindparam(name) for name in ("quality_arm_id", "quality_pair_id")}
        connection.execute(rows.update().where(rows.c.comparison_id == sa.bindparam("key")).values(values), found)
