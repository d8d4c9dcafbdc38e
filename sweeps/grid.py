"""Grid: the points that the axes of a sweep span, with the groups of keys that move together under `zip`."""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from sweeps.arms import Entry
from sweeps.axis import Choice
from sweeps.conditions import SHORTHANDS, Vocabulary
from sweeps.reading import Document, KeyPath, did_you_mean
from sweeps.spec import Sweep


class Point(NamedTuple):
    """Values of condition fields, where they stand, and the places of the zip groups that the axes drive."""

    values: dict[str, Any]
    paths: dict[str, KeyPath]
    bound: dict[int, int]


def point(picks: Mapping[str, Choice], bound: dict[int, int]) -> Point:
    return Point({name: pick.value for name, pick in picks.items()}, {name: pick.path for name, pick in picks.items()}, bound)


def defaults(document: Document, sweep: Sweep, vocabulary: Vocabulary) -> dict[str, Choice]:
    """The values under `defaults`; without a device there it is `auto`. Raises `SweepError`."""
    found = vocabulary.fields(document, ("defaults",), {"device": "auto", **sweep.defaults}, several=False)
    return {name: choices[0] for name, choices in found.items()}


def points(document: Document, sweep: Sweep, vocabulary: Vocabulary, entries: list[Entry]) -> Iterator[Point]:
    """The points of the grid one by one, the last axis moving fastest.

    Ties the levers of `entries` together as `zip` says, before it returns. Raises `SweepError`.
    """
    axes = vocabulary.fields(document, ("axes",), sweep.axes, several=True)
    fixed = defaults(document, sweep, vocabulary)
    for name in ("model", "image_size"):
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


def _walk(
    axes: Mapping[str, list[Choice]], fixed: Mapping[str, Choice], dimensions: list[tuple[int | None, list[str]]]
) -> Iterator[Point]:
    for places in itertools.product(*(range(len(axes[names[0]])) for _, names in dimensions)):
        picks = dict(fixed)
        for place, (_, names) in zip(places, dimensions, strict=True):
            picks.update((name, axes[name][place]) for name in names)
        yield point(picks, {group: place for place, (group, _) in zip(places, dimensions, strict=True) if group is not None})


def _tie(document: Document, sweep: Sweep, axes: Mapping[str, list[Choice]], entries: list[Entry]) -> list[list[str]]:
    """Marks the levers that move in a group, and returns the axes of each group."""
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
            levers = [lever for item in entries for lever in item.named(name) if len(lever.choices) > 1]
            if name in taken:
                raise document.error((*path, place), f"{written} moves in a group already; a key moves in one group only")
            taken.add(name)
            if name in axes:
                members.append(name)
                lengths.append((written, len(axes[name])))
            elif levers:
                lengths += [(written, len(lever.choices)) for lever in levers]
                for lever in levers:
                    lever.group = index
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
