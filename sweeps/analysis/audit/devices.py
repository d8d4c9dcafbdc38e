"""Rules on devices: the time of kernels against wall time and MACs, what a device can do and hold,
and hardware counters that differ between arms and sizes; peaks of common devices are data.
"""

import json
import math
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from sweeps.analysis.audit.frame import (
    SAME_ARM,
    AuditColumn,
    AuditFrame,
    Checked,
    MeasurementFinding,
    in_words,
    members,
    place_of_row,
    quantile_of,
    roundings,
)
from sweeps.model.profile import COUNTERS
from sweeps.number_format import count

OVER_STATED = 1.1
"""By which a device may exceed the peak of its data sheet, which is at the stated boost clock."""
_HALF = ("16", "half", "amp", "autocast", "mixed")


@cache
def device_peaks() -> Mapping[str, Mapping[str, Any]]:
    """Peaks by a part of the device's name, in lower case: 1e12 operations per second without
    sparsity, 1e9 bytes of memory.
    """
    found: Mapping[str, Mapping[str, Any]] = json.loads(
        (files("sweeps.analysis.audit") / "device_peaks.json").read_text(encoding="utf-8")
    )
    return found


def device_facts(name: str) -> Mapping[str, Any] | None:
    """The facts of the longest part that a device's name has."""
    words = f" {name.lower().replace('-', ' ').replace('_', ' ')} "
    known = [part for part in device_peaks() if f" {part} " in words]
    return device_peaks()[max(known, key=len)] if known else None


def stated_peak(device: str | None, setting: str | None) -> float | None:
    """1e9 operations per second that a device may reach in the number format of a setting: in any,
    where none is stated.
    """
    facts = device_facts(device) if device else None
    if facts is None:
        return None
    words = (setting or "").lower()
    if any(word in words for word in _HALF):
        peak = facts["half"]
    elif "32" in words:
        peak = max(facts["single"], facts.get("tf32", 0))
    else:
        peak = max(
            value for key, value in facts.items() if key in {"single", "tf32", "half", "fp8"}
        )
    return float(1e3 * peak * OVER_STATED)


def beyond_peak(frame: AuditFrame, rows: AuditColumn) -> Checked:
    """No row does more operations per second than its device can.

    Source: 2 × MACs × throughput against the stated or measured peak, else that of the device's
    data sheet (`device_peaks.json`). Cannot decide: whether the MACs, the throughput or the peak
    (of another dtype) is wrong.
    """
    devices, settings = frame.text("device")[rows], frame.text("setting")[rows]
    known = {pair: stated_peak(*pair) for pair in set(zip(devices, settings, strict=True))}
    listed = np.array(
        [known[pair] or np.nan for pair in zip(devices, settings, strict=True)], dtype=float
    )
    peaks = np.where(
        np.isnan(frame.column("peak_gflops")[rows]), listed, frame.column("peak_gflops")[rows]
    )
    reached = 2 * frame.column("gmacs")[rows] / frame.item_seconds[rows] / (2 if frame.flops else 1)
    decides = ~np.isnan(peaks) & ~np.isnan(reached)
    rows, peaks, reached = rows[decides], peaks[decides], reached[decides]
    latency, throughput = frame.at(rows, "latency_ms", "throughput")
    times = np.where(np.isnan(throughput), latency, throughput)
    allowed = (
        quantile_of(len(rows)) * frame.noise_at(rows) + np.log1p(roundings(times))
        if len(rows)
        else 0.0
    )
    wrong = np.flatnonzero(np.log(reached / peaks) > allowed)
    if len(wrong):
        worst = wrong[np.argmax((reached / peaks)[wrong])]
        row = frame.row(rows[worst])
        each_ms = 1e3 * frame.item_seconds[rows[worst]]
        yield MeasurementFinding(
            "contradiction",
            rows[wrong],
            f"{place_of_row(row)}: {row.gmacs:g} GMACs every {each_ms:.3g} ms are"
            f" {reached[worst]:,.0f} GFLOP/s, {reached[worst] / peaks[worst]:.2f} times the"
            f" {peaks[worst]:,.0f} that {row.device or 'the device'} reaches"
            + (f"; {len(wrong)} rows do more than it" if len(wrong) > 1 else ""),
            "check the unit of the MACs, the batch that ran, and that the device was waited for"
            " before the clock was read",
        )
    return len(rows)


