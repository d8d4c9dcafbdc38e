"""Identities that join a speed-up with the accuracy or quality that belongs to it, which neither
runtime nor KV cache changes.
"""

import json
from functools import lru_cache
from typing import Any

from sweeps.model.identity import digest_of

SPEED_ONLY = ("runtime", "kv_cache")
"""Overrides that accuracy and quality do not depend on."""
_FIELDS = ("model", "weights", "image_size", "image_shape", "dtype", "attention", "method")


def quality_ids(columns: Any, baseline: str) -> dict[str, str]:
    """The columns `quality_arm_id` and `quality_pair_id` for the columns of an arm, and its
    baseline in words.
    """
    arm = quality_arm_id(columns)
    return {"quality_arm_id": arm, "quality_pair_id": _pair_id(arm, baseline)}


def quality_arm_id(columns: Any) -> str:
    """Equal for arms that give the same outputs: the fields `_FIELDS` of an arm's columns, and its
    parameters.
    """
    return _digest(tuple(columns[name] for name in _FIELDS), columns["params"])


@lru_cache(maxsize=10_000)
def _pair_id(arm: str, baseline: str) -> str:
    return digest_of(f"{arm} {_plain_baseline(baseline)}")


@lru_cache(maxsize=10_000)
def _digest(fields: tuple[Any, ...], params: str) -> str:
    return digest_of(json.dumps([*fields, without_speed(params)]))


@lru_cache(maxsize=10_000)
def without_speed(params: str) -> str:
    """What was requested of an arm less what quality does not depend on."""
    requested = json.loads(params) if params else {}
    steps = requested if isinstance(requested, list) else [requested]
    kept = [{key: value for key, value in step.items() if key not in SPEED_ONLY} for step in steps]
    return json.dumps([step for step in kept if step], sort_keys=True)


def _plain_baseline(text: str) -> str:
    """A baseline in words without the overrides that quality does not depend on."""
    name, bracket, inside = text.partition(" [")
    left = [
        part for part in inside.rstrip("]").split(", ") if part and not part.startswith(SPEED_ONLY)
    ]
    return f"{name}{bracket}{', '.join(left)}]" if left else name
