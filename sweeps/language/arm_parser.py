"""The arms of a sweep: entries of `methods`, `baselines` and `include` turned into stacks,
overrides and replicates.
"""

import itertools
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from sweeps.errors import unknown_word
from sweeps.geometry.model_families import ModelFamily
from sweeps.language.axis import Choice, expand_values
from sweeps.language.condition_parser import (
    CONDITION_FIELDS,
    SHORTHANDS,
    KnownNames,
    adapters,
    fields_of,
    of_other_modality,
    written_size,
)
from sweeps.language.yaml_reader import Document, KeyPath, first_error
from sweeps.model.condition import Condition, Overrides
from sweeps.model.job import Arm, Step
from sweeps.model.method import Params, modality_of

DENSE_NAME = "dense"
OVERRIDES: tuple[str, ...] = tuple(Overrides.model_fields)
_BESIDE: Mapping[str, TypeAdapter[Any]] = {
    **adapters(Overrides),
    "replicate": adapters(Arm)["replicate"],
}
_TYPES = {key: {**Arm.model_fields, **Overrides.model_fields}[key].annotation for key in _BESIDE}


class Candidate(NamedTuple):
    """An arm that the sweep requests, and where it is written."""

    arm: Arm
    path: KeyPath
    size_path: KeyPath
    """Where the arm's own image size is written, else `path`."""
    params: tuple[Params, ...]
    """Validated parameters of the stack's steps."""
    schedules: tuple[tuple[int, Choice], ...] = ()
    """Its parameters with a number for each block, each with its step."""
    overrides: bool = True
    """Whether the arm may set a field of the condition for itself."""


@dataclass
class ParameterValues:
    """One key of an entry with the values that it takes: a method's parameter, or (`step` None) an
    override or replicate.
    """

    step: int | None
    key: str
    choices: list[Choice]
    group: int | None = None
    """The `zip` group that it moves with."""


