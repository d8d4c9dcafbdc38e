"""Validation: values of a sweep file checked against models, and the words in which a wrong one is
reported.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from sweeps.language.yaml_reader import Document, KeyPath, SweepError
from sweeps.suggestions import did_you_mean, other_name

Model = TypeVar("Model", bound=BaseModel)


def validated(
    document: Document, path: KeyPath, model: type[Model], value: Mapping[str, Any]
) -> Model:
    """`value`, which stands at `path`, as a `model` by strict rules. Raises `SweepError` for the
    first thing wrong.
    """
    try:
        # JSON mode: strict about types, while a list may still become a tuple
        return model.model_validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        raise first_error(
            document, error, model, lambda location: document.place(path, location)
        ) from None


def first_error(
    document: Document,
    error: ValidationError,
    model: type[BaseModel] | None,
    place: Callable[[KeyPath], KeyPath],
) -> SweepError:
    """Pydantic's error in the words of this project; `place` turns its location into one in the
    document.

    An unknown or missing key is reported before wrong values: it is often why the rest is wrong.
    """
    order = {"extra_forbidden": 0, "missing": 1}
    first = min(error.errors(include_url=False), key=lambda item: order.get(item["type"], 2))
    location = first["loc"]
    path = place(location)
    if first["type"] == "extra_forbidden":
        return document.unknown_key(path, _words(model, location[:-1]))
    if first["type"] == "missing":
        return document.error(
            (*path, str(location[-1])) if path[-1:] != location[-1:] else path, "is missing"
        )
    return document.error(path, wrong_value(first))


def wrong_value(error: ErrorDetails) -> str:
    """One wrong value in words, with what would be right."""
    given = error["input"]
    if error["type"] == "literal_error":
        words = re.findall(r"'([^']*)'", str(error.get("ctx", {}).get("expected", "")))
        if words:
            meant = other_name(str(given), words) or given
            return f"{shown(given)} is not one of {', '.join(words)}{_nearest(meant, words)}"
    if error["type"] == "value_error":
        return error["msg"].removeprefix("Value error, ")
    if error["type"] == "too_short":
        return "is empty; give at least one, or leave the key out"
    needed = _NEEDS.get(error["type"]) or error["msg"][0].lower() + error["msg"][1:]
    return f"{needed}, not {shown(given)}{_unquoted(error['type'], given)}"


_NEEDS = {
    "list_type": "needs a list",
    "tuple_type": "needs a list",
    "dict_type": "needs a mapping",
    "model_type": "needs a mapping",
    "string_type": "needs text",
    "int_type": "needs a whole number",
    "int_from_float": "needs a whole number",
    "float_type": "needs a number",
    "bool_type": "needs true or false",
}


def _nearest(given: Any, words: list[str]) -> str:
    hint = did_you_mean(str(given), words)
    return hint if "did you mean" in hint else ""


def _unquoted(kind: str, given: Any) -> str:
    numeric = (
        kind.startswith(("int", "float"))
        and isinstance(given, str)
        and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", given)
    )
    return f"; did you mean {given} (without quotes)?" if numeric else ""


def shown(value: Any) -> str:
    """A value as JSON, cut off after 80 characters."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else text[:79] + "…"


def _words(model: type[BaseModel] | None, location: tuple[int | str, ...]) -> set[str]:
    """The keys of `model` at `location`."""
    models = {model} if model else set()
    for part in location:
        named = [
            info
            for item in models
            for name, info in item.model_fields.items()
            if part in (name, info.alias)
        ]
        # a list index, or the name of a union's member, names no field
        models = {found for info in named for found in _models(info.annotation)} or models
    return {info.alias or name for item in models for name, info in item.model_fields.items()}


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)
