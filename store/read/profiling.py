"""Explanations of a stored sweep: profiled arms beside their baselines and their operators, in
sentences.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Engine, select

from store.read.curves import with_ceilings
from store.rows.frames import read_frame, rows_of
from store.rows.profiles import interval_estimate
from store.rows.transactions import reading, rows_in
from store.schema.tables import named
from store.views.public import TABLES
from sweeps.analysis.rows import CeilingRow, EffectRow, ProfileRow, SizedRow
from sweeps.analysis.waterfall import OperatorPair, operator_reasons
from sweeps.model.condition import Device
from sweeps.model.flags import split_flags, wrong
from sweeps.model.kinds import KINDS
from sweeps.model.profile import ArmProfile, IntervalEstimate, Peaks, Phase, TimeClass
from sweeps.number_format import count
from sweeps.stats.roofline import Roofline, roofline
from sweeps.text.explanation import (
    explain_capture,
    explain_operators,
    explain_rates,
    explain_wall,
    explains,
)
from sweeps.text.reasons import describe_roofline, explain_ceiling, explain_promise, name_size

if TYPE_CHECKING:
    import pandas as pd


def activity_differences(engine: Engine, baseline: str, arm: str) -> "pd.DataFrame":
    """Each kernel, copy or operator of two profiles, by their `profile_id`, largest difference of
    time first.

    Columns: `activity`, `name`, `baseline_ms`, `arm_ms`, `difference_ms`, `baseline_count`,
    `arm_count`, and of both `gmacs` and `bytes`, all of one forward; times and counts are 0
    where one of both does not run it.
    """
    kernel = TABLES["kernel"]
    columns = named(kernel, "profile_id activity name ms count gmacs bytes_moved")
    query = select(*columns).where(kernel.c.profile_id.in_((baseline, arm)))
    rows = read_frame(engine, query).rename(columns={"bytes_moved": "bytes"})
    sides = {
        side: rows[rows["profile_id"] == profile_id]
        .groupby(["activity", "name"])[["ms", "count", "gmacs", "bytes"]]
        .sum(min_count=1)
        .add_prefix(f"{side}_")
        for side, profile_id in (("baseline", baseline), ("arm", arm))
    }
    both = sides["baseline"].join(sides["arm"], how="outer").reset_index()
    whole = [f"{side}_{name}" for side in sides for name in ("ms", "count")]
    both = both.assign(**both[whole].fillna(0.0))
    both = both.assign(difference_ms=both["arm_ms"] - both["baseline_ms"])
    order = both["difference_ms"].abs().sort_values(ascending=False, kind="stable").index
    return both.loc[order].reset_index(drop=True)


def pairs_of(differences: "pd.DataFrame") -> list[OperatorPair]:
    """The operators of `activity_differences`."""
    own = differences[differences["activity"] == "operator"]
    rows = own[list(OperatorPair._fields)].astype(object)
    rows = rows.where(rows.notna(), None)
    return [OperatorPair(*row) for row in rows.itertuples(index=False, name=None)]


def operator_rows(engine: Engine, profile_ids: Collection[str]) -> "pd.DataFrame":
    """The operators of profiles, by their `profile_id`: of the view `kernel` those columns that
    stories read.
    """
    import pandas as pd

    kernel = TABLES["kernel"]
    names = ("profile_id", "name", "count", "ms", "gmacs", "bytes_moved")
    operators = select(*named(kernel, names)).where(kernel.c.activity == "operator")
    with reading(engine) as connection:
        rows = rows_in(connection, operators, kernel.c.profile_id, sorted(set(profile_ids)))
        return pd.DataFrame.from_records([tuple(row) for row in rows], columns=list(names))


@dataclass(frozen=True, kw_only=True)
class _Operator:
    """A row of `operator_rows`."""

    profile_id: str
    name: str
    count: float
    ms: float
    gmacs: float | None
    bytes_moved: float | None


class ProfileContext:
    """Points of the view `speedup` and operators of the view `kernel`; explains one arm with those
    of it and its baseline.
    """

    def __init__(
        self, points: "pd.DataFrame", operators: "pd.DataFrame", is_ceiling: Callable[[str], bool]
    ) -> None:
        """`is_ceiling` is whether a method only cuts tokens."""
        self._is_ceiling = is_ceiling
        rows = rows_of(with_ceilings(points, is_ceiling), CeilingRow) if len(points) else []
        self._points: dict[tuple[str | None, ...], CeilingRow] = {}
        for row in rows:
            arms = (row.arm_id, row.baseline_id, row.metric)
            self._points[row.environment, row.host, row.condition_id, *arms] = row
        self._operators: dict[str, dict[str, _Operator]] = {}
        for operator in rows_of(operators, _Operator):
            self._operators.setdefault(operator.profile_id, {})[operator.name] = operator

    def explain(
        self,
        arm: ProfileRow,
        baseline: ProfileRow,
        metric: str | None,
        wall: str,
        gflops: Sequence[float | None] = (),
    ) -> str:
        """Sentences on an arm, by rows of the view `profile` of it and its baseline: what was
        timed, then why.

        `wall` is the sentence of the profile on the wall; `gflops`, what baseline and arm reach,
        only of a profile that explains.
        """
        point = self._points.get(
            (arm.environment, arm.host, arm.condition_id, arm.arm_id, baseline.arm_id, metric)
        )
        sentences = [] if point is None else [explain_promise(point)]
        if point is not None and not self._is_ceiling(point.method):
            sentences.append(explain_ceiling(point))
        sentences.append(wall)
        if gflops:
            less = (arm.gmacs or inf) < (baseline.gmacs or 0.0)
            pairs = self.operator_pairs(baseline.profile_id, arm.profile_id)
            size = "this size" if point is None else name_size(point)
            sentences.append(explain_operators(operator_reasons(pairs), size))
            sentences.append(explain_rates(*gflops, less_work=less))
        return join_sentences(sentences)

    def operator_pairs(self, baseline: str, arm: str) -> list[OperatorPair]:
        """The operators of two profiles, by their `profile_id`; none where one of both has no
        operators.
        """
        sides = [self._operators.get(each, {}) for each in (baseline, arm)]
        if not all(sides):
            return []
        return [
            _pair(name, sides[0].get(name), sides[1].get(name))
            for name in dict.fromkeys((*sides[0], *sides[1]))
        ]


def join_sentences(sentences: list[str]) -> str:
    """Sentences without their ends as one text without its end; empty ones are left out, the first
    keeps its small letter.
    """
    known = [each for each in sentences if each]
    return ". ".join([*known[:1], *(f"{each[:1].upper()}{each[1:]}" for each in known[1:])])


def _pair(name: str, *sides: _Operator | None) -> OperatorPair:
    ms = [0.0 if side is None else side.ms for side in sides]
    runs = [0.0 if side is None else side.count for side in sides]
    work = [side and getattr(side, name) for name in ("gmacs", "bytes_moved") for side in sides]
    return OperatorPair(name, *ms, *runs, *work)


LabelOf = Callable[[str, str], str]
"""The label of a method and its parameters (JSON)."""
CLASSES_OF_TIME: Mapping[Device, Mapping[TimeClass, str]] = {
    "cuda": {
        "device": "device",
        "launch": "launch",
        "host": "host",
        "sync": "waits",
        "idle": "idle",
    },
    "cpu": {"device": "operators", "host": "Python, dispatch", "idle": "idle"},
}
"""How the classes of time are named, by device."""
_NOTES: Mapping[Device, str] = {
    "cuda": (
        "ms of one forward without a profiler: device work as recorded, the rest shared by what the"
        " host did in its gaps."
    ),
    "cpu": "ms of one forward without a profiler, shared as in the profiled forwards.",
}
_CHANGES = (
    "Changes are what a class takes more than the baseline's, in per cent of the baseline's wall, "
    "with the 99 % interval of each alone, from pairs inside rounds of one process."
)
_SLOWED = 1.5
"""From this factor on, what forwards take longer under the profiler is stated as a limit of what
their shares show."""
_TIMED: Mapping[Phase, str] = {"forward": "latency", "decode": "tpot"}
"""The metric of a timing job that measures what the wall of a phase is; a prefill has none, as
`ttft` counts the tokenizer."""
_PROFILES = tuple(kind for kind in KINDS.values() if kind.payload == "profiles")
EXPLAINED_METRICS = tuple(
    dict.fromkeys((*_TIMED.values(), *(name for kind in _PROFILES for name in kind.metrics)))
)
"""Metrics of the view `effect` that explanations read."""


class ProfiledArm(NamedTuple):
    """An arm and phase of the view `profile`."""

    row: ProfileRow
    """The first of its rows."""
    label: str
    profile: ArmProfile
    """Without its kernels or operators; `baseline` is not filled in, see `row.baseline_arm_id`."""
    peaks: Peaks | None
    roofline: Roofline | None
    tokens: int | None = None
    """Patch tokens of an image, or of the prompt."""

    @property
    def size(self) -> str:
        """`64 px (16 tokens)`, `64 prompt tokens`."""
        row = self.row
        tokens = row.prompt_tokens or self.tokens
        return name_size(
            SizedRow(
                image_size=row.image_size,
                image_shape=row.image_shape,
                prompt_tokens=row.prompt_tokens,
                tokens=tokens,
            )
        )

    @property
    def flags(self) -> str:
        """Flags of arm and job, joined by commas."""
        joined = (self.row.arm_flags or "", self.row.job_flags or "")
        return ", ".join(sorted({flag for flags in joined for flag in split_flags(flags)}))


class Reason(NamedTuple):
    """A sentence on an arm; `baseline` is what it is set beside, if anything."""

    arm: ProfiledArm
    text: str
    baseline: ProfiledArm | None = None
    against: str = ""
    """After the arm's label, where there are several baselines."""

    @property
    def line(self) -> str:
        """The sentence after the arm's label."""
        return f"{self.arm.label}{self.against}: {self.text}"


