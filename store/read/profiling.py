"""Explanations of a stored sweep: profiled arms beside their baselines and their operators, in
sentences.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Engine, select

from store.read.curves import with_ceilings
from store.rows.frames import read_frame, rows_of
from store.rows.profiles import bounded_figure
from store.rows.transactions import batches, reading
from store.schema.tables import named
from sweeps.model.condition import Device
from sweeps.model.flags import split_flags, wrong
from sweeps.model.kinds import KINDS
from sweeps.model.profile import ArmProfile, IntervalEstimate, Peaks, Phase, TimeClass
from sweeps.number_format import count, is_missing
from sweeps.stats.roofline import Roofline, roofline
from sweeps.text.explanation import (
    OperatorPair,
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

    Columns: `activity`, `name`, `baseline_ms`, `arm_ms`, `difference_ms`, `baseline_count` and
    `arm_count`, all of one forward; 0 where one of both does not run it.
    """
    from store.views.public import TABLES  # which imports the models

    kernel = TABLES["kernel"]
    columns = named(kernel, "profile_id activity name ms count")
    rows = read_frame(engine, select(*columns).where(kernel.c.profile_id.in_((baseline, arm))))
    sides = {
        side: rows[rows["profile_id"] == profile_id]
        .groupby(["activity", "name"])[["ms", "count"]]
        .sum()
        .add_prefix(f"{side}_")
        for side, profile_id in (("baseline", baseline), ("arm", arm))
    }
    both = sides["baseline"].join(sides["arm"], how="outer").fillna(0.0).reset_index()
    both = both.assign(difference_ms=both["arm_ms"] - both["baseline_ms"])
    order = both["difference_ms"].abs().sort_values(ascending=False, kind="stable").index
    return both.loc[order].reset_index(drop=True)


def operator_rows(engine: Engine, profile_ids: Collection[str]) -> "pd.DataFrame":
    """The operators of profiles, by their `profile_id`: of the view `kernel` those columns that
    stories read.
    """
    import pandas as pd

    from store.views.public import TABLES

    kernel, names = TABLES["kernel"], ("profile_id", "name", "count", "ms", "gmacs")
    columns = named(kernel, names)
    rows: list[tuple[Any, ...]] = []
    with reading(engine) as connection:
        for batch in batches(sorted(set(profile_ids))):
            own = kernel.c.profile_id.in_(batch)
            rows += [
                tuple(row)
                for row in connection.execute(
                    select(*columns).where(own, kernel.c.activity == "operator")
                )
            ]
    return pd.DataFrame.from_records(rows, columns=list(names))


_PLACE = ("environment", "host", "condition_id", "arm_id", "baseline_id", "metric")


