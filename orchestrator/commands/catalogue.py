"""Commands on what the code offers: methods, and the schema of sweep files."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from orchestrator.commands.options import UNANSWERED, TableOrJson
from sweeps.model.method import doc_summary, modality_of
from workers.methods import all_methods


def methods(
    form: TableOrJson = "table",
    check: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            exists=True,
            file_okay=False,
            resolve_path=True,
            help=(
                "Check the method files of a folder: what they promise, on small models. Exit code"
                " 1 where one fails, 2 where one cannot be imported."
            ),
        ),
    ] = None,
) -> None:
    """All methods with purpose, version, paper and parameters."""
    if check is not None:
        _check(check)
        return
    listed = [_method(name, method) for name, method in sorted(all_methods().items())]
    if form == "json":
        typer.echo(json.dumps(listed, indent=1))
        return
    from rich.table import Column, Table
    from rich.text import Text

    from orchestrator.text_table import output

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


def _check(folder: Path) -> None:
    """Print what each check of each method of a folder gave. Raises `Exit` where one failed, or a
    file is not Python.
    """
    from orchestrator.text_table import table_lines
    from workers.methods.conformance import check_folder

    results = check_folder(folder)
    if not results:
        raise typer.BadParameter(f"{folder} holds no method file", param_hint="--check")
    rows = [
        (f"{folder / name}.py", check, problem or "ok")
        for name, checks in results.items()
        for check, problem in checks.items()
    ]
    for line in table_lines(("file", "check", "result"), rows):
        typer.echo(line)
    if any(check == "import" for _, check, _ in rows):
        raise typer.Exit(2)
    if any(result != "ok" for _, _, result in rows):
        raise typer.Exit(UNANSWERED)


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


def schema() -> None:
    """The JSON Schema of sweep files."""
    from sweeps.language.json_schema import schema_text

    typer.echo(schema_text(all_methods()), nl=False)