class ProfiledCondition(NamedTuple):
    """The profiled arms of one condition and phase on one host, and what they show."""

    arms: list[ProfiledArm]
    device: Device
    reasons: list[Reason]
    notes: tuple[str, ...]
    """How the classes of time follow from a profile, what limits them, and what a flag of theirs
    means."""

    @property
    def note(self) -> str:
        return " ".join(self.notes)

    @property
    def precise(self) -> bool:
        """Whether walls and rates mean something: some arm has an interval, or the profiles have no
        rounds that could give one.
        """
        speedups = [arm.profile.speedup for arm in self.arms if arm.profile.speedup is not None]
        return not speedups or any(each.low is not None for each in speedups)


def profiled_arms(
    rows: Sequence[ProfileRow], label: LabelOf, tokens: Mapping[str, int]
) -> list[ProfiledArm]:
    """The profiles in rows of the view, of each arm and phase the newest attempt's; imported files
    all.

    `tokens` are those of each condition, by its id.
    """
    newest: dict[tuple[str | None, ...], int] = {}
    for row in rows:
        key = (*_condition_and_phase(row), row.arm_id)
        newest[key] = max(newest.get(key, 0), row.attempt or 0)
    shown: dict[str, list[ProfileRow]] = {}
    for row in rows:
        if row.attempt in {None, newest[*_condition_and_phase(row), row.arm_id]}:
            shown.setdefault(row.profile_id, []).append(row)
    return [_profiled_arm(own, label, tokens) for own in shown.values()]


