"""Stores of older schemas: rebuilt without loss, analysed again, and known by the outcomes that they hold."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from store import record
from store.answers import answers
from store.engine import connect
from sweeps.metrics import METRICS
from sweeps.protocol import Protocol
from sweeps.stats.pooling import PROCESS_SD
from sweeps.stats.timing import ANALYSIS_VERSION
from tests.store import same_figures
from tests.store.conftest import older

SAME = ("sweep", "environment", "job", "sweep_job", "sweep_comparison_row", "sample", "sample_series", "metric_row", "failure")
MOVED = {"pairing": "comparison_attempt", "evaluation": "image_predictions", "scores": "text_scores", "measured_arm": "arm_result"}
"""Tables that have another name now."""
OTHER = {
    "document": "payload",
    "contents": "content_hashes",
    "readings": "system_metrics",
    "gmacs_method": "gmacs_overhead",
    "varies": "varied_parameter",
}
"""Columns that have another name now."""
CURVE = ("curve_id", "environment", "axis")


def timed(rows: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The break-evens of times; those of amounts came later."""
    return [row for row in rows["break_even_row"] if METRICS[row["metric"]].compared == "ratio"]


@pytest.mark.parametrize(
    ("schema", "views", "comparisons", "failures"),
    [
        ("0002", 5, 9, {("out_of_memory", "latency")}),
        (
            "0005",
            46,
            31,
            {("out_of_memory", "latency"), ("not_a_number", "accuracy"), ("timeout", "generation"), ("not_a_number", "quality")},
        ),
        ("0006", 7, 6, {("out_of_memory", "latency")}),
        ("0007", 9, 8, {("out_of_memory", "latency")}),
        ("0008", 9, 8, {("out_of_memory", "latency")}),
    ],
)
def test_an_older_store_is_upgraded_without_loss(
    path: Path, schema: str, views: int, comparisons: int, failures: set[tuple[str, str]]
) -> None:
    """What an older version stored stays row by row, with a backup beside it, and its answers still count as answers."""
    older(path, schema)
    before = contents(path)
    engine = connect(str(path))
    after = contents(path)
    for name, rows in before.items():
        new = MOVED.get(name, name)
        if name in {*SAME, *MOVED, "comparison", "attempt"}:
            kept = [OTHER.get(column, column) for column in (rows[0] if rows else ())]
            found = [{column: row[column] for column in kept} for row in after[new]]
            expected = [present({OTHER.get(column, column): value for column, value in row.items()}) for row in rows]
            assert sorted(found, key=str) == sorted(expected, key=str), name
    kept = [row for row in before.get("effect_row", ()) if row["compared"] not in {None, "amount"}]
    compared = len(kept) + sum(len(before.get(name, ())) for name in ("speedup_row", "accuracy_row", "quality_row"))
    assert (
        sum(row["compared"] not in {None, "amount"} for row in after["effect_row"]) == compared
    )  # amounts were not always compared
    assert len(after["arm_result"]) == len(before.get("measured_arm") or before["arm_result"])
    (backup,) = path.parent.glob(f"breakeven.db.schema-{schema}.*.backup")
    assert contents(backup) == before
    curves = [{tuple(row[name] for name in CURVE) for row in rows} for rows in (before["break_even_row"], timed(after))]
    assert curves[0] <= curves[1]
    assert {curve[-1] for curve in curves[1] - curves[0]} <= {"image_size", "parameter"}  # which older versions had not
    recomputed = [row for row in after["effect_row"] if row["compared"] == "ratio"] + after["break_even_row"]
    assert {row["analysis_version"] for row in recomputed} == {ANALYSIS_VERSION}
    assert all(row["effect_se"] for row in after["effect_row"] if row["effect_low"] and row["compared"] == "ratio")
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM speedup")).scalar() == views
        assert {tuple(row) for row in connection.execute(text("SELECT reason, kind FROM failures"))} == failures
        shown = connection.execute(text("SELECT * FROM break_even ORDER BY curve_id, axis, metric, host, x")).all()
        stored = connection.execute(text("SELECT DISTINCT comparison_id FROM comparison_attempt")).scalars().all()
        environments = connection.execute(text("SELECT environment_id FROM environment")).scalars().all()
    protocols = (Protocol(pairs_min=30), Protocol(pairs_min=30, images=60, characters=1000))
    known = [answers(engine, dict.fromkeys(stored, protocol), environments).answered for protocol in protocols]
    assert {comparison_id for answered in known for comparison_id, _ in answered} == set(stored)
    assert record.reanalyse(engine) == comparisons
    with engine.connect() as connection:
        assert connection.execute(text("SELECT * FROM break_even ORDER BY curve_id, axis, metric, host, x")).all() == shown
    assert selected(path, "PRAGMA foreign_key_check") == []
    engine.dispose()


def present(row: dict[str, Any]) -> dict[str, Any]:
    """A row under today's names of values."""
    view = same_figures.present("speedup", row)
    return {name: view[name] if name in view else view[same_figures.RENAMED["speedup"][name]] for name in row}


