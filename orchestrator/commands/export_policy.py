"""Command `export-policy`: the measured answers of a store as a file that `sweeps.policy` applies at run time."""

import json
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import typer

from orchestrator.advice import ConditionArms, RefusedError, SizeArms, condition_arms
from orchestrator.commands.run import ANSWERED, UNANSWERED
from orchestrator.package_version import source_version
from store.engine import connect_readonly
from store.errors import StoreError
from store.row_mapping import timestamp
from store.timed_arms import facts_of
from sweeps.advice import UNMODIFIED, PolicySpan, Ranking, spans
from sweeps.job import Device
from sweeps.number_format import count
from sweeps.policy import POLICY_FORMAT, POLICY_VERSION, Policy
from sweeps.stats.pooling import ALPHA


def write_policy(
    out: Path,
    *,
    db: str | None,
    model: str | None,
    device: Device | None,
    runtime: str | None,
    data: str | None,
    max_drop: float | None,
    now: float,
) -> int:
    """Write the policy of what was measured. Returns the exit code: 1 where nothing was. Raises `StoreError` for a wrong path."""
    engine = connect_readonly(db)
    try:
        conditions = condition_arms(engine, model=model, device=device, runtime=runtime, data=data)
        made = [rule for condition in conditions if (rule := _rule(condition, max_drop)) is not None]
        rules = [rule for rule, _ in made]
        environments = facts_of(engine, {rule["condition"]["environment"] for rule in rules})
    except RefusedError as error:
        typer.echo(f"breakeven: {error}", err=True)
        return UNANSWERED
    finally:
        engine.dispose()
    content = {
        "format": POLICY_FORMAT,
        "version": POLICY_VERSION,
        "created": timestamp(now),
        "source_version": source_version(),
        "alpha": ALPHA,
        "meaning": (
            f"In each rule all intervals hold together with {100 * (1 - ALPHA):g} %. An arm has a range of tokens where it "
            "is faster at every measured size in it, and between two measured sizes where it is faster at both; elsewhere the "
            "unmodified model is used. `at_least` is the lowest end of these intervals."
        ),
        "max_drop": max_drop,
        "environments": environments,
        "rules": rules,
    }
    Policy(content)  # what is written can be read
    try:
        out.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{out} cannot be written: {error.strerror}; choose a folder that exists and is writable") from None
    made_of = f"{count(len(rules), 'rule')} (a condition and a batch each)"
    used = count(sum(len(rule["arms"]) for rule in rules), "arm")
    typer.echo(f"{out}: {made_of} with {used} to use; apply it with sweeps/policy.py")
    for line in chain.from_iterable(lines for _, lines in made):
        typer.echo(line)
    return ANSWERED if rules else UNANSWERED


def _rule(condition: ConditionArms, max_drop: float | None) -> tuple[dict[str, Any], list[str]] | None:
    """The rule of one condition and batch, and its description; `None` where no arm has an interval at any size."""
    sizes = [found for size in condition.sizes if (found := condition.at(size, between=False)).found]
    if not sizes:
        return None
    together = sum(len(each.found) for each in sizes)
    rankings = {each.tokens: each.ranked(max_drop, compared=together) for each in sizes}
    by_size = {each.tokens: each for each in sizes}
    answers = spans(rankings)
    keys = sorted({span.key for span in answers} - {UNMODIFIED})
    fixed = condition.condition.model_dump(mode="json", exclude={"image_size", "prompt_tokens", "batch_size"}, exclude_none=True)
    last = condition.rows.iloc[-1]
    place = {"environment": last["environment"], "host": last["host"], "device_name": last["device_name"]}
    rule = {
        "condition": fixed | place | {"kind": last["kind"], "metric": last["metric"]},
        "batch": condition.batch,
        "tokens": sorted(rankings),
        "intervals": together,
        "arms": [_arm(key, sizes) for key in keys],
        "ranges": [_range(span, keys, rankings, by_size) for span in answers],
        "measured_at": [min(condition.rows["measured_at"]), max(condition.rows["measured_at"])],
    }
    return rule, list(_described(condition, answers, sizes))


def _arm(key: str, sizes: Sequence[SizeArms]) -> dict[str, Any]:
    """What to run, with every parameter, and what it was measured to cost in quality."""
    found = next(each.by_key[key] for each in reversed(sizes) if key in each.by_key)
    arm = found.rows[-1].comparison.arm
    costs = {cost for each in sizes if key in each.by_key for cost in each.by_key[key].arm.costs}
    return {
        "label": found.label,
        "stack": [{"method": step.method, "version": step.version, "params": step.params} for step in arm.stack],
        "overrides": arm.overrides.model_dump(mode="json", exclude_none=True),
        "runtime": found.runtime,
        "quality": [cost._asdict() for cost in sorted(costs)],
    }


def _range(span: PolicySpan, keys: Sequence[str], rankings: dict[int, Ranking], by_size: dict[int, SizeArms]) -> dict[str, Any]:
    own: dict[str, Any] = {"first": span.first, "last": span.last, "arm": None, "at_least": 1.0, "measured": list(span.measured)}
    evidence: list[str] = []
    if span.key != UNMODIFIED:
        own |= {"arm": keys.index(span.key), "at_least": span.at_least}
        evidence = [row.comparison_id for size in span.measured for row in by_size[size].by_key[span.key].rows]
        own["speedups"] = {
            size: [each.value, each.low, each.high]
            for size in span.measured
            for each in rankings[size].arms
            if each.key == span.key
        }
    return own | {"evidence": evidence}


def _described(condition: ConditionArms, found: Sequence[PolicySpan], sizes: Sequence[SizeArms]) -> Iterator[str]:
    labels = {each.arm.key: each.label for size in sizes for each in size.found}
    yield f"{condition.title()}:"
    for span in found:
        arm = "the unmodified model" if span.key == UNMODIFIED else f"{labels[span.key]}, at least {span.at_least:.3f}x"
        yield f"  {span.first} to {span.last} tokens: {arm}"
