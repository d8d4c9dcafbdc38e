"""Explanations: why an arm's wall time changed as it did, in a sentence that follows from two
profiles, and which operators take as long although their MACs fell.
"""

from collections.abc import Iterator, Mapping, Sequence

from sweeps.analysis.waterfall import OperatorPair, OperatorReason, StepKind, TimeStep
from sweeps.model.condition import Device
from sweeps.model.profile import ArmProfile, IntervalEstimate, TimeClass
from sweeps.number_format import with_interval

_HALF = 0.5
"""Gaps of at least this share of the wall hold it."""
_NOTABLE = 0.02
"""Of the baseline's time: a smaller step of a waterfall is not named."""
_WIDE = 0.2
"""Width, as a share of the wall, beyond which an interval that includes no change shows nothing."""
_HELD: Mapping[Device, Mapping[TimeClass, str]] = {
    "cuda": {
        "launch": "launch-bound",
        "host": "launch-bound (by Python and dispatch)",
        "sync": "held by waiting for the device",
        "idle": "mostly idle",
    },
    "cpu": {
        "host": "dispatch-bound (Python and dispatch outlast the operators)",
        "idle": "mostly idle",
    },
}
_WORKED: Mapping[Device, str] = {"cuda": "bound by device work", "cpu": "bound by its operators"}
_PARTS: Mapping[Device, Mapping[TimeClass, str]] = {
    "cuda": {
        "device": "device work",
        "launch": "launches",
        "host": "the host",
        "sync": "waits",
        "idle": "idle time",
    },
    "cpu": {"device": "operators", "host": "Python and dispatch", "idle": "idle time"},
}
"""What takes the time of a class; `_TIME` precedes it in sentences."""
_TIME = {"launches": "time in ", "the host": "time of ", "operators": "time in "}
_CALL: Mapping[Device, tuple[str, str]] = {
    "cuda": ("launch", "launches"),
    "cpu": ("operator call", "operator calls"),
}


def bound(profile: ArmProfile, device: Device) -> str | None:
    """What holds an arm: the class that its gaps mostly are where they are half of the wall or
    more, else its device work.

    `None` for a profile without wall or classes of time.
    """
    if not profile.wall_s or "device" not in profile.times:
        return None
    if 1 - profile.times["device"] / profile.wall_s < _HALF:
        return _WORKED[device]
    gaps = {name: seconds for name, seconds in profile.times.items() if name != "device"}
    launch, host = gaps.get("launch", 0.0), gaps.get("host", 0.0)
    if device == "cuda" and launch + host >= sum(gaps.values()) / 2:
        return _HELD[device]["launch" if launch >= host else "host"]
    longest = max(gaps, key=gaps.__getitem__)
    return _HELD[device].get(longest, f"held by {longest}")


def explain_wall(
    baseline: ArmProfile, arm: ArmProfile, device: Device, measured: IntervalEstimate | None = None
) -> str | None:
    """Why the wall of `arm` is what it is beside that of `baseline`, of the same phase; `None`
    where either lacks times.

    `time in operators fell by 34 % of the wall (31 to 37), Python and dispatch did not change
    measurably (-3 % to +8 %), …, so wall time fell 31 % (28 to 34)`: shares are of the baseline's
    wall, and only what an interval shows is claimed. `measured` is the speed-up of a timing job,
    which is the answer: the profile explains it, and its own walls are stated as what they are.
    Where they contradict the timing, this is stated instead of an explanation.
    """
    held = bound(arm, device)
    if held is None or bound(baseline, device) is None or not baseline.wall_s or not arm.wall_s:
        return None
    if arm.speedup is None or arm.speedup.low is None:
        walls = f"wall {1e3 * baseline.wall_s:.3g} → {1e3 * arm.wall_s:.3g} ms"
        rounds = "without rounds" if arm.speedup is None else "in too few rounds for their noise"
        return (
            f"profiled {rounds}, so that no difference has an interval and nothing is concluded"
            f" ({walls})"
        )
    if measured is not None and not explains(arm, measured):
        return (
            "no explanation, since its walls contradict the timing: a speed-up of"
            f" {_ratio(arm.speedup)} while it was profiled, of {_ratio(measured)} when it was"
            " timed; profile again when the machine is quiet"
        )
    parts = [*_changes(arm, device), *_calls(baseline.launches, arm.launches, device)]
    share = arm.times["device"] / arm.wall_s
    holds = share if held == _WORKED[device] else 1 - share
    change, working = _sign(_inverse(measured or arm.speedup)), arm.changes.get("device")
    if held != _WORKED[device] or (change and working is not None and _sign(working) == change):
        # that it mostly works is a reason where its work changed as its wall did, and of nothing
        # else
        parts.append(f"{_subject(arm)} is {held} ({100 * holds:.0f} % of its wall)")
    if measured is None:
        return ", ".join([*parts, _wall_clause(arm)])
    walls = f"{1e3 * baseline.wall_s:.3g} → {1e3 * arm.wall_s:.3g} ms"
    ratio = f"a speed-up of {_ratio(arm.speedup)}, compatible with the timing"
    why = _timed_clause(arm, measured)
    return (
        f"while it was profiled ({walls} in other rounds, at another time, {ratio}):"
        f" {', '.join(parts)}{why}"
    )


