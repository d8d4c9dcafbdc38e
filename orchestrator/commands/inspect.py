"""Commands that show what is in the store and in the code, as tables: status, methods."""

import json
from collections.abc import Iterator
from typing import Any, Literal

import typer

from orchestrator import text_table
from store.errors import StoreError
from store.open.engine import connect_readonly
from sweeps.model.method import doc_summary, modality_of
from sweeps.model.metrics import INTERVAL
from workers.methods import all_methods

MAX_POINTS = 60
"""Speed-ups that the state of one sweep lists."""


def show_status(db: str | None, name: str | None) -> None:
    """One line for each sweep (newest revision): jobs by state, comparisons measured and failed; of
    one also the answer so far.
    """
    from store.read.queries import find_sweep, sweep_summaries
    from store.write.queue import progress

    engine = connect_readonly(db)
    chosen = None if name is None else find_sweep(engine, name)["id"]
    rows = []
    for sweep in sweep_summaries(engine):
        if chosen in (None, sweep["id"]):
            state = progress(engine, sweep["id"])
            counts = (
                ", ".join(f"{count} {word}" for word, count in state.counts.items() if count)
                or "none"
            )
            measured = f"{state.measured} of {state.comparisons}"
            rows.append(
                (
                    sweep["name"],
                    sweep["submitted_at"],
                    counts,
                    measured,
                    str(state.failed),
                    sweep["question"],
                )
            )
    if not rows:
        raise StoreError("the store holds no sweep; run one: breakeven run quickstart")
    for line in text_table.table_lines(
        ("sweep", "submitted (UTC)", "jobs", "measured", "failed", "question"), rows
    ):
        typer.echo(line)
    for line in _known_so_far(db, name) if name is not None else ():
        typer.echo(line)


def _known_so_far(db: str | None, name: str) -> Iterator[str]:
    """The answer by what is stored, and every speed-up with its interval and the visits that it
    rests on.
    """
    from orchestrator.report.answers import answer_sections
    from orchestrator.report.data import load_report
    from orchestrator.report.sections.conditions import distinctions
    from orchestrator.report.sections.speedup import speedup_of
    from store.rows.frames import rows_of
    from sweeps.model.kinds import KINDS
    from sweeps.number_format import is_missing
    from workers.methods.arm_labels import params_label

    report, main = (
        load_report(db, name),
        {kind.metrics[0] for kind in KINDS.values() if kind.metrics},
    )
    for section in answer_sections(report):
        yield from ("", *(line.text for line in section.lines))
    shown = report.speedups[report.speedups["metric"].isin(main)].sort_values(
        ["method", "params", "tokens"]
    )
    listed = []
    for row in rows_of(shown):
        arm = ", ".join((params_label(row.method, row.params), *distinctions(row, shown)))
        tokens = "" if is_missing(row.tokens) else f"{row.tokens:.0f}"
        found = speedup_of(row)
        listed.append((arm, tokens, found.numbers, found.word, f"{row.rounds:.0f}"))
    if listed:
        yield ""
        yield from text_table.table_lines(
            ("arm", "tokens", f"speed-up [{INTERVAL}]", "verdict", "visits"), listed[:MAX_POINTS]
        )
    if len(listed) > MAX_POINTS:
        yield f"and {len(listed) - MAX_POINTS} more: breakeven report {name}"


def show_methods(form: Literal["table", "json"]) -> None:
    """All methods with purpose, version, paper and parameters, from the code."""
    listed = [_method(name, method) for name, method in sorted(all_methods().items())]
    if form == "json":
        typer.echo(json.dumps(listed, indent=1))
        return
    from rich.table import Column, Table
    from rich.text import Text

    from orchestrator.terminal import output

    console = output()
    for one in listed:
        console.print(
            f"[bold]{one['method']}[/bold] ({one['modality']}, version {one['version']}):"
            f" {one['purpose']}",
            highlight=False,
        )
        console.print(f"  {one['paper']}", style="dim", highlight=False)
        headings = [
            Column(heading, overflow="fold")
            for heading in ("  parameter", "type", "default", "meaning")
        ]
        table = Table(*headings, box=None, pad_edge=False, header_style="bold")
        for name, field in one["params"].items():
            default = json.dumps(field["default"]) if "default" in field else "required"
            # `Text` keeps brackets
            table.add_row(*map(Text, (f"  {name}", field["type"], default, field["help"])))
        console.print(table, "")


def _method(name: str, method: Any) -> dict[str, Any]:
    fields = method.Params.model_json_schema().get("properties", {})
    return {
        "method": name,
        "modality": modality_of(method),
        "version": method.VERSION,
        "purpose": doc_summary(method),
        "paper": method.PAPER,
        "params": {
            key: (
                {"type": _type(field), "help": " ".join(field.get("description", "").split())}
                | {k: v for k, v in field.items() if k == "default"}
            )
            for key, field in fields.items()
        },
    }


def _type(field: dict[str, Any]) -> str:
    """The JSON Schema type of a parameter with its limits, in a few words: `number in (0, 1]`."""
    if "anyOf" in field:
        return " or ".join(
            _type(option) for option in field["anyOf"] if option.get("type") != "null"
        )
    if "enum" in field:
        return " or ".join(map(str, field["enum"]))
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}))}"
    signs = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
    limits = [f"{sign} {field[word]:g}" for word, sign in signs.items() if word in field]
    return " ".join([str(field.get("type", "any")), " and ".join(limits)]).strip()