def beyond_memory(frame: AuditFrame, rows: AuditColumn) -> Checked:
    """No row holds more memory than its device has.

    Source: the device's data sheet (`device_peaks.json`), of the largest variant. Cannot decide:
    memory of several devices, or of the host, in one number.
    """
    devices = frame.text("device")[rows]
    known = {name: (device_facts(name) or {}).get("memory_gib", math.nan) for name in set(devices)}
    sizes = 1073.741824 * np.array([known[name] for name in devices], dtype=float)
    rows, sizes = rows[~np.isnan(sizes)], sizes[~np.isnan(sizes)]
    wrong = np.flatnonzero(frame.column("memory_mb")[rows] > 1.05 * sizes)
    if len(wrong):
        row = frame.row(rows[wrong[0]])
        yield MeasurementFinding(
            "contradiction",
            rows[wrong],
            f"{place_of_row(row)}: a peak of {row.memory_mb:,.0f} MB on {row.device}, which has"
            f" {sizes[wrong[0]]:,.0f}",
            "state of how many devices the memory is, and its unit",
        )
    return len(rows)


LARGEST_GAIN = 4.0
"""By which kernels may get more efficient as work grows, where no peak is known: DeiT-B on an RTX
2080 Ti goes from 5.0 TFLOP/s (224 pixels, batch 1, 7.0 ms of kernels) to 17.1 (448 pixels, batch
8), 3.4 times."""
MIN_COVERED = 0.5
"""Share of the kernel time from which on profiled kernels stand for a forward."""
SHORTEST_KERNEL_MS = 0.005
"""About what a kernel takes that has next to nothing to do; the background reports estimate 3 to 15
µs for small ones."""


