"""Rule on break-evens that a source claims: measured points on both sides bear them out."""

from collections.abc import Iterator
from functools import partial
from itertools import chain

import numpy as np

from sweeps.analysis.audit.comparisons import measured_speedups
from sweeps.analysis.audit.frame import SAME_ARM, AuditColumn, AuditFrame
from sweeps.analysis.audit.rule import Checked, MeasurementFinding, members
from sweeps.analysis.audit.tolerance import allowed_each
from sweeps.importers.measurement import StatedBreakEven

CLOSE = 2.0
"""A break-even is borne out where the measured places on both sides of it are within this factor of
each other: a doubling of the size of the work brackets it."""


def break_even_without_data(frame: AuditFrame, rows: AuditColumn) -> Checked:
    """A claimed break-even has measured points close to it on both sides, between which the effect
    changes its sign.

    Source: between two places any crossing fits what was measured; beyond them none follows. Close
    is `CLOSE`. Cannot decide: where the break-even is, nor of which arm a claim is: it holds if one
    arm of the table bears it out.
    """
    rows = rows[~frame.is_baseline[rows]]
    found = []
    for claim in frame.break_evens:
        own = rows[frame.stated(claim.axis)[rows]]
        if len(own):
            found.append(partial(_unborne_claim, frame, own, claim))
    return Checked(len(found), chain.from_iterable(each() for each in found))


def _unborne_claim(
    frame: AuditFrame, rows: AuditColumn, claim: StatedBreakEven
) -> Iterator[MeasurementFinding]:
    """What is wrong with a claim by the first arm, where no arm bears it out."""
    groups = frame.codes(SAME_ARM, rows)
    first = None
    for own in members(groups, range(int(groups.max()) + 1)):
        wrong = _unborne(frame, rows[own], claim)
        if wrong is None:
            return
        first = first or wrong
    if first is not None:
        yield first


def _unborne(
    frame: AuditFrame, group: AuditColumn, claim: StatedBreakEven
) -> MeasurementFinding | None:
    """What is wrong with a claim by the rows of one arm."""
    axis = claim.axis.replace("_", " ")
    at = frame.column(claim.axis)[group]
    places = np.unique(at)
    name, settles = (
        f"the break-even at {claim.at:g} {axis}",
        f"measure at {axis} around {claim.at:g}",
    )
    below, above = places[places <= claim.at], places[places >= claim.at]
    if not len(below) or not len(above):
        side = (
            f"above the largest measured, {places[-1]:g}"
            if not len(above)
            else f"below the smallest measured, {places[0]:g}"
        )
        return MeasurementFinding(
            "doubtful", group, f"{name} lies {side}: it is extrapolated", settles
        )
    low, high = float(below[-1]), float(above[0])
    beside = group[(at == low) | (at == high)]
    if high / low > CLOSE:
        fact = (
            f"{name} has no data between {low:g} and {high:g}: any crossing in between fits the"
            " table"
        )
        return MeasurementFinding("doubtful", beside, fact, settles)
    signs = _signs(frame, group, at, (low, high)) if low < high else set()
    if len(signs) == 1:
        word = "faster" if signs == {True} else "slower"
        return MeasurementFinding(
            "contradiction",
            beside,
            f"{name} is no crossing: the arm is {word} at {low:g} and at {high:g}",
            settles,
        )
    return None


def _signs(
    frame: AuditFrame, group: AuditColumn, at: AuditColumn, places: tuple[float, float]
) -> set[bool]:
    """Whether the arm is clearly faster at the places; empty where that is not known at both or not
    clear.
    """
    allowed = float(allowed_each((np.array([1.0001]),) * 2, frame.noise_at(group), 2)[0])
    found: set[bool] = set()
    for place in places:
        own = group[at == place]
        speedups = measured_speedups(frame, own)
        speedups = np.where(np.isnan(speedups), frame.column("speedup")[own], speedups)
        known = speedups[~np.isnan(speedups)]
        if not len(known) or (np.abs(np.log(known)) <= allowed).any():
            return set()
        found |= set((known > 1).tolist())
    return found
