"""The JSON Schema of the sweep language, from which editors complete keys, method names and their parameters."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel

from sweeps.condition import Condition, Exclusive, InputValues, Overrides
from sweeps.kinds import THREAD_FIELDS
from sweeps.method import AnyMethod
from sweeps.parsing.arm_parser import DENSE_NAME
from sweeps.parsing.axis import LIST, PER_BLOCK, SERIES, THEN, Form, form_of
from sweeps.parsing.condition_parser import NORMAL_INPUTS, WHOLE_NODE
from sweeps.parsing.file_schema import Sweep
from sweeps.parsing.grid import OPERATORS
from sweeps.parsing.thread_parser import THREADS_KEY, Threads

DIALECT = "https://json-schema.org/draft/2020-12/schema"
PATH = Path(__file__).parents[1] / "schema.json"
"""The committed schema of the project's own methods."""

Schema = dict[str, Any]


def json_schema(methods: Mapping[str, AnyMethod]) -> Schema:
    """The schema (draft 2020-12) of a sweep file that may use `methods`, by name."""
    definitions: Schema = {}
    top = _object(Sweep, definitions)
    condition = _fields(Condition, definitions)
    condition["device"] = {"enum": ["auto", *condition["device"]["enum"]], "default": "auto"}
    condition["exclusive"] |= {"anyOf": [{"enum": [WHOLE_NODE, *get_args(Exclusive)]}, {"type": "null"}]}
    condition["inputs"] |= {"anyOf": [{"enum": [NORMAL_INPUTS, *get_args(InputValues)]}, {"type": "null"}]}
    for name in THREAD_FIELDS:
        del condition[name]
    threads = _object(Threads, definitions)
    count: list[Schema] = threads["properties"]["count"]["anyOf"]
    condition[THREADS_KEY] = {"anyOf": [*count, threads], "description": threads["description"]}
    condition["pretrained"] = {"type": "boolean", "description": "`true` is `weights: pretrained`."}
    condition["checkpoint"] = {"type": "string", "description": "The path of a file: the same as `weights: PATH`."}
    replicate = {"type": "integer", "minimum": 0, "description": "Distinguishes equal arms in A/A tests."}
    definitions.update({f"axis.{name}": _several(schema) for name, schema in {**condition, "replicate": replicate}.items()})
    axes: Schema = {name: {"$ref": f"#/$defs/axis.{name}"} for name in condition}
    beside: Schema = {name: {"$ref": f"#/$defs/axis.{name}"} for name in (*Overrides.model_fields, "replicate")}
    forms = {form: _object(series, definitions) for form, series in SERIES.items()}
    definitions["series"] = {"anyOf": [_closed({form: schema}, [form]) for form, schema in forms.items()]}
    names = [DENSE_NAME, *sorted(methods)]
    steps = [_step(name, methods[name], definitions, {}) for name in sorted(methods)]
    definitions["steps"] = {"anyOf": [{"enum": sorted(methods)}, *steps]}
    stack = _closed({"stack": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/steps"}}, **beside}, ["stack"])
    dense = _closed({"method": {"const": DENSE_NAME, "description": "The unmodified model."}, **beside}, ["method"])
    entries = [_step(name, methods[name], definitions, beside) for name in sorted(methods)]
    definitions["entry"] = {"anyOf": [{"enum": names}, dense, *entries, stack]}
    definitions["test"] = _test()
    params = {key for method in methods.values() for key in method.Params.model_fields}
    tested = sorted({*Condition.model_fields, "tokens", "method", "replicate", *params})
    top["properties"] |= {
        "defaults": {**_closed(condition), "description": top["properties"]["defaults"]["description"]},
        "axes": {**_closed(axes), "description": top["properties"]["axes"]["description"]},
        "methods": {**top["properties"]["methods"], "items": {"$ref": "#/$defs/entry"}},
        "baselines": {**top["properties"]["baselines"], "items": {"anyOf": [{"$ref": "#/$defs/entry"}, _closed(beside)]}},
        "exclude": {**top["properties"]["exclude"], "items": _closed({key: {"$ref": "#/$defs/test"} for key in tested})},
        "include": {**top["properties"]["include"], "items": _point(params, condition, names)},
    }
    return {"$schema": DIALECT, "title": "Breakeven sweep", **top, "$defs": dict(sorted(definitions.items()))}


def schema_text(methods: Mapping[str, AnyMethod]) -> str:
    """What `schema.json` must hold."""
    return json.dumps(json_schema(methods), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _closed(properties: Schema, required: list[str] | None = None) -> Schema:
    return {"type": "object", "properties": properties, "required": required or [], "additionalProperties": False}


def _object(model: type[BaseModel], definitions: Schema, prefix: str = "") -> Schema:
    """The schema of `model`, with what it refers to moved under `definitions`."""
    schema = model.model_json_schema(by_alias=True, ref_template=f"#/$defs/{prefix}{{model}}")
    definitions.update({f"{prefix}{name}": inner for name, inner in schema.pop("$defs", {}).items()})
    return schema


def _fields(model: type[BaseModel], definitions: Schema) -> Schema:
    properties: Schema = _object(model, definitions)["properties"]
    return properties


def _several(schema: Schema, *, form: Form = "scalar") -> Schema:
    """One value or several: a list, a series, or `each`; a value that is itself a list has its own form (`axis.py`)."""
    one = {key: value for key, value in schema.items() if key not in {"title", "description", "default"}}
    each = one
    if form != "scalar":
        parts: list[Schema] = one.get("anyOf", [one])
        lists = [part for part in parts if part.get("type") == "array"]
        name, beside = (PER_BLOCK, {THEN: {"const": 0}}) if form == "schedule" else (LIST, {})
        forms = [_closed({name: {**part, "minItems": max(1, part.get("minItems", 1))}, **beside}, [name]) for part in lists]
        one = {"anyOf": [*(part for part in parts if part not in lists), *forms]}
        each = {"anyOf": [*one["anyOf"], *lists]}
    entry = each if form == "list" else one
    several: list[Schema] = [{"type": "array", "minItems": 1, "items": entry}]
    several += [{"$ref": "#/$defs/series"}, _closed({"each": {"type": "array", "minItems": 1, "items": each}}, ["each"])]
    described: Schema = {key: schema[key] for key in ("description", "default") if key in schema}
    return {**described, "anyOf": [one, *several]}


def _step(name: str, method: AnyMethod, definitions: Schema, beside: Schema) -> Schema:
    """An entry for one method: its parameters, and `beside` them what any entry may hold."""
    purpose = (method.__doc__ or "").strip().split("\n")[0]
    schema = _object(method.Params, definitions, prefix=f"{name}.")
    fields = method.Params.model_fields
    properties: Schema = schema.get("properties", {})
    params = {key: _several(value, form=form_of(fields[key].annotation)) for key, value in properties.items()}
    return _closed({"method": {"const": name, "description": purpose}, **beside, **params}, ["method", *schema.get("required", [])])


def _test() -> Schema:
    """What an exclude rule may hold for one key."""
    number, scalar = {"type": "number"}, {"type": ["string", "number", "boolean", "null", "array"]}
    operands = {"in": {"type": "array", "items": scalar}, "ne": scalar, "re": {"type": "string"}}
    return {"anyOf": [scalar, {**_closed({name: operands.get(name, number) for name in OPERATORS}), "minProperties": 1}]}


def _point(params: set[str], condition: Schema, names: list[str]) -> Schema:
    """An extra point: condition fields, a method and its parameters. Which parameter goes with which method the reader checks."""
    stack = {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/steps"}}
    replicate = {"type": "integer", "minimum": 0}
    anything: Schema = {key: {} for key in params}
    return _closed({**condition, **anything, "method": {"enum": names}, "stack": stack, "replicate": replicate})
