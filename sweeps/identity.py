"""Identities: canonical JSON and its digest, the ground on which questions, comparisons, arms and environments are told apart."""

import hashlib
import json
from typing import Any

from pydantic import BaseModel, ConfigDict

DIGEST_CHARS = 16
"""64 bits as hexadecimal: among a million identities a collision has odds of 1 in 37 million."""


class Noun(BaseModel):
    """A frozen, strict, hashable value; two nouns with the same content are equal."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __hash__(self) -> int:
        return hash(self.model_dump_json())


def canonical(value: Any) -> str:
    """JSON of `value` that is equal for equal content: sorted keys, no spaces, `None` entries of mappings left out.

    Leaving `None` out lets a noun gain a field later (its default being `None`) without changing any older identity.
    Raises `ValueError` for NaN and infinities, which have no JSON form.
    """
    return json.dumps(_without_none(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """The first 16 hexadecimal characters of the SHA-256 of `canonical(value)`."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:DIGEST_CHARS]


def _without_none(value: Any) -> Any:
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    if isinstance(value, dict):
        return {str(key): _without_none(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_without_none(item) for item in value]
    if isinstance(value, float) and value == 0:
        return 0.0  # -0.0 and 0.0 are one value
    return value
