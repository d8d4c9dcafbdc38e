"""Policy file: the measured answers of a store as the JSON that `sweeps.analysis.policy` applies at
run time.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from store.open.engine import Engine
from store.read.advice.advice import ConditionArms, SizeArms
from store.read.advice.timed_arms import environment_facts
from store.rows.row_mapping import timestamp
from store.rows.source_version import version_of
from sweeps.analysis.advice import UNMODIFIED, PolicySpan, Ranking, spans
from sweeps.analysis.policy import POLICY_FORMAT, POLICY_VERSION, Policy
from sweeps.stats.pooling import ALPHA
from sweeps.text.advice_text import UNMODIFIED_LABEL


class PolicyFile(NamedTuple):
    """A policy and what it states, in words."""

    content: dict[str, Any]
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """What the file holds."""
        return json.dumps(self.content, indent=1, allow_nan=False) + "\n"

    @property
    def rules(self) -> int:
        """A condition and a batch each."""
        return len(self.content["rules"])

    @property
    def arms(self) -> int:
        return sum(len(rule["arms"]) for rule in self.content["rules"])


def policy_file(
    engine: Engine, conditions: Sequence[ConditionArms], *, max_drop: float | None, created: float
) -> PolicyFile:
    """The policy of what was measured under these conditions; `created` in seconds since the
    epoch.
    """
    made = [found for condition in conditions if (found := _rule(condition, max_drop)) is not None]
    rules = [rule for rule, _ in made]
    content = {
        "format": POLICY_FORMAT,
        "version": POLICY_VERSION,
        "created": timestamp(created),
        "source_version": version_of(Path(__file__).resolve().parents[3]),
        "alpha": ALPHA,
        "meaning": (
            f"In each rule all intervals hold together with {100 * (1 - ALPHA):g} %. An arm has a"
            " range of tokens where it is faster at every measured size in it, and between two"
            " measured sizes where it is faster at both; elsewhere the unmodified model is used."
            " `at_least` is the lowest end of these intervals, each of which holds with the"
            " `level` of its rule."
        ),
        "max_drop": max_drop,
        "environments": environment_facts(
            engine, {rule["condition"]["environment"] for rule in rules}
        ),
        "rules": rules,
    }
    Policy(content)  # what is written can be read
    return PolicyFile(content, tuple(line for _, lines in made for line in lines))


def _rule(
    condition: ConditionArms, max_drop: float | None
) -> tuple[dict[str, Any], list[str]] | None:
    """The rule of one condition and batch, and its description; `None` where no arm has an interval
    at any size.
    """
    sizes = [
        found for size in condition.sizes if (found := condition.at(size, between=False)).found
    ]
    if not sizes:
        return None
    failed = {each.tokens for each in condition.failures if each.tokens is not None}
    between = failed - {each.tokens for each in sizes}
    sizes += [
        SizeArms(size, (), ()) for size in between if sizes[0].tokens < size < sizes[-1].tokens
    ]
    together = sum(len(each.found) for each in sizes)
    rankings = {each.tokens: each.ranked(max_drop, compared=together) for each in sizes}
    by_size = {each.tokens: each for each in sizes}
    answers = spans(rankings)
    keys = sorted({span.key for span in answers} - {UNMODIFIED})
    fixed = condition.condition.without_size().model_dump(
        mode="json", exclude={"image_size", "prompt_tokens", "batch_size"}, exclude_none=True
    )
    last = condition.rows[-1]
    place = {
        "environment": last.environment,
        "host": last.host,
        "device_name": last.device_name,
    }
    times = [row.measured_at for row in condition.rows]
    level = 1 - next(iter(rankings.values())).each_alpha
    rule = {
        "condition": fixed | place | {"kind": last.kind, "metric": last.metric},
        "batch": condition.batch,
        "tokens": sorted(each.tokens for each in sizes if each.found),
        "intervals": together,
        "level": level,
        "arms": [_arm(key, sizes) for key in keys],
        "ranges": [_range(span, keys, rankings, by_size) for span in answers],
        "measured_at": [min(times), max(times)],
    }
    return rule, list(_described(condition, answers, sizes, level))


def _arm(key: str, sizes: Sequence[SizeArms]) -> dict[str, Any]:
    """What to run, with every parameter, and what it was measured to cost in quality."""
    found = next(each.by_key[key] for each in reversed(sizes) if key in each.by_key)
    arm = found.comparison.arm
    costs = {cost for each in sizes if key in each.by_key for cost in each.by_key[key].arm.costs}
    return {
        "label": found.label,
        "stack": [
            {"method": step.method, "version": step.version, "params": step.params}
            for step in arm.stack
        ],
        "overrides": arm.overrides.model_dump(mode="json", exclude_none=True),
        "runtime": found.runtime,
        "quality": [cost._asdict() for cost in sorted(costs)],
    }


def _range(
    span: PolicySpan,
    keys: Sequence[str],
    rankings: Mapping[int, Ranking],
    by_size: Mapping[int, SizeArms],
) -> dict[str, Any]:
    own: dict[str, Any] = {
        "first": span.first,
        "last": span.last,
        "arm": None,
        "at_least": 1.0,
        "measured": list(span.measured),
    }
    evidence: list[str] = []
    if span.key != UNMODIFIED:
        own |= {"arm": keys.index(span.key), "at_least": span.at_least}
        evidence = [
            row.comparison_id
            for size in span.measured
            for row in by_size[size].by_key[span.key].rows
        ]
        own["speedups"] = {
            size: [each.value, each.low, each.high]
            for size in span.measured
            for each in rankings[size].arms
            if each.key == span.key
        }
    return own | {"evidence": evidence}


def _described(
    condition: ConditionArms, found: Sequence[PolicySpan], sizes: Sequence[SizeArms], level: float
) -> Iterator[str]:
    labels = {each.arm.key: each.label for size in sizes for each in size.found}
    yield f"{', '.join(condition.parts())}, by intervals of {100 * level:.4g} % each:"
    for span in found:
        arm = (
            UNMODIFIED_LABEL
            if span.key == UNMODIFIED
            else f"{labels[span.key]}, at least {span.at_least:.3f}x"
        )
        yield f"  {span.first} to {span.last} tokens: {arm}"
