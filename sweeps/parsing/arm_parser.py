"""The arms of a sweep: entries of `methods`, `baselines` and `include` turned into stacks, overrides and replicates."""

import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, NamedTuple

from pydantic import BaseModel, TypeAdapter, ValidationError

from sweeps.job import Arm, Overrides, Step
from sweeps.method import Params, modality_of
from sweeps.parsing.axis import Choice, expand_values
from sweeps.parsing.condition_parser import FIELDS, SHORTHANDS, KnownNames, adapters, fields_of, of_other_modality, takes_integers
from sweeps.parsing.sequence import check_bare, form_of, takes
from sweeps.parsing.validation import explained
from sweeps.parsing.yaml_reader import Document, KeyPath, SweepError
from sweeps.suggestions import unknown_word

DENSE_NAME = "dense"
OVERRIDES: tuple[str, ...] = tuple(Overrides.model_fields)
_BESIDE: Mapping[str, TypeAdapter[Any]] = {**adapters(Overrides), "replicate": adapters(Arm)["replicate"]}
_WHOLE_BESIDE = ("image_size", "replicate")


class Schedule(NamedTuple):
    """A parameter with a number for each block."""

    step: int
    blocks: int
    """How many it lists."""
    path: KeyPath


class Candidate(NamedTuple):
    """An arm that the sweep requests, and where it is written."""

    arm: Arm
    key: str
    """The arm's identity, computed once."""
    path: KeyPath
    size_path: KeyPath
    """Where the arm's own image size is written, else `path`."""
    params: tuple[Params, ...]
    """Validated parameters of the stack's steps."""
    schedules: tuple[Schedule, ...] = ()
    """Its parameters with a number for each block."""
    overrides: bool = True
    """Whether the arm may set a field of the condition for itself."""


@dataclass
class ParameterValues:
    """One key of an entry with the values that it takes: a method's parameter, or (`step` None) an override or replicate."""

    step: int | None
    key: str
    path: KeyPath
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

    def named(self, name: str) -> list[ParameterValues]:
        """The parameters that `zip` calls `name`, such as `topk.keep_rate`; an override goes by the first method's name."""
        return [parameter for parameter in self.parameters if self._label(parameter) == name]

    def labels(self) -> set[str]:
        """The names by which `zip` can call the entry's lists."""
        return {self._label(parameter) for parameter in self.parameters if len(parameter.choices) > 1}

    def _label(self, parameter: ParameterValues) -> str:
        return f"{(self.names or [DENSE_NAME])[parameter.step or 0]}.{parameter.key}"

    def groups(self) -> set[int]:
        return {parameter.group for parameter in self.parameters if parameter.group is not None}

    def count(self) -> int:
        """Arms that the entry expands to when every group is free."""
        loose = [len(parameter.choices) for parameter in self.parameters if parameter.group is None]
        tied = {parameter.group: len(parameter.choices) for parameter in self.parameters if parameter.group is not None}
        return math.prod((*loose, *tied.values()))

    def arms(self, bound: Mapping[int, int]) -> Iterator[Candidate]:
        """The arms in order; `bound` fixes the place of zip groups that an axis drives."""
        free = sorted(self.groups() - set(bound))
        lengths = {parameter.group: len(parameter.choices) for parameter in self.parameters}
        loose = [parameter for parameter in self.parameters if parameter.group is None]
        for places in itertools.product(*(range(lengths[group]) for group in free)):
            place = {**bound, **dict(zip(free, places, strict=True))}
            fixed = [
                (parameter, parameter.choices[place[parameter.group]])
                for parameter in self.parameters
                if parameter.group is not None
            ]
            for picks in itertools.product(*(parameter.choices for parameter in loose)):
                yield self._arm([*fixed, *zip(loose, picks, strict=True)])

    def _arm(self, picks: list[tuple[ParameterValues, Choice]]) -> Candidate:
        steps = range(len(self.names))
        params = tuple(
            self._params(step, {parameter.key: pick for parameter, pick in picks if parameter.step == step}) for step in steps
        )
        methods = self.known.methods
        stack = tuple(
            Step(method=name, params=values.model_dump(mode="json", by_alias=True), version=methods[name].VERSION)
            for name, values in zip(self.names, params, strict=True)
        )
        beside = {parameter.key: pick for parameter, pick in picks if parameter.step is None}
        values = {key: self._beside(key, pick) for key, pick in beside.items()}
        replicate = values.pop("replicate", 0)
        arm = Arm(stack=stack, overrides=Overrides(**values), replicate=replicate)
        size_path = beside["image_size"].path if "image_size" in beside else self.path
        listed = [(parameter.step, pick) for parameter, pick in picks if parameter.step is not None]
        schedules = tuple(Schedule(step, pick.blocks, pick.path) for step, pick in listed if pick.blocks is not None)
        return Candidate(arm, arm.arm_id, self.path, size_path, params, schedules, bool(values))

    def _params(self, step: int, picks: Mapping[str, Choice]) -> Params:
        model = self.known.methods[self.names[step]].Params
        try:
            return model.model_validate_json(json.dumps({key: pick.value for key, pick in picks.items()}), strict=True)
        except ValidationError as error:

            def place(location: KeyPath) -> KeyPath:
                if not location:
                    return self.paths[step]
                pick = picks.get(str(location[0]))
                return self.document.place(pick.path, location[1:]) if pick else (*self.paths[step], *location)

            raise explained(self.document, error, model, place) from None

    def _beside(self, key: str, pick: Choice) -> Any:
        try:
            return _BESIDE[key].validate_python(pick.value, strict=True)
        except ValidationError as error:
            raise explained(self.document, error, None, lambda _: pick.path) from None


