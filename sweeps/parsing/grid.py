"""Grid: the points that the axes of a sweep span, with the groups of keys that move together under `zip`."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sweeps.geometry.model_families import ModelFamily
from sweeps.parsing.arm_parser import Entry
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


def point(picks: Mapping[str, Choice], bound: dict[int, int]) -> GridPoint:
    return GridPoint({name: pick.value for name, pick in picks.items()}, {name: pick.path for name, pick in picks.items()}, bound)


def family_of(document: Document, sweep: Sweep, names: KnownNames) -> ModelFamily:
    """The family of the first model that the sweep names; all others must be of the same. Raises `SweepError`."""
    places: list[tuple[KeyPath, Mapping[str, Any]]] = [(("defaults",), sweep.defaults), (("axes",), sweep.axes)]
    places += [(("include", index), written) for index, written in enumerate(sweep.include)]
    models = [
        choice
        for path, written in places
        if "model" in written
        for choice in expand_values(document, (*path, "model"), written["model"], str)
    ]
    if (found := next((family for choice in models if (family := names.family(choice.value))), None)) is not None:
        return found
    for choice in models:
        names.field(document, "model", choice)  # raises what is wrong with it
    return names.models


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
    group_of = _tie(document, sweep, axes, entries)
    dimensions: dict[int | str, list[str]] = {}
    for name in axes:
        dimensions.setdefault(group_of.get(name, name), []).append(name)
    return _walk(axes, fixed, dimensions)


def _walk(
    axes: Mapping[str, list[Choice]], fixed: Mapping[str, Choice], dimensions: Mapping[int | str, list[str]]
) -> Iterator[GridPoint]:
    for places in itertools.product(*(range(len(axes[names[0]])) for names in dimensions.values())):
        place = dict(zip(dimensions, places, strict=True))
        moved = {name: axes[name][place[key]] for key, names in dimensions.items() for name in names}
        yield point({**fixed, **moved}, {key: at for key, at in place.items() if isinstance(key, int)})


def _tie(document: Document, sweep: Sweep, axes: Mapping[str, list[Choice]], entries: list[Entry]) -> dict[str, int]:
    """Marks the parameters that move in a group, and returns the group of each axis that does."""
    moved = [(item.label(each), each) for item in entries for each in item.parameters if len(each.choices) > 1]
    group_of: dict[str, int] = {}
    taken: set[str] = set()
    for index, names in enumerate(sweep.zip):
        path: KeyPath = ("zip", index)
        if len(names) < 2:
            raise document.error(path, "needs at least two keys that move together")
        lengths: list[tuple[str, int]] = []
        for place, written in enumerate(names):
            name = SHORTHANDS.get(written, written)
            parameters = [each for label, each in moved if label == name]
            if name in taken:
                raise document.error((*path, place), f"{written} moves in a group already; a key moves in one group only")
            taken.add(name)
            if name in axes:
                group_of[name] = index
                lengths.append((written, len(axes[name])))
            elif not parameters:
                known = {*sweep.axes, *(label for label, _ in moved)}
                raise document.error((*path, place), f"{written} is no axis and no list of a method{did_you_mean(written, known)}")
            else:
                for each in parameters:
                    each.group = index
                    lengths.append((written, len(each.choices)))
        first, count = lengths[0]
        for other, length in lengths[1:]:
            if length != count:
                problem = f"{first} has {count} values, but {other} has {length}; keys that move together need equally many"
                raise document.error(path, problem)
    return group_of


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
