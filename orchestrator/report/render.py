"""Report: a sweep's answers from the public views, as text for people and as data for programs."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from orchestrator.report import accuracy, generation, next_steps, zeroshot
from orchestrator.report.labels import AXES, STYLES, absent, label, markdown_row, named, of_several, rows, sentence
from orchestrator.report.verdict_words import speed
from store.comparison_status import states
from store.engine import connect_readonly
from store.host_labels import places
from store.quality_join import beside_controls
from store.queries import sweep, table
from workers.methods import control

Format = Literal["table", "markdown", "json", "csv"]

CONDITION = (
    "device_name",
    "model",
    "weights",
    "dtype",
    "attention",
    "runtime",
    "threads",
    "batch_size",
    "baseline",
    "environment",
    "host",
    "exclusive",
)
"""What stays fixed within one block of the report; ratios are never mixed across these."""


BREAK_EVENS = """SELECT * FROM break_even WHERE sweep = :name
  ORDER BY CASE axis WHEN 'tokens' THEN 0 WHEN 'gmacs' THEN 1 ELSE 2 END, method, params, x"""


ARMS = """SELECT * FROM language WHERE attempt IN (
    SELECT p.attempt FROM pairing AS p JOIN sweep_comparison AS l ON l.comparison_id = p.comparison_id WHERE l.sweep = :name)
  ORDER BY prompt_tokens, method, params"""


ACCURACIES = """SELECT a.*, (
    SELECT max(e.classes) FROM pairing AS p JOIN evaluation AS e ON e.attempt = p.attempt WHERE p.comparison_id = a.comparison_id
  ) AS classes
  FROM accuracy AS a WHERE a.comparison_id IN (SELECT comparison_id FROM sweep_comparison WHERE sweep = :name)
  ORDER BY a.method, a.params, a.image_size"""


@dataclass(frozen=True)
class Report:
    """The rows of one sweep, newest answers only; frames have the columns of the views of the same name.

    `accuracies` have one column more: `classes`, the outputs that accuracy and KL are about.
    """

    name: str
    question: str
    speedups: pd.DataFrame
    break_evens: pd.DataFrame
    failures: pd.DataFrame
    accuracies: pd.DataFrame
    qualities: pd.DataFrame
    language: pd.DataFrame
    """The arms of generation jobs with their metrics."""
    zeroshot: pd.DataFrame
    """Zero-shot tasks, see `orchestrator.report.zeroshot`."""
    asked: pd.DataFrame
    """Comparisons of quality, see `store.comparison_status`."""
    controls: pd.DataFrame
    """Tuned arms against their controls, see `store.quality_join.beside_controls`."""

    @property
    def spoken(self) -> generation.Spoken:
        """What is known of language models."""
        generated = self.speedups["kind"] == "generation"
        curves = self.break_evens[self.break_evens["kind"] == "generation"]
        return generation.Spoken(
            self.speedups[generated], self.language, self.qualities, curves, self.zeroshot, self.asked, self.controls
        )

    def blocks(self) -> Iterator[tuple[dict[str, Any], pd.DataFrame, pd.DataFrame]]:
        """Condition, points and break-evens of each block of vision models, in order of appearance."""
        seen = self.speedups[self.speedups["kind"] == "latency"]
        for key, points in seen.groupby(list(CONDITION), sort=False, dropna=False):
            condition = dict(zip(CONDITION, key, strict=True))
            same = self.break_evens["kind"] == "latency"
            for field in set(CONDITION) & set(self.break_evens.columns):
                there = self.break_evens[field]
                same &= there.isna() if absent(condition[field]) else there == condition[field]
            yield condition, points.sort_values(["method", "params", "tokens"]), _curves(self.break_evens[same])


def _curves(break_evens: pd.DataFrame) -> pd.DataFrame:
    """Without the single points along tokens and GMACs of a sweep that moves a parameter at one size instead."""
    saved = break_evens["axis"] == "gmacs_saved"
    return break_evens[saved | (break_evens["points"] > 1)] if saved.any() else break_evens


def read(db: str | None, name: str) -> Report:
    """The report of the newest revision of the sweep called `name`. Raises `StoreError` for an unknown name."""
    engine = connect_readonly(db)
    question = sweep(engine, name)["question"]
    linked = "comparison_id IN (SELECT comparison_id FROM sweep_comparison WHERE sweep = :name)"
    return Report(
        name,
        question,
        table(engine, f"SELECT * FROM speedup WHERE {linked} ORDER BY method, params, tokens", name=name),  # noqa: S608 - a constant
        table(engine, BREAK_EVENS, name=name),
        table(engine, f"SELECT * FROM failures WHERE {linked} ORDER BY method, params, image_size", name=name),  # noqa: S608 - a constant
        table(engine, ACCURACIES, name=name),
        table(engine, f"SELECT * FROM quality WHERE {linked} ORDER BY method, params", name=name),  # noqa: S608 - a constant
        table(engine, ARMS, name=name),
        table(engine, zeroshot.ROWS, name=name),
        states(engine, name, "quality"),
        beside_controls(engine, name, control),
    )


def theory(points: pd.DataFrame) -> pd.Series:
    """Speed-up that the MACs alone promise: baseline GMACs over the arm's GMACs, the method's own included."""
    return points["gmacs_baseline"] / (points["gmacs"] + points["gmacs_method"].fillna(0))


def render(report: Report, todo: Iterable[str] | None = None) -> RenderableType:
    """The report for a terminal, with what is to be done at its end (default: `next_steps.steps`)."""
    parts: list[RenderableType] = [Text(report.name, style="bold"), Text(report.question, style="italic")]
    named_places = places(report.speedups)
    for condition, points, break_evens in report.blocks():
        parts += [Text(), Text(_headline(condition, named_places)), _points_table(points)]
        for (axis,), of_axis in break_evens.groupby(["axis"], sort=False):
            parts.append(Text(f"Break-even in {AXES[str(axis)]}", style="bold"))
            parts += [Text(f"  {named(row)}: {sentence(row)}", style=STYLES[row.verdict]) for row in rows(of_axis)]
    parts += accuracy.render(report.accuracies, report.speedups)
    parts += generation.render(report.spoken)
    if len(report.failures):
        parts += [Text(), _failures_table(report.failures)]
    if not any(map(len, (report.speedups, report.failures, report.accuracies, report.qualities))):
        parts.append(Text("nothing measured yet", style="dim"))
    if words := list(next_steps.legend(report)):
        parts += [Text(), *(Text(line, style="dim") for line in words)]
    if lines := list(next_steps.steps(report) if todo is None else todo):
        parts += [Text(), Text(next_steps.TITLE, style="bold"), *(Text(f"  {line}", style="yellow") for line in lines)]
    return Group(*parts)


def _headline(condition: dict[str, Any], named_places: Mapping[tuple[str, str], str]) -> str:
    place = named_places[condition["environment"], condition["host"]]
    weights = "random weights" if condition["weights"] == "random" else f"weights {condition['weights']}"
    return (
        f"{condition['model']} ({weights}), batch {condition['batch_size']}, {condition['dtype']}, "
        f"{condition['attention']} attention, {condition['runtime']}, "
        f"on {condition['device_name']}{place and f' ({place})'}{of_several(condition['exclusive'])}, "
        f"{condition['threads']} threads, against {condition['baseline']}"
    )


def _cells(points: pd.DataFrame) -> Iterator[tuple[str, ...]]:
    for row, promised in zip(rows(points), theory(points).tolist(), strict=True):
        found = speed(row)
        yield (
            label(row),
            f"{row.tokens:.0f}",
            f"{row.image_size:.0f}",
            f"{row.gmacs_baseline:.3g} > {row.gmacs:.3g}",
            f"{promised:.2f}x",
            f"{row.baseline_ms:.3g} > {row.method_ms:.3g}",
            found.numbers,
            f"{row.pairs:.0f}",
            found.word,
            _notes(row),
        )


def _notes(row: Any) -> str:
    """The implementation that ran, where it is not torch's operators, and the flags."""
    route = "" if absent(row.route) or row.route == "torch" else f"route: {row.route}"
    return ", ".join(filter(None, (route, *(row.flags or "").split(","))))


