"""The language part of a report: what each arm buys in speed, what it costs in quality, what it needs of memory."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from orchestrator.report import zeroshot
from orchestrator.report.arm_comparison import METRICS, Duel, control_clause, quality_of, quality_state, stacks
from orchestrator.report.labels import AXES, STYLES, bounded, label, markdown_row, named, of_several, rows, sentence
from orchestrator.report.verdict_words import bits
from store.host_labels import places
from sweeps.caveats import cautions

MIB = 2**20
SPEEDS = (
    *("method", "MACs promise of each", *(f"per {what} [95 %]" for what in METRICS.values()), "pairs", "verdicts"),
    *("bits per byte [95 %]", "same top-1 %", "quality", "flags"),
)
ARMS = (
    *("arm", "first token, ms", "output token, ms", "p95, ms", "prefill tokens/s", "decode tokens/s", "characters/s"),
    *("read / machine, GB/s", "KV needed, MiB", "resident", "virtual", "peak RSS, MiB", "sparsity", "kernel calls", "to dense"),
)
LEFT = {"method", "arm", "verdicts", "quality", "flags"}


class Part(NamedTuple):
    """A headline with a table, or with lines, below it."""

    headline: str
    headings: Sequence[str] = ()
    cells: Sequence[tuple[str, ...]] = ()
    styles: Sequence[str] = ()
    lines: Sequence[str] = ()


class Spoken(NamedTuple):
    """What a sweep knows of language models.

    Rows of the views `speedup` (generation), `language`, `quality` and `break_even`, of `orchestrator.report.zeroshot`, of
    `store.asked.states` (quality) and of `store.quality_join.beside_controls`.
    """

    speedups: pd.DataFrame
    arms: pd.DataFrame
    qualities: pd.DataFrame
    break_evens: pd.DataFrame
    zeroshot: pd.DataFrame
    asked: pd.DataFrame
    controls: pd.DataFrame


def render(spoken: Spoken) -> list[RenderableType]:
    """The parts for a terminal."""
    shown: list[RenderableType] = []
    for part in parts(spoken):
        shown += [Text(), Text(part.headline, style="bold" if part.lines else "")]
        if part.cells:
            table = Table(box=None, pad_edge=False, header_style="bold")
            for heading in part.headings:
                table.add_column(heading, justify="left" if heading in LEFT else "right", no_wrap=heading != "flags")
            for cells, style in zip(part.cells, part.styles or [""] * len(part.cells), strict=True):
                table.add_row(*map(escape, cells), style=style)
            shown.append(table)
        shown += [Text(f"  {line}") for line in part.lines]
    return shown


def markdown(spoken: Spoken) -> list[str]:
    """The same as lines of GitHub-flavoured Markdown."""
    lines: list[str] = []
    for part in parts(spoken):
        lines += [f"## {part.headline}", ""]
        if part.cells:
            lines += [markdown_row(part.headings), markdown_row(["---"] * len(part.headings)), *map(markdown_row, part.cells)]
        lines += [*(f"- {line}" for line in part.lines), ""]
    return lines


def parts(spoken: Spoken) -> Iterator[Part]:
    """Everything that is told, in order: each condition with its arms, break-even, quality that stands alone, and a caution."""
    known = places(spoken.speedups)
    for (environment, host, condition), points in _groups(spoken.speedups, ("environment", "host", "condition_id")):
        own = spoken.arms[spoken.arms["condition_id"] == condition]
        own = own[(own["environment"] == environment) & (own["host"] == host)]
        yield from _condition(points, own, spoken, known[environment, host])
    yield from _break_evens(spoken.break_evens, _labels(spoken.arms), known)
    yield from _quality(spoken.qualities)
    yield from (Part(headline, lines=lines) for headline, lines in zeroshot.told(spoken.zeroshot))
    told = pd.concat([frame[["model", "weights"]] for frame in (spoken.speedups, spoken.qualities)]).drop_duplicates()
    if len(told):
        yield Part("What this does not say", lines=list(_cautions(told, spoken.arms)))


# ---- speed ----


def _condition(points: pd.DataFrame, arms: pd.DataFrame, spoken: Spoken, place: str) -> Iterator[Part]:
    where = _place(points, arms) + (place and f" ({place})")
    pitted: dict[str, list[Duel]] = {}
    labels = _labels(arms)
    shortest = {key[0]: min(found["baseline"], key=len) for key, found in _groups(points, ("baseline_id",))}
    names = [(labels.get(key, text), key) for key, text in shortest.items()]
    for baseline, key in sorted(names, key=lambda found: (not found[0].startswith("dense"), found)):
        against = points[points["baseline_id"] == key]
        duels = [
            Duel(
                found,
                quality_of(found, spoken.qualities),
                quality_state(found, spoken.asked),
                control_clause(found, spoken.controls),
            )
            for _, found in _groups(against, ("arm_id",))
        ]
        pitted[baseline] = duels
        styles = [STYLES.get(duel.speed("time_per_char").word, "dim") for duel in duels]
        yield Part(f"{where}, against {baseline}", SPEEDS, [duel.cells() for duel in duels], styles)
    if len(arms):
        yield Part(f"{where}, each arm", ARMS, [_arm_cells(row) for row in rows(arms.sort_values(["method", "params"]))])
    yield Part(f"{where}: what each arm buys, and what it costs", lines=list(_words(pitted)))


def _words(pitted: dict[str, list[Duel]]) -> Iterator[str]:
    """A sentence for each arm: all metrics and the cost against its first baseline, the last metric against the others."""
    told: dict[str, list[str]] = {}
    for baseline, duels in pitted.items():
        for duel in duels:
            whole = duel.name not in told
            told.setdefault(duel.name, []).append(f"{duel.sentence(baseline) if whole else f'{duel.last()} against {baseline}'}")
    for name, sentences in told.items():
        yield f"{name}: {'; '.join(sentences)}"
    for baseline, duels in pitted.items():
        if baseline.startswith("dense"):  # what a part brings alone is told by the unmodified model
            yield from (f"{line}, against {baseline}" for line in stacks(duels))


# ---- arms, break-even, quality ----


def _arm_cells(row: Any) -> tuple[str, ...]:
    flags = f" ({', '.join(sorted({*filter(None, (row.arm_flags + ',' + row.job_flags).split(','))}))})".replace(" ()", "")
    return (
        f"{label(row)}{flags}",
        _number(row.ttft_ms, ".1f"),
        _number(row.tpot_ms, ".2f"),
        _number(row.tpot_p95_ms, ".2f"),
        _number(row.prefill_tokens_per_s, ".0f"),
        _number(row.decode_tokens_per_s, ".1f"),
        _number(row.chars_per_s, ".1f"),
        f"{_number(row.effective_gb_per_s, '.1f')} / {_number(row.machine_gb_per_s, '.1f')}",
        *(_number(size, ".2f", MIB) for size in (row.kv_bytes_needed, row.kv_bytes_resident, row.kv_bytes_virtual)),
        _number(row.peak_rss_fresh_bytes, ".0f", MIB),
        _number(row.achieved_sparsity, ".3f"),
        _number(row.kernel_calls, ".0f"),
        _number(row.fallback_calls, ".0f"),
    )


def _number(value: float | None, form: str, unit: float = 1) -> str:
    """A number in `unit`s; a dash where it was not measured."""
    return "-" if value is None or pd.isna(value) else f"{value / unit:{form}}"


def _labels(arms: pd.DataFrame) -> dict[str, str]:
    """Arms by id, as tables name them."""
    return {row.arm_id: label(row) for row in rows(arms)}


def _break_evens(break_evens: pd.DataFrame, labels: Mapping[str, str], known: Mapping[tuple[str, str], str]) -> Iterator[Part]:
    curves = break_evens[
        (break_evens["points"] > 1) & (break_evens["axis"] != "gmacs")
    ]  # GMACs grow with the prompt and say no more
    for (axis, metric), found in _groups(curves, ("axis", "metric")):
        lines = []
        for row in rows(found):
            place = known.get((row.environment, row.host), "")
            against = f"against {labels.get(row.baseline_id, row.baseline)}" + (place and f", on {place}")
            lines.append(f"{named(row)}, {row.model}, {against}: {sentence(row)}")
        yield Part(f"Break-even in {AXES[str(axis)]}, by time per {METRICS.get(str(metric), metric)}", lines=lines)


QUALITY = (
    *("method", "tokens", "bits per byte", "change [95 %]", "verdict", "perplexity per own token", "same top-1 % [95 %]"),
    *("KL, nats [95 %]", "flags"),
)
QUALITY_CONDITION = ("device_name", "model", "weights", "data", "windows", "characters", "baseline", "seed", "environment")


def _quality(qualities: pd.DataFrame) -> Iterator[Part]:
    for key, found in _groups(qualities, QUALITY_CONDITION):
        about = dict(zip(QUALITY_CONDITION, key, strict=True))
        ordered = found.sort_values(["method", "params"])
        yield Part(
            f"Quality of {about['model']} (weights {about['weights']}) on {about['characters']:.0f} characters of {about['data']} "
            f"in {about['windows']:.0f} windows, on {about['device_name']}, against {about['baseline']}",
            QUALITY,
            [_quality_cells(row) for row in rows(ordered)],
            [STYLES[bits(row).word] for row in rows(ordered)],
        )


def _quality_cells(row: Any) -> tuple[str, ...]:
    return (
        label(row),
        f"{row.tokens_baseline:.0f} > {row.tokens:.0f}",
        f"{row.bits_per_byte_baseline:.4f} > {row.bits_per_byte:.4f}",
        bits(row).numbers,
        bits(row).word,
        f"{_number(row.perplexity_baseline, '.4g')} > {_number(row.perplexity, '.4g')}",
        bounded(row.top1_agreement, row.top1_agreement_low, row.top1_agreement_high, ".1f"),
        bounded(row.kl, row.kl_low, row.kl_high, ".4f"),
        row.flags or "",
    )


# ---- words ----


def _cautions(told: pd.DataFrame, arms: pd.DataFrame) -> Iterator[str]:
    for row in rows(told):
        own = arms[arms["model"] == row.model]
        dense = own[own["method"] == "dense"]  # other arms untie the head, or add adapters
        sizes = (dense if len(dense) else own)["parameters"]
        yield from cautions(row.model, row.weights, sizes.min() if len(sizes) else None)


def _attention(ran: Any) -> str:
    """The attention that ran, which is not the condition's where transformers has no such for the model."""
    return str(ran.route) if str(ran.route).endswith(" attention") else f"{ran.attention} attention"


def _place(points: pd.DataFrame, arms: pd.DataFrame) -> str:
    row = next(rows(points))
    plain = arms[arms["method"] == "dense"].assign(length=arms["params"].str.len()).sort_values("length")
    ran = next(rows(plain), row)
    weights = "random weights" if row.weights == "random" else f"weights {row.weights}"
    return (
        f"{row.model} ({weights}), {row.prompt_tokens:.0f} tokens of {row.data} and {row.new_tokens:.0f} new "
        f"({row.decoding}), batch {row.batch_size}, {ran.dtype}, {_attention(ran)}, {ran.runtime}, {ran.kv_cache} cache, "
        f"on {row.device_name}{of_several(row.exclusive)}, {row.threads} threads"
    )


def _groups(frame: pd.DataFrame, columns: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    if len(frame):
        yield from frame.groupby(list(columns), sort=False, dropna=False)