def entry(document: Document, path: KeyPath, written: Mapping[str, Any] | str, known: KnownNames, *, bare: bool = False) -> Entry:
    """The entry at `path`: a method's name, `{method: NAME, …}` or `{stack: [{method: NAME, …}, …], …}`, overrides beside it.

    bare: an entry that names no method stands for `dense` (as in `baselines`). Raises `SweepError`.
    """
    if isinstance(written, str):
        written = {"method": written}
    if not bare and "method" not in written and "stack" not in written:
        unknown = next((key for key in written if get_close_matches(key, ("method", "stack"), n=1)), None)
        if unknown is not None:
            raise document.unknown_key((*path, unknown), ("method", "stack"))
        raise document.error(path, "names no method; add `method: NAME` or `stack: [{method: NAME}, …]`")
    if "stack" in written:
        return _stacked(document, path, written, known)
    result = Entry(document, known, path)
    name = written.get("method", DENSE_NAME)
    fields: set[str] = set()
    if name != DENSE_NAME:
        fields = _open_step(result, path, name)
    for key, value in written.items():
        if key == "method":
            continue
        if key in fields:
            result.parameters.append(_parameter(result, 0, key, value))
        else:
            result.parameters.append(_beside(result, key, value, fields))
    return result


def condition_keys(written: Mapping[str, Any], known: KnownNames) -> set[str]:
    """The keys of an `include` point that are condition fields; a parameter of the point's method by the same name goes first."""
    name = written.get("method")
    method = known.methods.get(name) if isinstance(name, str) else None
    taken = set(method.Params.model_fields) if method else set()
    return {key for key in written if key in (*FIELDS, *SHORTHANDS) and key not in taken}


def _stacked(document: Document, path: KeyPath, written: Mapping[str, Any], known: KnownNames) -> Entry:
    result = Entry(document, known, path)
    steps = written["stack"]
    here = (*path, "stack")
    if "method" in written:
        raise document.error((*path, "method"), "stands beside `stack`; an entry has one of them", at_key=True)
    if not isinstance(steps, list) or not steps:
        raise document.error(here, "needs a list such as [{method: topk}, {method: tome}]; the empty stack is `method: dense`")
    for index, step in enumerate(steps):
        spot = (*here, index)
        if isinstance(step, str):
            step = {"method": step}  # noqa: PLW2901 - the short form of the same step
        if not isinstance(step, dict) or "method" not in step:
            raise document.error(spot, "needs `method: NAME`")
        if step["method"] == DENSE_NAME:
            raise document.error(spot, "`dense` is the empty stack, so it cannot be part of one; leave it out")
        fields = _open_step(result, spot, step["method"])
        for key, value in step.items():
            if key in fields:
                result.parameters.append(_parameter(result, index, key, value))
            elif key != "method":
                raise _unknown_parameter(result, (*spot, key), (*fields, "method"))
    for key, value in written.items():
        if key != "stack":
            result.parameters.append(_beside(result, key, value, {"stack"}))
    return result


def _open_step(result: Entry, path: KeyPath, name: Any) -> set[str]:
    """Adds the method `name` to the entry's stack and returns the names of its parameters."""
    methods, own = result.known.methods, result.known.modality
    if not isinstance(name, str) or name not in methods:
        hint = "; sweep over methods by one entry each" if isinstance(name, list | dict) else ""
        near = [DENSE_NAME, *(other for other, method in methods.items() if modality_of(method) == own)]
        shown = unknown_word("method", name, near) if not hint else f"needs one method's name{hint}"
        raise result.document.error((*path, "method"), shown)
    if modality_of(methods[name]) != own:
        problem = f"{name} is for {modality_of(methods[name])} models, and this sweep is about {own} models"
        raise result.document.error((*path, "method"), problem)
    result.names.append(name)
    result.paths.append(path)
    return set(methods[name].Params.model_fields)


def _parameter(result: Entry, step: int, key: str, value: Any) -> ParameterValues:
    path = (*result.paths[step], key)
    annotation = result.known.methods[result.names[step]].Params.model_fields[key].annotation
    form = form_of(annotation)
    if form == "list" and isinstance(value, list):
        check_bare(result.document, path, value, annotation)
    choices = expand_values(
        result.document,
        path,
        value,
        whole=takes_integers(annotation),
        form=form,
        mapping=takes(annotation, Mapping) or takes(annotation, BaseModel),
    )
    return ParameterValues(step, key, path, choices)


def _beside(result: Entry, key: str, value: Any, others: set[str]) -> ParameterValues:
    path = (*result.path, key)
    if key not in _BESIDE:
        raise _unknown_parameter(result, path, (*others, "method", *_BESIDE))
    if key in FIELDS and key not in fields_of(result.known.modality):
        raise result.document.error(path, of_other_modality(result.known.modality), at_key=True)
    return ParameterValues(None, key, path, expand_values(result.document, path, value, whole=key in _WHOLE_BESIDE))


def _unknown_parameter(result: Entry, path: KeyPath, known: Iterable[str]) -> SweepError:
    """The error for a key that the entry's last method has not; a name that only the store still has stands for its present one."""
    key = str(path[-1])
    name = result.known.present_name(result.names[-1:], key)
    return result.document.unknown_key(path, known if name == key else [name])