def device_work(frame: AuditFrame, rows: AuditColumn) -> Checked:
    """Time of the kernels of one arm grows with its MACs.

    Source: kernels on more work are at best more efficient by `LARGEST_GAIN`, less
    `SHORTEST_KERNEL_MS` for each, or by what is left to the device's peak where that is known;
    without a count of kernels or a peak it is doubtful. Where forwards are not stated, rows are
    compared as if they covered equally many, which equal counts of kernels bear out. Cannot decide:
    which of the rows is wrong; whether other kernels ran.
    """
    groups = frame.codes(SAME_ARM, rows) * 2 + np.isnan(frame.column("forwards")[rows])
    groups = np.unique(groups, return_inverse=True)[1]
    sizes = np.bincount(groups) if len(rows) else np.zeros(0, dtype=int)
    for own in members(groups, np.flatnonzero(sizes > 1)):
        yield from _work_against_time(frame, rows[own])
    return int((sizes * (sizes - 1) // 2).sum())


def _work_against_time(frame: AuditFrame, own: AuditColumn) -> Iterator[MeasurementFinding]:
    """The pair of rows of one arm whose times fit their work least; each row stands against the
    extreme of those before.
    """
    own = own[np.argsort(np.multiply(*frame.at(own, "gmacs", "batch")), kind="stable")]
    gmacs, batch, kernel_ms, kernels, forwards, peak = frame.at(
        own, "gmacs", "batch", "kernel_ms", "kernels", "forwards", "peak_gflops"
    )
    work = gmacs * batch
    per = np.nan_to_num(forwards, nan=1)
    times = kernel_ms / per
    idle = SHORTEST_KERNEL_MS * np.nan_to_num(kernels) / per
    least = np.maximum(0.0, times - idle) / LARGEST_GAIN
    known = ~np.isnan(peak) & ~np.isnan(forwards)
    least = np.where(known, np.minimum(times, 2e3 * work / peak), least)
    room = np.log1p(roundings(times))
    spread = quantile_of(len(own) * (len(own) - 1) // 2) * frame.noise_at(own) * math.sqrt(2)
    with np.errstate(divide="ignore"):
        least_rate, rate = np.log(least / work) - room, np.log(times / work)
    # too short: log(t / w) + room + spread is below the largest log(least / w) - room of rows with
    # less work
    short_by = np.maximum.accumulate(least_rate)
    short_from = _places_of(least_rate, short_by)
    is_short = np.concatenate(([False], rate[1:] + room[1:] + spread < short_by[:-1]))
    low_by = np.minimum.accumulate(rate + room)
    low_from = _places_of(-(rate + room), -low_by)
    is_long = np.concatenate(
        ([False], rate[1:] - room[1:] - spread - math.log(LARGEST_GAIN) > low_by[:-1])
    )
    if not (is_short | is_long).any():
        return
    pairs = [(int(short_from[place - 1]), int(place)) for place in np.flatnonzero(is_short)]
    pairs += [(int(low_from[place - 1]), int(place)) for place in np.flatnonzero(is_long)]
    one, other = max(pairs, key=lambda pair: abs(rate[pair[1]] - rate[pair[0]]))
    small, large = frame.row(own[one]), frame.row(own[other])
    grown, share, alone = (
        times[other] / times[one],
        work[other] / work[one],
        gmacs[other] / gmacs[one],
    )
    single = batch[other] != batch[one] and grown < share and 0.5 < grown / alone < 2
    with_kernels = (
        f", with {small.kernels:,} and {count(large.kernels, 'kernel')}"
        if small.kernels and large.kernels
        else ""
    )
    yield MeasurementFinding(
        "contradiction" if grown < share and (small.kernels or small.peak_gflops) else "doubtful",
        own[
            _involved(is_short, least_rate, rate + room + spread)
            | _involved(is_long, -(rate + room), -(rate - room - spread - math.log(LARGEST_GAIN)))
        ],
        f"kernels take {grown:.1f} times as long at {place_of_row(large)} as at"
        f" {place_of_row(small)} ({small.kernel_ms:g} and {large.kernel_ms:g} ms{with_kernels})"
        f" where MACs state {share:.1f} times ({small.gmacs:g} × {small.batch} and {large.gmacs:g}"
        f" × {large.batch})"
        + (f"; with one image in both MACs grow {alone:.1f} times, which fits" if single else ""),
        "divide by the number of forwards, and count the images of one of them",
    )


def _places_of(values: AuditColumn, extremes: AuditColumn) -> AuditColumn:
    """Of each running extreme the place where it was reached."""
    new = np.concatenate(([True], extremes[1:] != extremes[:-1])) & (values == extremes)
    return np.maximum.accumulate(np.where(new, np.arange(len(values)), 0))


def _involved(wrong: AuditColumn, before: AuditColumn, own: AuditColumn) -> AuditColumn:
    """Rows that are wrong, and those before them against which they are: `own` of a row is less
    than `before` of an earlier one.
    """
    least_after = np.minimum.accumulate(own[::-1])[::-1]
    return wrong | np.concatenate((before[:-1] > least_after[1:], [False]))


def _busy_ms(frame: AuditFrame, rows: AuditColumn) -> AuditColumn:
    """Milliseconds of one forward for which the device is busy."""
    kernel_ms, forwards, device_ms = frame.at(rows, "kernel_ms", "forwards", "device_ms")
    return np.fmax(device_ms, kernel_ms / forwards)


def device_within_wall(frame: AuditFrame, rows: AuditColumn) -> Checked:
    """The device is not busy for longer than a forward takes.

    Source: a forward ends when its kernels have. Kernels of several streams may overlap, and a
    profiler lengthens kernels a little: only what exceeds noise is reported. Cannot decide: streams
    that really ran side by side.
    """
    busy, wall = _busy_ms(frame, rows), frame.batch_ms[rows]
    rows, busy, wall = (each[~np.isnan(busy) & ~np.isnan(wall)] for each in (rows, busy, wall))
    wrong = np.flatnonzero(
        _beyond(frame, rows, busy / wall, (busy, frame.column("latency_ms")[rows]))
    )
    if len(wrong):
        worst = wrong[np.argmax((busy / wall)[wrong])]
        yield MeasurementFinding(
            "contradiction",
            rows[wrong],
            f"{frame.place(rows[worst])}: the device is busy for {busy[worst]:.3g}"
            f" ms of a forward that takes {wall[worst]:.3g} ms, {busy[worst] / wall[worst]:.2f}"
            " times as long",
            "take both from the same run, and the union of kernel intervals instead of their sum",
        )
    return len(rows)


def _beyond(
    frame: AuditFrame, rows: AuditColumn, ratios: AuditColumn, numbers: tuple[AuditColumn, ...]
) -> AuditColumn:
    """Whether a ratio exceeds 1 by more than noise and the rounding of these numbers."""
    room = quantile_of(len(rows)) * frame.noise_at(rows) * math.sqrt(len(numbers)) + sum(
        np.log1p(roundings(each)) for each in numbers
    )
    return np.asarray(np.log(ratios) > room)


def totals_per_forward(frame: AuditFrame, rows: AuditColumn) -> Checked:
    """A total over several forwards states how many they are, before it is set beside the time of
    one.

    Source: kernels of one forward fit into its wall time. Cannot decide: how many forwards there
    were (warm-up, timed ones and those that counted FLOPs are all in a trace).
    """
    wall = frame.batch_ms[rows]
    rows = rows[np.isnan(frame.column("forwards")[rows]) & ~np.isnan(wall)]
    kernel_ms, wall = frame.column("kernel_ms")[rows], frame.batch_ms[rows]
    wrong = np.flatnonzero(
        _beyond(frame, rows, kernel_ms / wall, (kernel_ms, frame.column("latency_ms")[rows]))
    )
    if len(wrong):
        worst = wrong[np.argmax((kernel_ms / wall)[wrong])]
        ratio = kernel_ms[worst] / wall[worst]
        yield MeasurementFinding(
            "doubtful",
            rows[wrong],
            f"{frame.place(rows[worst])}: {kernel_ms[worst]:g} ms of kernels are"
            f" {ratio:.1f} times the wall time of one forward ({wall[worst]:.3g} ms): a total over"
            f" at least {count(math.ceil(ratio * 0.95), 'forward')}, whose number is not stated; a"
            " difference of such totals is no time that one forward saves",
            "divide by the forwards in the trace (launches of a kernel that runs once in each"
            " block, over the blocks)",
        )
    return len(rows)


def profile_coverage(frame: AuditFrame, rows: AuditColumn) -> Checked:
    """The kernels of a profile take most of the kernel time of the forward that it stands for.

    Source: means over a few kernels are about these alone: three casts of weights with 3 %
    utilisation do not make a forward with 3 %. Most is `MIN_COVERED`. Cannot decide: what the
    kernels that were not profiled would show.
    """
    for place in rows[frame.column("kernel_time_share")[rows] < MIN_COVERED]:
        row = frame.row(place)
        kernels = count(round((row.kernels or 0) / (row.forwards or 1)), "kernel")
        counters = [name for name in COUNTERS if name in row.counters]
        yield MeasurementFinding(
            "doubtful" if counters else "note",
            [place],
            f"{place_of_row(row)}: {kernels} profiled, which take "
            f"{100 * (row.kernel_time_share or 0):.2g} % of the kernel time of a forward"
            + (f"; {in_words(counters)} are about these alone" if counters else ""),
            "profile all kernels of one forward, or name the kernels beside their numbers",
        )
    return len(rows)


MIN_ROWS = 3
MIN_COUNTERS = 3
SAME_WITHIN = 0.015
"""Part by which all counters of two arms may differ and still count as the same."""


def same_counters(frame: AuditFrame, rows: AuditColumn) -> Checked:
    """Counters of a forward are not the same for every arm and size.

    Source: other tokens are other shapes, and other shapes other tiles, waves and hit rates; a
    counter that is the same to its last digit in `MIN_ROWS` rows, or all counters of an arm and its
    baseline within `SAME_WITHIN`, are of the same few kernels. Cannot decide: which kernels were
    profiled.
    """
    kinds = frame.codes(
        ("label", "method", "image_size", "tokens", "keep_rate", "r", "sparsity", "gmacs"), rows
    )
    _, first = np.unique(kinds, return_index=True)
    rows = rows[np.sort(first)]
    known = {name: frame.column(name)[rows] for name in COUNTERS if name in frame.values}
    frozen = []
    for name, values in known.items():
        own = values[~np.isnan(values)]
        if (
            len(own) >= MIN_ROWS
            and 0 < own[0] < 100
            and own[0] != round(own[0])
            and (own == own[0]).all()
        ):
            frozen.append(f"{name} is {own[0]:g} % in all of {len(own)} rows")
    columns = np.array([values for values in known.values() if not np.isnan(values).any()])
    alike = _alike(columns, frame, rows) if len(columns) >= MIN_COUNTERS else None
    wrong = rows if frozen else rows[list(alike or ())]
    if alike is not None:
        one, other = (frame.place(rows[place]) for place in alike)
        frozen.append(
            f"all {len(columns)} counters of {one} and {other} are within {100 * SAME_WITHIN:g} %"
        )
    if frozen:
        yield MeasurementFinding(
            "doubtful",
            wrong,
            f"{in_words(frozen)}, whatever arm and size are: they are of kernels that both have"
            " in common",
            "name the kernels, and profile all of one forward of each arm",
        )
    return len(rows) * len(known) if len(rows) > 1 else 0


def _alike(columns: AuditColumn, frame: AuditFrame, rows: AuditColumn) -> tuple[int, int] | None:
    """The first two rows of different arms whose counters are all the same; neighbours by the first
    counter are compared.
    """
    arms = frame.codes(("label", "method"), rows)
    order = np.argsort(columns[0], kind="stable")
    one, other = order[:-1], order[1:]
    apart = np.abs(columns[:, one] - columns[:, other]).max(
        axis=0, initial=0, where=columns[:, one] == 0
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.nan_to_num(np.abs(np.log(columns[:, one] / columns[:, other])), nan=0.0).max(
            axis=0
        )
    same = np.flatnonzero((ratio <= SAME_WITHIN) & (apart == 0) & (arms[one] != arms[other]))
    return (int(one[same[0]]), int(other[same[0]])) if len(same) else None
