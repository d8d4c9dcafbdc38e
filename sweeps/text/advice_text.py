"""Advice in words: the ranked arms of one condition as a sentence, a table, notes and plain data,
for terminal and page alike.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from statistics import geometric_mean
from typing import Any, NamedTuple

from sweeps.analysis.advice import (
    FRONT_ALPHA,
    UNMODIFIED,
    Amount,
    MeasuredArm,
    Obstacle,
    QualityCost,
    RankedArm,
    Ranking,
    rank,
)
from sweeps.analysis.policy import rounded_down
from sweeps.analysis.rows import AdviceRow, ClaimRow
from sweeps.model.condition import Condition
from sweeps.model.job import Comparison
from sweeps.model.metrics import METRICS, find_metric
from sweeps.number_format import count, format_number, with_interval
from sweeps.text.curves import describe_break_even, pays_at, token_unit
from sweeps.text.evidence import NoiseFinding, noise_in_words

UNMODIFIED_LABEL = "the unmodified model"
EVIDENCE = (
    "comparison_id",
    "environment",
    "host",
    "measured_at",
    "metric",
    "tokens",
    "speedup",
)
"""Columns of the rows behind an arm that plain data have."""


class LeftOut(NamedTuple):
    """An arm that is not ranked at a size."""

    label: str
    reason: str
    beyond: bool = False
    """Whether the size is none between those at which it was measured."""


@dataclass(frozen=True)
class Evidence:
    """An arm that is ranked: its label and the rows of the view `speedup` that it rests on."""

    label: str
    runtime: str
    rows: tuple[AdviceRow, ...]
    """One row, or those of the two neighbours between which it is interpolated."""
    arm: MeasuredArm
    amounts: Mapping[str, Amount] = field(default_factory=dict)
    """By metric; none of an arm that is interpolated."""

    @property
    def interpolated(self) -> bool:
        return len(self.rows) > 1

    @property
    def ms(self) -> tuple[float, float] | None:
        """Of the unmodified model and of the arm; `None` between two sizes, where no time was
        measured.
        """
        return None if self.interpolated else (self.rows[0].baseline_ms, self.rows[0].arm_ms)

    @cached_property
    def comparison(self) -> Comparison:
        """The question of its last row."""
        return Comparison.model_validate_json(self.rows[-1].payload)


class RuntimeTime(NamedTuple):
    """What comes first under a runtime; they are ordered by time."""

    ms: float
    """Its median time in a job of its own; of two neighbouring sizes the geometric mean."""
    runtime: str
    label: str


@dataclass(frozen=True)
class Advice:
    """The arms of one condition at one size, ranked."""

    parts: tuple[str, ...]
    """The condition in words, one by one, the size first."""
    tokens: int
    condition: Condition
    """That of one of its questions: they share all but the size."""
    environment: str
    host: str
    metric: str
    found: tuple[Evidence, ...]
    left_out: tuple[LeftOut, ...]
    """Label of each arm that is not ranked, and why."""
    ranking: Ranking
    max_drop: float | None = None
    pareto: tuple[str, ...] | None = None
    """Keys of the Pareto set, where it was requested."""
    break_evens: Mapping[str, tuple[ClaimRow, ...]] = field(default_factory=dict)
    """By key: what the curve of an arm claims over all sizes, as rows of the view `break_even`."""
    checks: tuple[NoiseFinding, ...] | None = None
    """Of the evidence of the first arm; `None` where they were not worked out, or it was not
    measured at this size."""
    runtimes: tuple[RuntimeTime, ...] = ()
    """Those of the same environment and condition, the least time first."""
    environments: tuple[str, ...] = ()
    """Those of the host in which the same condition was measured, the newest first."""

    @property
    def title(self) -> str:
        return ", ".join(self.parts)

    @cached_property
    def by_key(self) -> dict[str, Evidence]:
        return {each.arm.key: each for each in self.found}

    @property
    def winner(self) -> Evidence | None:
        """`None` where the unmodified model comes first."""
        return self.by_key.get(self.ranking.winner.key)

    @property
    def leads(self) -> bool:
        """Whether it is the first of those that `ranked_by_runtime` puts together."""
        first = self.environments[:1], self.runtimes[:1]
        return not self.runtimes or first == ((self.environment,), (self.time,))

    @property
    def time(self) -> RuntimeTime:
        """The time of what comes first."""
        if (winner := self.winner) is not None:
            ms = geometric_mean(row.arm_ms for row in winner.rows)
            return RuntimeTime(ms, winner.runtime, winner.label)
        ms = geometric_mean(row.baseline_ms for each in self.found for row in each.rows)
        return RuntimeTime(ms, self.condition.runtime, UNMODIFIED_LABEL)

    @property
    def measured_at(self) -> str:
        """When its newest row was measured."""
        return max(row.measured_at for each in self.found for row in each.rows)


def ranked_by_runtime(answers: Sequence[Advice]) -> list[Advice]:
    """The answers to one request in the order in which they count: those of one condition and host
    together, of its newest environment first, and there by the time of what comes first under each
    runtime. The intervals of all runtimes of an environment hold together.
    """
    groups: dict[object, list[Advice]] = {}
    for advice in sorted(answers, key=lambda advice: advice.measured_at, reverse=True):
        condition = advice.condition.without_size().model_copy(update={"runtime": "eager"})
        groups.setdefault((advice.host, condition), []).append(advice)
    ordered: list[Advice] = []
    for group in groups.values():
        environments = tuple(dict.fromkeys(advice.environment for advice in group))
        for environment in environments:
            rivals = [advice for advice in group if advice.environment == environment]
            number = sum(len(advice.found) for advice in rivals)
            ranked = [
                replace(
                    advice,
                    ranking=rank(
                        [each.arm for each in advice.found],
                        max_drop=advice.max_drop,
                        compared=number,
                    ),
                    environments=environments,
                )
                for advice in rivals
            ]
            ranked.sort(key=lambda advice: advice.time)
            times = tuple(advice.time for advice in ranked)
            ordered += [replace(advice, runtimes=times) for advice in ranked]
    return ordered


def advice_headline(advice: Advice) -> str:
    """The answer in about twelve words: `Use topk keep_rate=0.5: at least 1.33x as fast`."""
    ranking, winner = advice.ranking, advice.winner
    use = "Use" if advice.leads else "Otherwise use"
    under = f" with {advice.time.runtime}" if advice.runtimes[1:] else ""
    if winner is not None:
        least = rounded_down(ranking.winner.low)
        return f"{use} {winner.label}{under}: at least {least}x as fast"
    faster = any(each.verdict == "faster" for each in ranking.arms)
    reason = (
        "what is faster cannot be advised (column note)" if faster else "no arm is clearly faster"
    )
    return f"{use} {UNMODIFIED_LABEL}{under}: {reason}"


def advice_sentence(advice: Advice) -> str:
    """The answer."""
    ranking, winner, first = advice.ranking, advice.winner, advice_headline(advice)
    if winner is None:
        return f"{first} among {_among(advice)}."
    compared = count(ranking.compared, "arm")
    among = f", the best of {compared} by the low end of intervals that hold together"
    if len(advice.runtimes) > 1:
        among = (
            f", the best under this runtime by the low end of intervals that hold for {compared}"
        )
    among = among if ranking.compared > 1 else ""
    between = (
        f", interpolated between measured sizes ({_neighbours([winner])})"
        if winner.interpolated
        else ""
    )
    label = METRICS[advice.metric].label
    return f"{first} as {UNMODIFIED_LABEL} in {label}{between}{among}."


def runtime_sentence(advice: Advice) -> str:
    """How the runtimes of a condition are ranked; empty for one."""
    if not advice.runtimes[1:]:
        return ""
    times = ", ".join(f"{each.runtime} {each.ms:.4g} ms ({each.label})" for each in advice.runtimes)
    return (
        f"Runtimes by the time of what comes first: {times}. These are medians of separate jobs at"
        " the measured sizes, without an interval; a speed-up is against the unmodified model under"
        " the same runtime."
    )


def environment_sentence(advice: Advice, environments: Mapping[str, Mapping[str, Any]]) -> str:
    """Which of several environments of a host the answer rests on, with the versions that differ;
    `environments` have `facts` by id.
    """
    if not advice.environments[1:]:
        return ""
    facts = [environments[name]["facts"] for name in advice.environments]
    place = advice.environments.index(advice.environment)
    differing = ", ".join(
        f"{name} {value}"
        for name, value in facts[place].items()
        if any(each.get(name) != value for each in facts)
    )
    which = "an older one" if place else "the newest"
    return f"Measured in {which} of {len(facts)} environments of host {advice.host}: {differing}."


def _among(advice: Advice) -> str:
    """How many arms were compared, and whether they were measured at this size."""
    arms = count(max(1, len(advice.found)), "arm")
    between = [each for each in advice.found if each.interpolated]
    if not between:
        return f"{arms} measured"
    which = "" if len(between) == len(advice.found) else f", {len(between)} of them"
    return f"{arms}{which} interpolated between measured sizes ({_neighbours(between)})"


def _neighbours(found: Iterable[Evidence]) -> str:
    """`16 and 36 tokens`."""
    pairs = dict.fromkeys(tuple(f"{row.tokens}" for row in each.rows) for each in found)
    return f"{', '.join(' and '.join(pair) for pair in sorted(pairs, key=len))} tokens"


def _level(ranking: Ranking) -> str:
    """Of each interval of a ranking."""
    return f"{100 * (1 - ranking.each_alpha):.4g} %"


def claim_sentence(advice: Advice) -> str:
    """Why the unmodified model comes first where the break-even of an arm claims that it pays at
    this size; else empty.
    """
    if advice.winner is not None:
        return ""
    for ranked in advice.ranking.arms:
        found, rows = advice.by_key.get(ranked.key), advice.break_evens.get(ranked.key, ())
        if (
            found is None
            or ranked.obstacle
            or ranked.verdict == "faster"
            or not pays_at(rows, advice.tokens)
        ):
            continue
        unit, number = token_unit(found.rows[-1]), advice.ranking.compared
        together = f", with the error shared by {count(number, 'arm')}," if number > 1 else ""
        return (
            f"Over all sizes, {found.label} {describe_break_even(rows, unit, brief=True)}. At"
            f" {advice.tokens} {unit} alone{together} this is not shown:"
            f" {_numbers(ranked, advice.ranking)} ({_level(advice.ranking)} interval)."
        )
    return ""


def doubt_sentence(advice: Advice, again: str) -> str:
    """What the checks of the first arm's evidence found; `again` is the command that measures it
    again. Empty without checks.
    """
    if advice.checks is None:
        return ""
    doubts = [each.statement for each in advice.checks if each.noise]
    words = noise_in_words(advice.checks)
    return " ".join(
        [
            f"Its evidence: {words[0].lower()}{words[1:]}",
            *doubts,
            *([f"On fresh pairs: {again}"] if doubts else []),
        ]
    )


def quality_sentence(advice: Advice) -> str:
    """What the first arm costs in quality, where that is known; empty where the unmodified
    model comes first.
    """
    if advice.winner is None:
        return ""
    if advice.winner.arm.costs:
        return (
            "Quality: "
            + "; ".join(map(_cost_text, advice.winner.arm.costs))
            + ". Of other data nothing is known."
        )
    if advice.condition.weights == "random" and advice.condition.x_axis is None:
        return (
            "Quality: not known; the weights are random, so that the time is real and quality has"
            " no meaning."
        )
    return (
        "Quality: not known; it was not measured for this model with these weights, and that of"
        " another one is not carried over."
    )


def advice_table(advice: Advice) -> tuple[list[str], list[list[str]]]:
    """Headings and a row of cells for each arm in its place, the unmodified model among them."""
    amounts = _amounts(advice)
    more = ["Pareto"] if advice.pareto is not None else []
    interval = (
        f"speed-up [{_level(advice.ranking)}{' each' if advice.ranking.compared > 1 else ''}]"
    )
    times = f"{METRICS[advice.metric].label}, ms (unmodified)"
    read = [f"{METRICS[name].label}, times less" for name in amounts]
    headings = [
        "rank",
        "arm",
        "runtime",
        interval,
        times,
        "pairs",
        "quality",
        *read,
        *more,
        "note",
        "comparison",
        "measured at",
    ]
    return headings, [
        _row(place, each, advice, amounts) for place, each in enumerate(advice.ranking.arms, 1)
    ]


def advice_notes(advice: Advice) -> Iterator[str]:
    """What a reader must know beside the table: how it was chosen, what it excludes, what is not
    ranked and why.
    """
    ranking = advice.ranking
    if ranking.compared > 1:
        chosen = (
            " The estimate of what was chosen is probably too high and is not shown: --confirm"
            " measures it on fresh pairs."
        )
        yield (
            f"Chosen among {count(ranking.compared, 'arm')}: the intervals hold for all of them"
            f" together with {100 * (1 - ranking.alpha):g} % ({_level(ranking)} each), whichever"
            " comes first." + (chosen if advice.winner is not None else "")
        )
    if advice.max_drop is not None:
        limit = (
            f"{advice.max_drop:g} by the upper end of its interval, whose 95 % hold for the arms"
            " together"
        )
        yield f"Quality: an arm may lose at most {limit}."
    if advice.pareto is not None:
        yield (
            "Pareto: no other arm is at least as good in time, quality, memory and energy, as"
            " measured, and clearly better once, by intervals that hold together with"
            f" {100 * (1 - FRONT_ALPHA):g} %."
        )
    for label, reason, _ in advice.left_out:
        yield f"Not ranked: {label}: {reason}"
    yield "Rows of evidence: in the view speedup, by comparison_id, environment and host."


def advice_dict(advice: Advice) -> dict[str, Any]:
    """The advice as plain data."""
    ranking, chosen = advice.ranking, advice.pareto
    return {
        "condition": advice.condition.without_size().model_dump(
            mode="json", exclude={"image_size", "prompt_tokens"}
        ),
        "environment": advice.environment,
        "host": advice.host,
        "tokens": advice.tokens,
        "metric": advice.metric,
        "answer": advice_sentence(advice),
        "claim": claim_sentence(advice) or None,
        "checks": (
            None
            if advice.checks is None
            else [
                {"check": each.check, "statement": each.statement, "doubt": each.noise}
                for each in advice.checks
            ]
        ),
        "runtimes": [each._asdict() for each in advice.runtimes],
        "environments": list(advice.environments),
        "compared": ranking.compared,
        "alpha_together": ranking.alpha,
        "alpha_each": ranking.each_alpha,
        "arms": [
            _ranked_dict(each, advice, None if chosen is None else each.key in chosen)
            for each in ranking.arms
        ],
        "not_ranked": [{"arm": label, "reason": reason} for label, reason, _ in advice.left_out],
    }


def obstacle_text(found: Obstacle | None) -> str:
    """Why an arm cannot be advised; empty where nothing stands against it."""
    if found is None:
        return ""
    if (cost := found.cost) is not None:
        if cost.high is None:
            return f"its quality on {cost.data} has no interval"
        lost = f"{cost.high:.3g} {cost.unit} on {cost.data}"
        return f"it may lose {lost}, more than {found.max_drop:g}"
    return {
        "no_effect": "it does nothing at this size",
        "not_for_use": f"{found.method} is a {found.purpose}, not for use",
    }.get(found.reason, "what it costs in quality was not measured")


def _ranked_dict(each: RankedArm, advice: Advice, pareto: bool | None) -> dict[str, Any]:
    found = advice.by_key.get(each.key)
    own: dict[str, Any] = {
        "arm": UNMODIFIED,
        "speedup": each.value,
        "low": each.low,
        "high": each.high,
        "verdict": each.verdict,
    }
    own |= {"obstacle": obstacle_text(each.obstacle) or None, "pareto": pareto}
    if found is not None:
        last = found.rows[-1]
        own |= {
            "arm": found.label,
            "method": last.method,
            "params": json.loads(last.params or "{}"),
            "runtime": found.runtime,
        }
        own |= {"interpolated": found.interpolated, "pairs": found.arm.speedup.pairs}
        own |= dict(zip(("baseline_ms", "arm_ms"), found.ms or (None, None), strict=True))
        own |= {
            "quality": [cost._asdict() for cost in found.arm.costs],
            "amounts": {name: amount.ratio for name, amount in found.amounts.items()},
        }
        shown = [asdict(row) for row in found.rows]
        own |= {"evidence": [{name: row[name] for name in EVIDENCE} for row in shown]}
    return own


def _row(place: int, ranked: RankedArm, advice: Advice, amounts: list[str]) -> list[str]:
    more = [] if advice.pareto is None else ["yes" if ranked.key in advice.pareto else ""]
    found = advice.by_key.get(ranked.key)
    if found is None:
        own = [str(place), UNMODIFIED_LABEL, advice.condition.runtime, "1", _unmodified_ms(advice)]
        return [*own, "", "", *("1" for _ in amounts), *more, "", "", ""]
    notes = [
        obstacle_text(ranked.obstacle),
        "" if ranked.advised or ranked.obstacle else _verdict(ranked),
    ]
    if found.interpolated:
        notes.append("interpolated between " + " and ".join(f"{row.tokens}" for row in found.rows))
    return [
        str(place),
        found.label,
        found.runtime,
        _numbers(ranked, advice.ranking),
        f"{found.ms[1]:.4g} ({found.ms[0]:.4g})" if found.ms else "-",
        str(found.arm.speedup.pairs),
        "; ".join(
            f"{with_interval(cost.worse, cost.low, cost.high, '+.3g')} on {cost.data}"
            for cost in found.arm.costs
        ),
        *(_amount_text(found.amounts.get(name)) for name in amounts),
        *more,
        ", ".join(filter(None, notes)),
        ", ".join(row.comparison_id for row in found.rows),
        max(row.measured_at for row in found.rows),
    ]


def _unmodified_ms(advice: Advice) -> str:
    """Its time, or the range of its times, each in the job of an arm."""
    known = sorted(each.ms[0] for each in advice.found if each.ms)
    ends = dict.fromkeys(f"{ms:.4g}" for ms in (*known[:1], *known[-1:]))
    return " to ".join(ends) or "-"


def _amounts(advice: Advice) -> list[str]:
    return sorted({name for each in advice.found for name in each.amounts})


def _amount_text(amount: Amount | None) -> str:
    """`1.25 (48 MiB)`: how many times less, and how much the arm needs."""
    if amount is None:
        return "-"
    return format_number(amount.ratio, ".2f") + (
        "" if amount.arm is None else f" ({amount.arm:.4g} {amount.unit})"
    )


def _numbers(arm: RankedArm, ranking: Ranking) -> str:
    """A speed-up with its interval; among several the interval alone: the estimate of the best is
    too high.
    """
    if ranking.compared > 1:
        return f"{arm.low:.3f} to {arm.high:.3f}x"
    return with_interval(arm.value, arm.low, arm.high, ".3f").replace(" ", "x ", 1)


def _cost_text(cost: QualityCost) -> str:
    spec = find_metric(cost.metric)
    label, unit = (
        (cost.metric, cost.unit)
        if spec is None
        else (spec.label, cost.unit if cost.unit != spec.label else "")
    )
    numbers = with_interval(cost.worse, cost.low, cost.high, "+.3g")
    return f"{label} worse by {numbers} {unit}".rstrip() + f" on {cost.data} ({cost.items} items)"


def _verdict(ranked: RankedArm) -> str:
    words = {
        "same": "the same within the floor",
        "slower": "slower",
        "unclear": "not clearly different",
    }
    return words.get(ranked.verdict, ranked.verdict)
