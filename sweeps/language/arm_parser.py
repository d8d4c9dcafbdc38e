"""The arms of a sweep: entries of `methods`, `baselines` and `include` turned into stacks,
overrides and replicates.
"""

import itertools
import json
import math
from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, NamedTuple, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from sweeps.errors import unknown_word
from sweeps.geometry.model_families import ModelFamily, OwnModels, code_name
from sweeps.language.condition_parser import (
    CONDITION_FIELDS,
    SHORTHANDS,
    Choice,
    KnownNames,
    adapters,
    checked_field,
    expand_values,
    fields_of,
    of_other_modality,
)
from sweeps.language.yaml_reader import KeyPath, Place, first_error, shown
from sweeps.model.condition import Condition, Overrides
from sweeps.model.job import NAMING, Arm, Step
from sweeps.model.method import Params, condition_refusal, modality_of

DENSE_NAME = "dense"
CALLABLE = "callable"
"""The key of an arm from a file of the user, instead of `method`."""
_BESIDE: Mapping[str, TypeAdapter[Any]] = {
    **adapters(Overrides),
    "replicate": adapters(Arm)["replicate"],
}
_TYPES = {key: {**Arm.model_fields, **Overrides.model_fields}[key].annotation for key in _BESIDE}
_Key = TypeVar("_Key", bound=Hashable)


class Candidate(NamedTuple):
    """An arm that the sweep requests, and where it is written."""

    arm: Arm
    place: Place
    size_place: Place
    """Where the arm's own image size is written, else `place`."""
    params: tuple[Params, ...]
    """Validated parameters of the stack's steps."""
    schedules: tuple[tuple[int, Choice], ...]
    """Its parameters with a number for each block, each with its step."""


@dataclass
class ParameterValues:
    """One key of an entry with the values that it takes: a method's parameter, or (`step` None) an
    override or replicate.
    """

    step: int | None
    key: str
    choices: list[Choice]
    group: int
    """The `zip` group that it moves with; below 0 it moves alone."""


def combinations(
    counts: Mapping[_Key, int], bound: Mapping[_Key, int]
) -> Iterator[dict[_Key, int]]:
    """Every choice of one index for each key, the last moving fastest; `bound` fixes some."""
    ranges = ([bound[key]] if key in bound else range(count) for key, count in counts.items())
    for indices in itertools.product(*ranges):
        yield dict(zip(counts, indices, strict=True))


