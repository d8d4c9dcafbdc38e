"""The JSON Schema of the sweep language, from which editors complete keys, method names and their
parameters.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from sweeps.language.arm_parser import CALLABLE, DENSE_NAME
from sweeps.language.condition_parser import (
    FIELD_WORDS,
    FILL,
    LIST,
    PER_BLOCK,
    SERIES,
    THREADS_KEY,
    Form,
    Threads,
    form_of,
)
from sweeps.language.file_schema import Sweep
from sweeps.language.grid import OPERATORS
from sweeps.model.condition import Condition, Overrides
from sweeps.model.kinds import OWN_FIELDS, THREAD_FIELDS
from sweeps.model.method import AnyMethod, doc_summary

DIALECT = "https://json-schema.org/draft/2020-12/schema"
PATH = Path(__file__).parents[1] / "schema.json"
"""The committed schema of the project's own methods."""

Schema = dict[str, Any]


def json_schema(methods: Mapping[str, AnyMethod]) -> Schema:
    """The schema (draft 2020-12) of a sweep file that may use `methods`, by name.

    Its `$defs` are `field.NAME`, one value of a condition field; `axis.NAME`, one value or several;
    `NAME` (`METHOD.NAME` where methods differ), the values of a parameter; `method.NAME`, the entry
    of a method.
    """
    definitions: Schema = {}
    top = _object(Sweep, definitions)
    condition = _condition(definitions)
    beside: Schema = {name: _ref(f"axis.{name}") for name in (*Overrides.model_fields, "replicate")}
    forms = {form: _object(series, definitions) for form, series in SERIES.items()}
    definitions["series"] = {
        "anyOf": [_closed({form: schema}, [form]) for form, schema in forms.items()]
    }
    params = {key for method in methods.values() for key in method.Params.model_fields}
    known = [_ref(f"method.{name}") for name in sorted(methods)]
    alone = {"properties": {name: False for name in beside if name not in params}}
    definitions["step"] = {"anyOf": [{"enum": sorted(methods)}, {**alone, "anyOf": known}]}
    stack = {"type": "array", "minItems": 1, "items": _ref("step")}
    names = [DENSE_NAME, *sorted(methods)]
    dense = _closed(
        {"method": {"const": DENSE_NAME, "description": "The unmodified model."}, **beside},
        ["method"],
    )
    own: Schema = {
        "type": "object",
        "properties": {CALLABLE: {"type": "string", "pattern": r"^[^:]+\.py:[A-Za-z_]\w*$"}},
        "required": [CALLABLE],
        "description": "An arm from a file: `apply(model, **params) -> model`.",
    }
    definitions["step"]["anyOf"].append(own)
    stacked = _closed({"stack": stack, **beside}, ["stack"])
    definitions["entry"] = {
        "anyOf": [{"enum": names}, dense, *known, own, stacked, _closed(beside)]
    }
    definitions["test"] = _test()
    for name in sorted(methods):
        definitions[f"method.{name}"] = _method(name, methods[name], definitions, beside)
    fields = {*Condition.model_fields} - {*OWN_FIELDS}
    tested = sorted({*fields, "tokens", "method", "replicate", *params})
    anything: Schema = {key: {} for key in params}
    about = {"method": {"enum": names}, "stack": stack, "replicate": _ref("field.replicate")}
    items = {
        "methods": _ref("entry"),
        "baselines": _ref("entry"),
        "exclude": _closed({key: _ref("test") for key in tested}),
        # which parameter goes with which method the reader checks
        "include": _closed({**condition, **anything, **about}),
    }
    top["properties"] |= {
        key: {**top["properties"][key], "items": schema} for key, schema in items.items()
    }
    number: Schema = {"type": "number"}
    top["properties"]["defaults"] |= _closed(condition) | {"additionalProperties": number}
    definitions["axis.*"] = _several(number, "axis.*")
    axes = _closed({name: _ref(f"axis.{name}") for name in condition})
    # of models of files axes have free names
    top["properties"]["axes"] |= axes | {"additionalProperties": _ref("axis.*")}
    return {
        "$schema": DIALECT,
        "title": "Breakeven sweep",
        **top,
        "$defs": dict(sorted(definitions.items())),
    }


def schema_text(methods: Mapping[str, AnyMethod]) -> str:
    """What `schema.json` must hold."""
    return (
        json.dumps(_unwrapped(json_schema(methods)), indent=1, sort_keys=True, ensure_ascii=False)
        + "\n"
    )


