"""The command `history`: how the speed-ups of a sweep moved over days, revisions and versions."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import date
from typing import Annotated, Any

import typer

from orchestrator import text_table
from orchestrator.commands.options import Database, SweepName, TableOrJson
from store.open.engine import connect_readonly, disposing
from store.read.evidence.history import sweep_trends
from store.read.queries import sweep_rows
from store.rows.frames import rows_of
from sweeps.errors import SlowdownError
from sweeps.model.metrics import INTERVAL
from sweeps.stats.trends import Trend
from sweeps.text.compared import change_text, ends_text, possible_text, trends_text

UNDECIDED = 3
"""Exit code: there are too few measurements to find a change."""
MAX_TRENDS = 12
"""Comparisons in the table."""


def history(
    name: SweepName,
    db: Database = None,
    metric: Annotated[
        str | None,
        typer.Option(help="A metric compared as a ratio; default: the first of the sweep."),
    ] = None,
    since: Annotated[
        str,
        typer.Option(metavar="DATE", help="Exit code 1 only for a fall from this day (UTC) on."),
    ] = "",
    form: TableOrJson = "table",
) -> None:
    """Find where speed-ups moved over days, revisions and versions, and what changed there. Exit
    codes: 0 none fell on two days, 1 one fell, 3 too few measurements.
    """
    try:
        is_day = not since or date.fromisoformat(since).isoformat() == since
    except ValueError:
        is_day = False
    if not is_day:
        raise typer.BadParameter(f"{since!r} is no day; write 2026-11-23", param_hint="--since")
    with disposing(connect_readonly(db)) as engine:
        trends = sweep_trends(engine, name, metric)
    if form == "json":
        typer.echo(json.dumps([_as_dict(trend) for trend in trends], indent=2))
    else:
        for line in _lines(name, db, trends):
            typer.echo(line)
    if any(trend.slower_since(since) for trend in trends):
        raise SlowdownError
    if not any(trend.decided for trend in trends):
        raise typer.Exit(UNDECIDED)


def _lines(name: str, db: str | None, trends: Sequence[Trend]) -> Iterator[str]:
    """The answer, a table with the changed ones first, and each newest change in words."""
    from orchestrator.report.data import PointRow
    from orchestrator.report.speedup import arm_label_of, distinctions

    with disposing(connect_readonly(db)) as engine:
        speedups = sweep_rows(engine, name, "speedup")
    shown = speedups[speedups["metric"] == trends[0].metric]
    labels = {
        (row.question_id, row.host): ", ".join((arm_label_of(row), *distinctions(row, shown)))
        + ("" if row.tokens is None else f", {row.tokens} token{'' if row.tokens == 1 else 's'}")
        for row in rows_of(shown, PointRow)
    }
    named = sorted(
        ((labels.get((each.question_id, each.host), each.question_id), each) for each in trends),
        key=lambda pair: min([1.0, *(change.ratio for change in pair[1].changes[-1:])]),
    )
    changed = [pair for pair in named if pair[1].changes]
    yield trends_text(name, trends)
    rows = [(label, str(len(trend.measurements)), *ends_text(trend)) for label, trend in named]
    yield ""
    yield from text_table.table_lines(
        ("comparison", "times", f"first [{INTERVAL}]", f"last [{INTERVAL}]"), rows[:MAX_TRENDS]
    )
    if len(rows) > MAX_TRENDS:
        yield f"and {len(rows) - MAX_TRENDS} more: --format json"
    for label, trend in changed[:MAX_TRENDS]:
        yield f"{label}: {change_text(trend.changes[-1])}"
    possible = [(label, trend.possible) for label, trend in named if trend.possible]
    for label, change in possible[:MAX_TRENDS]:
        yield f"{label}: {possible_text(change)}"


def _as_dict(trend: Trend) -> dict[str, Any]:
    """The trend with the intervals of its measurements, and its changes."""
    return {
        **asdict(trend),
        "measurements": [
            {
                "at": each.at,
                "speedup": each.found.value,
                "low": each.found.low,
                "high": None if each.found.half_width == float("inf") else each.found.high,
                "pairs": each.found.pairs,
                "flags": each.flags,
                "versions": dict(each.versions),
            }
            for each in trend.measurements
        ],
        "changes": [asdict(change) for change in trend.changes],
        "possible": asdict(trend.possible) if trend.possible else None,
    }