class ProfileContext:
    """Points of the view `speedup` and operators of the view `kernel`; explains one arm with those
    of it and its baseline.
    """

    def __init__(
        self, points: "pd.DataFrame", operators: "pd.DataFrame", is_ceiling: Callable[[str], bool]
    ) -> None:
        """`is_ceiling` is whether a method only cuts tokens."""
        self._is_ceiling = is_ceiling
        rows = rows_of(with_ceilings(points, is_ceiling)) if len(points) else []
        self._points = {tuple(getattr(row, name) for name in _PLACE): row for row in rows}
        self._operators: dict[str, dict[str, Any]] = {}
        for row in rows_of(operators):
            self._operators.setdefault(row.profile_id, {})[row.name] = row

    def explain(
        self,
        arm: Any,
        baseline: Any,
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
            sentences.append(
                explain_operators(self.operator_pairs(baseline.profile_id, arm.profile_id))
            )
            sentences.append(explain_rates(*gflops, less_work=_less(arm.gmacs, baseline.gmacs)))
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


def _pair(name: str, baseline: Any, arm: Any) -> OperatorPair:
    sides = (baseline, arm)
    ms, runs = (
        [0.0 if side is None else float(getattr(side, column)) for side in sides]
        for column in ("ms", "count")
    )
    gmacs = [
        None if side is None or is_missing(side.gmacs) else float(side.gmacs) for side in sides
    ]
    return OperatorPair(name, *ms, *runs, *gmacs)


def _less(arm: Any, baseline: Any) -> bool:
    return not is_missing(arm) and not is_missing(baseline) and bool(arm < baseline)


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
_CONDITION = ("environment", "host", "condition_id", "phase")
_SAME = ("environment", "host", "condition_id", "arm_id", "baseline_id")
_IDENTITY = ("environment", "host", "phase", "method", "model", "weights")
_CAPTURED = (
    *_IDENTITY,
    "image_size",
    "image_shape",
    "prompt_tokens",
    "batch_size",
    "dtype",
    "attention",
)
"""Equal for an eager arm and the same arm captured as a CUDA graph, besides what is requested of it
but for the runtime."""


class ProfiledArm(NamedTuple):
    """An arm and phase of the view `profile`."""

    row: Any
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
        names = ("prompt_tokens", "image_size", "image_shape")
        own = {name: _value(self.row, name) for name in names}
        prompt = own["prompt_tokens"]
        return name_size(SimpleNamespace(**own, tokens=self.tokens if prompt is None else prompt))

    @property
    def flags(self) -> str:
        """Flags of arm and job, joined by commas."""
        joined = (getattr(self.row, name) for name in ("arm_flags", "job_flags"))
        return ", ".join(
            sorted(
                {
                    flag
                    for flags in joined
                    if not is_missing(flags)
                    for flag in flags.split(",")
                    if flag
                }
            )
        )


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
    frame: "pd.DataFrame", label: LabelOf, tokens: Mapping[str, int]
) -> list[ProfiledArm]:
    """The profiles of rows of the view `profile`, of each arm and phase the newest attempt's;
    imported files all.

    `tokens` are those of each condition, by its id.
    """
    newest = frame.groupby([*_CONDITION, "arm_id"], dropna=False)["attempt"].transform("max")
    shown = frame[(frame["attempt"] == newest) | frame["attempt"].isna()]
    return [
        _profiled_arm(list(rows.itertuples()), label, tokens)
        for _, rows in shown.groupby("profile_id", sort=False)
    ]


def _profiled_arm(rows: list[Any], label: LabelOf, tokens: Mapping[str, int]) -> ProfiledArm:
    row = rows[0]
    profile = ArmProfile(
        arm=row.arm,
        tool=row.tool,
        phase=row.phase,
        forwards=row.forwards,
        wall_s=None if is_missing(row.wall_ms) else row.wall_ms / 1e3,
        profiled_wall_s=None if is_missing(row.profiled_wall_ms) else row.profiled_wall_ms / 1e3,
        times={each.time_class: each.ms / 1e3 for each in rows},
        launches=row.launches,
        rounds=None if is_missing(row.rounds) else int(row.rounds),
        speedup=bounded_figure(row, "speedup"),
        profiled_speedup=bounded_figure(row, "profiled_speedup"),
        changes={
            each.time_class: change for each in rows if (change := bounded_figure(each, "change"))
        },
    )
    known = not is_missing(row.peak_gflops) and not is_missing(row.peak_gb_per_s)
    peaks = (
        Peaks(gflops=row.peak_gflops, gb_per_s=row.peak_gb_per_s, dtype=row.dtype)
        if known
        else None
    )
    work = {
        "gmacs": _amount(row.gmacs),
        "bytes_moved": _amount(row.bytes_moved),
        "products": _amount(row.product_share),
    }
    name = str(row.label or row.file) if is_missing(row.method) else label(row.method, row.params)
    return ProfiledArm(
        row, name, profile, peaks, roofline(profile, peaks, **work), tokens.get(row.condition_id)
    )


def _amount(value: Any) -> float | None:
    return None if is_missing(value) else float(value)


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
    known = effects[["condition_id", "tokens"]].dropna().drop_duplicates("condition_id")
    arms = profiled_arms(
        profiles,
        label,
        {str(key): int(tokens) for key, tokens in known.itertuples(index=False, name=None)},
    )
    pairs, timed = _pairs(effects), _timed_speedups(effects)
    grouped: dict[str, list[ProfiledArm]] = {}
    for arm in arms:
        grouped.setdefault(json.dumps([_value(arm.row, name) for name in _CONDITION]), []).append(
            arm
        )
    found = []
    for own in grouped.values():
        device = _device_of(own)
        reasons = [*_explanations(own, arms, pairs, timed, beside), *_limits(own), *_imported(own)]
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