def explains(arm: ArmProfile, measured: IntervalEstimate | None) -> bool:
    """Whether a profile has differences with intervals, and walls that do not contradict the
    timing, if there is one.
    """
    known = arm.speedup is not None and arm.speedup.low is not None
    return known and not (
        arm.speedup is not None and measured is not None and contradict(arm.speedup, measured)
    )


def contradict(one: IntervalEstimate, other: IntervalEstimate) -> bool:
    """Whether the intervals of two figures have nothing in common; figures without one contradict
    nothing.
    """
    ends = [(each.low, each.high) for each in (one, other)]
    (low, high), (other_low, other_high) = ends
    if low is None or high is None or other_low is None or other_high is None:
        return False
    return high < other_low or other_high < low


def explain_capture(eager_s: float, captured_s: float, ratio: IntervalEstimate | None) -> str:
    """What capturing the same arm as a CUDA graph shows: the difference is launch overhead,
    measured and not estimated.

    `ratio` is the eager wall over the captured one.
    """
    text = (
        f"captured as a CUDA graph it takes {1e3 * captured_s:.3g} ms instead of"
        f" {1e3 * eager_s:.3g} ms"
    )
    if ratio is None or ratio.low is None or ratio.high is None:
        return f"{text}, a difference without an interval, from which nothing follows"
    low, high = (100 * (1 - 1 / end) for end in (ratio.low, ratio.high))
    if low <= 0:
        return (
            f"{text}: launch overhead is not measurable ({low:.0f} % to {high:.0f} % of the wall)"
        )
    return (
        f"{text}: {100 * (1 - 1 / ratio.value):.0f} % of the wall ({low:.0f} to {high:.0f}) is"
        " launch overhead, as measured"
    )


def _changes(arm: ArmProfile, device: Device) -> Iterator[str]:
    """What each class takes more or less, those that changed measurably first; classes that never
    occur are left out.
    """
    still = IntervalEstimate(value=0, low=0, high=0)
    changes = {
        _TIME.get(cause, "") + cause: arm.changes[part]
        for part, cause in _PARTS[device].items()
        if arm.changes.get(part, still) != still
    }
    for name, found in changes.items():
        if sign := _sign(found):
            yield (
                f"{name} {'rose' if sign > 0 else 'fell'} by {_amount(found)} of the wall"
                f" {_range(found)}"
            )
    for name, found in changes.items():
        if found.low is None or found.high is None:
            yield f"{name} has no interval: too few rounds for its noise"
        elif not _sign(found):
            yield (
                f"{name} {_unclear(found.low, found.high)} ({_signed(found.low)} to"
                f" {_signed(found.high)} of the wall)"
            )


def _wall_clause(arm: ArmProfile) -> str:
    """How the wall changed, and whether a class that changed measurably the same way explains
    it.
    """
    wall = arm.speedup and _inverse(arm.speedup)
    if wall is None or wall.low is None or wall.high is None:
        return "and wall time has no interval"
    sign = _sign(wall)
    if not sign:
        interval = f"{_signed(wall.low)} to {_signed(wall.high)}"
        return f"and wall time {_unclear(wall.low, wall.high)} ({interval})"
    link = "so" if any(_sign(found) == sign for found in arm.changes.values()) else "and"
    alone = "" if link == "so" else ", which no class of time alone shows"
    return (
        f"{link} wall time {'rose' if sign > 0 else 'fell'} {_amount(wall)} {_range(wall)}{alone}"
    )


