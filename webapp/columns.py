"""Columns of the public views as people read them: titles and number formats of tables and hover texts."""

from collections.abc import Mapping
from typing import NamedTuple

GMACS_HELP = "Papers say GFLOPs"


class Column(NamedTuple):
    """How a column is shown; without formats its values are texts."""

    title: str
    table_format: str | None = None
    """Of a number in a table, as `st.column_config.NumberColumn` takes it."""
    chart_format: str | None = None
    """Of a number in a hover text, as d3 takes it."""
    help: str | None = None


COLUMNS: Mapping[str, Column] = {
    "arm": Column("Arm"),
    "against": Column("Against"),
    "params": Column("Parameters"),
    "model": Column("Model"),
    "host": Column("Host"),
    "batch_size": Column("Batch", "%d", "d"),
    "image_size": Column("Image size, px", "%d", "d"),
    "prompt_tokens": Column("Tokens of the prompt", "%d", "d"),
    "tokens": Column("Tokens", "%d", "d"),
    "tokens_final": Column("Tokens at the end", "%d", "d"),
    "new_tokens": Column("New tokens", "%d", "d"),
    "kv_cache": Column("KV cache"),
    "gmacs_saved": Column("GMACs saved", "percent", ".1%"),
    "gmacs_baseline": Column("GMACs, baseline", "%.3f", ".3~r", GMACS_HELP),
    "gmacs": Column("GMACs, this arm", "%.3f", ".3~r", GMACS_HELP),
    "gmacs_overhead": Column("GMACs, overhead of the method", "%.3f", ".3~r", GMACS_HELP),
    "baseline_ms": Column("Baseline, ms", "%.2f", ",.4~r"),
    "arm_ms": Column("Arm, ms", "%.2f", ",.4~r"),
    "speedup": Column("Speed-up", "%.3f×", ".3f"),
    "estimate": Column("Speed-up"),
    "interval": Column("95 % interval"),
    "word": Column("Verdict"),
    "theory": Column("If time followed MACs", "%.3f×", ".3f"),
    "pairs": Column("Pairs", "%d", "d"),
    "rounds": Column("Rounds", "%d", "d"),
    "flags": Column("Flags"),
    "bits_per_byte": Column("Bits per byte", "%.3f", help="On held-out text; fewer are better"),
    "change": Column("Change", help="In bits per byte, with its 95 % interval; below zero is better"),
    "kl": Column("KL, nats", "%.4f", help="Of the next token's distribution from the baseline's; only for equal tokens"),
    "top1_agreement": Column("Same top-1", "%.1f %%", help="Share of tokens with the same prediction; only for equal tokens"),
    "quality_verdict": Column("Quality"),
    "control_change": Column(
        "Against its control", help="Bits per byte against the same tuning without what the method adds, on the same text"
    ),
}