def _value(row: Any, name: str) -> Any:
    value = getattr(row, name)
    return None if is_missing(value) else value


def _pairs(effects: "pd.DataFrame") -> dict[tuple[str, str], list[str]]:
    """By condition and arm the baselines that profile jobs compare it with."""
    own = effects[effects["kind"].isin([kind.name for kind in _PROFILES])][
        ["condition_id", "arm_id", "baseline_id"]
    ].drop_duplicates()
    found: dict[tuple[str, str], list[str]] = {}
    for condition_id, arm_id, baseline_id in own.itertuples(index=False, name=None):
        found.setdefault((condition_id, arm_id), []).append(baseline_id)
    return found


def _timed_speedups(effects: "pd.DataFrame") -> dict[tuple[Any, ...], IntervalEstimate]:
    """Speed-ups of timing jobs that no flag marks as wrong, by `_SAME` and metric."""
    rows = effects[effects["metric"].isin(set(_TIMED.values())) & effects["effect"].notna()]
    found: list[Any] = list(rows.itertuples())
    sound = [row for row in found if not wrong(split_flags(row.flags))]
    return {
        (*(getattr(row, name) for name in _SAME), row.metric): IntervalEstimate(
            value=row.effect, low=_amount(row.effect_low), high=_amount(row.effect_high)
        )
        for row in sound
    }


def _timed_speedup(
    timed: Mapping[tuple[Any, ...], IntervalEstimate], arm: ProfiledArm, baseline: ProfiledArm
) -> IntervalEstimate | None:
    """What a timing job measured of the same arm against the same baseline."""
    place = (
        arm.row.environment,
        arm.row.host,
        arm.row.condition_id,
        arm.row.arm_id,
        baseline.row.arm_id,
    )
    return timed.get((*place, _TIMED.get(arm.profile.phase)))


def _explanations(
    own: Sequence[ProfiledArm],
    every: Sequence[ProfiledArm],
    pairs: Mapping[tuple[str, str], list[str]],
    timed: Mapping[tuple[Any, ...], IntervalEstimate],
    beside: ProfileContext | None,
) -> Iterator[Reason]:
    """A sentence for each arm and baseline, and for an arm that was captured too what that
    shows.
    """
    device = _device_of(own)
    for arm in own:
        names = pairs.get((arm.row.condition_id, arm.row.arm_id), [])
        baselines = [each for each in own if each.row.arm_id in names]
        for baseline in baselines:
            compared = arm.row.baseline_arm_id
            if not is_missing(compared) and compared != baseline.row.arm_id:
                continue  # its differences are those from another baseline
            against = f" against {baseline.label}" if len(baselines) > 1 else ""
            measured = _timed_speedup(timed, arm, baseline)
            sentence = explain_wall(baseline.profile, arm.profile, device, measured)
            if sentence and beside is not None:
                known = explains(arm.profile, measured)
                rates = [
                    None if each.roofline is None else each.roofline.gflops
                    for each in (baseline, arm)
                    if known
                ]
                sentence = beside.explain(
                    arm.row, baseline.row, _TIMED.get(arm.profile.phase), sentence, rates
                )
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
    sides = [[_value(arm.row, name) for name in _CAPTURED] for arm in (captured, eager)]
    return sides[0] == sides[1] and _requested(captured) == _requested(eager)


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
    params = json.loads(arm.row.params)
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
        if not is_missing(arm.row.file):
            share = (
                "not known"
                if is_missing(arm.row.kernel_time_share)
                else f"{100 * arm.row.kernel_time_share:.3g} %"
            )
            forwards = count(arm.row.forwards, "forward")
            yield Reason(
                arm,
                f"recorded by {arm.profile.tool} in {arm.row.file}, {forwards} under the profiler; "
                f"share of the arm's kernel time that its kernels take: {share}",
            )
