"""Why an arm takes the time that it takes: steps from the time of its baseline to its own, and what
its operators take beyond what their MACs promise.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from sweeps.analysis.rows import CeilingRow, CostModelRow, SpeedupRow
from sweeps.model.profile import ArmProfile, TimeClass
from sweeps.stats.pooling import macs_speedup

StepKind = Literal[
    "baseline", "promise", "ceiling", "class", "fixed kept", "fixed added", "work", "rest", "arm"
]
NO_CURVE = frozenset({"undetermined", "misfit"})
"""Verdicts of a cost model from whose costs nothing follows."""
MIN_STEP = 0.002
"""Of the baseline's time: smaller steps are part of the rest."""


class Part(NamedTuple):
    """What an arm takes beyond what is expected of it, in ms; below 0 it takes less."""

    kind: StepKind
    ms: float
    time_class: TimeClass | None = None


class TimeStep(NamedTuple):
    """One step of a waterfall, in ms."""

    kind: StepKind
    start: float
    end: float
    time_class: TimeClass | None = None

    @property
    def ms(self) -> float:
        return self.end - self.start


def promise_of(row: SpeedupRow) -> float | None:
    """The speed-up that the MACs of a row promise, those of the method itself included."""
    return macs_speedup(row.gmacs_baseline, row.gmacs_total)


def waterfall(row: CeilingRow, parts: Sequence[Part]) -> list[TimeStep]:
    """From the baseline's time by what the MACs promise, what the same tokens cost where they are
    cut for nothing, and the `parts`, to the arm's time.

    Empty where a time is not known. What the parts leave is a step of its own.
    """
    if not row.baseline_ms or not row.arm_ms:
        return []
    at, promised = row.baseline_ms, promise_of(row)
    steps = [TimeStep("baseline", 0.0, at)]
    known = [Part("promise", at / promised - at)] if promised else []
    if row.ceiling:
        known.append(Part("ceiling", at / row.ceiling - at - sum(part.ms for part in known)))
    known += [part for part in parts if abs(part.ms) >= MIN_STEP * row.baseline_ms]
    known.append(Part("rest", row.arm_ms - at - sum(part.ms for part in known)))
    for kind, ms, time_class in known:
        if kind != "rest" or not parts or abs(ms) >= MIN_STEP * row.baseline_ms:
            steps.append(TimeStep(kind, at, at + ms, time_class))
        at += ms
    return [*steps, TimeStep("arm", 0.0, row.arm_ms)]


def profile_parts(row: CeilingRow, baseline: ArmProfile, arm: ArmProfile) -> list[Part]:
    """By class of time what the arm takes more than its baseline, by profiles of both, in ms of the
    time that was measured; of the device (on a CPU: operators) beyond what the same tokens take
    where they are cut for nothing, else where time follows MACs.
    """
    wall, whole, parts = baseline.wall_s, row.baseline_ms or 0.0, []
    if not wall:
        return []
    for name in dict.fromkeys((*baseline.times, *arm.times)):
        change = arm.changes.get(name)
        more = (arm.times.get(name, 0.0) - baseline.times.get(name, 0.0)) / wall
        ms = whole * (more if change is None else change.value)
        saved = whole - whole / (row.ceiling or promise_of(row) or 1.0)
        parts.append(Part("class", ms + (saved if name == "device" else 0.0), name))
    return parts


def model_parts(row: CeilingRow, costs: CostModelRow) -> list[Part]:
    """By the fit over sizes (fixed cost + cost of work) what the arm takes beyond its promise: the
    baseline's fixed cost, which fewer MACs do not shrink; what the arm adds to it; and what its
    work costs more than the baseline's share.

    Where the same tokens were cut for nothing, that step holds the first of them.
    """
    own, fixed, slope = costs.alpha, costs.alpha_baseline, costs.beta_baseline
    by_token = costs.work_unit == "token"
    works = (row.tokens, row.tokens) if by_token else (row.gmacs_baseline, row.gmacs_total)
    if costs.verdict in NO_CURVE or own is None or fixed is None or slope is None or None in works:
        return []
    kept, (whole, left) = 1 - 1 / (promise_of(row) or 1.0), (float(work or 0.0) for work in works)
    work = (costs.beta or 0.0) * left - slope * whole * (1 - kept)
    parts = [Part("fixed added", 1e3 * (own - fixed)), Part("work", 1e3 * work)]
    return parts if row.ceiling else [Part("fixed kept", 1e3 * fixed * kept), *parts]