HEADINGS = ("method", "tokens", "px", "GMACs", "MACs promise", "ms", "speed-up [95 %]", "pairs", "verdict", "notes")


def _points_table(points: pd.DataFrame) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in HEADINGS:
        table.add_column(
            heading, justify="left" if heading in {"method", "verdict", "notes"} else "right", no_wrap=heading != "notes"
        )
    shown = ""
    for cells in _cells(points):
        table.add_row(Text("" if cells[0] == shown else cells[0]), *map(Text, cells[1:]), style=STYLES[cells[8]])
        shown = cells[0]
    return table


def _failures_table(failures: pd.DataFrame) -> Table:
    table = Table(title="No measurement", title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="bold")
    for heading in ("method", "kind", "model", "size", "batch", "reason", "message"):
        table.add_column(heading)
    for row in rows(failures):
        batch = f"{row.batch_size:.0f}" if row.kind in {"latency", "generation"} else "-"
        said = (label(row), row.kind, row.model, _size(row), batch, row.reason, row.message)
        table.add_row(*map(Text, said))  # a plain string would lose its brackets as markup
    return table


def _size(row: Any) -> str:
    """The size of the work that failed: pixels, or tokens of the prompt; quality has none."""
    if not pd.isna(row.image_size):
        return f"{row.image_size:.0f} px"
    return "-" if pd.isna(row.prompt_tokens) else f"{row.prompt_tokens:.0f} tokens"