def _timed_clause(arm: ArmProfile, measured: IntervalEstimate) -> str:
    """Whether a class that changed measurably the same way explains what the timing shows."""
    sign = _sign(_inverse(measured))
    if not sign:
        return ""
    word = "slower" if sign > 0 else "faster"
    if any(_sign(found) == sign for found in arm.changes.values()):
        return f", so that it is {word}"
    return f"; no class of time alone shows why it is {word}"


def _inverse(found: IntervalEstimate) -> IntervalEstimate:
    """The change of the time by a speed-up."""
    ends = [None if end is None else 1 / end - 1 for end in (found.high, found.low)]
    return IntervalEstimate(value=1 / found.value - 1, low=ends[0], high=ends[1])


def _unclear(low: float, high: float) -> str:
    """What an interval that includes no change shows: that there is little of it, or nothing."""
    return "did not change measurably" if high - low <= _WIDE else "was too noisy to compare"


def _sign(found: IntervalEstimate) -> int:
    """1 or -1 where the interval excludes 0, else 0."""
    if found.low is None or found.high is None:
        return 0
    return int(found.low > 0) - int(found.high < 0)


def _amount(found: IntervalEstimate) -> str:
    return f"{_percent(abs(found.value), abs(found.value))} %"


def _range(found: IntervalEstimate) -> str:
    """The interval of a change that excludes 0, without its sign."""
    ends = sorted(abs(end) for end in (found.low, found.high) if end is not None)
    return f"({_percent(ends[0], ends[1])} to {_percent(ends[1], ends[1])})"


def _signed(share: float) -> str:
    return f"{'-' if share < 0 else '+'}{_percent(abs(share), abs(share))} %"


def _percent(share: float, beside: float) -> str:
    """Per cent, with a decimal where the number that it stands beside is below 10 %."""
    return f"{100 * share:.1f}" if beside < 0.095 else f"{100 * share:.0f}"


def _ratio(found: IntervalEstimate) -> str:
    return with_interval(found.value, found.low, found.high, form=".2f")


def _subject(profile: ArmProfile) -> str:
    return {"forward": "the forward", "prefill": "the prefill", "decode": "a decode step"}[
        profile.phase
    ]


def _calls(before: float, after: float, device: Device) -> list[str]:
    number = round(after - before)
    if not number:
        return []
    name = _CALL[device][abs(number) > 1]
    was = "was" if abs(number) == 1 else "were"
    return [f"{abs(number)} {name} {was} {'added' if number > 0 else 'removed'}"]


MAX_OPERATORS = 4
"""Operators that one part of a sentence names."""
RATE_TOLERANCE = 0.05
"""Rates that differ by less are not called different: totals of a profile have no interval."""


def explain_operators(reasons: Sequence[OperatorReason], size: str = "this size") -> str:
    """What the operators of a profiled arm take beside the baseline's, as a sentence without its
    end; empty if nothing stands out.
    """
    parts = "; ".join(operator_words(reason, size) for reason in reasons)
    return parts and f"by operator (totals of the profiled rounds, without intervals): {parts}"


def operator_words(reason: OperatorReason, size: str) -> str:
    """One reason, at a size in words.

    `addmm moves 23.4 MB instead of 24.6 MB with 52 % of its MACs: at 16 tokens weights are read,
    not multiplied`; `added were baddbmm 0.15 ms …, together 0.22 ms`.
    """
    named, more = reason.pairs[:MAX_OPERATORS], len(reason.pairs) - MAX_OPERATORS
    rest = f" and {more} more" if more > 0 else ""
    if reason.kind == "weights":
        moved = ", ".join(map(_bytes_words, named))
        return f"{moved}{rest}: at {size} weights are read, not multiplied"
    if reason.kind == "products":
        listed = ", ".join(map(_product, named))
        return f"matrix products save {_saved(reason.pairs)}: {listed}{rest}"
    if reason.kind == "added":
        listed = ", ".join(f"{pair.short_name} {pair.arm_ms:.2g} ms" for pair in named)
        return f"added were {listed}{rest}, together {reason.lost_ms:.2g} ms"
    longer = (
        f"{pair.short_name} {pair.arm_ms:.3g} instead of {pair.baseline_ms:.3g} ms"
        for pair in named
    )
    return f"longer than the baseline's became {', '.join(longer)}{rest}"


