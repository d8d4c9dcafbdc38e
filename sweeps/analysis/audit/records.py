"""Rules on what a table records: accuracies against their images, percentiles in order, rows that
stand there twice; MACs, tokens and memory of models that the catalogue has.
"""

import math
import re
from collections.abc import Iterator
from functools import cache
from itertools import combinations

import numpy as np
from scipy.special import ndtri

from sweeps.analysis.audit.comparisons import half_step
from sweeps.analysis.audit.frame import (
    AuditColumn,
    AuditFrame,
    Checked,
    MeasurementFinding,
    allowed_each,
    members,
    place_of_row,
    roundings,
)
from sweeps.geometry.llm_geometry import languages
from sweeps.geometry.vit_catalogue import networks
from sweeps.importers.measurement import Measurement
from sweeps.model.method import Network
from sweeps.model.profile import COUNTERS
from sweeps.number_format import count

SAMPLING_CONFIDENCE = 0.95
MAX_PAIRS = 3
"""Pairs that are worked out in one finding."""
TIMED = ("latency_ms", "throughput", "kernel_ms", "device_ms")
MEASURED = (*TIMED, "top1", "kl", "perplexity", "memory_mb")
_NOT_A_CONDITION = frozenset(
    (
        *MEASURED,
        "latency_p95_ms",
        "latency_p99_ms",
        "kernels",
        "speedup",
        "latency_change",
        "noise",
        "note",
        "batch_counted",
    )
)
FLOAT_ERROR = 1e-5
"""Points by which a share that was kept in single precision may be off."""


def sampling_error(frame: AuditFrame, rows: AuditColumn) -> Checked:
    """A difference of two accuracies is larger than the sampling error of the images that they are
    about.

    Source: two shares of n images differ by chance with a standard error of sqrt(p (1 - p) 2 / n)
    if images were drawn apart. On the same images the error is smaller: it follows from the images
    that only one of both has right, which a table does not hold. Cannot decide: whether such a
    paired test would find a difference.
    """
    groups = frame.codes(("model", "images", "setting", "image_size", "tuned"), rows)
    top1, images = frame.at(rows, "top1", "images")
    order = np.lexsort((top1, groups))
    lower, higher = order[:-1], order[1:]
    pairs = groups[lower] == groups[higher]
    lower, higher = lower[pairs], higher[pairs]
    share = (top1[lower] + top1[higher]) / 200
    error = 100 * np.sqrt(2 * share * (1 - share) / images[higher])
    difference = top1[higher] - top1[lower]
    close = (difference > 0) & (difference < -float(ndtri((1 - SAMPLING_CONFIDENCE) / 2)) * error)
    lower, higher, error = lower[close], higher[close], error[close]
    of_group = groups[lower]
    for group in dict.fromkeys(of_group.tolist()):
        own = np.flatnonzero(of_group == group)
        first = [
            (frame.row(rows[lower[at]]), frame.row(rows[higher[at]]), error[at])
            for at in own[:MAX_PAIRS]
        ]
        shown = "; ".join(_apart(*pair) for pair in first)
        row = first[0][0]
        where = ", ".join(str(part) for part in (row.model, row.setting) if part)
        more = f"; and {count(len(own) - MAX_PAIRS, 'more pair')}" if len(own) > MAX_PAIRS else ""
        yield MeasurementFinding(
            "note",
            rows[np.concatenate((lower[own], higher[own]))],
            f"{f'{where}: ' if where else ''}{shown}{more}, for {count(row.images or 0, 'image')}"
            " drawn apart",
            "count the images that only one of both has right (McNemar's test)",
        )
    return int(pairs.sum())


def _apart(lower: Measurement, higher: Measurement, error: float) -> str:
    difference = (higher.top1 or 0) - (lower.top1 or 0)
    return (
        f"{_arm(higher)} {higher.top1:g} % and {_arm(lower)} {lower.top1:g} %: {difference:.2f}"
        f" points are {difference / error:.1f} standard errors of {error:.2f}"
    )


def _arm(row: Measurement) -> str:
    """The label with what distinguishes arms of one label."""
    numbers = (("keep rate", row.keep_rate), ("r", row.r), ("sparsity", row.sparsity))
    return " ".join(
        [
            row.label or row.method or "a row",
            *(f"{name} {value:g}" for name, value in numbers if value is not None),
        ]
    )