def _condition_and_phase(row: ProfileRow) -> tuple[str | None, ...]:
    return row.environment, row.host, row.condition_id, row.phase


def _profiled_arm(
    rows: Sequence[ProfileRow], label: LabelOf, tokens: Mapping[str, int]
) -> ProfiledArm:
    row = rows[0]
    changes = {
        each.time_class: interval_estimate(each.change, each.change_low, each.change_high)
        for each in rows
    }
    profile = ArmProfile.model_validate(
        {
            **{name: getattr(row, name) for name in ("arm", "tool", "phase", "forwards")},
            "launches": row.launches,
            "rounds": row.rounds,
            "wall_s": row.wall_ms and row.wall_ms / 1e3,
            "profiled_wall_s": row.profiled_wall_ms and row.profiled_wall_ms / 1e3,
            "times": {each.time_class: (each.ms or 0.0) / 1e3 for each in rows},
            "speedup": interval_estimate(row.speedup, row.speedup_low, row.speedup_high),
            "profiled_speedup": interval_estimate(
                row.profiled_speedup, row.profiled_speedup_low, row.profiled_speedup_high
            ),
            "changes": {name: change for name, change in changes.items() if change is not None},
        }
    )
    peaks = None
    if row.peak_gflops is not None and row.peak_gb_per_s is not None:
        peaks = Peaks(
            gflops=row.peak_gflops, gb_per_s=row.peak_gb_per_s, dtype=row.dtype or "float32"
        )
    limit = roofline(
        profile,
        peaks,
        gmacs=row.gmacs,
        bytes_moved=row.bytes_moved,
        products=row.product_share,
    )
    name = str(row.label or row.file) if row.method is None else label(row.method, row.params or "")
    return ProfiledArm(row, name, profile, peaks, limit, tokens.get(row.condition_id or ""))