def markdown(report: Report) -> str:
    """The report as GitHub-flavoured Markdown."""
    lines = [f"# {report.name}", "", report.question, ""]
    named_places = places(report.speedups)
    for condition, points, break_evens in report.blocks():
        lines += [f"## {_headline(condition, named_places)}", "", markdown_row(HEADINGS), markdown_row(["---"] * len(HEADINGS))]
        lines += [markdown_row(cells) for cells in _cells(points)]
        lines += ["", *(f"- **{named(row)}**, {AXES[row.axis]}: {sentence(row)}" for row in rows(break_evens)), ""]
    lines += accuracy.markdown(report.accuracies, report.speedups)
    lines += generation.markdown(report.spoken)
    if len(report.failures):
        why = [
            f"- {label(row)}, {row.kind}, {row.model}, {_size(row)}: {row.reason}: {row.message}" for row in rows(report.failures)
        ]
        lines += ["## No measurement", "", *why, ""]
    lines += [line for words in next_steps.legend(report) for line in (words, "")]
    if todo := [f"- {line}" for line in next_steps.steps(report)]:
        lines += [f"## {next_steps.TITLE}", "", *todo, ""]
    return "\n".join(lines)


def as_json(report: Report) -> str:
    """The report as one JSON object: name, question, and the rows of the views; missing values are null."""
    frames = ("speedups", "break_evens", "failures", "accuracies", "qualities", "language")
    records = {name: json.loads(getattr(report, name).to_json(orient="records")) for name in frames}
    for row, promised in zip(records["speedups"], theory(report.speedups).tolist(), strict=True):
        row["speedup_macs"] = None if pd.isna(promised) else round(promised, 6)
    return json.dumps({"name": report.name, "question": report.question, **records}, indent=2)


def write(report: Report, form: Format, console: Console) -> None:
    """Print the report in the asked form: `table` for people, the others for files and programs."""
    if form == "table":
        console.print(render(report))
        return
    if form == "csv":
        speedups = report.speedups.assign(speedup_macs=theory(report.speedups))
        kinds = [frame for frame in (speedups, report.accuracies, report.qualities) if len(frame)] or [speedups]
        text = pd.concat(kinds, ignore_index=True).to_csv(index=False)  # the column `kind` tells the rows apart
    else:
        text = markdown(report) if form == "markdown" else as_json(report) + "\n"
    console.file.write(text)