def possible_accuracy(frame: AuditFrame, rows: AuditColumn) -> Checked:
    """An accuracy is that of a whole number of images.

    Source: top-1 is right images over all images, so 100 k / n for a whole k, as far as it is
    written. Cannot decide: whether it is the mean of several runs or of batches of unequal size, or
    of another number of images.
    """
    top1, images = frame.at(rows, "top1", "images")
    half = roundings(top1) * top1 + FLOAT_ERROR
    decides = 100 / images > 2 * half
    rows, top1, images, half = (each[decides] for each in (rows, top1, images, half))
    wrong = rows[np.abs(np.rint(top1 * images / 100) * 100 / images - top1) > half]
    if len(wrong):
        row = frame.row(wrong[0])
        right = (row.top1 or 0) * (row.images or 0) / 100
        yield MeasurementFinding(
            "contradiction",
            wrong,
            f"{place_of_row(row)}: {row.top1:g} % of {count(row.images or 0, 'image')} are"
            f" {right:.2f} images; {math.floor(right):,} are"
            f" {100 * math.floor(right) / (row.images or 1):.4g} %, {math.ceil(right):,} are"
            f" {100 * math.ceil(right) / (row.images or 1):.4g} %",
            "count the images, and those that are right; a mean of batches is not that of images",
        )
    return len(rows)


def percentiles_in_order(frame: AuditFrame, rows: AuditColumn) -> Checked:
    """Of the times of one run the 95th percentile is not below the median, nor the 99th below the
    95th.

    Source: percentiles of one sample rise; a mean may lie above them. Cannot decide: whether they
    are of the same run.
    """
    fields = ["latency_ms", "latency_p95_ms", "latency_p99_ms"][not frame.median :]
    units = {field in frame.unclear for field in fields if field in frame.values}
    if len(units) > 1:
        return 0
    columns = frame.at(rows, *fields)
    comparisons, wrong = 0, np.zeros(len(rows), dtype=bool)
    for low, high in combinations(range(len(fields)), 2):
        known = ~np.isnan(columns[low]) & ~np.isnan(columns[high])
        comparisons += int(known.sum())
        halves = np.log1p(roundings(columns[low])) + np.log1p(roundings(columns[high]))
        wrong |= known & (np.log(columns[low] / columns[high]) > halves)
    if wrong.any():
        row = frame.row(rows[wrong][0])
        unit = "" if True in units else " ms"
        shown = ", ".join(
            f"{field[8:-3] or 'median'} {time:g}{unit}"  # latency_p95_ms
            for field in fields
            if (time := getattr(row, field)) is not None
        )
        more = f"; {wrong.sum()} rows" if wrong.sum() > 1 else ""
        yield MeasurementFinding(
            "contradiction",
            rows[wrong],
            f"{place_of_row(row)}: {shown} do not rise{more}",
            "compute them from the raw times of one run",
        )
    return comparisons


def duplicated_rows(frame: AuditFrame, rows: AuditColumn) -> Checked:
    """A condition stands in the table once.

    Source: rows of one arm, condition and size are the same measurement. Cannot decide: which of
    two different ones counts; whether a copied number under another condition is a coincidence.
    """
    names = [name for name in frame.values if name not in _NOT_A_CONDITION and name not in COUNTERS]
    groups = frame.codes([*names, *frame.others], rows)
    sizes = np.bincount(groups) if len(rows) else np.zeros(0, dtype=int)
    whole = frame.codes([*(name for name in frame.values if name != "note"), *frame.others], rows)
    low, high = (np.full(len(sizes), value) for value in (len(rows), -1))
    np.minimum.at(low, groups, whole)
    np.maximum.at(high, groups, whole)
    equal = low == high
    noise = frame.noise_of_groups(rows, groups) if len(rows) else np.zeros(0)
    apart: dict[str, AuditColumn] = {}
    for field in MEASURED:
        values = frame.column(field)[rows]
        if np.isnan(values).all():
            continue
        least, most = np.full(len(sizes), np.inf), np.full(len(sizes), -np.inf)
        np.fmin.at(least, groups, values)
        np.fmax.at(most, groups, values)
        of_group = np.zeros(len(sizes))
        of_group[groups] = noise
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(least > 0, np.log(most / least), np.inf)
            slack = allowed_each((least, most), of_group, len(rows)) if field in TIMED else 0.0
            apart[field] = (most > 0) & (ratio > slack) & (sizes > 1)
    wrong = np.flatnonzero((sizes > 1) & (equal | np.any(list(apart.values()), axis=0)))
    for group, own in zip(wrong, members(groups, wrong), strict=True):
        copies = rows[own]
        fields = [field for field, which in apart.items() if which[group]]
        numbers = ((field, frame.column(field)[copies]) for field in fields)
        differing = "; ".join(
            f"{name} {np.nanmin(each):g} and {np.nanmax(each):g}" for name, each in numbers
        )
        yield MeasurementFinding(
            "note" if equal[group] else "doubtful",
            copies,
            f"{frame.place(copies[0])} stands there {len(copies)} times"
            + (", each time the same" if equal[group] else f" with {differing}"),
            (
                "leave the copies out"
                if equal[group]
                else "state what distinguishes the rows, or how they were averaged"
            ),
        )
    return len(rows) if len(rows) > 1 else 0


