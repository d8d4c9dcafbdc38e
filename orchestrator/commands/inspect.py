"""Commands that show what is in the store and in the code, as tables: status, methods, query."""

import csv
import io
import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import typer

from orchestrator.report import text_table
from store.engine import connect_readonly
from store.errors import StoreError
from store.user_sql import run_query
from sweeps.method import modality_of
from workers.methods import every

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def show_status(db: str | None, name: str | None) -> None:
    """One line for each sweep (newest revision): jobs by state, comparisons measured and failed."""
    from store.queries import find_sweep, sweep_summaries
    from store.queue import progress

    engine = connect_readonly(db)
    chosen = None if name is None else find_sweep(engine, name)["id"]
    rows = []
    for sweep in sweep_summaries(engine):
        if chosen in (None, sweep["id"]):
            state = progress(engine, sweep["id"])
            counts = ", ".join(f"{count} {word}" for word, count in state.counts.items() if count) or "none"
            measured = f"{state.measured} of {state.comparisons}"
            rows.append((sweep["name"], sweep["submitted_at"], counts, measured, str(state.failed), sweep["question"]))
    if not rows:
        raise StoreError("the store holds no sweep; run one: breakeven run sweeps/quickstart.yaml")
    for line in text_table.table_lines(("sweep", "submitted (UTC)", "jobs", "measured", "failed", "question"), rows):
        typer.echo(line)


def show_methods(form: Literal["table", "json"], console: "Console") -> None:
    """All methods with purpose, version, paper and parameters, from the code."""
    listed = [_method(name, method) for name, method in sorted(every().items())]
    if form == "json":
        console.file.write(json.dumps(listed, indent=1) + "\n")
        return
    for one in listed:
        console.print(f"[bold]{one['method']}[/bold] ({one['world']}, version {one['version']}): {one['purpose']}", highlight=False)
        console.print(f"  {one['paper']}", style="dim", highlight=False)
        rows = [
            (f"  {name}", field["type"], json.dumps(field["default"]) if "default" in field else "required", field["help"])
            for name, field in one["params"].items()
        ]
        console.print(_table(("  parameter", "type", "default", "meaning"), rows))
        console.print()


def _method(name: str, method: Any) -> dict[str, Any]:
    schema = method.Params.model_json_schema()
    params = {
        key: {"type": _type(field), "help": field.get("description", "")} | {k: v for k, v in field.items() if k == "default"}
        for key, field in schema.get("properties", {}).items()
    }
    purpose = (method.__doc__ or "").strip().partition("\n")[0]
    return {
        "method": name,
        "world": modality_of(method),
        "version": method.VERSION,
        "purpose": purpose,
        "paper": method.PAPER,
        "params": params,
    }


def _type(field: dict[str, Any]) -> str:
    """The JSON Schema type of a parameter with its limits, in a few words: `number in (0, 1]`."""
    if "anyOf" in field:
        return " or ".join(_type(option) for option in field["anyOf"] if option.get("type") != "null")
    if "enum" in field:
        return " or ".join(map(str, field["enum"]))
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}))}"
    signs = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
    limits = [f"{sign} {field[word]:g}" for word, sign in signs.items() if word in field]
    return " ".join([str(field.get("type", "any")), " and ".join(limits)]).strip()


def show_query(db: str | None, sql: str, form: Literal["table", "csv", "json", "markdown"], *, seconds: float, rows: int) -> None:
    """Run one read-only statement and print what it gives."""
    result = run_query(db, sql, seconds=seconds, rows=rows)
    if form == "json":
        records = [dict(zip(result.columns, row, strict=True)) for row in result.rows]
        typer.echo(json.dumps(records, indent=1, default=str))
    elif form == "csv":
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerows([result.columns, *result.rows])
        typer.echo(buffer.getvalue(), nl=False)
    elif form == "markdown":
        for cells in (result.columns, ["---"] * len(result.columns), *result.rows):
            sys.stdout.write("| " + " | ".join(text_table.cell(cell).replace("|", "\\|") for cell in cells) + " |\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in text_table.table_lines(result.columns, result.rows))
    if result.truncated:
        typer.secho(f"only the first {len(result.rows)} rows; --rows takes more", fg="yellow", err=True)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(cell.replace("[", "\\[") for cell in row))
    return table
