"""Rules on models that the catalogue has: MACs and tokens of the unmodified model, and memory below
its weights.
"""

import re
from collections.abc import Iterator
from functools import cache

import numpy as np

from sweeps.analysis.audit.comparisons import half_step
from sweeps.analysis.audit.frame import AuditColumn, AuditFrame
from sweeps.analysis.audit.rule import Checked, MeasurementFinding
from sweeps.analysis.audit.tolerance import place_of_row
from sweeps.geometry.llm_geometry import languages
from sweeps.geometry.vit_catalogue import networks
from sweeps.importers.measurement import Measurement
from sweeps.model.method import Network

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
    """The vision transformer that a name means: of timm, or as papers write it (`DeiT-S`,
    `ViT-L/16`).
    """
    bare = model.strip().rpartition("timm/")[2]
    for name in (bare, bare.partition(".")[0]):
        if name in networks():
            return networks()[name]
    short = _SHORT.fullmatch(bare.lower())
    if short is None:
        return None
    size = _SIZES[short[2][0]]
    patch = short[3] or ("14" if size == "huge" else "16")
    return networks().get(f"{short[1]}_{size}_patch{patch}_{short[4] or 224}")


def weights_of(row: Measurement) -> float | None:
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
    compared, wrong = 0, []
    for places in _alike_rows(frame, rows, ("model", "image_size", "gmacs")):
        row = frame.row(int(places[0]))
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
            wrong.append(
                (
                    places,
                    (
                        f"{place_of_row(row)}: {row.gmacs:g} GMACs are stated, {network.name} has"
                        f" {most:.3g} at {size} px"
                    ),
                )
            )

    def found() -> Iterator[MeasurementFinding]:
        for places, fact in wrong:
            yield MeasurementFinding(
                "contradiction",
                places,
                fact,
                "count the MACs of the model that was timed, at the size that was timed",
            )

    return Checked(compared, found())


def tokens_of_size(frame: AuditFrame, rows: AuditColumn) -> Checked:
    """The unmodified model has as many tokens as its patches fit into the image.

    Source: (size / patch) squared, and the model's class, distillation and register tokens, which
    tables count or not. An arm has no more. Cannot decide: whether the model, the size or the
    tokens are wrong.
    """
    compared, wrong = 0, []
    for places in _alike_rows(
        frame,
        rows,
        ("model", "image_size", "tokens", *(("label",) if "label" in frame.values else ())),
    ):
        row = frame.row(int(places[0]))
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
            fact = (
                f"{place_of_row(row)}: {row.tokens:,} tokens are stated, patches of {patch} at"
                f" {row.image_size} px are {high:,}"
            )
            wrong.append((places, fact))

    def found() -> Iterator[MeasurementFinding]:
        for places, fact in wrong:
            yield MeasurementFinding(
                "contradiction", places, fact, "print the tokens of the first block in one forward"
            )

    return Checked(compared, found())


def weights_in_memory(frame: AuditFrame, rows: AuditColumn) -> Checked:
    """A peak of memory holds the weights of the model.

    Source: the number of weights times the bytes of one, by the stated number format, else two bits
    (language) or eight (vision). Cannot decide: a peak that is a difference, of one of several
    devices, or without weights that stay on the disk.
    """
    compared, wrong = 0, []
    keys = [
        name for name in ("model", "setting", "parameters_m", "memory_mb") if name in frame.values
    ]
    for places in _alike_rows(frame, rows, tuple(keys)):
        row = frame.row(int(places[0]))
        weights = weights_of(row)
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
            fact = (
                f"{place_of_row(row)}: a peak of {row.memory_mb:g} MB, {weights / 1e6:,.0f} million"
                f" weights alone are {least:,.0f}"
            )
            wrong.append((places, fact))

    def found() -> Iterator[MeasurementFinding]:
        for places, fact in wrong:
            yield MeasurementFinding(
                "contradiction",
                places,
                fact,
                "read the peak of the process or device from the start, weights included",
            )

    return Checked(compared, found())


def _alike_rows(
    frame: AuditFrame, rows: AuditColumn, names: tuple[str, ...]
) -> Iterator[AuditColumn]:
    """Rows in which all of these fields are equal."""
    codes = frame.codes(names, rows)
    order = np.argsort(codes, kind="stable")
    for own in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1) if len(rows) else ():
        yield rows[own]
