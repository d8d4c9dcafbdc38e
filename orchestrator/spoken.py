"""The language part of a report: what each arm buys in speed, what it costs in quality, what it needs of memory."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pandas as pd
from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from orchestrator.phrases import AXES, STYLES, bounded, label, markdown_row, named, ratio, rows, sentence, steps_of

METRICS = {"ttft": "first token", "tpot": "output token", "time_per_char": "character"}
"""Metrics of the view `speedup`, and what one of each is the time of."""
SPEED_ONLY = ("runtime", "kv_cache")
"""Overrides that quality does not depend on."""
SMALL = 1e9
"""Parameters below which a model is said to rank methods only."""
MIB = 2**20
SPEEDS = (
    *("method", "MACs promise, whole run", *(f"per {what} [95 %]" for what in METRICS.values()), "pairs", "verdicts"),
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
    """What a sweep knows of language models: rows of the views `speedup` (generation), `language`, `quality` and `break_even`."""

    speedups: pd.DataFrame
    arms: pd.DataFrame
    qualities: pd.DataFrame
    break_evens: pd.DataFrame


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
    for (environment, condition), points in _groups(spoken.speedups, ("environment", "condition_id")):
        own = spoken.arms[(spoken.arms["condition_id"] == condition) & (spoken.arms["environment"] == environment)]
        yield from _condition(points, own, spoken.qualities)
    yield from _break_evens(spoken.break_evens)
    yield from _quality(spoken.qualities)
    told = pd.concat([frame[["model", "weights"]] for frame in (spoken.speedups, spoken.qualities)]).drop_duplicates()
    if len(told):
        yield Part("What this does not say", lines=list(_cautions(told, spoken.arms)))


# ---- speed ----


def _condition(points: pd.DataFrame, arms: pd.DataFrame, qualities: pd.DataFrame) -> Iterator[Part]:
    where = _place(points, arms)
    pitted: dict[str, list[Duel]] = {}
    labels = {row.arm_id: label(row) for row in rows(arms)}
    shortest = {key[0]: min(found["baseline"], key=len) for key, found in _groups(points, ("baseline_id",))}
    named = [(labels.get(key, text), key) for key, text in shortest.items()]
    for baseline, key in sorted(named, key=lambda found: (not found[0].startswith("dense"), found)):
        against = points[points["baseline_id"] == key]
        duels = [Duel(found, _judged(found, qualities)) for _, found in _groups(against, ("arm_id",))]
        pitted[baseline] = duels
        styles = [STYLES[duel.verdict("time_per_char")] for duel in duels]
        yield Part(f"{where}, against {baseline}", SPEEDS, [duel.cells() for duel in duels], styles)
    if len(arms):
        yield Part(f"{where}, each arm", ARMS, [_arm_cells(row) for row in rows(arms.sort_values(["method", "params"]))])
    yield Part(f"{where}: what each arm buys, and what it costs", lines=list(_words(pitted)))


def _words(pitted: dict[str, list["Duel"]]) -> Iterator[str]:
    """A sentence for each arm: all metrics and the cost against its first baseline, the last metric against the others."""
    told: dict[str, list[str]] = {}
    for baseline, duels in pitted.items():
        for duel in duels:
            whole = duel.name not in told
            told.setdefault(duel.name, []).append(f"{duel.sentence() if whole else duel.last()} against {baseline}")
    for name, sentences in told.items():
        yield f"{name}: {'; '.join(sentences)}"
    for baseline, duels in pitted.items():
        if baseline.startswith("dense"):  # what a part brings alone is told by the unmodified model
            yield from (f"{line}, against {baseline}" for line in _stacks(duels))


class Duel:
    """One arm against one baseline under one condition: a row of `speedup` for each metric, and of `quality` if it was judged."""

    def __init__(self, speeds: pd.DataFrame, quality: Any) -> None:
        self.by_metric = {row.metric: row for row in rows(speeds)}
        self.any = next(rows(speeds))
        self.quality = quality
        self.name = label(self.any)

    def verdict(self, metric: str) -> str:
        """In a word; `unclear` where it was not measured."""
        return str(self.by_metric[metric].verdict) if metric in self.by_metric else "unclear"

    def ratio(self, metric: str) -> str:
        row = self.by_metric.get(metric)
        return "-" if row is None else ratio(row.speedup, row.speedup_low, row.speedup_high)

    def cells(self) -> tuple[str, ...]:
        row, judged = self.any, self.quality
        return (
            self.name,
            f"{row.gmacs_baseline / (row.gmacs + row.gmacs_method):.2f}x",
            *(self.ratio(metric) for metric in METRICS),
            f"{row.pairs:.0f}",
            ", ".join(self.verdict(metric) if metric in self.by_metric else "-" for metric in METRICS),
            "-" if judged is None else _change(judged),
            "-" if judged is None else bounded(judged.top1_agreement, None, None, ".1f"),
            "not asked" if judged is None else judged.verdict,
            row.flags or "",
        )

    def sentence(self) -> str:
        """What the arm buys and what it costs, in words."""
        said = ", ".join(self._metric(metric) for metric in METRICS if metric in self.by_metric)
        if self.quality is None:
            cost = "quality not asked"
        elif self.quality.verdict == "same":
            cost = f"costs nothing that shows: {_change(self.quality)} bits per byte"
        else:
            meant = {"worse": "costs", "better": "gains", "unclear": "cannot tell what it costs:"}[self.quality.verdict]
            cost = f"{meant} {_change(self.quality)} bits per byte"
        return f"{said}, {cost}"

    def last(self) -> str:
        """The speed-up of the whole run's characters, or else of the last metric there is."""
        return self._metric(next(metric for metric in reversed(METRICS) if metric in self.by_metric))

    def _metric(self, metric: str) -> str:
        return f"{self.ratio(metric)} per {METRICS[metric]} ({self.verdict(metric)})"