@dataclass
class Entry:
    """One entry of a sweep that names a method or a stack, parsed but not yet expanded."""

    known: KnownNames
    place: Place
    names: list[str] = field(default_factory=list)
    """Methods of the stack, in order."""
    steps: list[Place] = field(default_factory=list)
    parameters: list[ParameterValues] = field(default_factory=list)
    expanded: dict[tuple[tuple[int, int], ...], list[Candidate]] = field(default_factory=dict)
    """Its arms by what an axis drives."""

    def label(self, parameter: ParameterValues) -> str:
        """What `zip` calls a parameter, such as `topk.keep_rate`; an override goes by the first
        method's name.
        """
        return f"{(self.names or [DENSE_NAME])[parameter.step or 0]}.{parameter.key}"

    def _counts(self) -> dict[int, int]:
        """How many values each group has: those of `zip`, then each other parameter alone."""
        order = sorted(
            self.parameters, key=lambda each: each.group if each.group >= 0 else math.inf
        )
        return {each.group: len(each.choices) for each in order}

    def count(self) -> int:
        """Arms that the entry expands to when every group is free."""
        return math.prod(self._counts().values())

    def arms(self, bound: Mapping[int, int]) -> list[Candidate]:
        """The arms in order; `bound` fixes the index of zip groups that an axis drives."""
        counts = self._counts()
        own = tuple((group, bound[group]) for group in counts if group in bound)
        if own not in self.expanded:
            self.expanded[own] = [
                self._arm([(each, each.choices[indices[each.group]]) for each in self.parameters])
                for indices in combinations(counts, dict(own))
            ]
        return self.expanded[own]

    def _arm(self, picks: list[tuple[ParameterValues, Choice]]) -> Candidate:
        params = tuple(
            self._params(step, {each.key: pick for each, pick in picks if each.step == step})
            for step in range(len(self.names))
        )
        stack = tuple(
            Step(
                method=name,
                params=values.model_dump(mode="json"),
                version=self.known.methods[name].VERSION,
            )
            for name, values in zip(self.names, params, strict=True)
        )
        beside = {each.key: pick for each, pick in picks if each.step is None}
        values = {key: checked_field(_BESIDE[key], key, pick) for key, pick in beside.items()}
        replicate = values.pop("replicate", 0)
        return Candidate(
            Arm(stack=stack, overrides=Overrides(**values), replicate=replicate),
            self.place,
            beside["image_size"].place if "image_size" in beside else self.place,
            params,
            tuple(
                (each.step, pick)
                for each, pick in picks
                if each.step is not None and pick.blocks is not None
            ),
        )

    def _params(self, step: int, picks: Mapping[str, Choice]) -> Params:
        model = self.known.methods[self.names[step]].Params

        def place_of(location: KeyPath) -> Place:
            pick = picks.get(str(location[0])) if location else None
            return pick.place.inside(location[1:]) if pick else self.steps[step].inside(location)

        try:
            return model.model_validate_json(
                json.dumps({key: pick.value for key, pick in picks.items()}), strict=True
            )
        except ValidationError as error:
            raise first_error(error, place_of, model) from None

    # ---- parsing ----

    def open_step(self, place: Place, name: Any) -> Mapping[str, FieldInfo]:
        """Adds the method `name` to the stack and returns its parameters."""
        methods, own, here = self.known.methods, self.known.models.modality, place / "method"
        if (code := code_name(name)) is not None and isinstance(self.known.models, OwnModels):
            name, here = code, place / CALLABLE
            try:
                methods.setdefault(code, self.known.models.method(code))
            except ValueError as error:
                raise here.error(str(error)) from None
        if isinstance(name, list | dict):
            raise here.error("needs one method's name; sweep over methods by one entry each")
        if not isinstance(name, str) or name not in methods:
            near = [other for other, method in methods.items() if modality_of(method) == own]
            raise here.error(unknown_word("method", name, [DENSE_NAME, *near]))
        if (other := modality_of(methods[name])) != own:
            raise here.error(f"{name} is for {other} models, and this sweep is about {own} models")
        self.names.append(name)
        self.steps.append(place)
        return methods[name].Params.model_fields

    def add_override(self, key: str, value: Any, others: Collection[str]) -> None:
        if key not in _BESIDE:
            raise self.place.unknown_key(key, (*others, "method", *_BESIDE))
        place, modality = self.place / key, self.known.models.modality
        if key in CONDITION_FIELDS and key not in fields_of(modality):
            raise place.error(of_other_modality(key, modality), at_key=True)
        self.add(None, key, expand_values(place, value, _TYPES[key]))

    def add(self, step: int | None, key: str, choices: list[Choice]) -> None:
        if step is not None and key in NAMING:
            choices = [one._replace(value=self.known.placed(key, one.value)) for one in choices]
        self.parameters.append(ParameterValues(step, key, choices, -1 - len(self.parameters)))


def parse_entry(
    place: Place, written: Mapping[str, Any] | str, known: KnownNames, *, bare: bool = False
) -> Entry:
    """The entry at `place`: a method's name, `{method: NAME, …}` or `{stack: [{method: NAME, …},
    …], …}`, overrides beside it.

    bare: an entry that names no method stands for `dense` (as in `baselines`). Raises `SweepError`.
    """
    if isinstance(written, str):
        written = {"method": written}
    written = _with_method(place, written)
    bare = bare or isinstance(known.models, OwnModels)
    if not bare and "method" not in written and "stack" not in written:
        for key in written:
            if get_close_matches(key, ("method", "stack"), n=1):
                raise place.unknown_key(key, ("method", "stack"))
        raise place.error("names no method; add `method: NAME` or `stack: [{method: NAME}, …]`")
    stacked, steps = "stack" in written, _steps(place, written)
    entry = Entry(known, place)
    for index, (here, step) in enumerate(steps):
        fields = entry.open_step(here, step["method"])
        for key, value in step.items():
            if key in fields:
                entry.add(index, key, expand_values(here / key, value, fields[key].annotation))
            elif key != "method":
                if stacked:
                    raise here.unknown_key(key, (*fields, "method"))
                entry.add_override(key, value, fields)
    if stacked or not steps:
        for key, value in written.items():
            if key not in {"method", "stack"}:
                entry.add_override(key, value, {"stack"} if stacked else set())
    return entry