@pytest.mark.parametrize("schema", ["0005", "0006", "0007", "0008"])
def test_figures_stay(path: Path, schema: str) -> None:
    """What speed-ups rest on, and every other figure of every view, is the same after the migration, and a new analysis."""
    older(path, schema)
    counts, migrated, analysed = same_figures.check(path)
    assert migrated == []
    assert analysed == []
    assert len(counts) == (8 if schema == "0005" else 10)
    assert all(counts.values())


@pytest.mark.parametrize("schema", ["0005", "0006", "0007", "0008"])
def test_speed_ups_are_estimated_anew_from_the_same_samples(path: Path, schema: str) -> None:
    """Another estimator of the same ratios moves them by less than 1 %, and every interval has room for the process."""
    older(path, schema)
    names = "comparison_id, environment, host, metric, speedup, speedup_low, speedup_high FROM speedup WHERE speedup_low > 0"
    before = {row[:4]: row[4:] for row in selected(path, f"SELECT {names}")}
    connect(str(path)).dispose()
    after = {row[:4]: row[4:] for row in selected(path, f"SELECT {names}")}
    assert after.keys() == before.keys()
    for key, (speedup, low, high) in after.items():
        assert speedup == pytest.approx(before[key][0], rel=0.01)
        assert high / low > (1 + 2 * PROCESS_SD) ** 2


def test_the_comparison_of_figures_finds_a_difference(path: Path) -> None:
    """One changed figure is named, once as it was and once as it is."""
    older(path, "0005")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE speedup_row SET baseline_ms = 2 * baseline_ms WHERE rowid = 1")
    for differences in same_figures.check(path)[1:]:
        assert [(found.view, found.side) for found in differences[:2]] == [("speedup", "before"), ("speedup", "after")]


def test_conditions_of_older_arms_are_those_of_today(path: Path) -> None:
    """An arm under its condition has the identity that schema 0005 stored of language models, and arms of all kinds have one."""
    older(path, "0005")
    stored = {(row["attempt"], row["arm"]): row["setting_id"] for row in contents(path)["spoken_arm"]}
    connect(str(path)).dispose()
    arms = contents(path)["arm_result"]
    assert {row["kind"] for row in arms} == {"latency", "accuracy", "generation", "quality"}
    found = {(row["attempt"], row["arm"]): row["arm_condition_id"] for row in arms}
    assert len(stored) == 13
    assert {key: found[key] for key in stored} == stored


HOSTS = """
UPDATE attempt SET host = 'first', started_at = started_at - 60, ended_at = ended_at - 60 WHERE id = 1;
INSERT INTO attempt SELECT 9, digest || '9', job, job_id, n, round, environment, 'second', started_at, ended_at + 60,
  project_commit, source, flags, protocol, readings, document FROM attempt WHERE id = 1;
INSERT INTO sample SELECT 9, rounds, columns, arms, inner, stopped, seconds, device_seconds, run_order
  FROM sample WHERE attempt = 1;
INSERT INTO measured_arm SELECT 9, arm, arm_id, gmacs, gmacs_method, parameters, trainable_parameters, batch, tokens,
  tokens_final, threads, flags FROM measured_arm WHERE attempt = 1;
INSERT INTO pairing SELECT comparison_id, 9, baseline, arm, failure FROM pairing WHERE attempt = 1;
"""


def test_rows_of_an_older_store_are_separated_by_host(path: Path) -> None:
    """A pair that two hosts measured, which schema 0002 pooled, has a row for each, and no curve has points of both."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((Path(__file__).parent / "version_2.sql").read_text() + HOSTS)
    engine = connect(str(path))
    rows = """SELECT host, count(*), sum(n) FROM effect_row WHERE compared = 'ratio' AND effect IS NOT NULL
      GROUP BY host ORDER BY host"""
    assert [(host, count) for host, count, _ in selected(path, rows)] == [("first", 3), ("here", 2), ("second", 3)]
    assert selected(path, "SELECT DISTINCT points FROM break_even_row WHERE points > 1 AND axis = 'tokens'") == []
    engine.dispose()


def selected(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """What a query finds."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def test_an_outcome_of_an_older_schema_is_known_again(
    path: Path, make_job: Callable[..., Any], make_outcome: Callable[..., Any]
) -> None:
    """Importing once more what an older version imported changes nothing, though models have gained fields since."""
    older(path, "0002")
    engine = connect(str(path))
    job = make_job(64, keep_rates=(0.3, 0.5, 0.7), protocol=Protocol(half_width=0.01))
    outcome = make_outcome(job, speedups=(0.8, 0.9, 0.95), pairs=31)
    named = {arm.arm: tuple(metric.model_copy(update={"name": "peak_rss"}) for metric in arm.metrics) for arm in outcome.arms}
    arms = tuple(arm.model_copy(update={"metrics": named[arm.arm]}) for arm in outcome.arms)
    outcome = outcome.model_copy(update={"arms": arms})
    assert not record.record(engine, None, None, outcome)
    assert record.record(engine, None, None, outcome.model_copy(update={"host": "elsewhere"}))
    engine.dispose()


def contents(path: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of every table."""
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        return {name: [dict(row) for row in connection.execute(f"SELECT * FROM {name} ORDER BY rowid")] for name in names}
