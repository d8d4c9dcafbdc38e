"""Frames of the page Explain: what its charts draw of profiles, points and the cost model of one
arm and its baseline.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import nan
from typing import Any, NamedTuple

import pandas as pd

from store.read.curves import with_ceilings
from store.read.profiling import CLASSES_OF_TIME, ProfiledArm, ProfiledCondition
from store.rows.frames import rows_of
from sweeps.analysis.labels import GAINS
from sweeps.analysis.rows import CeilingRow, SizedRow, SpeedupRow
from sweeps.model.flags import split_flags, wrong
from sweeps.number_format import is_missing
from sweeps.text.reasons import name_size, promise_of
from webapp.charts.roofline_chart import SIDE_COLORS
from webapp.display import texts
from webapp.display.arm_style import arm_styles
from webapp.display.links import POINT_KEY
from webapp.queries.queries_explain import only_cuts

NO_EFFECT = "no_effect"
"""Flag of an arm that does what its baseline does at a size; such points are no part of a fit."""
PHASES: Mapping[str, str] = {"forward": "", "prefill": "prefill", "decode": "decode step"}


class Sides(NamedTuple):
    """A condition with the profiles of an arm and of its baseline."""

    condition: ProfiledCondition
    baseline: ProfiledArm
    arm: ProfiledArm

    @property
    def place(self) -> str:
        """Size, phase and, of a file, the tool: `224 px (196 tokens)`, `64 prompt tokens,
        prefill`.
        """
        return profile_place(self.arm)


def profile_place(arm: ProfiledArm) -> str:
    """Size and phase of a profile: `224 px (196 tokens)`, `64 prompt tokens, decode step`; of a
    file its tool too.
    """
    tool = "" if is_missing(arm.row.file) else arm.profile.tool
    return ", ".join(filter(None, [arm.size, PHASES[arm.row.phase], tool])) or "forward"


def own_color(points: pd.DataFrame, arm: str) -> str:
    """The colour that the arm has on the other pages; of the unmodified model under another runtime
    that of an arm.
    """
    method = points.loc[points["arm"] == arm, "method"].iloc[0]
    return SIDE_COLORS["arm"] if method == "dense" else arm_styles(points)[arm].color


def sides_of(found: Sequence[ProfiledCondition], arm_id: str, baseline_id: str) -> list[Sides]:
    """The conditions in which both were profiled, in order of size."""
    sides = []
    for condition in found:
        # a timeline, of which the classes of time are known, stands for an arm before kernels that
        # were recorded one by one
        own = {
            arm.row.arm_id: arm
            for arm in sorted(condition.arms, key=lambda arm: bool(arm.profile.times))
        }
        if arm_id in own and baseline_id in own:
            sides.append(Sides(condition, own[baseline_id], own[arm_id]))
    return sorted(sides, key=lambda each: (_size(each.arm), each.place))


def _size(arm: ProfiledArm) -> float:
    return float(arm.row.image_size or arm.row.prompt_tokens or 0)


def wall_parts(sides: Sequence[Sides]) -> pd.DataFrame:
    """Rows for `wall_bars.wall_chart`: classes of time of baseline and arm under each condition."""
    return pd.DataFrame(_parts(sides), columns=["place", "side", "time_class", "ms", "wall_ms"])


def _parts(sides: Sequence[Sides]) -> Iterator[tuple[str, str, str, float, float]]:
    for each in sides:
        names = CLASSES_OF_TIME[each.condition.device]
        for side, profiled in (("baseline", each.baseline), ("arm", each.arm)):
            times = {
                name: seconds
                for name, seconds in profiled.profile.times.items()
                if seconds and name in names
            }
            for name, seconds in times.items():
                yield each.place, side, names[name], 1e3 * seconds, 1e3 * sum(times.values())


def wall_differences(sides: Sequence[Sides]) -> pd.DataFrame:
    """Rows for `wall_bars.difference_chart`: by how much each class of the arm is longer, with its
    interval where there is one.
    """
    columns = ["place", "time_class", "ms", "ms_low", "ms_high"]
    return pd.DataFrame(_differences(sides), columns=columns).astype(
        dict.fromkeys(columns[2:], float)
    )


def _differences(
    sides: Sequence[Sides],
) -> Iterator[tuple[str, str, float, float | None, float | None]]:
    for each in sides:
        arm, baseline = each.arm.profile, each.baseline.profile
        for name, label in CLASSES_OF_TIME[each.condition.device].items():
            change = arm.changes.get(name)
            # by pairs inside rounds, as a share of the baseline's wall
            if change is not None and baseline.wall_s:
                wall_ms = 1e3 * baseline.wall_s
                low, high = (
                    None if end is None else wall_ms * end for end in (change.low, change.high)
                )
                if arm.times.get(name) or baseline.times.get(name):
                    yield each.place, label, wall_ms * change.value, low, high
            elif arm.times.get(name) or baseline.times.get(name):
                yield (
                    each.place,
                    label,
                    1e3 * (arm.times.get(name, 0.0) - baseline.times.get(name, 0.0)),
                    None,
                    None,
                )


def roofline_points(sides: Sides) -> pd.DataFrame:
    """Rows for `roofline_chart`: all arms of a condition, each with its `name`; the arm and its
    baseline by their roles.
    """
    rows = []
    for profiled in sides.condition.arms:
        side = (
            "arm"
            if profiled is sides.arm
            else "baseline"
            if profiled is sides.baseline
            else "other arm"
        )
        if (found := profiled.roofline) is not None:
            named = profiled.label if side == "other arm" else side
            rows.append((profiled.label, side, named, found.gflops, found.gb_per_s, found.limit))
    columns = ["label", "side", "name", "gflops", "gb_per_s", "limit"]
    return pd.DataFrame(rows, columns=columns).astype({"gflops": float, "gb_per_s": float})


def with_promises(points: pd.DataFrame) -> pd.DataFrame:
    """Rows of the view `speedup` with `promised`, and `ceiling` (with its ends): that of a free cut
    of the same tokens.
    """
    promised = pd.Series(
        [promise_of(row) or nan for row in rows_of(points, SpeedupRow)],
        index=points.index,
        dtype=float,
    )
    return with_ceilings(points, only_cuts).assign(promised=promised)


def place_that_fails(sides: Sequence[Sides], points: pd.DataFrame) -> str:
    """The smallest place at which the points of the arm do not show that it pays; the largest where
    it pays at all.
    """
    paying = set(
        points.loc[
            [texts.speed(row).finding in GAINS for row in points.to_dict("records")], "condition_id"
        ]
    )
    return next(
        (each.place for each in sides if each.arm.row.condition_id not in paying), sides[-1].place
    )


def shown_sizes(points: pd.DataFrame) -> list[CeilingRow]:
    """Of the points of an arm the largest, and the smallest at which it removes tokens, if it does
    at any.
    """
    rows = rows_of(points.sort_values("tokens", ascending=False), CeilingRow)
    removing = [row for row in rows if NO_EFFECT not in split_flags(row.flags)] or rows[:1]
    return [removing[0]] if len(removing) == 1 else [removing[0], removing[-1]]


def cost_points(points: pd.DataFrame, costs: Any) -> pd.DataFrame:
    """Rows for `cost_lines.cost_chart` from the points of one arm: time and work of both sides at
    each size.
    """
    work = ("tokens", "tokens") if costs.work_unit == "token" else ("gmacs_baseline", "gmacs_total")
    rows = []
    sizes = map(name_size, rows_of(points, SizedRow))
    for row, size in zip(points.to_dict("records"), sizes, strict=True):
        flags = split_flags(row["flags"])
        for side, column, ms in (("baseline", work[0], "baseline_ms"), ("arm", work[1], "arm_ms")):
            in_fit = not wrong(flags) and NO_EFFECT not in flags
            rows.append(
                (side, row[column], row[ms], size, in_fit, *(row.get(key) for key in POINT_KEY))
            )
    return pd.DataFrame(rows, columns=["side", "work", "ms", "size", "in_fit", *POINT_KEY])


def most_surprising(points: pd.DataFrame) -> str:
    """The arm of rows of `with_promises` whose promise lies above its interval by the largest
    factor; flagged ones last.
    """
    known = points[~texts.undecided(points)].dropna(subset=["promised", "speedup_high"])
    known = known[~known["flags"].map(lambda flags: wrong(split_flags(flags))).astype(bool)]
    short = known.assign(short=known["promised"] / known["speedup_high"]).sort_values(
        "short", ascending=False, kind="stable"
    )
    return str((points if short.empty else short)["arm"].iloc[0])