@dataclass
class Entry:
    """One entry of a sweep that names a method or a stack, parsed but not yet expanded."""

    document: Document
    known: KnownNames
    path: KeyPath
    names: list[str] = field(default_factory=list)
    """Methods of the stack, in order."""
    paths: list[KeyPath] = field(default_factory=list)
    parameters: list[ParameterValues] = field(default_factory=list)

    def label(self, parameter: ParameterValues) -> str:
        """What `zip` calls a parameter, such as `topk.keep_rate`; an override goes by the first
        method's name.
        """
        return f"{(self.names or [DENSE_NAME])[parameter.step or 0]}.{parameter.key}"

    def groups(self) -> set[int]:
        return {parameter.group for parameter in self.parameters if parameter.group is not None}

    def _dimensions(self) -> dict[int, list[ParameterValues]]:
        """Parameters that move together: those of each `zip` group, then each of the others (below
        0) alone.
        """
        tied = {
            group: [each for each in self.parameters if each.group == group]
            for group in sorted(self.groups())
        }
        return {
            **tied,
            **{
                -1 - index: [each]
                for index, each in enumerate(self.parameters)
                if each.group is None
            },
        }

    def count(self) -> int:
        """Arms that the entry expands to when every group is free."""
        return math.prod(len(moved[0].choices) for moved in self._dimensions().values())

    def arms(self, bound: Mapping[int, int]) -> Iterator[Candidate]:
        """The arms in order; `bound` fixes the place of zip groups that an axis drives."""
        dimensions = self._dimensions()
        ranges = (
            [bound[group]] if group in bound else range(len(moved[0].choices))
            for group, moved in dimensions.items()
        )
        for places in itertools.product(*ranges):
            moves = zip(dimensions.values(), places, strict=True)
            yield self._arm(
                [(each, each.choices[place]) for moved, place in moves for each in moved]
            )

    def _arm(self, picks: list[tuple[ParameterValues, Choice]]) -> Candidate:
        params = tuple(
            self._params(
                step, {parameter.key: pick for parameter, pick in picks if parameter.step == step}
            )
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
        beside = {parameter.key: pick for parameter, pick in picks if parameter.step is None}
        values = {key: self._override(key, pick) for key, pick in beside.items()}
        replicate = values.pop("replicate", 0)
        arm = Arm(stack=stack, overrides=Overrides(**values), replicate=replicate)
        size_path = beside["image_size"].path if "image_size" in beside else self.path
        schedules = tuple(
            (each.step, pick)
            for each, pick in picks
            if each.step is not None and pick.blocks is not None
        )
        return Candidate(arm, self.path, size_path, params, schedules, bool(values))

    def _params(self, step: int, picks: Mapping[str, Choice]) -> Params:
        model = self.known.methods[self.names[step]].Params
        try:
            return model.model_validate_json(
                json.dumps({key: pick.value for key, pick in picks.items()}), strict=True
            )
        except ValidationError as error:

            def place(location: KeyPath) -> KeyPath:
                pick = picks.get(str(location[0])) if location else None
                return (
                    self.document.place(pick.path, location[1:])
                    if pick
                    else (*self.paths[step], *location)
                )

            raise first_error(self.document, error, model, place) from None

    def _override(self, key: str, pick: Choice) -> Any:
        try:
            value = written_size(self.document, key, pick)
            return _BESIDE[key].validate_python(value, strict=True)
        except ValidationError as error:
            raise first_error(self.document, error, None, lambda _: pick.path) from None

    # ---- parsing ----

    def open_step(self, path: KeyPath, name: Any) -> set[str]:
        """Adds the method `name` to the stack and returns the names of its parameters."""
        methods, own = self.known.methods, self.known.modality
        if isinstance(name, list | dict):
            raise self.document.error(
                (*path, "method"), "needs one method's name; sweep over methods by one entry each"
            )
        if not isinstance(name, str) or name not in methods:
            near = [
                DENSE_NAME,
                *(other for other, method in methods.items() if modality_of(method) == own),
            ]
            raise self.document.error((*path, "method"), unknown_word("method", name, near))
        if (other := modality_of(methods[name])) != own:
            problem = f"{name} is for {other} models, and this sweep is about {own} models"
            raise self.document.error((*path, "method"), problem)
        self.names.append(name)
        self.paths.append(path)
        return set(methods[name].Params.model_fields)

    def add_parameter(self, step: int, key: str, value: Any) -> None:
        annotation = self.known.methods[self.names[step]].Params.model_fields[key].annotation
        choices = expand_values(self.document, (*self.paths[step], key), value, annotation)
        self.parameters.append(ParameterValues(step, key, choices))

    def add_override(self, key: str, value: Any, others: set[str]) -> None:
        path = (*self.path, key)
        if key not in _BESIDE:
            raise self.document.unknown_key(path, (*others, "method", *_BESIDE))
        if key in CONDITION_FIELDS and key not in fields_of(self.known.modality):
            raise self.document.error(path, of_other_modality(self.known.modality), at_key=True)
        self.parameters.append(
            ParameterValues(None, key, expand_values(self.document, path, value, _TYPES[key]))
        )


def parse_entry(
    document: Document,
    path: KeyPath,
    written: Mapping[str, Any] | str,
    known: KnownNames,
    *,
    bare: bool = False,
) -> Entry:
    """The entry at `path`: a method's name, `{method: NAME, …}` or `{stack: [{method: NAME, …}, …],
    …}`, overrides beside it.

    bare: an entry that names no method stands for `dense` (as in `baselines`). Raises `SweepError`.
    """
    if isinstance(written, str):
        written = {"method": written}
    if not bare and "method" not in written and "stack" not in written:
        unknown = next(
            (key for key in written if get_close_matches(key, ("method", "stack"), n=1)), None
        )
        if unknown is not None:
            raise document.unknown_key((*path, unknown), ("method", "stack"))
        raise document.error(
            path, "names no method; add `method: NAME` or `stack: [{method: NAME}, …]`"
        )
    stacked, steps = "stack" in written, _steps(document, path, written)
    entry = Entry(document, known, path)
    for index, (place, step) in enumerate(steps):
        fields = entry.open_step(place, step["method"])
        for key, value in step.items():
            if key in fields:
                entry.add_parameter(index, key, value)
            elif key != "method":
                if stacked:
                    raise document.unknown_key((*place, key), (*fields, "method"))
                entry.add_override(key, value, fields)
    if stacked or not steps:
        for key, value in written.items():
            if key not in ("method", "stack"):
                entry.add_override(key, value, {"stack"} if stacked else set())
    return entry


def _steps(
    document: Document, path: KeyPath, written: Mapping[str, Any]
) -> list[tuple[KeyPath, Mapping[str, Any]]]:
    """The methods of an entry that have parameters, each with its place."""
    if "stack" not in written:
        return [] if written.get("method", DENSE_NAME) == DENSE_NAME else [(path, written)]
    steps, here = written["stack"], (*path, "stack")
    if "method" in written:
        raise document.error(
            (*path, "method"), "stands beside `stack`; an entry has one of them", at_key=True
        )
    if not isinstance(steps, list) or not steps:
        raise document.error(
            here,
            "needs a list such as [{method: topk}, {method: tome}]; the empty stack is `method:"
            " dense`",
        )
    found: list[tuple[KeyPath, Mapping[str, Any]]] = []
    for index, each in enumerate(steps):
        step = {"method": each} if isinstance(each, str) else each
        if not isinstance(step, dict) or "method" not in step:
            raise document.error((*here, index), "needs `method: NAME`")
        if step["method"] == DENSE_NAME:
            raise document.error(
                (*here, index),
                "`dense` is the empty stack, so it cannot be part of one; leave it out",
            )
        found.append(((*here, index), step))
    return found


def condition_keys(written: Mapping[str, Any], known: KnownNames) -> set[str]:
    """The keys of an `include` point that are condition fields; a parameter of the point's method
    by the same name goes first.
    """
    name = written.get("method")
    method = known.methods.get(name) if isinstance(name, str) else None
    taken = set(method.Params.model_fields) if method else set()
    return {key for key in written if key in (*CONDITION_FIELDS, *SHORTHANDS) and key not in taken}


def check_arm(
    document: Document,
    models: ModelFamily,
    condition: Condition,
    arm: Candidate,
    paths: Mapping[str, KeyPath],
) -> None:
    """Refuse an image that is no multiple of the patch, and text longer than the model's positions.
    Raises `SweepError`.
    """
    own = arm.arm.overrides.image_size
    if (problem := models.size_problem(condition, own)) is not None:
        raise document.error(arm.size_path if own else paths[problem.field], problem.text)


def obstacle(known: KnownNames, item: Candidate, own: Condition, *, timed: bool) -> str | None:
    """Why an arm cannot run under its own condition, where that is known; where nothing is
    `timed` it has no runtime.
    """
    if timed and (reason := known.models.runtime_problem(own)) is not None:
        return reason
    network = known.models.network(own.model)
    for step, params in zip(item.arm.stack, item.params, strict=True):
        method: Any = known.methods[step.method]
        if network is not None and (reason := method.refuses(params, network)) is not None:
            return str(reason)
        if timed and own.runtime != "eager" and (reason := params.eager_only()) is not None:
            return f"{step.method} cannot run with runtime {own.runtime}: {reason}"
    return None


def check_schedules(document: Document, models: ModelFamily, model: str, arm: Candidate) -> None:
    """Refuse a schedule that lists more or fewer blocks than the model has, where that is known.
    Raises `SweepError`.
    """
    if not arm.schedules or (network := models.network(model)) is None:
        return
    for step, (_, path, listed) in arm.schedules:
        needed = arm.params[step].schedule_length(network.depth)
        if listed is not None and listed != needed:
            count = f"{model} has {network.depth} blocks" + (
                f", of which {needed} count here" if needed != network.depth else ""
            )
            fewer = (
                "; or add `fill: 0` beside `per_block`, for nothing in the further blocks"
                if listed < needed
                else ""
            )
            raise document.error(path, f"lists {listed} numbers, but {count}; give {needed}{fewer}")
