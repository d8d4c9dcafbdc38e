"""Grid: the points that the axes of a sweep span, with the groups of keys that move together under `zip`."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sweeps.geometry.model_families import ModelFamily
from sweeps.job import Condition, Kind
from sweeps.kinds import KINDS, Modality, kinds_of
from sweeps.parsing.arm_parser import Candidate, Entry
from sweeps.parsing.axis import Choice, expand_values
from sweeps.parsing.condition_parser import SHORTHANDS, KnownNames
from sweeps.parsing.file_schema import Sweep
from sweeps.parsing.yaml_reader import Document, KeyPath, SweepError
from sweeps.suggestions import did_you_mean


class GridPoint(NamedTuple):
    """Values of condition fields, where they stand, and the places of the zip groups that the axes drive."""

    values: dict[str, Any]
    paths: dict[str, KeyPath]
    bound: dict[int, int]


def family_of(document: Document, sweep: Sweep, names: KnownNames) -> ModelFamily:
    """The family of the first model that the sweep names; all others must be of the same. Raises `SweepError`."""
    places: list[tuple[KeyPath, Mapping[str, Any]]] = [(("defaults",), sweep.defaults), (("axes",), sweep.axes)]
    places += [(("include", index), written) for index, written in enumerate(sweep.include)]
    named = [
        choice
        for path, written in places
        if "model" in written
        for choice in expand_values(document, (*path, "model"), written["model"], whole=False)
    ]
    for choice in named:
        if (found := names.family(choice.value)) is not None:
            return found
    for choice in named:
        names.field(document, "model", choice)  # raises what is wrong with it
    return names.models


def required(kinds: Iterable[Kind]) -> tuple[str, ...]:
    """The condition fields that every point must have."""
    return ("model", *dict.fromkeys(name for kind in kinds for name in KINDS[kind].required))


def check_jobs(document: Document, modality: Modality, kinds: Iterable[Kind]) -> None:
    """Refuse kinds of jobs that are not for models of this modality. Raises `SweepError`."""
    for kind in kinds:
        if (other := KINDS[kind].modality) != modality:
            right = " or ".join(own.name for own in kinds_of(modality))
            problem = f"is for {other} models, and this sweep is about {modality} models; request {right}"
            raise document.error(("jobs", kind), problem, at_key=True)


def check_size(document: Document, models: ModelFamily, condition: Condition, item: Candidate, spot: GridPoint) -> None:
    """Refuse an image that is no multiple of the patch, and text longer than the model's positions. Raises `SweepError`."""
    own = item.arm.overrides.image_size
    if (problem := models.size_problem(condition, own)) is not None:
        raise document.error(item.size_path if own else spot.paths[problem.field], problem.text)


def check_schedules(document: Document, models: ModelFamily, model: str, item: Candidate) -> None:
    """Refuse a schedule that lists more or fewer blocks than the model has, where that is known. Raises `SweepError`."""
    if (network := models.network(model)) is None:
        return
    for step, listed, path in item.schedules:
        needed = item.params[step].schedule_length(network.depth)
        if listed != needed:
            count = f"{model} has {network.depth} blocks" + (f", of which {needed} count here" if needed != network.depth else "")
            fewer = "; or add `then: 0` beside `per_block`, for nothing in the further blocks" if listed < needed else ""
            raise document.error(path, f"lists {listed} numbers, but {count}; give {needed}{fewer}")


def point(picks: Mapping[str, Choice], bound: dict[int, int]) -> GridPoint:
    return GridPoint({name: pick.value for name, pick in picks.items()}, {name: pick.path for name, pick in picks.items()}, bound)


def defaults(document: Document, sweep: Sweep, names: KnownNames) -> dict[str, Choice]:
    """The values under `defaults`; without a device there it is `auto`. Raises `SweepError`."""
    found = names.fields(document, ("defaults",), {"device": "auto", **sweep.defaults}, several=False)
    return {name: choices[0] for name, choices in found.items()}