def explain_profiles(
    profiles: "pd.DataFrame",
    effects: "pd.DataFrame",
    label: LabelOf,
    beside: ProfileContext | None = None,
) -> list[ProfiledCondition]:
    """For each condition and phase that was profiled its arms, with sentences for each arm and
    baseline, and on their limits.

    `profiles` and `effects` are rows of the views `profile` and `effect` (those of
    `EXPLAINED_METRICS`). `beside` is what else is known of the same arms: with it, the timing of an
    arm comes first, and its profile and operators explain it.
    """
    answers = rows_of(effects, EffectRow)
    tokens: dict[str, int] = {}
    for row in answers:
        if row.tokens is not None:
            tokens.setdefault(row.condition_id, row.tokens)
    arms = profiled_arms(rows_of(profiles, ProfileRow), label, tokens)
    grouped: dict[tuple[str | None, ...], list[ProfiledArm]] = {}
    for arm in arms:
        grouped.setdefault(_condition_and_phase(arm.row), []).append(arm)
    found = []
    for own in grouped.values():
        device = _device_of(own)
        reasons = [*_explanations(own, arms, answers, beside), *_limits(own), *_imported(own)]
        found.append(ProfiledCondition(own, device, reasons, _notes(own, device)))
    return found


def _device_of(own: Sequence[ProfiledArm]) -> Device:
    return "cuda" if own[0].row.device == "cuda" or own[0].profile.tool != "torch" else "cpu"


def _notes(own: Sequence[ProfiledArm], device: Device) -> tuple[str, ...]:
    notes = [_NOTES[device]] if any(arm.profile.times for arm in own) else []
    if any(arm.profile.changes for arm in own):
        notes.append(_CHANGES)
    walls = [
        (arm.profile.profiled_wall_s, arm.profile.wall_s)
        for arm in own
        if arm.profile.tool == "torch"
    ]
    slowed = max((profiled / wall for profiled, wall in walls if profiled and wall), default=0.0)
    if slowed >= _SLOWED:
        notes.append(
            f"Under the profiler forwards take up to {slowed:.1f} times as long, so that shares of"
            " operators and of the rest are those of slowed forwards: small differences between"
            " classes may be the profiler's."
        )
    if any(arm.flags for arm in own):
        notes.append(
            "Flagged arms were disturbed while they were profiled, which intervals show as width:"
            " profile again when it is quiet."
        )
    return tuple(notes)


def _timed_speedups(
    answers: Sequence[EffectRow],
) -> dict[tuple[str | None, ...], IntervalEstimate]:
    """Speed-ups of timing jobs that no flag marks as wrong, by place, condition, arm, baseline and
    metric.
    """
    found: dict[tuple[str | None, ...], IntervalEstimate] = {}
    sound = (row for row in answers if not wrong(split_flags(row.flags)))
    for row in sound:
        figure = interval_estimate(row.effect, row.effect_low, row.effect_high)
        if figure is not None and row.metric in _TIMED.values():
            arms = (row.arm_id, row.baseline_id, row.metric)
            found[row.environment, row.host, row.condition_id, *arms] = figure
    return found


