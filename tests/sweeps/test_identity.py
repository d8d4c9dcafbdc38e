"""Canonical JSON and digests: the ground of every identity."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeps.model.identity import FrozenModel, canonical, digest

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


class Thing(FrozenModel):
    size: int
    note: str | None = None


def test_canonical_json_is_pinned() -> None:
    """The form that identities hash: sorted keys, no spaces, no nulls in mappings, floats that stay
    floats.
    """
    value = {"b": [1, 1.0, None, True], "a": {"é": "x", "gone": None}, "c": -0.0}
    assert canonical(value) == '{"a":{"é":"x"},"b":[1,1.0,null,true],"c":0.0}'


def test_digest_is_pinned() -> None:
    """A digest must never change silently: stored answers hang on it."""
    assert digest({}) == "44136fa355b3678a"
    assert digest({"model": "deit_tiny_patch16_224", "image_size": 224}) == "8f624f0e5671c5f0"


def test_a_noun_counts_as_its_content() -> None:
    """A model and the mapping of its set fields have one digest, so a field added later with
    default `None` changes nothing.
    """
    assert canonical(Thing(size=3)) == canonical({"size": 3}) == '{"size":3}'
    assert hash(Thing(size=3)) == hash(Thing(size=3, note=None))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_without_json_form_are_refused(value: float) -> None:
    """NaN and infinities have no canonical form."""
    with pytest.raises(ValueError, match="JSON"):
        canonical({"x": value})


@given(st.dictionaries(st.text(), values, max_size=5))
def test_the_order_of_keys_does_not_matter(value: dict[str, object]) -> None:
    """Equal content in another key order is one identity."""
    turned = dict(reversed(list(value.items())))
    assert canonical(turned) == canonical(value)


@given(values)
def test_canonical_json_is_stable_under_a_round_trip(value: object) -> None:
    """What was stored as canonical JSON and read again has the same canonical JSON."""
    text = canonical(value)
    assert canonical(json.loads(text)) == text
