"""Commands on the sweeps of a store: their state, their report, and a new analysis."""

import shlex
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from orchestrator import text_table
from orchestrator.commands.options import Database, SweepName
from store.errors import StoreError
from store.open.engine import Engine, connect, connect_readonly, disposing
from store.rows.location import check_exists, database_option, location, sqlite_path
from sweeps.model.metrics import INTERVAL
from sweeps.number_format import count

WATCH_S = 2.0
"""How often `status --watch` looks."""
MAX_POINTS = 60
"""Speed-ups that the state of one sweep lists."""


def report(
    name: SweepName,
    db: Database = None,
    form: Annotated[
        Literal["table", "markdown", "html", "latex", "json", "csv"], typer.Option("--format")
    ] = "table",
    *,
    detail: Annotated[
        bool, typer.Option("--detail", help="All points, cost models, memory, audit, flags.")
    ] = False,
    reasons: Annotated[bool, typer.Option("--why", help="Where the time goes, too.")] = False,
    columns: Annotated[
        str, typer.Option(help="Of LaTeX tables, such as method,tokens,speed-up,verdict.")
    ] = "",
) -> None:
    """Print the report of a sweep."""
    from orchestrator.report.data import load_report
    from orchestrator.report.render import write_report
    from orchestrator.text_table import output

    names = list(filter(None, columns.split(",")))
    write_report(
        load_report(db, name), form, output(), db, detail=detail, reasons=reasons, columns=names
    )


def status(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="One sweep; default: all.")
    ] = None,
    db: Database = None,
    *,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show it again every two seconds, until interrupted.")
    ] = False,
) -> None:
    """One line for each sweep (newest revision): jobs by state, comparisons measured, those of them
    that decide nothing, and failures; of one also the answer so far. Submitted ones come first.
    """
    while True:
        lines = list(_status_lines(name, db))
        if watch:
            typer.echo("\x1b[2J\x1b[H", nl=False)  # an empty screen
        for line in lines:
            typer.echo(line)
        if not watch:
            return
        time.sleep(WATCH_S)


def _status_lines(name: str | None, db: str | None) -> Iterator[str]:
    from store.read.queries import find_sweep, sweep_summaries
    from store.schema.tables import STATES
    from store.write.submissions import submissions

    with disposing(connect_readonly(db)) as engine:
        queued = [
            (str(each.id), each.name, each.state, str(each.priority), each.submitted_by, each.why)
            for each in submissions(engine)
            if name in (None, each.name)
        ]
        if queued:
            yield from text_table.table_lines(
                ("ID", "sweep", "state", "priority", "by", "why"), queued
            )
            yield ""
        known = name in {sweep["name"] for sweep in sweep_summaries(engine)}
        if name is not None and queued and not known:
            return  # it has not begun
        chosen = None if name is None else find_sweep(engine, name)["id"]
        rows = []
        for sweep in sweep_summaries(engine):
            if chosen in (None, sweep["id"]):
                jobs = [f"{sweep[state]} {state}" for state in STATES if sweep[state]]
                measured = f"{sweep['measured']} of {sweep['comparisons']}"
                counts = (str(sweep[name]) for name in ("unclear", "insufficient", "failures"))
                states = (", ".join(jobs) or "none", measured, *counts)
                rows.append((sweep["name"], sweep["submitted_at"], *states, sweep["question"]))
    if not rows and not queued:
        raise StoreError("the store holds no sweep; run one: breakeven run quickstart")
    counted = ("measured", "unclear", "insufficient", "failed")
    headings = ("sweep", "submitted (UTC)", "jobs", *counted, "question")
    if rows:
        yield from text_table.table_lines(headings, rows)
    if name is not None:
        yield from _known_so_far(db, name)


def _known_so_far(db: str | None, name: str) -> Iterator[str]:
    """The answer by what is stored, and every speed-up with its interval and the visits that it
    rests on.
    """
    from orchestrator.report.answers import answer_sections
    from orchestrator.report.data import PointRow, load_report
    from orchestrator.report.speedup import arm_label_of, distinctions
    from store.rows.frames import rows_of
    from sweeps.analysis.labels import conclude_speedup
    from sweeps.text.effects import effect_word

    found = load_report(db, name)
    for section in answer_sections(found):
        yield from ("", *(line.text for line in section.lines))
    shown = found.main_speedups.sort_values(["method", "params", "tokens"])
    listed = []
    for row in rows_of(shown, PointRow):
        arm = ", ".join((arm_label_of(row), *distinctions(row, shown)))
        tokens = "" if row.tokens is None else f"{row.tokens:.0f}"
        speedup = conclude_speedup(row)
        listed.append((arm, tokens, speedup.numbers, effect_word(speedup), f"{row.rounds:.0f}"))
    if listed:
        yield ""
        yield from text_table.table_lines(
            ("arm", "tokens", f"speed-up [{INTERVAL}]", "verdict", "visits"), listed[:MAX_POINTS]
        )
    if len(listed) > MAX_POINTS:
        yield f"and {len(listed) - MAX_POINTS} more: breakeven report {name}{database_option(db)}"


def reanalyse_stored(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="One sweep; default: everything.")
    ] = None,
    db: Database = None,
    *,
    processes: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="That compute at the same time. Default: all cores."),
    ] = None,
) -> None:
    """Derive again what follows from the raw samples. After an interruption the next call goes on
    with what is left.
    """
    from orchestrator.loop.progress import Display
    from store.read.queries import find_sweep
    from store.write.reanalysis import reanalyse
    from store.write.submission import label_stored_arms
    from workers.methods.arm_labels import params_label

    with disposing(_existing(db)) as engine:
        if name is not None:
            find_sweep(engine, name)
        with Display(text_table.output()) as display:
            derived = reanalyse(engine, name, processes=processes, show=display.advance)
        typer.echo(f"{count(derived, 'comparison')} analysed again")
        label_stored_arms(engine, params_label)


def archive(
    before: Annotated[
        datetime,
        typer.Option(
            formats=["%Y-%m-%d"], metavar="DATE", help="Attempts that ended before this day (UTC)."
        ),
    ],
    to: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", file_okay=False, help="Folder of the files. Default: beside the store."
        ),
    ] = None,
    db: Database = None,
) -> None:
    """Move raw samples into Parquet files, which must stay where they are. Nothing is lost if it is
    interrupted.
    """
    from store.write.archive import archive_samples

    with disposing(_existing(db)) as engine:
        moved = archive_samples(engine, before.replace(tzinfo=UTC).timestamp(), to)
    typer.echo(
        f"samples of {count(moved.attempts, 'attempt')} moved to {moved.folder}:"
        f" {moved.stored_bytes:,} bytes of the store, {moved.file_bytes:,} bytes of files"
    )
    if moved.attempts:
        path = engine.url.database
        shrink = f"python -m sqlite3 {shlex.quote(str(path))} VACUUM"
        if engine.dialect.name != "sqlite":
            shrink = 'psql -c "VACUUM FULL sample, sample_series"'
        typer.echo(f"new rows use their space; this gives it back, while nothing runs: {shrink}")


def _existing(db: str | None) -> Engine:
    """A store that is there, to be written to."""
    if path := sqlite_path(location(db)):
        check_exists(path)
    return connect(db)
