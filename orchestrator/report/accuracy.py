"""The accuracy part of a report: what each arm loses on the same images as its baseline, and its speed-up beside that."""

import json
from collections.abc import Iterator
from typing import Any

import pandas as pd
from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from orchestrator.report.labels import STYLES, bounded, label, markdown_row, rows
from orchestrator.report.verdict_words import drop

CONDITION = (
    *("device_name", "model", "weights", "data", "corruption", "severity", "dtype", "attention", "image_size"),
    *("images", "baseline", "seed", "environment"),
)
"""What stays fixed within one table."""
HEADINGS = (
    *("method", "tokens at the end", "GMACs", "top-1 %", "drop, points [95 %]", "verdict", "top-5 %"),
    *("KL, nats [95 %]", "margin change [95 %]", "speed-up", "flags"),
)
LEFT = {"method", "verdict", "flags"}


def render(accuracies: pd.DataFrame, speedups: pd.DataFrame) -> list[RenderableType]:
    """The tables for a terminal, under one title; nothing if no accuracy was measured."""
    parts: list[RenderableType] = [Text(), Text("Accuracy", style="bold")] if len(accuracies) else []
    for condition, points in _blocks(accuracies):
        table = Table(box=None, pad_edge=False, header_style="bold")
        for heading in HEADINGS:
            table.add_column(heading, justify="left" if heading in LEFT else "right", no_wrap=heading != "flags")
        for cells in _cells(points, speedups):
            table.add_row(*map(escape, cells), style=STYLES[cells[5]])
        parts += [Text(_headline(condition)), table, Text(_outputs(points), style="dim")]
    return parts


def markdown(accuracies: pd.DataFrame, speedups: pd.DataFrame) -> list[str]:
    """The same as lines of GitHub-flavoured Markdown."""
    lines: list[str] = []
    for condition, points in _blocks(accuracies):
        lines += [f"## Accuracy: {_headline(condition)}", "", markdown_row(HEADINGS), markdown_row(["---"] * len(HEADINGS))]
        lines += [*(markdown_row(cells) for cells in _cells(points, speedups)), "", _outputs(points), ""]
    return lines


def _blocks(accuracies: pd.DataFrame) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    if len(accuracies):
        for key, points in accuracies.groupby(list(CONDITION), sort=False, dropna=False):
            yield dict(zip(CONDITION, key, strict=True)), points.sort_values(["method", "params"])


def _headline(condition: dict[str, Any]) -> str:
    spoilt = "" if pd.isna(condition["corruption"]) else f" with {condition['corruption']}, severity {condition['severity']:.0f}"
    return (
        f"{condition['model']} (weights {condition['weights']}), {condition['image_size']:.0f} px, "
        f"{condition['images']:.0f} images of {condition['data']}{spoilt}, "
        f"{condition['dtype']}, {condition['attention']} attention, on {condition['device_name']}, against {condition['baseline']}"
    )


def _outputs(points: pd.DataFrame) -> str:
    """Which outputs of the model top-1, KL and margin are about."""
    number = points["classes"].iloc[0]
    return (
        f"Top-1, KL and margin are over the {number:.0f} outputs that stand for the classes of the data "
        "(those that class_map.txt names, where there is one); KL is that of the softmax over these outputs alone."
    )


def _cells(points: pd.DataFrame, speedups: pd.DataFrame) -> Iterator[tuple[str, ...]]:
    for row in rows(points):
        found = drop(row)
        yield (
            label(row),
            f"{row.tokens_final:.0f}",
            f"{row.gmacs_baseline:.3g} > {row.gmacs + row.gmacs_method:.3g}",
            f"{row.top1_baseline:.2f} > {row.top1:.2f}",
            found.numbers,
            found.word,
            f"{row.top5_baseline:.2f} > {row.top5:.2f}",
            bounded(row.kl, row.kl_low, row.kl_high, ".4f"),
            bounded(row.margin_change, row.margin_change_low, row.margin_change_high, "+.3f"),
            _beside(row, speedups),
            row.flags or "",
        )


def _beside(row: Any, speedups: pd.DataFrame) -> str:
    """The speed-ups of the same arm: one, or the range over batch sizes, threads, runtimes and machines."""
    if not len(speedups):
        return "-"
    same = pd.Series(data=True, index=speedups.index)
    for column in ("model", "weights", "method", "dtype", "attention", "image_size"):
        same &= speedups[column] == getattr(row, column)
    asked = _without_runtime(row.params)
    same &= speedups["params"].map(_without_runtime) == asked
    found = speedups.loc[same, "speedup"].tolist()
    if not found:
        return "-"
    return f"{found[0]:.2f}x" if len(found) == 1 else f"{min(found):.2f}x to {max(found):.2f}x"


def _without_runtime(params: str) -> str:
    """What was asked of an arm less its runtime, which accuracy does not depend on."""
    asked = json.loads(params) if params else {}
    steps = asked if isinstance(asked, list) else [asked]
    kept = [{key: value for key, value in step.items() if key != "runtime"} for step in steps]
    return json.dumps([step for step in kept if step], sort_keys=True)