COUNTED_APART = 0.07
"""Share by which counters of MACs differ: some count norms and softmax, some parts of a block
less."""
FEWEST_BYTES = 0.25
"""Bytes of a weight of a language model whose number format is not stated: two bits."""
MEMORY_SLACK = 0.9
"""Share of its nominal weights that a model may have ("7B": 6.7), less 2 % of rounding."""
MAX_PREFIX = 5
"""Class, distillation and register tokens of a model that is not in the catalogue."""
_SHORT = re.compile(
    r"(deit|vit)[-_ /]?(ti|t|s|b|l|h|tiny|small|base|large|huge)(?:[-_/"
    r" ]?(?:patch|p)?(14|16|32))?(?:[-_@ ](\d{3}))?"
)
_SIZES = {"t": "tiny", "s": "small", "b": "base", "l": "large", "h": "huge"}
_FORMATS = (("4", 0.5), ("awq", 0.5), ("gptq", 0.25), ("8", 1), ("16", 2), ("half", 2), ("32", 4))


@cache
def catalogue_network(model: str) -> Network | None:
    """The vision transformer with known blocks that a name means: of timm, or as papers write it
    (`DeiT-S`, `ViT-L/16`).
    """
    bare = model.strip().rpartition("timm/")[2]
    for name in (bare, bare.partition(".")[0]):
        if name in networks() and networks()[name].refusal is None:
            return networks()[name]
    short = _SHORT.fullmatch(bare.lower())
    if short is None:
        return None
    size = _SIZES[short[2][0]]
    patch = short[3] or ("14" if size == "huge" else "16")
    return networks().get(f"{short[1]}_{size}_patch{patch}_{short[4] or 224}")


def count_weights(row: Measurement) -> float | None:
    """Weights of a row's model: as stated, of the catalogue, or by its name (`7B`)."""
    if row.parameters_m:
        return 1e6 * row.parameters_m
    found = catalogue_network(row.model) if row.model else None
    if found is not None:
        blocks = found.depth * (found.attention_macs_per_token + found.mlp_macs_per_token)
        return float(blocks + found.channels * found.patch**2 * found.width)
    bare = (row.model or "").lower().rpartition("/")[2]
    if bare in languages():
        known = languages()[bare]
        return float(known.token_macs + (0 if known.tied else known.vocabulary * known.width))
    named = re.search(r"(?<![\d.])(?:(\d+)x)?(\d+(?:\.\d+)?)\s*b(?![a-z])", bare)
    return 1e9 * float(named[2]) if named else None