def _explanations(
    own: Sequence[ProfiledArm],
    every: Sequence[ProfiledArm],
    answers: Sequence[EffectRow],
    beside: ProfileContext | None,
) -> Iterator[Reason]:
    """A sentence for each arm and baseline, and for an arm that was captured too what that
    shows.
    """
    device, timed = _device_of(own), _timed_speedups(answers)
    kinds = {kind.name for kind in _PROFILES}
    pairs = {
        (row.condition_id, row.arm_id, row.baseline_id) for row in answers if row.kind in kinds
    }
    for arm in own:
        place, metric = _condition_and_phase(arm.row)[:3], _TIMED.get(arm.profile.phase)
        baselines = [each for each in own if (place[-1], arm.row.arm_id, each.row.arm_id) in pairs]
        for baseline in baselines:
            compared = arm.row.baseline_arm_id
            if compared not in {None, baseline.row.arm_id}:
                continue  # its differences are those from another baseline
            against = f" against {baseline.label}" if len(baselines) > 1 else ""
            measured = timed.get((*place, arm.row.arm_id, baseline.row.arm_id, metric))
            sentence = explain_wall(baseline.profile, arm.profile, device, measured)
            if sentence and beside is not None:
                known = explains(arm.profile, measured)
                rates = [
                    None if each.roofline is None else each.roofline.gflops
                    for each in (baseline, arm)
                    if known
                ]
                sentence = beside.explain(arm.row, baseline.row, metric, sentence, rates)
            if sentence:
                yield Reason(arm, sentence, baseline, against)
        captured = next((each for each in every if _is_capture(each, arm)), None)
        if captured is not None and captured.profile.wall_s and arm.profile.wall_s:
            ratio = _ratio_of(captured, arm)
            yield Reason(arm, explain_capture(arm.profile.wall_s, captured.profile.wall_s, ratio))


def _is_capture(captured: ProfiledArm, eager: ProfiledArm) -> bool:
    """Whether an arm is the other one, captured as a CUDA graph."""
    if (captured.row.runtime, eager.row.runtime) != ("cudagraph", "eager"):
        return False
    return _captured(captured) == _captured(eager) and _requested(captured) == _requested(eager)


def _captured(arm: ProfiledArm) -> tuple[str | float | None, ...]:
    """Equal for an eager arm and the same arm captured as a CUDA graph, besides what is requested
    of it but for the runtime.
    """
    row = arm.row
    sizes = (row.image_size, row.image_shape, row.prompt_tokens, row.batch_size)
    types = (row.dtype, row.attention)
    return row.environment, row.host, row.phase, row.method, row.model, row.weights, *sizes, *types


def _ratio_of(captured: ProfiledArm, eager: ProfiledArm) -> IntervalEstimate | None:
    """The eager wall over the captured one, from the speed-ups of both over one baseline in one
    job, whose errors may add up.
    """
    one, other = captured.profile.speedup, eager.profile.speedup
    same = (
        captured.row.attempt == eager.row.attempt
        and captured.row.baseline_arm_id == eager.row.baseline_arm_id
    )
    if (
        not same
        or one is None
        or other is None
        or None in {one.low, one.high, other.low, other.high}
    ):
        return None
    low, high = (one.low or 0.0) / (other.high or 1.0), (one.high or 0.0) / (other.low or 1.0)
    return IntervalEstimate(value=one.value / other.value, low=low, high=high)


def _requested(arm: ProfiledArm) -> Any:
    """What is requested of an arm but for its runtime."""
    params = json.loads(arm.row.params or "{}")
    parts = params if isinstance(params, list) else [params]
    return [
        rest
        for part in parts
        if (rest := {key: value for key, value in part.items() if key != "runtime"})
    ]


def _limits(own: Sequence[ProfiledArm]) -> Iterator[Reason]:
    """Where the first arm, a baseline, stands beside the peaks of the machine; tables have the
    limits of the others.
    """
    for arm in own:
        if arm.roofline is not None and arm.peaks is not None:
            yield Reason(arm, describe_roofline(arm.roofline, arm.peaks))
            return


def _imported(own: Sequence[ProfiledArm]) -> Iterator[Reason]:
    """Of profiles from files of outside profilers, whose times are those with the profiler, how
    much of the arm they show.
    """
    for arm in own:
        if arm.row.file is not None:
            covered = arm.row.kernel_time_share
            share = "not known" if covered is None else f"{100 * covered:.3g} %"
            forwards = count(arm.row.forwards, "forward")
            yield Reason(
                arm,
                f"recorded by {arm.profile.tool} in {arm.row.file}, {forwards} under the profiler; "
                f"share of the arm's kernel time that its kernels take: {share}",
            )