def _change(judged: Any) -> str:
    return bounded(judged.bits_per_byte_change, judged.bits_per_byte_change_low, judged.bits_per_byte_change_high, "+.4f")


def _judged(duel: pd.DataFrame, qualities: pd.DataFrame) -> Any:
    """The newest row of `quality` for the same arm and baseline, whatever caches and runtimes they were timed with, or `None`."""
    row = next(rows(duel))
    if not len(qualities):
        return None
    same = (qualities["model"] == row.model) & (qualities["weights"] == row.weights) & (qualities["method"] == row.method)
    same &= (qualities["dtype"] == row.dtype) & (qualities["attention"] == row.attention)
    same &= qualities["params"].map(_without_speed) == _without_speed(row.params)
    same &= qualities["baseline"].map(_plain_baseline) == _plain_baseline(row.baseline)
    found = qualities[same].sort_values("measured_at")
    return next(rows(found.tail(1)), None)


def _without_speed(params: str) -> str:
    """What was asked of an arm less what quality does not depend on."""
    asked = json.loads(params) if params else {}
    steps = asked if isinstance(asked, list) else [asked]
    kept = [{key: value for key, value in step.items() if key not in SPEED_ONLY} for step in steps]
    return json.dumps([step for step in kept if step], sort_keys=True)


def _plain_baseline(text: str) -> str:
    """A baseline in words without the overrides that quality does not depend on."""
    name, bracket, inside = text.partition(" [")
    left = [part for part in inside.rstrip("]").split(", ") if part and not part.startswith(SPEED_ONLY)]
    return f"{name}{bracket}{', '.join(left)}]" if left else name


# ---- stacks ----