def catalogue_macs(frame: AuditFrame, rows: AuditColumn) -> Checked:
    """The unmodified model has the MACs of its architecture.

    Source: the geometry of the model (`sweeps/geometry`) at the stated size; counters differ by
    `COUNTED_APART`, may leave out attention's own products, the embedding and the head, and a
    column of FLOPs may count two of each. Cannot decide: whether the model, the size or the MACs
    are wrong.
    """
    rows = rows[frame.unmodified[rows]]
    compared = 0
    for places in _alike_rows(frame, rows, ("model", "image_size", "gmacs")):
        row = frame.row(places[0])
        network = catalogue_network(row.model or "")
        size = row.image_size or (network.image_size if network is not None else 0)
        if network is None or row.gmacs is None or size % network.patch:
            continue
        tokens = network.patch_tokens(size)
        if row.image_size is None and abs((row.tokens or tokens) - tokens) > network.prefix_tokens:
            continue  # another size than the model's own, which is not stated
        compared += len(places)
        trace = network.dense_tokens(size)
        most = network.macs(size, trace) / 1e9
        per_token = network.depth * (network.attention_macs_per_token + network.mlp_macs_per_token)
        least = tokens * per_token / 1e9
        step = half_step(row.gmacs)
        fits = [
            (1 - COUNTED_APART) * least * times - step
            <= row.gmacs
            <= (1 + COUNTED_APART) * most * times + step
            for times in ((1, 2) if frame.flops else (1,))
        ]
        if not any(fits):
            yield MeasurementFinding(
                "contradiction",
                places,
                f"{place_of_row(row)}: {row.gmacs:g} GMACs are stated, {network.name} has"
                f" {most:.3g} at {size} px",
                "count the MACs of the model that was timed, at the size that was timed",
            )
    return compared


def tokens_of_size(frame: AuditFrame, rows: AuditColumn) -> Checked:
    """The unmodified model has as many tokens as its patches fit into the image.

    Source: (size / patch) squared, and the model's class, distillation and register tokens, which
    tables count or not. An arm has no more. Cannot decide: whether the model, the size or the
    tokens are wrong.
    """
    compared = 0
    for places in _alike_rows(
        frame,
        rows,
        ("model", "image_size", "tokens", *(("label",) if "label" in frame.values else ())),
    ):
        row = frame.row(places[0])
        network = catalogue_network(row.model or "")
        written = re.search(r"patch(\d+)|/(\d+)$", row.model or "")
        patch = (
            network.patch
            if network is not None
            else int(written[1] or written[2])
            if written
            else 0
        )
        if not patch or row.image_size is None or row.tokens is None:
            continue
        compared += len(places)
        low, high = (row.image_size // patch) ** 2, (-(-row.image_size // patch)) ** 2
        most = high + (max(2, network.prefix_tokens) if network is not None else MAX_PREFIX)
        if row.tokens > most or (row.tokens < low and frame.unmodified[places[0]]):
            yield MeasurementFinding(
                "contradiction",
                places,
                f"{place_of_row(row)}: {count(row.tokens, 'token')} stated, patches of {patch} at"
                f" {row.image_size} px are {high:,}",
                "print the tokens of the first block in one forward",
            )
    return compared


def weights_in_memory(frame: AuditFrame, rows: AuditColumn) -> Checked:
    """A peak of memory holds the weights of the model.

    Source: the number of weights times the bytes of one, by the stated number format, else two bits
    (language) or eight (vision). Cannot decide: a peak that is a difference, of one of several
    devices, or without weights that stay on the disk.
    """
    compared = 0
    keys = [
        name for name in ("model", "setting", "parameters_m", "memory_mb") if name in frame.values
    ]
    for places in _alike_rows(frame, rows, tuple(keys)):
        row = frame.row(places[0])
        weights = count_weights(row)
        if weights is None or row.memory_mb is None:
            continue
        compared += len(places)
        words = (
            f"{row.setting or ''}"
            f" {(row.model or '') if 'gptq' in (row.model or '').lower() else ''}".lower()
        )
        other = 1.0 if catalogue_network(row.model or "") is not None else FEWEST_BYTES
        each = next((size for word, size in _FORMATS if word in words), other)
        least = MEMORY_SLACK * weights * each / 1e6
        if row.memory_mb + half_step(row.memory_mb) < least:
            yield MeasurementFinding(
                "contradiction",
                places,
                f"{place_of_row(row)}: a peak of {row.memory_mb:g} MB, {weights / 1e6:,.0f} million"
                f" weights alone are {least:,.0f}",
                "read the peak of the process or device from the start, weights included",
            )
    return compared


def _alike_rows(
    frame: AuditFrame, rows: AuditColumn, names: tuple[str, ...]
) -> Iterator[AuditColumn]:
    """Rows in which all of these fields are equal."""
    codes = frame.codes(names, rows)
    order = np.argsort(codes, kind="stable")
    for own in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1) if len(rows) else ():
        yield rows[own]
