"""Rules on devices: no row does more operations, or holds more memory, than its device can; peaks
of common devices are data.
"""

import json
import math
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from sweeps.analysis.audit.frame import AuditColumn, AuditFrame
from sweeps.analysis.audit.rule import Checked, MeasurementFinding
from sweeps.analysis.audit.tolerance import place_of_row, quantile_of, roundings

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
    times = np.where(
        np.isnan(frame.column("throughput")[rows]),
        frame.column("latency_ms")[rows],
        frame.column("throughput")[rows],
    )
    allowed = (
        quantile_of(len(rows)) * frame.noise_at(rows) + np.log1p(roundings(times))
        if len(rows)
        else 0.0
    )
    wrong = np.flatnonzero(np.log(reached / peaks) > allowed)

    def found() -> Iterator[MeasurementFinding]:
        if len(wrong):
            worst = wrong[np.argmax((reached / peaks)[wrong])]
            row = frame.row(int(rows[worst]))
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

    return Checked(len(rows), found())


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

    def found() -> Iterator[MeasurementFinding]:
        if len(wrong):
            row = frame.row(int(rows[wrong[0]]))
            fact = (
                f"{place_of_row(row)}: a peak of {row.memory_mb:,.0f} MB on {row.device}, which has"
                f" {sizes[wrong[0]]:,.0f}"
            )
            yield MeasurementFinding(
                "contradiction",
                rows[wrong],
                fact,
                "state of how many devices the memory is, and its unit",
            )

    return Checked(len(rows), found())
