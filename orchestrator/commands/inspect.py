"""Commands that show what is in the store and in the code, as tables: status, methods, query."""

import csv
import json
import sys
from typing import Any, Literal

import typer

from orchestrator.report import text_table
from store.engine import connect_readonly
from store.errors import StoreError
from store.user_sql import run_query
from sweeps.method import modality_of
from workers.methods import every

JSON_COLUMNS = frozenset({"params", "system_metrics", "counters"})
"""Columns of the views whose text is JSON."""


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


def show_methods(form: Literal["table", "json"]) -> None:
    """All methods with purpose, version, paper and parameters, from the code."""
    listed = [_method(name, method) for name, method in sorted(every().items())]
    if form == "json":
        typer.echo(json.dumps(listed, indent=1))
        return
    from rich.table import Column, Table
    from rich.text import Text

    from orchestrator.terminal import output

    console = output()
    for one in listed:
        console.print(
            f"[bold]{one['method']}[/bold] ({one['modality']}, version {one['version']}): {one['purpose']}", highlight=False
        )
        console.print(f"  {one['paper']}", style="dim", highlight=False)
        headings = [Column(heading, overflow="fold") for heading in ("  parameter", "type", "default", "meaning")]
        table = Table(*headings, box=None, pad_edge=False, header_style="bold")
        for name, field in one["params"].items():
            default = json.dumps(field["default"]) if "default" in field else "required"
            table.add_row(*map(Text, (f"  {name}", field["type"], default, field["help"])))  # `Text` keeps brackets
        console.print(table, "")


def _method(name: str, method: Any) -> dict[str, Any]:
    fields = method.Params.model_json_schema().get("properties", {})
    return {
        "method": name,
        "modality": modality_of(method),
        "version": method.VERSION,
        "purpose": (method.__doc__ or "").strip().partition("\n")[0],
        "paper": method.PAPER,
        "params": {
            key: {"type": _type(field), "help": field.get("description", "")} | {k: v for k, v in field.items() if k == "default"}
            for key, field in fields.items()
        },
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
        records = [{name: _decoded(name, value) for name, value in zip(result.columns, row, strict=True)} for row in result.rows]
        typer.echo(json.dumps(records, indent=1, default=str))
    elif form == "csv":
        csv.writer(sys.stdout, lineterminator="\n").writerows([result.columns, *result.rows])
    elif form == "markdown":
        rows_shown = (result.columns, ["---"] * len(result.columns), *result.rows)
        sys.stdout.writelines(f"{text_table.markdown_row(cells)}\n" for cells in rows_shown)
    else:
        sys.stdout.writelines(f"{line}\n" for line in text_table.table_lines(result.columns, result.rows))
    if result.truncated:
        typer.secho(f"only the first {len(result.rows)} rows; --rows takes more", fg="yellow", err=True)


def _decoded(name: str, value: Any) -> Any:
    """The value of a column that holds JSON as an object or list; others, and what is no JSON, as they are."""
    if name not in JSON_COLUMNS or not isinstance(value, str):
        return value
    try:
        found = json.loads(value)
    except ValueError:
        return value
    return found if isinstance(found, dict | list) else value
