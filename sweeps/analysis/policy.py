"""Policy at run time: which measured arm to use for so many tokens, and the unmodified model
wherever nothing was measured.

This file stands alone: Python 3.9 or newer, the standard library, nothing else. Copy it beside a
server, or import `sweeps.analysis.policy`. `breakeven export-policy policy.json` writes what it
reads:

    from sweeps.analysis.policy import Policy

    policy = Policy.load("policy.json", model="deit_small_patch16_224", device="cuda")
    choice = policy.choose(tokens=196, batch=8)
    choice.unmodified   # True: run the model as it is
    choice.method       # else "topk", with choice.params {"keep_rate": 0.5, …}
    choice.overrides    # such as {"runtime": "compile"}
    choice.reason       # why, for a log
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

POLICY_FORMAT = "breakeven-policy"
POLICY_VERSION = 1
"""Of the files that this module reads."""
UNMODIFIED_ARM = "unmodified"


class PolicyError(ValueError):
    """A file is not a policy, or a condition is named that rules do not have."""


class PolicyChoice(NamedTuple):
    """What to run, and why."""

    arm: str
    """Label of the arm, or `unmodified`."""
    reason: str
    stack: tuple[dict[str, Any], ...]
    """The methods in order, each with its `method` and `params` (all of them, defaults
    included)."""
    overrides: dict[str, Any]
    """What the arm runs with instead of the condition's own: `runtime`, `dtype`, `attention`,
    `image_size`, `kv_cache`."""
    at_least: float = 1.0
    """Speed-up that the interval at this size promises at least, or those of both neighbours; 1 of
    the unmodified model."""
    evidence: tuple[str, ...] = ()
    """`comparison_id` of the rows of the store that it rests on."""

    @property
    def unmodified(self) -> bool:
        return self.arm == UNMODIFIED_ARM

    @property
    def method(self) -> str | None:
        """Name of the only method; `None` of the unmodified model, of a stack and of an override
        alone.
        """
        return self.stack[0]["method"] if len(self.stack) == 1 else None

    @property
    def params(self) -> dict[str, Any]:
        """Parameters of the only method."""
        return dict(self.stack[0]["params"]) if len(self.stack) == 1 else {}


class Policy:
    """The rules of a policy file: for each condition and batch ranges of tokens with the arm to
    use.
    """

    def __init__(self, content: dict[str, Any]) -> None:
        """Take the parsed JSON of a policy file. Raises `PolicyError` for anything else."""
        if not isinstance(content, dict) or content.get("format") != POLICY_FORMAT:
            raise PolicyError(
                f"this is no policy: its `format` is not {POLICY_FORMAT!r}; make one with:"
                " breakeven export-policy FILE"
            )
        if content.get("version") != POLICY_VERSION:
            raise PolicyError(
                f"the policy has version {content.get('version')!r}, and this module reads version"
                f" {POLICY_VERSION}"
            )
        self.content = content
        """The whole file, with provenance: `environments`, `created`, `alpha`, `max_drop`; rules
        have the `level` of intervals."""
        self.rules: list[dict[str, Any]] = list(content.get("rules", []))

    @classmethod
    def load(cls, path: str | Path, **condition: Any) -> Policy:
        """The policy in a file; `condition` keeps rules of it alone, as `restrict` does. Raises
        `PolicyError` and `OSError`.
        """
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
        except ValueError as error:
            raise PolicyError(f"{path} is no JSON: {error}") from None
        return cls(content).restrict(**condition)

    def restrict(self, **condition: Any) -> Policy:
        """The rules of this condition alone, such as `model`, `device`, `device_name`, `dtype`,
        `runtime`, `threads`.

        Raises `PolicyError` for a field that no rule has, and where no rule is left.
        """
        if not condition:
            return self
        known = sorted({name for rule in self.rules for name in rule["condition"]})
        for name in condition:
            if name not in known:
                raise PolicyError(
                    f"{name!r} is no field of these rules; they have {', '.join(known)}"
                )
        kept = [
            rule
            for rule in self.rules
            if all(rule["condition"].get(key) == value for key, value in condition.items())
        ]
        if not kept:
            name, value = next(
                (
                    (key, own)
                    for key, own in condition.items()
                    if all(rule["condition"].get(key) != own for rule in self.rules)
                ),
                ("condition", condition),
            )
            there = sorted({str(rule["condition"].get(name)) for rule in self.rules})
            raise PolicyError(
                f"nothing was measured with {name} {value!r}; measured are {', '.join(there)}"
            )
        return Policy({**self.content, "rules": kept})

    @property
    def batches(self) -> list[int]:
        """Batch sizes that were measured, in order: a server that fills batches up to one of these
        gets an answer.
        """
        return sorted({rule["batch"] for rule in self.rules})

    def choose(self, *, tokens: int, batch: int) -> PolicyChoice:
        """What to run for a number of tokens and a batch size: tokens of the unmodified model
        (patch tokens, or those of the prompt).

        The unmodified model wherever nothing was measured, nothing was found to be faster, or rules
        contradict each other.
        """
        found = [rule for rule in self.rules if rule["batch"] == batch]
        if not found:
            listed = ", ".join(map(str, self.batches)) or "none"
            return _unmodified(f"batch {batch} was not measured; measured batches: {listed}")
        choices = [_of_rule(rule, tokens) for rule in found]
        if len({choice.arm for choice in choices}) > 1:
            fields = sorted(_differing([rule["condition"] for rule in found]))
            return _unmodified(
                f"{len(found)} rules match and differ; load the policy for one of them, by"
                f" {', '.join(fields)}"
            )
        return min(choices, key=lambda choice: choice.at_least)


def _of_rule(rule: dict[str, Any], tokens: int) -> PolicyChoice:
    sizes = rule["tokens"]
    if not sizes[0] <= tokens <= sizes[-1]:
        span = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
        return _unmodified(
            f"{tokens} tokens were not measured at batch {rule['batch']}; measured: {span}"
        )
    for span in rule["ranges"]:
        if span["first"] <= tokens <= span["last"]:
            at = ", ".join(map(str, span["measured"]))
            if span["arm"] is None:
                return _unmodified(
                    f"no arm is known to be faster at {tokens} tokens (measured at {at})"
                )
            arm = rule["arms"][span["arm"]]
            at_least, at = _least(span, tokens)
            return PolicyChoice(
                arm["label"],
                f"at least {rounded_down(at_least)}x as fast as the unmodified model at {at}"
                f" tokens, batch {rule['batch']}",
                tuple(arm["stack"]),
                dict(arm["overrides"]),
                at_least,
                tuple(span["evidence"]),
            )
    return _unmodified(f"the rule has no range for {tokens} tokens")


def _least(span: dict[str, Any], tokens: int) -> tuple[float, str]:
    """The low end at this size, or the lower one of its measured neighbours, and these sizes in
    words.
    """
    lows = {int(size): float(low) for size, (_, low, _) in span["speedups"].items()}
    below, above = (
        sorted(size for size in lows if (size <= tokens) == left) for left in (True, False)
    )
    own = [tokens] if tokens in lows else [*below[-1:], *above[:1]]
    return min(lows[size] for size in own), ", ".join(map(str, own))


def rounded_down(ratio: float) -> str:
    """Two decimals, so that a bound is never printed above what is known; more where 1 would hide
    that it is above.
    """
    digits = 2
    while digits < 6 and int(ratio * 10**digits) <= 10**digits:
        digits += 1
    return f"{int(ratio * 10**digits) / 10**digits:.{digits}f}"


def _unmodified(reason: str) -> PolicyChoice:
    return PolicyChoice(UNMODIFIED_ARM, reason, (), {})


def _differing(conditions: list[dict[str, Any]]) -> set[str]:
    """Fields in which conditions differ."""
    names = {name for condition in conditions for name in condition}
    return {
        name
        for name in names
        if len({json.dumps(condition.get(name)) for condition in conditions}) > 1
    }
