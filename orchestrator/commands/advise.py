"""Command `advise`: which arm to use for so many tokens and such a batch, or the unmodified model, and the rows that show it."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import typer

from orchestrator.advice import ConditionArms, Evidence, RefusedError, SizeArms, at_batch, condition_arms
from orchestrator.commands.confirm import Confirmation, confirm
from orchestrator.commands.run import ANSWERED, UNANSWERED
from orchestrator.report.text_table import table_lines
from store.engine import connect_readonly
from sweeps.advice import UNMODIFIED, QualityCost, RankedArm, Ranking, pareto
from sweeps.errors import UserError
from sweeps.job import Device
from sweeps.metrics import METRICS, find_metric
from sweeps.number_format import count, format_number, with_interval

LABEL = "the unmodified model"


class Advised(NamedTuple):
    """The ranking of one condition."""

    arms: SizeArms
    ranking: Ranking
    pareto: tuple[str, ...] | None
    """Keys of the Pareto set, where it was requested."""
    confirmed: Confirmation | None = None


class AdviceOptions(NamedTuple):
    """What the command line requests."""

    model: str
    tokens: int
    batch: int
    device: Device | None = None
    runtime: str | None = None
    data: str | None = None
    max_drop: float | None = None
    pareto: bool = False
    confirm: bool = False


def advise_model(db: str | None, options: AdviceOptions, form: Literal["table", "json"]) -> int:
    """Print the advice, as text or as JSON. Returns the exit code: 1 where what was measured does not answer the question."""
    engine = connect_readonly(db)
    try:
        conditions = condition_arms(engine, model=options.model, device=options.device, runtime=options.runtime, data=options.data)
        found = [_advised(each.at(options.tokens), options) for each in at_batch(conditions, options.batch)]
        answered = [each for each in found if each.arms.found]
        refusal = "" if answered else _refusal([each.arms for each in found], options)
    except RefusedError as error:
        refusal = str(error)
    finally:
        engine.dispose()
    if refusal:
        typer.echo(f"breakeven: {refusal}", err=True)
        return UNANSWERED
    if options.confirm:
        answered = [_confirmed(answered, db)]
    if form == "json":
        typer.echo(json.dumps([_as_dict(each) for each in answered], indent=1, allow_nan=False))
    else:
        typer.echo("\n\n".join("\n".join(_lines(each, options)) for each in answered))
    return ANSWERED


def _advised(arms: SizeArms, options: AdviceOptions) -> Advised:
    ranking = arms.ranked(options.max_drop)
    return Advised(arms, ranking, pareto([each.arm for each in arms.found]) if options.pareto else None)


def _refusal(found: Sequence[SizeArms], options: AdviceOptions) -> str:
    """Why none of the conditions has an arm at this size."""
    sizes = sorted({size for each in found for size in each.of.sizes})
    reasons = sorted({f"{label}: {reason}" for each in found for label, reason in each.left_out})[:6]
    nearest = sorted(sizes, key=lambda size: abs(size - options.tokens))[:2]
    return (
        f"no arm of {options.model} is known at {options.tokens} tokens and batch {options.batch}, and nothing is extrapolated; "
        f"measured at {', '.join(map(str, sizes))} tokens, nearest {' and '.join(map(str, sorted(nearest)))} ({'; '.join(reasons)})"
    )


def _confirmed(answered: Sequence[Advised], db: str | None) -> Advised:
    """The only advice with its winner measured once more."""
    if len(answered) > 1:
        titles = "; ".join(each.arms.of.title() for each in answered)
        raise UserError(f"--confirm measures one condition, and {len(answered)} match: {titles}; choose by --device or --runtime")
    (only,) = answered
    winner = only.arms.by_key.get(only.ranking.winner.key)
    if winner is None:
        typer.echo("nothing to confirm: the unmodified model is advised", err=True)
        return only
    return only._replace(confirmed=confirm(winner, only.arms.tokens, db))


def _lines(advised: Advised, options: AdviceOptions) -> Iterator[str]:
    arms, ranking = advised.arms, advised.ranking
    yield _sentence(advised)
    yield f"For {arms.of.title(arms.tokens)}."
    winner = arms.by_key.get(ranking.winner.key)
    if winner is not None:
        yield _quality_line(winner, arms.of)
    if advised.confirmed is not None:
        yield advised.confirmed.text(ranking.winner)
    yield ""
    yield from table_lines(_headings(advised), [_row(place, each, advised) for place, each in enumerate(ranking.arms, 1)])
    yield ""
    yield from _notes(advised, options)


def _sentence(advised: Advised) -> str:
    """The answer."""
    arms, ranking = advised.arms, advised.ranking
    best, label = ranking.winner, METRICS[arms.of.metric].label
    if best.key == UNMODIFIED:
        reason = "no arm is clearly faster" if not any(each.verdict == "faster" for each in ranking.arms) else ""
        reason = reason or "what is faster cannot be advised (column note)"
        return f"Use {LABEL}: {reason} among {count(ranking.compared, 'arm')} measured."
    among = f", the best of {count(ranking.compared, 'arm')} by the low end of its interval" if ranking.compared > 1 else ""
    between = ", interpolated between measured sizes" if arms.by_key[best.key].interpolated else ""
    return f"Use {arms.by_key[best.key].label}: {_numbers(best)} as fast as {LABEL} in {label}{between}{among}."


def _numbers(arm: RankedArm) -> str:
    return "1 (itself)" if arm.key == UNMODIFIED else with_interval(arm.value, arm.low, arm.high, ".3f").replace(" ", "x ", 1)


def _quality_line(winner: Evidence, of: ConditionArms) -> str:
    if winner.arm.costs:
        return "Quality: " + "; ".join(map(_cost_text, winner.arm.costs)) + ". Of other data nothing is known."
    if of.condition.weights == "random":
        return "Quality: not known; the weights are random, so that the time is real and quality has no meaning."
    return "Quality: not known; it was not measured for this model with these weights, and that of another one is not carried over."


def _cost_text(cost: QualityCost) -> str:
    spec = find_metric(cost.metric)
    label, unit = (cost.metric, cost.unit) if spec is None else (spec.label, cost.unit if cost.unit != spec.label else "")
    numbers = with_interval(cost.worse, cost.low, cost.high, "+.3g")
    return f"{label} worse by {numbers} {unit}".rstrip() + f" on {cost.data} ({cost.items} items)"


def _headings(advised: Advised) -> list[str]:
    more = ["Pareto"] if advised.pareto is not None else []
    amounts = [METRICS[name].label + ", times less" for name in _amounts(advised.arms)]
    interval = f"speed-up [{100 * (1 - advised.ranking.alpha):g} % together]"
    return ["rank", "arm", "runtime", interval, "pairs", "quality", *amounts, *more, "note", "comparison", "measured at"]


def _amounts(arms: SizeArms) -> list[str]:
    return sorted({name for each in arms.found for name in each.arm.amounts})


def _row(place: int, ranked: RankedArm, advised: Advised) -> list[str]:
    amounts = _amounts(advised.arms)
    more = [] if advised.pareto is None else ["yes" if ranked.key in advised.pareto else ""]
    found = advised.arms.by_key.get(ranked.key)
    if found is None:
        own = advised.arms.of.condition.runtime
        return [str(place), LABEL, own, "1", "", "", *("1" for _ in amounts), *more, "", "", ""]
    notes = [ranked.obstacle, "" if ranked.advised or ranked.obstacle else f"{_verdict(ranked)}"]
    notes += ["interpolated between " + " and ".join(f"{row.tokens:.0f}" for row in found.rows)] if found.interpolated else []
    quality = "; ".join(f"{with_interval(cost.worse, cost.low, cost.high, '+.3g')} on {cost.data}" for cost in found.arm.costs)
    figures = [format_number(found.arm.amounts.get(name), ".2f") for name in amounts]
    rows = ", ".join(row.comparison_id for row in found.rows)
    measured = max(row.measured_at for row in found.rows)
    pairs = str(found.arm.speedup.pairs)
    numbers = _numbers(ranked)
    return [
        str(place),
        found.label,
        found.runtime,
        numbers,
        pairs,
        quality,
        *figures,
        *more,
        ", ".join(filter(None, notes)),
        rows,
        measured,
    ]


def _verdict(ranked: RankedArm) -> str:
    words = {"same": "the same within the floor", "slower": "slower", "unclear": "not clearly different"}
    return words.get(ranked.verdict, ranked.verdict)


def _notes(advised: Advised, options: AdviceOptions) -> Iterator[str]:
    arms, ranking = advised.arms, advised.ranking
    if ranking.compared > 1:
        together = f"{100 * (1 - ranking.alpha):g} %"
        yield (
            f"Chosen among {count(ranking.compared, 'arm')}: the intervals hold for all of them together with {together} "
            f"({100 * (1 - ranking.each_alpha):.4g} % each), whichever comes first. The estimate of the first is still probably a "
            "little too high, because it was chosen for it: --confirm measures it on fresh pairs."
        )
    if options.max_drop is not None:
        limit = f"{options.max_drop:g} by the upper end of its 95 % interval, which holds for one arm alone"
        yield f"Quality: an arm may lose at most {limit}."
    if advised.pareto is not None:
        yield "Pareto: no other arm is at least as good in time, quality, memory and energy, as measured, and clearly better once."
    for label, reason in arms.left_out:
        yield f"Not ranked: {label}: {reason}"
    yield "Rows of evidence: in the view speedup, by comparison_id, environment and host."


def _as_dict(advised: Advised) -> dict[str, Any]:
    """The advice as plain data."""
    arms, ranking = advised.arms, advised.ranking
    chosen = None if advised.pareto is None else sorted(advised.pareto)
    ranked = []
    for each in ranking.arms:
        found = arms.by_key.get(each.key)
        own: dict[str, Any] = {
            "arm": UNMODIFIED,
            "speedup": each.value,
            "low": each.low,
            "high": each.high,
            "verdict": each.verdict,
        }
        own |= {"obstacle": each.obstacle or None, "pareto": None if chosen is None else each.key in chosen}
        if found is not None:
            last = found.rows[-1]
            own |= {"arm": found.label, "method": last.method, "params": json.loads(last.params or "{}"), "runtime": found.runtime}
            own |= {"interpolated": found.interpolated, "pairs": found.arm.speedup.pairs}
            own |= {"quality": [cost._asdict() for cost in found.arm.costs], "amounts": dict(found.arm.amounts)}
            evidence = ("comparison_id", "environment", "host", "measured_at", "metric", "tokens", "speedup")
            own |= {"evidence": [{name: getattr(row, name) for name in evidence} for row in found.rows]}
        ranked.append(own)
    return {
        "condition": arms.of.condition.model_dump(mode="json", exclude={"image_size", "prompt_tokens"}),
        "environment": arms.of.rows["environment"].iloc[0],
        "host": arms.of.rows["host"].iloc[0],
        "tokens": arms.tokens,
        "answer": _sentence(advised),
        "compared": ranking.compared,
        "alpha_together": ranking.alpha,
        "alpha_each": ranking.each_alpha,
        "arms": ranked,
        "not_ranked": [{"arm": label, "reason": reason} for label, reason in arms.left_out],
        "confirmed": None if advised.confirmed is None else advised.confirmed.as_dict(),
    }
