"""Sequence: how a value that is itself a list is written, so that a bare list always means several values.

`{list: [3, 6, 9]}` is one list; `{per_block: [8, 8, 4, …]}` is a schedule, a number for each block of the model, and
`{per_block: [8, 8, 4], then: 0}` one whose further blocks have 0.
"""

import json
import types
from collections.abc import Mapping, Sequence, Set
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import TypeAdapter, ValidationError

from sweeps.parsing.yaml_reader import Document, KeyPath, SweepError

Form = Literal["scalar", "list", "schedule"]
"""What one value of a key is: no list, a list, or a number that may also be a number for each block."""
LIST, PER_BLOCK, THEN = "list", "per_block", "then"


def form_of(annotation: Any) -> Form:
    """The form of a parameter of this type; a number or a list of numbers is a schedule."""
    if not (takes(annotation, Sequence) or takes(annotation, Set)):
        return "scalar"
    return "schedule" if takes(annotation, int) or takes(annotation, float) else "list"


def takes(annotation: Any, kind: type) -> bool:
    """Whether a value of this type may be a `kind`, itself and not as a part of it; text counts as no sequence."""
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        return any(takes(part, kind) for part in get_args(annotation))
    if origin is Annotated:
        return takes(get_args(annotation)[0], kind)
    found = origin or annotation
    return isinstance(found, type) and issubclass(found, kind) and not issubclass(found, str | bytes | bool)


def is_sequence(value: Any) -> bool:
    """Whether `value` is the written form of one list or schedule."""
    return isinstance(value, dict) and (LIST in value or PER_BLOCK in value)


def sequence(document: Document, path: KeyPath, written: Mapping[str, Any], form: Form) -> tuple[list[Any], KeyPath, int | None]:
    """The list that `written` stands for, its place, and for how many blocks it counts (`None`: for any number).

    Raises `SweepError` where the key takes no list of that form.
    """
    name = LIST if LIST in written else PER_BLOCK
    inner = (*path, name)
    known = (LIST,) if name == LIST else (PER_BLOCK, THEN)
    if (unknown := next((key for key in written if key not in known), None)) is not None:
        raise document.unknown_key((*path, unknown), known)
    if form == "scalar":
        raise document.error(inner, f"{path[-1]} takes single values; several are a list such as [1, 2]", at_key=True)
    if (form == "list") != (name == LIST):
        right = f"a number for each block is {{{PER_BLOCK}: […]}}" if form == "schedule" else f"one list is {{{LIST}: […]}}"
        raise document.error(inner, f"is not how {path[-1]} is written: {right}", at_key=True)
    values = written[name]
    if not isinstance(values, list) or not values:
        raise document.error(inner, f"needs a list, such as {{{name}: [3, 6, 9]}}")
    if THEN in written and (written[THEN] != 0 or isinstance(written[THEN], bool)):
        raise document.error((*path, THEN), "can only be 0: nothing in the further blocks; for anything else list all blocks")
    return values, inner, None if form == "list" or THEN in written else len(values)


def nested(document: Document, path: KeyPath, value: list[Any]) -> SweepError:
    """What to raise for a bare list in place of one value of a schedule."""
    shown = json.dumps(value)
    return document.error(path, f"a number for each block is written {{{PER_BLOCK}: {shown}}}; `{THEN}: 0` may stand beside it")


def check_bare(document: Document, path: KeyPath, written: list[Any], annotation: Any) -> None:
    """Refuse a bare list whose entries are no values of this type, which has lists. Raises `SweepError`."""
    adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    for value in written:
        if isinstance(value, list | dict):
            continue
        try:
            adapter.validate_json(json.dumps(value), strict=True)
        except ValidationError:
            example = json.dumps([entry for entry in written if not isinstance(entry, list | dict)])
            problem = f"a bare list means several values, and a value of {path[-1]} is itself a list; write {{{LIST}: {example}}}"
            raise document.error(path, problem) from None
