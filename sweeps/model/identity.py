"""Identities: canonical JSON and its digest, which identify questions, comparisons, arms and
environments.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

DIGEST_CHARS = 16
"""64 bits as hexadecimal: among a million identities a collision has odds of 1 in 37 million."""


class FrozenModel(BaseModel):
    """A frozen, strict, hashable value; two with the same content are equal."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.model_dump_json())

    @cached_property
    def canonical_text(self) -> str:
        """Its canonical JSON, made once: parts of a hundred thousand questions are shared."""
        return canonical(self)

    def __iter__(self) -> Iterator[tuple[str, Any]]:  # type: ignore[override]  # pydantic's own is a generator
        """The fields with their values; pydantic's also yields cached properties."""
        return ((name, getattr(self, name)) for name in type(self).model_fields)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """As pydantic's, without what was computed from the values before."""
        copied = super().model_copy(update=update, deep=deep)
        for name in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[name]
        return copied


def canonical(value: Any) -> str:
    """JSON of `value` that is equal for equal content: sorted keys, no spaces, `None` entries of
    mappings left out.

    A model can gain a field with the default `None` without changing any identity.
    Raises `ValueError` for NaN and infinities, which have no JSON form.
    """
    return json.dumps(
        _without_none(value),
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    )


def digest(value: Any) -> str:
    """The first 16 hexadecimal characters of the SHA-256 of `canonical(value)`."""
    return digest_of(canonical(value))


def digest_of(text: str) -> str:
    """`digest` of a value whose canonical JSON is `text`."""
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_CHARS]


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