def _unwrapped(schema: Any) -> Any:
    """The same with each description on one line."""
    if isinstance(schema, list):
        return [_unwrapped(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _unwrapped(value) for key, value in schema.items()}
    if isinstance(text := found.get("description"), str):
        found["description"] = " ".join(text.split())
    return found


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _closed(properties: Schema, required: list[str] | None = None) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": required or [],
        "additionalProperties": False,
    }


class _Untitled(GenerateJsonSchema):
    """Without titles, which are the fields' names once more."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's interface
        return False


def _object(model: type[BaseModel], definitions: Schema, prefix: str = "") -> Schema:
    """The schema of `model`, with what it refers to moved under `definitions`.

    `prefix` goes before its names where one of them stands for something else there.
    """
    schema = model.model_json_schema(ref_template="#/$defs/{model}", schema_generator=_Untitled)
    inner: Schema = schema.pop("$defs", {})
    if any(definitions.get(name, found) != found for name, found in inner.items()):
        schema = model.model_json_schema(
            ref_template=f"#/$defs/{prefix}{{model}}", schema_generator=_Untitled
        )
        inner = {f"{prefix}{name}": found for name, found in schema.pop("$defs").items()}
    definitions.update(inner)
    return schema


def _condition(definitions: Schema) -> Schema:
    """References to the condition fields of a sweep file, once each has its two definitions."""
    fields: Schema = _object(Condition, definitions)["properties"]
    fields["device"] = {"enum": ["auto", *fields["device"]["enum"]], "default": "auto"}
    for name, words in FIELD_WORDS.items():
        fields[name] |= {"anyOf": [{"enum": [*words]}, {"type": "null"}]}
    for name in (*THREAD_FIELDS, *OWN_FIELDS):
        del fields[name]
    threads = _object(Threads, definitions)
    count: list[Schema] = threads["properties"]["count"]["anyOf"]
    fields[THREADS_KEY] = {"anyOf": [*count, threads], "description": threads["description"]}
    fields["pretrained"] = {"type": "boolean", "description": "`true` is `weights: pretrained`."}
    fields["checkpoint"] = {
        "type": "string",
        "description": "The path of a file: the same as `weights: PATH`.",
    }
    replicate = {
        "type": "integer",
        "minimum": 0,
        "description": "Distinguishes equal arms in A/A tests.",
    }
    for name, schema in {**fields, "replicate": replicate}.items():
        definitions[f"field.{name}"] = schema
        definitions[f"axis.{name}"] = _several(_ref(f"field.{name}"), f"axis.{name}")
    return {name: _ref(f"field.{name}") for name in fields}


def _several(one: Schema, name: str, *, form: Form = "scalar") -> Schema:
    """The definition `name`: one value, a list or a series. A value that is a list has its form."""
    entry = _ref(f"{name}/anyOf/0")
    if form != "scalar":
        parts: list[Schema] = one.get("anyOf", [one])
        lists = [part for part in parts if part.get("type") == "array"]
        key, beside = (PER_BLOCK, {FILL: {"const": 0}}) if form == "schedule" else (LIST, {})
        forms = [
            _closed({key: {**part, "minItems": max(1, part.get("minItems", 1))}, **beside}, [key])
            for part in lists
        ]
        one = {"anyOf": [*(part for part in parts if part not in lists), *forms]}
        if form == "list":
            entry = {"anyOf": [entry, *lists]}
    return {"anyOf": [one, {"type": "array", "minItems": 1, "items": entry}, _ref("series")]}


def _method(name: str, method: AnyMethod, definitions: Schema, beside: Schema) -> Schema:
    """An entry for one method: its parameters, and `beside` them what any entry may hold."""
    schema = _object(method.Params, definitions, prefix=f"{name}.")
    params: Schema = {}
    for key, value in schema.get("properties", {}).items():
        described = {part: value.pop(part) for part in ("description", "default") if part in value}
        form = form_of(method.Params.model_fields[key].annotation)
        for shared in (key, f"{name}.{key}"):
            several = _several(value, shared, form=form)
            if definitions.setdefault(shared, several) == several:
                params[key] = {**described, **_ref(shared)}
                break
    return _closed(
        {"method": {"const": name, "description": doc_summary(method)}, **beside, **params},
        ["method", *schema.get("required", [])],
    )


def _test() -> Schema:
    """What an exclude rule may hold for one key."""
    number, scalar = {"type": "number"}, {"type": ["string", "number", "boolean", "null", "array"]}
    operands = {"in": {"type": "array", "items": scalar}, "ne": scalar, "re": {"type": "string"}}
    return {
        "anyOf": [
            scalar,
            {
                **_closed({name: operands.get(name, number) for name in OPERATORS}),
                "minProperties": 1,
            },
        ]
    }