def _stacks(duels: Sequence[Duel]) -> Iterator[str]:
    """For each stack what its parts bring alone, their product, and all together."""
    alone = {_key(duel.any.method, json.loads(duel.any.params or "{}")): duel for duel in duels if "+" not in duel.any.method}
    for duel in duels:
        params = json.loads(duel.any.params or "{}")
        if not isinstance(params, list):
            continue
        keys = [_key(step["method"], {k: v for k, v in step.items() if k != "method"}) for step in steps_of(params)]
        keys += [_key("dense", {name: value}) for step in params if "method" not in step for name, value in step.items()]
        metric = "time_per_char" if "time_per_char" in duel.by_metric else "tpot"
        told, product, whole = [], 1.0, True
        for key in keys:
            part = alone.get(key)
            if part is None or metric not in part.by_metric:
                told.append(f"{key[0]} {key[1]} was not measured alone")
                whole = False
                continue
            product *= part.by_metric[metric].speedup
            told.append(f"{part.name} alone {part.ratio(metric)}")
        together = f"all together {duel.ratio(metric)}"
        beside = f", and the product of the parts would be {product:.3f}x" if whole else ""
        yield f"{duel.name}, per {METRICS[metric]}: {'; '.join(told)}; {together}{beside}"


def _key(method: str, params: dict[str, Any]) -> tuple[str, str]:
    return method, json.dumps({name: value for name, value in params.items() if value is not None}, sort_keys=True)


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


def _break_evens(break_evens: pd.DataFrame) -> Iterator[Part]:
    curves = break_evens[
        (break_evens["points"] > 1) & (break_evens["axis"] != "gmacs")
    ]  # GMACs grow with the prompt and say no more
    for (axis, metric), found in _groups(curves, ("axis", "metric")):
        lines = [f"{named(row)}, {row.model}, against {row.baseline}: {sentence(row)}" for row in rows(found)]
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
            [STYLES[verdict] for verdict in ordered["verdict"]],
        )


def _quality_cells(row: Any) -> tuple[str, ...]:
    return (
        label(row),
        f"{row.tokens_baseline:.0f} > {row.tokens:.0f}",
        f"{row.bits_per_byte_baseline:.4f} > {row.bits_per_byte:.4f}",
        _change(row),
        row.verdict,
        f"{_number(row.perplexity_baseline, '.4g')} > {_number(row.perplexity, '.4g')}",
        bounded(row.top1_agreement, row.top1_agreement_low, row.top1_agreement_high, ".1f"),
        bounded(row.kl, row.kl_low, row.kl_high, ".4f"),
        row.flags or "",
    )


# ---- words ----


def _cautions(told: pd.DataFrame, arms: pd.DataFrame) -> Iterator[str]:
    for row in rows(told):
        sizes = arms.loc[arms["model"] == row.model, "parameters"]
        small = f" of {sizes.max() / 1e6:.0f} M parameters" if len(sizes) and sizes.max() < SMALL else ""
        if row.weights == "random":
            yield f"{row.model} has random weights: its times are real, its quality says nothing of a trained model."
        if small or row.weights == "trained":
            yield f"{row.model}{small} ranks methods; it does not predict speed-ups or losses of models of 7B parameters."


def _place(points: pd.DataFrame, arms: pd.DataFrame) -> str:
    row = next(rows(points))
    plain = arms[arms["method"] == "dense"].assign(length=arms["params"].str.len()).sort_values("length")
    ran = next(rows(plain), row)
    weights = "random weights" if row.weights == "random" else f"weights {row.weights}"
    return (
        f"{row.model} ({weights}), {row.prompt_tokens:.0f} tokens of {row.data} and {row.new_tokens:.0f} new "
        f"({row.decoding}), batch {row.batch_size}, {ran.dtype}, {ran.attention} attention, {ran.runtime}, {ran.kv_cache} cache, "
        f"on {row.device_name}, {row.threads} threads"
    )


def _groups(frame: pd.DataFrame, columns: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    if len(frame):
        yield from frame.groupby(list(columns), sort=False, dropna=False)
