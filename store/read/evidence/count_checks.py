"""Count checks of an answer: numbers that must agree (inputs, tokens, device time within the wall),
both sides of each.
"""

from collections.abc import Mapping
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from store.read.evidence.evidence import PointEvidence, TimedPairs
from sweeps.model.flags import split_flags


class CountCheck(NamedTuple):
    """Two counts of one thing."""

    what: str
    statement: str
    holds: bool | None
    """`None` where there is nothing to compare with."""


def count_checks(evidence: PointEvidence, timed: TimedPairs) -> list[CountCheck]:
    """What must hold of the newest attempt behind the answer, with the numbers of both sides."""
    last = timed.attempts[-1]
    stored = next(each for each in evidence.attempts if each.attempt == last.row.attempt)
    found = []
    for side in ("baseline", "arm"):
        ran, flags = stored.arms[side], split_flags(getattr(stored, f"{side}_flags"))
        if ran:
            found += _of_arm(
                side,
                ran,
                evidence.comparison.condition.batch_size,
                kept="token_trace_mismatch" not in flags,
            )
    device = last.data.event_seconds
    if last.series is None and device is not None:
        beyond = int(np.sum(device > last.table))
        share = (
            f"the device was at work {100 * float(np.median(device / last.table)):.1f} % of the"
            " wall (median)"
        )
        found.append(
            CountCheck(
                "Device time within the wall",
                f"{share}; longer than it in {beyond} of {device.size}",
                beyond == 0,
            )
        )
    equal = (
        "equal counts: the arm does the work of its baseline"
        if last.row.same_work
        else "the arm does other work than its baseline"
    )
    return [*found, CountCheck("Work of both", equal, None)]


def _of_arm(side: str, ran: Mapping[str, Any], requested: int, *, kept: bool) -> list[CountCheck]:
    batch = ran["batch"]
    path = ", ".join(
        f"{tokens:,} after {len(list(own))}"
        for tokens, own in groupby(out for _, out in ran["trace"])
    )
    promise = "as the method promises" if kept else "against the promise of the method"
    tokens = f"{ran['tokens']:,} enter, {ran['tokens_final']:,} leave the last block, {promise}"
    macs = (
        f"{ran['gmacs']:.4g} GMACs of the network on these tokens, {ran['gmacs_overhead']:.3g} of"
        " the method itself"
    )
    return [
        CountCheck(
            f"Inputs of a forward, {side}",
            f"{batch} counted, {requested} requested",
            batch == requested,
        ),
        CountCheck(
            f"Tokens, {side}",
            tokens + (f"; tokens after so many blocks each: {path}" if path else ""),
            kept,
        ),
        CountCheck(f"Work, {side}", macs, None),
    ]