def _saved(products: Sequence[OperatorPair]) -> str:
    """Whether these operators save as large a share of their time as of their MACs."""
    time = sum(pair.arm_ms for pair in products) / sum(pair.baseline_ms for pair in products)
    work = sum(pair.arm_gmacs or 0.0 for pair in products) / sum(
        pair.baseline_gmacs or 0.0 for pair in products
    )
    if abs(time - work) <= RATE_TOLERANCE:
        return "what their MACs do"
    return f"{'less' if time > work else 'more'} time than MACs"


def _product(pair: OperatorPair) -> str:
    share = 100 * (pair.work_share or 0.0)
    times = f"takes {pair.arm_ms:.3g} of {pair.baseline_ms:.3g} ms"
    return f"{pair.short_name} {times} with {share:.0f} % of its MACs"


def _bytes_words(pair: OperatorPair) -> str:
    own, baseline = (each or 0.0 for each in (pair.arm_bytes, pair.baseline_bytes))
    moved = f"moves {own / 1e6:.3g} MB instead of {baseline / 1e6:.3g} MB"
    return f"{pair.short_name} {moved} with {100 * (pair.work_share or 0.0):.0f} % of its MACs"


def explain_rates(baseline: float | None, arm: float | None, *, less_work: bool) -> str:
    """Achieved GFLOP/s of both sides while the device works, as a sentence without its end; empty
    where one is not known.
    """
    if not baseline or not arm:
        return ""
    text = (
        f"while it works, the machine reaches {arm:.3g} GFLOP/s, with the baseline {baseline:.3g}"
    )
    if abs(arm / baseline - 1) < RATE_TOLERANCE:
        return text
    less = "less work uses the machine " if less_work else "it uses the machine "
    return f"{text}: {less}{'less well' if arm < baseline else 'better'}"


_STEPS: Mapping[StepKind, tuple[str, str]] = {
    "baseline": ("baseline", ""),
    "promise": ("promised by MACs", ""),
    "ceiling": ("fewer tokens save less than MACs", "fewer tokens alone save less"),
    "class": ("", "lost to {}"),
    "fixed kept": ("fixed cost that stays (model)", "lost to the fixed cost"),
    "fixed added": ("fixed cost added (model)", "lost to added fixed cost"),
    "work": ("cost of work (model)", "lost to dearer work"),
    "rest": ("not explained", "not explained"),
    "arm": ("measured", ""),
}
"""Of each step its label, and what it takes of a promise."""


def step_label(step: TimeStep, device: Device) -> str:
    """A step of a waterfall, beside its bar."""
    if step.time_class is None:
        return _STEPS[step.kind][0]
    beyond = " beyond MACs" if step.time_class == "device" else ""
    return f"{_class_words(step, device)}{beyond} (profile)"


def _class_words(step: TimeStep, device: Device) -> str:
    return "" if step.time_class is None else _PARTS[device][step.time_class]


def waterfall_headline(arm: str, steps: Sequence[TimeStep], device: Device) -> str:
    """Both times, the promise, and what most of the rest of it is lost to, in about twelve words:
    `topk keep_rate=0.5: 3.85 → 2.51 ms, promised 2.2; lost to operators`.
    """
    first, *between, last = steps
    text = f"{arm}: {first.end:.3g} → {last.end:.3g} ms"
    promise = next((step for step in between if step.kind == "promise"), None)
    text += f", promised {promise.end:.3g}" if promise else ""
    lost = max((step for step in between if step.kind != "promise"), key=lambda step: step.ms)
    if lost.ms < _NOTABLE * first.end:
        return text
    return f"{text}; {_STEPS[lost.kind][1].format(_class_words(lost, device))}"