def _with_method(place: Place, written: Mapping[str, Any]) -> Mapping[str, Any]:
    """A mapping whose method is called by that name, where it is a function in a file too."""
    if CALLABLE not in written:
        return written
    if "method" in written:
        raise (place / "method").error(
            f"stands beside `{CALLABLE}`; write one of them", at_key=True
        )
    if code_name(written[CALLABLE]) is None:
        right = "needs FILE.py:FUNCTION, the path from this file"
        raise (place / CALLABLE).error(f"{right}, not {shown(written[CALLABLE])}")
    return {"method" if key == CALLABLE else key: value for key, value in written.items()}


def _steps(place: Place, written: Mapping[str, Any]) -> list[tuple[Place, Mapping[str, Any]]]:
    """The methods of an entry that have parameters, each with its place."""
    if "stack" not in written:
        return [] if written.get("method", DENSE_NAME) == DENSE_NAME else [(place, written)]
    if "method" in written:
        raise (place / "method").error("stands beside `stack`; write one of them", at_key=True)
    steps, here = written["stack"], place / "stack"
    if not isinstance(steps, list) or not steps:
        raise here.error(
            "needs a list such as [{method: topk}, {method: tome}]; the empty stack is `method:"
            " dense`"
        )
    found: list[tuple[Place, Mapping[str, Any]]] = []
    for index, each in enumerate(steps):
        step = {"method": each} if isinstance(each, str) else each
        if isinstance(step, dict):
            step = _with_method(here / index, step)
        if not isinstance(step, dict) or "method" not in step:
            raise (here / index).error("needs `method: NAME`")
        if step["method"] == DENSE_NAME:
            raise (here / index).error("`dense` is the empty stack; leave it out of others")
        found.append((here / index, step))
    return found


def condition_keys(written: Mapping[str, Any], known: KnownNames) -> set[str]:
    """The keys of an `include` point that are condition fields; a parameter of the point's method
    by the same name goes first.
    """
    method = known.methods.get(str(written.get("method")))
    taken = set(method.Params.model_fields) if method else set()
    return {*written} & {*CONDITION_FIELDS, *known.models.free_names, *SHORTHANDS} - taken


def check_size(
    models: ModelFamily, condition: Condition, item: Candidate, places: Mapping[str, Place]
) -> None:
    """Refuse an image that is no multiple of the patch, and text longer than the model's positions.
    Raises `SweepError`.
    """
    own = item.arm.overrides.image_size
    if (problem := models.size_problem(condition, own)) is not None:
        raise (item.size_place if own else places[problem.field]).error(problem.text)


def obstacle(known: KnownNames, item: Candidate, own: Condition, *, timed: bool) -> str | None:
    """Why an arm cannot run under its own condition, where that is known; where nothing is
    `timed` it has no runtime.
    """
    if (reason := known.models.runtime_problem(own, timed=timed)) is not None:
        return reason
    network = known.models.network(own.model)
    for step, params in zip(item.arm.stack, item.params, strict=True):
        method: Any = known.methods[step.method]
        if network is not None and (reason := method.refuses(params, network)) is not None:
            return str(reason)
        if (reason := condition_refusal(step.method, params, own, timed=timed)) is not None:
            return reason
    return None


def check_schedules(models: ModelFamily, model: str, item: Candidate) -> None:
    """Refuse a schedule that lists more or fewer blocks than the model has, where that is known.
    Raises `SweepError`.
    """
    if not item.schedules or (network := models.network(model)) is None:
        return
    for step, (_, place, listed) in item.schedules:
        needed = item.params[step].schedule_length(network.depth)
        if listed is not None and listed != needed:
            counted = "" if needed == network.depth else f", of which {needed} count here"
            fewer = "; or add `fill: 0`, for nothing in the further blocks"
            raise place.error(
                f"lists {listed} numbers, but {model} has {network.depth} blocks{counted}; give"
                f" {needed}{fewer if listed < needed else ''}"
            )