def points(
    document: Document, sweep: Sweep, names: KnownNames, entries: list[Entry], required: Sequence[str]
) -> Iterator[GridPoint]:
    """The points of the grid one by one, the last axis moving fastest; `required` are the fields that each must have.

    Ties the parameters of `entries` together as `zip` requests, before it returns. Raises `SweepError`.
    """
    axes = names.fields(document, ("axes",), sweep.axes, several=True)
    fixed = defaults(document, sweep, names)
    for name in required:
        if name not in axes and name not in fixed:
            raise document.error(("axes", name), "is missing; give it under `axes` or `defaults`")
    groups = _tie(document, sweep, axes, entries)
    dimensions: list[tuple[int | None, list[str]]] = []
    for name in axes:
        group = next((index for index, names in enumerate(groups) if name in names), None)
        dimension = (group, [name] if group is None else groups[group])
        if dimension not in dimensions:
            dimensions.append(dimension)
    return _walk(axes, fixed, dimensions)


def idle_groups(document: Document, sweep: Sweep, entries: Sequence[Entry]) -> Iterator[SweepError]:
    """What to warn of: groups of `zip` that change nothing, once `points` has tied their keys."""
    for index, names in enumerate(sweep.zip):
        axes = [sweep.axes[name] for name in names if name in sweep.axes]
        tied = max((sum(parameter.group == index for parameter in item.parameters) for item in entries), default=0)
        if axes and not tied and all(isinstance(values, list) and len(values) == 1 for values in axes):
            yield document.error(("zip", index), "moves nothing: each of its keys has one value; give them more, or leave it out")
        elif not axes and tied < 2:
            problem = "ties nothing: its keys stand in entries that expand each by itself; tie keys of one entry, or an axis"
            yield document.error(("zip", index), problem)


def _walk(
    axes: Mapping[str, list[Choice]], fixed: Mapping[str, Choice], dimensions: list[tuple[int | None, list[str]]]
) -> Iterator[GridPoint]:
    for places in itertools.product(*(range(len(axes[names[0]])) for _, names in dimensions)):
        picks = dict(fixed)
        for place, (_, names) in zip(places, dimensions, strict=True):
            picks.update((name, axes[name][place]) for name in names)
        yield point(picks, {group: place for place, (group, _) in zip(places, dimensions, strict=True) if group is not None})


def _tie(document: Document, sweep: Sweep, axes: Mapping[str, list[Choice]], entries: list[Entry]) -> list[list[str]]:
    """Marks the parameters that move in a group, and returns the axes of each group."""
    taken: set[str] = set()
    groups = []
    for index, names in enumerate(sweep.zip):
        path: KeyPath = ("zip", index)
        if len(names) < 2:
            raise document.error(path, "needs at least two keys that move together")
        members: list[str] = []
        lengths: list[tuple[str, int]] = []
        for place, written in enumerate(names):
            name = SHORTHANDS.get(written, written)
            parameters = [parameter for item in entries for parameter in item.named(name) if len(parameter.choices) > 1]
            if name in taken:
                raise document.error((*path, place), f"{written} moves in a group already; a key moves in one group only")
            taken.add(name)
            if name in axes:
                members.append(name)
                lengths.append((written, len(axes[name])))
            elif parameters:
                lengths += [(written, len(parameter.choices)) for parameter in parameters]
                for parameter in parameters:
                    parameter.group = index
            else:
                known = {*sweep.axes, *(label for item in entries for label in item.labels())}
                raise document.error((*path, place), f"{written} is no axis and no list of a method{did_you_mean(written, known)}")
        first, count = lengths[0]
        for other, length in lengths[1:]:
            if length != count:
                problem = f"{first} has {count} values, but {other} has {length}; keys that move together need equally many"
                raise document.error(path, problem)
        groups.append(members)
    return groups
