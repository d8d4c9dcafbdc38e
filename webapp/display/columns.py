"""Columns of the public views as people read them: titles and number formats of tables and hover
texts.
"""

from collections.abc import Mapping
from typing import NamedTuple

from sweeps.model.metrics import INTERVAL, METRICS
from sweeps.stats.quality import KL_COVERAGE

GMACS_HELP = "Papers say GFLOPs"


class ShownColumn(NamedTuple):
    """How a column is shown; without formats its values are texts."""

    title: str
    table_format: str | None = None
    """Of a number in a table, as `str.format` takes it."""
    chart_format: str | None = None
    """Of a number in a hover text, as d3 takes it."""
    help: str | None = None


COLUMNS: Mapping[str, ShownColumn] = {
    "arm": ShownColumn("Arm"),
    "against": ShownColumn("Against"),
    "params": ShownColumn("Parameters"),
    "model": ShownColumn("Model"),
    "host": ShownColumn("Host"),
    "batch_size": ShownColumn("Batch", "{:,.0f}", "d"),
    "image_size": ShownColumn("Image size, px", "{:,.0f}", "d"),
    "image_shape": ShownColumn("Height x width, px"),
    "prompt_tokens": ShownColumn("Tokens of the prompt", "{:,.0f}", "d"),
    "tokens": ShownColumn("Tokens", "{:,.0f}", "d"),
    "tokens_final": ShownColumn("Tokens at the end", "{:,.0f}", "d"),
    "new_tokens": ShownColumn("New tokens", "{:,.0f}", "d"),
    "kv_cache": ShownColumn("KV cache"),
    "gmacs_saved": ShownColumn("GMACs saved", "{:.1%}", ".1%"),
    "gmacs_baseline": ShownColumn("GMACs, baseline", "{:,.3f}", ".3~r", GMACS_HELP),
    "gmacs": ShownColumn("GMACs, this arm", "{:,.3f}", ".3~r", GMACS_HELP),
    "gmacs_overhead": ShownColumn("GMACs, overhead of the method", "{:,.3f}", ".3~r", GMACS_HELP),
    "baseline_ms": ShownColumn("Baseline, ms", "{:,.2f}", ",.4~r"),
    "arm_ms": ShownColumn("Arm, ms", "{:,.2f}", ",.4~r"),
    "speedup": ShownColumn("Speed-up", "{:,.3f}×", ".3f"),
    "speedup_macs": ShownColumn("Promised by MACs", "{:,.3f}×", ".3f"),
    "runtime": ShownColumn("Runtime"),
    "estimate": ShownColumn("Speed-up"),
    "interval": ShownColumn(f"{INTERVAL} interval", help="99 % however often it is looked at"),
    "word": ShownColumn("Verdict"),
    "reason": ShownColumn("Because"),
    "medians": ShownColumn("Medians"),
    "realised_share": ShownColumn(
        "Realised share", "{:.1%}", ".0%", "Logarithm of the speed-up over that of the promise"
    ),
    "theory": ShownColumn("If time followed MACs", "{:,.3f}×", ".3f"),
    "pairs": ShownColumn("Pairs", "{:,.0f}", "d"),
    "rounds": ShownColumn("Rounds", "{:,.0f}", "d"),
    "only_baseline_correct": ShownColumn("Only the baseline right", "{:,.0f}", ",d", "Images"),
    "only_arm_correct": ShownColumn("Only the arm right", "{:,.0f}", ",d", "Images"),
    "mcnemar_p": ShownColumn("McNemar's exact p"),
    "flags": ShownColumn("Flags"),
    "top1": ShownColumn(
        "Top-1, %", "{:,.2f}", help="Share of images whose most likely class is right"
    ),
    "top5": ShownColumn(
        "Top-5, %", "{:,.2f}", help="Share of images whose class is among the five most likely"
    ),
    "kl": ShownColumn(
        "KL, nat",
        "{:,.2g}",
        help=f"KL divergence of the outputs from the baseline's; {KL_COVERAGE}",
    ),
    "margin_change": ShownColumn(
        "Margin change, logit",
        "{:,.2g}",
        help="Between the two most likely classes, against the baseline",
    ),
    "margin_change_p05": ShownColumn(
        "Margin change at 5 %, logit",
        "{:,.2g}",
        help="5 % quantile: that of the images whose margin shrinks most",
    ),
    "perplexity": ShownColumn("Perplexity", "{:,.4g}", help="Per token"),
    "top1_agreement": ShownColumn(
        "Same token, %", "{:,.2f}", help="How often the most likely token is the baseline's"
    ),
    "loss": ShownColumn(
        "Loss", help="By how much the arm is worse, with its 95 % interval; below zero it is better"
    ),
    "quality_verdict": ShownColumn("Quality"),
    "control_change": ShownColumn(
        "Against its control",
        help="Bits per byte against the same tuning without what the method adds, on the same text",
    ),
}


def column_of(name: str) -> ShownColumn:
    """How a column of `COLUMNS` or a metric is shown."""
    if name in COLUMNS:
        return COLUMNS[name]
    spec = METRICS[name]
    unit = "" if spec.unit in {"1", "bit"} else f", {spec.unit}"
    return ShownColumn(f"{spec.label[:1].upper()}{spec.label[1:]}{unit}", f"{{:,.{spec.digits}f}}")