ReasonKind = Literal["weights", "products", "added", "longer"]
"""`weights`: less work moves about as many bytes; `products`: operators with less work; `added` and
`longer`: operators that the baseline does not run, or for a shorter time."""
NOTABLE_SHARE = 0.02
"""Of the baseline's time in operators: less is not named."""
MAX_WORK_SHARE = 0.9
"""Below this share of its MACs an operator has less work."""
MIN_BYTES_SHARE = 0.8
"""From this share of its bytes on, an operator with less work moves about as much as before."""
MAX_REASONS = 3


class OperatorPair(NamedTuple):
    """One operator in both arms: ms, calls, GMACs and bytes of a forward; 0 where it does not run,
    `None` for work that is not known.

    Bytes are inputs, weights and outputs, each once.
    """

    name: str
    baseline_ms: float
    arm_ms: float
    baseline_count: float
    arm_count: float
    baseline_gmacs: float | None = None
    arm_gmacs: float | None = None
    baseline_bytes: float | None = None
    arm_bytes: float | None = None

    @property
    def short_name(self) -> str:
        """`addmm` of `aten::addmm`."""
        return self.name.rpartition("::")[2].strip("_")

    @property
    def work_share(self) -> float | None:
        """The arm's MACs over the baseline's."""
        known = self.baseline_gmacs and self.arm_gmacs
        return known and known / (self.baseline_gmacs or 1.0)

    @property
    def lost_ms(self) -> float:
        """What the arm takes beyond the baseline's time for as many MACs."""
        share = self.work_share
        less = share is not None and share < MAX_WORK_SHARE
        return self.arm_ms - self.baseline_ms * ((share or 1.0) if less else 1.0)


class OperatorReason(NamedTuple):
    """Operators that take time for one reason, those with the most first."""

    kind: ReasonKind
    pairs: tuple[OperatorPair, ...]

    @property
    def lost_ms(self) -> float:
        return sum(pair.lost_ms for pair in self.pairs)


def operator_reasons(pairs: Sequence[OperatorPair]) -> list[OperatorReason]:
    """What the operators of an arm take beside the baseline's, the most time first; at most three.

    Empty where nothing stands out.
    """
    least = NOTABLE_SHARE * sum(pair.baseline_ms for pair in pairs)
    if not least:
        return []
    kinds: dict[ReasonKind, list[OperatorPair]] = {}
    for pair in sorted(pairs, key=lambda pair: -pair.lost_ms):
        if (kind := _kind(pair, least)) is not None:
            kinds.setdefault(kind, []).append(pair)
    found = [OperatorReason(kind, tuple(own)) for kind, own in kinds.items()]
    return sorted(found, key=lambda reason: -reason.lost_ms)[:MAX_REASONS]


def _kind(pair: OperatorPair, least: float) -> ReasonKind | None:
    """Why an operator is named, if at all; `least` is the least time of one, in ms."""
    if not pair.baseline_count:
        return "added"
    if (pair.work_share or 1.0) >= MAX_WORK_SHARE:
        return "longer" if pair.arm_ms - pair.baseline_ms >= least / 4 else None
    if pair.baseline_ms < least:
        return None
    moved = (pair.arm_bytes or 0.0) >= MIN_BYTES_SHARE * (pair.baseline_bytes or 1.0)
    return "weights" if moved and pair.lost_ms > least / 4 else "products"
