"""The JSON Schema for editors: it accepts what the parser accepts."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from sweeps.language.expand import Expansion
from sweeps.language.json_schema import json_schema, schema_text
from sweeps.model.method import Method
from tests.fixtures.quickstart import QUICKSTART
from tests.sweeps.conftest import METHODS

FOLDER = Path(__file__).parents[2] / "sweeps"
HEAD = "schema: 1\nname: trial\n"


@pytest.fixture(scope="module")
def errors() -> Callable[[str], list[str]]:
    """The schema's errors for the text of a sweep."""
    schema = json_schema(METHODS)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    return lambda written: [
        error.message for error in validator.iter_errors(yaml.safe_load(written))
    ]


GOOD = [
    QUICKSTART,
    HEAD
    + "defaults: {model: deit_tiny_patch16_224, image_size: 32}\nmethods: [topk, {method: dense,"
    " replicate: [1, 2]}]\n",
    HEAD
    + "defaults: {model: deit_tiny_patch16_224, image_size: 32, threads: null}\nmethods: [{method:"
    " mask, blocks: 1}]\n",
    HEAD
    + "defaults: {model: deit_tiny_patch16_224}\naxes: {image_size: {range: {start: 32, stop: 96,"
    " step: 32}}, pretrained: false}\n"
    + "methods:\n  - {method: topk, layers: [[3], [6]], keep_rate: {linspace: {start: 0.2, stop:"
    " 0.8, num: 3}}}\n"
    + "  - {stack: [{method: topk, keep_rate: [0.5, 0.6, 0.7]}, tome], runtime: [eager, compile]}\n"
    + "baselines: [dense, {runtime: compile}, {method: topk}]\nzip: [[image_size,"
    " topk.keep_rate]]\n"
    + "exclude: [{tokens: {ge: 36, lt: 60}, method: {in: [topk]}}, {keep_rate: 0.2}]\n"
    + "include: [{image_size: 64, method: topk, keep_rate: 0.9, batch_size: 8}]\njobs: {latency:"
    " {budget: 1.5m, timeout: 60}}\n",
]

BAD = {
    "a top key": "axs: {}",
    "a field": "axes: {modle: [x]}",
    "a word": "defaults: {dtype: bf16}",
    "an empty axis": "axes: {image_size: []}",
    "a series": "axes: {image_size: {range: {start: 1, stp: 2}}}",
    "a method": "methods: [{method: tokp}]",
    "a parameter": "methods: [{method: topk, keep_rat: 0.5}]",
    "a missing parameter": "methods: [{method: mask}]",
    "an override": "methods: [{method: topk, runtim: eager}]",
    "an override in a stack": "methods: [{stack: [{method: topk, runtime: eager}]}]",
    "a rule": "exclude: [{keep_rat: 0.5}]",
    "an operator": "exclude: [{keep_rate: {gte: 0.5}}]",
    "a duration": "jobs: {latency: {budget: 10x}}",
    "the protocol": "jobs: {latency: {pairs: {mn: 3}}}",
    "a retry": "retry: {when: [worker_crsh]}",
}


@pytest.mark.parametrize(
    "written", GOOD, ids=["quickstart", "short forms", "required parameter", "everything"]
)
def test_what_the_reader_takes_the_schema_takes(
    written: str, errors: Callable[[str], list[str]], expand: Callable[..., Expansion]
) -> None:
    """Sweeps that expand are valid."""
    assert expand(written).jobs
    assert errors(written) == []


def test_the_committed_schema_takes_what_ships() -> None:
    """Every shipped sweep is valid, and is not with a parameter that no method has."""
    validator = jsonschema.Draft202012Validator(json.loads((FOLDER / "schema.json").read_text()))
    for file in sorted(FOLDER.glob("*.yaml")):
        written = yaml.safe_load(file.read_text())
        assert [error.message for error in validator.iter_errors(written)] == [], file
        wrong = {**written, "methods": [{"method": "topk", "keep_rat": 0.5}]}
        assert not validator.is_valid(wrong), file


@pytest.mark.parametrize("name", BAD)
def test_a_misspelt_key_is_no_valid_sweep(
    name: str, errors: Callable[[str], list[str]], refusal: Callable[..., Exception]
) -> None:
    """What the reader refuses for its form, the schema refuses too."""
    written = BAD[name] + "\n"
    if "methods" not in written:
        written += "methods: [topk]\n"
    if "defaults" not in written:
        written += "defaults: {model: deit_tiny_patch16_224, image_size: 32}\n"
    assert refusal(written)
    assert errors(HEAD + written)


def test_the_schema_completes_methods_and_their_parameters(methods: dict[str, Method]) -> None:
    """Each method's entry offers its name, its purpose, and its own parameters with their
    limits.
    """
    definitions = json_schema(methods)["$defs"]
    assert {"$ref": "#/$defs/method.topk"} in definitions["entry"]["anyOf"]
    topk: dict[str, Any] = definitions["method.topk"]["properties"]
    assert topk["method"] == {
        "const": "topk",
        "description": "A method that promises nothing but its parameters.",
    }
    assert topk["keep_rate"]["default"] == 0.7
    values = definitions[topk["keep_rate"]["$ref"].removeprefix("#/$defs/")]
    assert values["anyOf"][0] == {"exclusiveMinimum": 0, "maximum": 1, "type": "number"}
    assert {"dtype", "attention", "runtime", "image_size", "replicate", "layers"} < set(topk)


def test_the_text_is_stable(methods: dict[str, Method]) -> None:
    """The order in which methods are found does not change the file."""
    assert schema_text(dict(reversed(methods.items()))) == schema_text(methods)
    assert schema_text(methods).endswith("}\n")
