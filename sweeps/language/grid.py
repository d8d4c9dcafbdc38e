"""Grid: the points that the axes of a sweep span, the keys that move together under `zip`, the
rules of `exclude`, and the feasible values of a search, which stand where a grid would.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import ceil, floor, gcd, inf, isqrt, lcm, log, prod
from typing import Any, NamedTuple

from sweeps.errors import did_you_mean, unknown_word
from sweeps.geometry.model_families import ModelFamily, OwnModels
from sweeps.language.arm_parser import DENSE_NAME, Entry, combinations
from sweeps.language.condition_parser import (
    CONDITION_FIELDS,
    SHORTHANDS,
    THREADS_KEY,
    Choice,
    Form,
    KnownNames,
    expand_values,
    form_of,
    is_sequence,
    sequence,
    takes,
)
from sweeps.language.file_schema import BreakEvenSearch, Stop, Sweep
from sweeps.language.yaml_reader import Document, Place, SweepError, shown
from sweeps.model.condition import ImageSize, image_shape, pixel_size
from sweeps.model.identity import canonical
from sweeps.model.job import Arm, Protocol
from sweeps.model.kinds import KINDS, THREAD_FIELDS
from sweeps.number_format import count

Test = Callable[[Any], bool]
OPERATORS = ("in", "ge", "gt", "le", "lt", "ne", "re")
SEARCH_AXES = ("image_size", "batch_size", "prompt_tokens", "threads")
"""Fields of the condition along which a search can go."""
_FINENESS = 3
"""Values within the factor at which a search stops, where there are more than it needs."""
_LINEAR = 48
"""Values of a bracket that reaches 0."""


class GridPoint(NamedTuple):
    """Values of condition fields, and the indices of the zip groups that the axes drive."""

    picks: dict[str, Choice]
    bound: dict[int, int]


def written_models(
    document: Document, sweep: Sweep, include: Sequence[Mapping[str, Any]] = ()
) -> list[Choice]:
    sections = {document.at("defaults"): sweep.defaults, document.at("axes"): sweep.axes}
    for index, written in enumerate(include):
        sections[document.at("include", index)] = dict(written)
    return [
        choice
        for place, written in sections.items()
        if "model" in written
        for choice in expand_values(place / "model", written["model"], str)
    ]


def family_of(document: Document, sweep: Sweep, names: KnownNames) -> ModelFamily:
    """The family of the first model that the sweep names; all others must be of the same. Raises
    `SweepError`.
    """
    models = written_models(document, sweep, sweep.include)
    for choice in models:
        if (family := names.family(choice.value)) is not None:
            return family
    for choice in models:
        names.field("model", choice)  # raises what is wrong with it
    return names.models


def check_x_axis(
    document: Document, sweep: Sweep, names: KnownNames, models: Sequence[Choice]
) -> None:
    """Check the models, and along which axis curves of files run. Raises `SweepError`."""
    family = names.models
    for choice in models:
        names.field("model", choice)
    if isinstance(family, OwnModels):
        if (problem := family.x_axis_problem()) is not None:
            raise document.at("axes" if sweep.x_axis is None else "x_axis").error(problem)
    elif sweep.x_axis is not None:
        right = f"is for models of files; of {family.modality} models curves run along the tokens"
        raise document.at("x_axis").error(right, at_key=True)


def defaults(document: Document, sweep: Sweep, names: KnownNames) -> dict[str, Choice]:
    """The values under `defaults`; without a device there it is `auto`. Raises `SweepError`."""
    return names.fields(document.at("defaults"), {"device": "auto", **sweep.defaults})


def points(
    document: Document,
    sweep: Sweep,
    names: KnownNames,
    entries: list[Entry],
    required: Sequence[str],
) -> Iterator[GridPoint]:
    """The points of the grid one by one, the last axis moving fastest; `required` are the fields
    that each must have.

    Ties the parameters of `entries` together as `zip` requests, before it returns. Raises
    `SweepError`.
    """
    axes = names.axes(document.at("axes"), sweep.axes)
    fixed = defaults(document, sweep, names)
    for name in required:
        if name not in axes and name not in fixed:
            place = document.at("axes", name)
            raise place.error("is missing; give it under `axes` or `defaults`")
    group_of = _tie(document, sweep, axes, entries)
    keys = {name: THREADS_KEY if name in THREAD_FIELDS else name for name in axes}
    moved_by = {name: group_of.get(key, key) for name, key in keys.items()}
    counts = {moved_by[name]: len(choices) for name, choices in axes.items()}
    return (
        GridPoint(
            fixed | {name: choices[at[moved_by[name]]] for name, choices in axes.items()},
            {key: index for key, index in at.items() if isinstance(key, int)},
        )
        for at in combinations(counts, {})
    )


def _tie(
    document: Document, sweep: Sweep, axes: Mapping[str, list[Choice]], entries: list[Entry]
) -> dict[str, int]:
    """Marks the parameters that move in a group, and returns the group of each axis that does."""
    moved = [
        (item.label(each), each)
        for item in entries
        for each in item.parameters
        if len(each.choices) > 1
    ]
    group_of: dict[str, int] = {}
    taken: set[str] = set()
    for index, names in enumerate(sweep.zip):
        place = document.at("zip", index)
        if len(names) < 2:
            raise place.error("needs at least two keys that move together")
        lengths: list[tuple[str, int]] = []
        for at, written in enumerate(names):
            name = SHORTHANDS.get(written, written)
            parameters = [each for label, each in moved if label == name]
            if name in taken:
                raise (place / at).error(f"{written} moves in a group already; leave it out of one")
            taken.add(name)
            if name in axes:
                group_of[name] = index
                lengths.append((written, len(axes[name])))
            elif not parameters:
                hint = did_you_mean(written, {*sweep.axes, *(label for label, _ in moved)})
                raise (place / at).error(f"{written} is no axis and no list of a method{hint}")
            for each in parameters if name not in axes else ():
                each.group = index
                lengths.append((written, len(each.choices)))
        first, expected = lengths[0]
        for other, length in lengths[1:]:
            if length != expected:
                raise place.error(
                    f"{first} has {expected} values, but {other} has {length}; keys that move"
                    " together need equally many"
                )
    return group_of


def idle_groups(document: Document, sweep: Sweep, entries: Sequence[Entry]) -> Iterator[SweepError]:
    """What to warn of: groups of `zip` that change nothing, once `points` has tied their keys."""
    for index, names in enumerate(sweep.zip):
        place = document.at("zip", index)
        axes = [sweep.axes[name] for name in names if name in sweep.axes]
        tied = max(
            (sum(parameter.group == index for parameter in item.parameters) for item in entries),
            default=0,
        )
        if not axes and tied < 2:
            yield place.error(
                "ties nothing: its keys stand in entries that expand one by one; tie keys of"
                " one entry, or an axis"
            )
        elif not tied and all(isinstance(each, list) and len(each) == 1 for each in axes):
            yield place.error("moves nothing: each of its keys has one value; leave it out")


class Rule(NamedTuple):
    """Tests that must all hold. A stack is matched when one of its steps is."""

    tests: tuple[tuple[str, Test], ...]

    def matches(self, point: Mapping[str, Any], arm: Arm) -> bool:
        """`point` holds the condition fields as the arm overrides them, and `tokens`."""
        about = {**point, "replicate": arm.replicate}
        steps: list[tuple[tuple[str, ...], Mapping[str, Any]]]
        steps = [((step.method, arm.method), step.params) for step in arm.stack]
        return any(
            all(_holds(key, test, names, {**about, **params}) for key, test in self.tests)
            for names, params in steps or [((DENSE_NAME,), {})]
        )


def _holds(key: str, test: Test, names: tuple[str, ...], values: Mapping[str, Any]) -> bool:
    return any(map(test, names)) if key == "method" else key in values and test(values[key])


def rules(document: Document, sweep: Sweep, names: KnownNames, used: Sequence[str]) -> list[Rule]:
    """The rules under `exclude`; `used` are the methods of the sweep, whose parameters a rule may
    name. Raises `SweepError`.
    """
    params = {method: names.methods[method].Params.model_fields for method in used}
    forms: dict[str, set[Form]] = {}
    for fields in params.values():
        for name, info in fields.items():
            forms.setdefault(name, set()).add(form_of(info.annotation))
    known = {*CONDITION_FIELDS, *names.models.free_names, "tokens", "method", "replicate", *forms}
    parser = _RuleParser(names, forms)
    result = []
    for index, rule in enumerate(sweep.exclude):
        place = document.at("exclude", index)
        if not rule:
            raise place.error("is an empty rule, which would exclude everything; name a key")
        for key in rule:
            if key not in known:
                method, _, parameter = key.partition(".")
                if parameter in params.get(method, ()):
                    right = f"{{method: {method}, {parameter}: {shown(rule[key])}}}"
                    raise (place / key).error(f"is written {right} in a rule", at_key=True)
                raise place.unknown_key(key, known)
        parsed = (
            (key, test)
            for key, value in rule.items()
            for test in parser.tests(place / key, key, value)
        )
        result.append(Rule(tuple(parsed)))
    return result


class _RuleParser(NamedTuple):
    names: KnownNames
    parameters: Mapping[str, set[Form]]
    """What one value of each parameter of the methods is."""

    def tests(self, place: Place, key: str, value: Any) -> list[Test]:
        forms = self.parameters.get(key, set())
        if is_sequence(value):
            form: Form = next((form for form in ("list", "schedule") if form in forms), "scalar")
            listed = sequence(place, value, form)
            return [self.equal(listed.place, key, listed.value)]
        if not isinstance(value, dict):
            if isinstance(value, list) and forms <= {"scalar"}:
                raise place.error("a list is no single value; did you mean {in: […]}?")
            return [self.equal(place, key, value)]
        if not value:
            raise place.error(f"needs one of {', '.join(OPERATORS)}")
        for name in value:
            if name not in OPERATORS:
                raise place.unknown_key(name, OPERATORS)
        return [self.operation(place / name, key, name, value[name]) for name in value]

    def operation(self, place: Place, key: str, name: str, operand: Any) -> Test:
        if name == "in":
            if not isinstance(operand, list):
                raise place.error("needs a list of values")
            tests = [self.equal(place / index, key, item) for index, item in enumerate(operand)]
            return lambda value: any(test(value) for test in tests)
        if name == "ne":
            test = self.equal(place, key, operand)
            return lambda value: not test(value)
        if name == "re":
            return _pattern(place, operand)
        if not _is_number(operand):
            raise place.error("needs a number to compare with")
        compare = getattr(operator, name)
        return lambda value: _is_number(value) and compare(value, operand)

    def equal(self, place: Place, key: str, operand: Any) -> Test:
        known = [DENSE_NAME, *self.names.methods]
        if key == "method" and operand not in known and "+" not in str(operand):
            raise place.error(unknown_word("method", operand, known))
        if key in CONDITION_FIELDS and key not in self.parameters:
            operand = self.names.field(key, Choice(operand, place)).value
        wanted = _comparable(operand)
        return lambda value: _comparable(value) == wanted


def _pattern(place: Place, operand: Any) -> Test:
    if not isinstance(operand, str):
        raise place.error("needs a regular expression in quotes")
    try:
        search = re.compile(operand).search
    except (re.error, OverflowError) as error:
        raise place.error(f"is no regular expression: {error}") from None
    return lambda value: bool(search(value if isinstance(value, str) else canonical(value)))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _comparable(value: Any) -> Any:
    """A form in which 1 equals 1.0 but not true, and lists compare by content."""
    if isinstance(value, str):
        return value
    return ("number", value) if _is_number(value) else canonical([value])


# ---- search ----


def with_search(document: Document, sweep: Sweep, names: KnownNames, entries: list[Entry]) -> Sweep:
    """The sweep with all feasible values of its search on the axis, as if it were a grid; those of
    a parameter are added to `entries`. Raises `SweepError`.
    """
    search = sweep.search
    if search is None:
        return sweep
    parameters = [_numeric(entry) for entry in entries]
    axes = (*SEARCH_AXES, *names.models.free_names)
    _check_search(document, sweep, search, axes, entries)
    low, high = search.bracket
    if search.axis == "image_size":
        step = _patch(document, sweep, names)
        heights = range(step * max(1, ceil(low / step)), floor(high) + 1, step)
        values: list[Any] = [
            pixel_size(height, width)
            for height in heights
            for width in (height, height + step)
            if width <= high
        ]
    else:
        whole = search.axis in axes or any(each[search.axis][1] for each in parameters)
        values = _spread(search, whole=whole, least=1.0 if search.axis in axes else -inf)
    if len(values) < 2:
        raise document.at("search", "bracket").error(
            f"holds {count(len(values), 'feasible value')} of {search.axis} from {low:g} to"
            f" {high:g}; a search needs two at least"
        )
    if search.axis in axes:
        return sweep.model_copy(update={"axes": {**sweep.axes, search.axis: values}})
    place = document.at("search", "bracket")
    for entry, numeric in zip(entries, parameters, strict=True):
        entry.add(numeric[search.axis][0], search.axis, [Choice(value, place) for value in values])
        if entry.steps[0] != entry.place:  # in a stack each step's parameters, then overrides
            entry.parameters.sort(key=lambda each: inf if each.step is None else each.step)
    return sweep


def with_sizes_between(document: Document, sweep: Sweep, names: KnownNames) -> Sweep:
    """A grid along `image_size`, or of models of files along their x axis, with further sizes
    between its smallest and its largest; another sweep as it is.

    These are squares, and rectangles one patch wider than high; on an x axis multiples of the
    greatest common divisor of its values.
    """
    own = names.models if isinstance(names.models, OwnModels) else None
    axis = own.refined_axis if own else "image_size"
    if (
        sweep.search is not None
        or axis not in sweep.axes
        or any(axis in keys for keys in sweep.zip)
    ):
        return sweep
    (choices,) = names.axes(document.at("axes"), {axis: sweep.axes[axis]}).values()
    values = [choice.value for choice in choices]
    sizes = _multiples(values) if own else _rectangles(values, _patch(document, sweep, names))
    limits = sweep.limits.model_copy(update={"max_jobs": sweep.limits.max_jobs * len(sizes)})
    return sweep.model_copy(update={"axes": {**sweep.axes, axis: sizes}, "limits": limits})


def _rectangles(written: Sequence[ImageSize], patch: int) -> list[ImageSize]:
    sizes = {prod(image_shape(size)): size for size in written}
    smallest, largest = min(sizes), max(sizes)
    for height in range(patch, isqrt(largest) + 1, patch):
        for width in (height, height + patch):
            if smallest < height * width < largest:
                sizes.setdefault(height * width, pixel_size(height, width))
    return list(sizes.values())


def _multiples(written: Sequence[int]) -> list[int]:
    """Spaced evenly by ratio, `_FINENESS` within the factor at which a bracket is narrow enough."""
    low, high, unit = min(written), max(written), gcd(*written)
    if low <= 0:
        return [*written]
    steps = max(1, ceil(_FINENESS * log(high / low) / log(Stop().factor)))
    near = (unit * round(low * (high / low) ** (step / steps) / unit) for step in range(steps))
    return sorted({*written, *(value for value in near if low <= value <= high)})


def check_kinds(document: Document, protocols: Mapping[str, Protocol]) -> None:
    """Refuse beside a search what is not timed, and several rounds. Raises `SweepError`."""
    for kind, protocol in protocols.items():
        place = document.at("jobs", KINDS[kind].section)
        if not KINDS[kind].sampled:
            problem = f"{kind} has no break-even to search for; leave it to a sweep of its own"
            raise place.error(problem, at_key=True)
        if protocol.rounds > 1:
            raise (place / "rounds").error(
                "is the grid's way to repeat; a search repeats where it is needed: leave it out,"
                " or write passes"
            )


def _check_search(
    document: Document,
    sweep: Sweep,
    search: BreakEvenSearch,
    axes: Sequence[str],
    entries: Sequence[Entry],
) -> None:
    shared = set.intersection(*(set(_numeric(entry)) for entry in entries)) if entries else set()
    if search.axis not in {*axes, *shared}:
        hint = did_you_mean(search.axis, (*axes, *shared))
        raise document.at("search", "axis").error(
            f"{search.axis!r} is no axis of a search, nor a numeric parameter of every method{hint}"
        )
    twice = [
        document.at(key, search.axis)
        for key, section in (("axes", sweep.axes), ("defaults", sweep.defaults))
        if search.axis in section
    ]
    if search.axis not in axes:
        twice += [
            entry.place / search.axis
            for entry in entries
            for each in entry.parameters
            if each.key == search.axis
        ]
    for place in twice:
        problem = "stands under `search` too, which gives its values; leave it out here"
        raise place.error(problem, at_key=True)
    if sweep.include:
        problem = "adds points to a grid, and this sweep has a search; leave one of the two out"
        raise document.at("include").error(problem, at_key=True)


def _spread(search: BreakEvenSearch, *, whole: bool, least: float) -> list[Any]:
    """Values in the bracket, `_FINENESS` of them within the factor of its stop; evenly spaced where
    they reach 0.
    """
    low, high = max(search.bracket[0], least), search.bracket[1]
    if low <= 0:
        places = [low + (high - low) * step / _LINEAR for step in range(_LINEAR + 1)]
    else:
        steps = max(1, ceil(_FINENESS * log(high / low) / log(search.stop.factor)))
        between = (low * (high / low) ** (step / steps) for step in range(1, steps))
        places = [low, *between, high]
    if not whole:
        return sorted({float(f"{value:.6g}") for value in places})
    near = {value for place in places for value in (floor(place), ceil(place))}
    return sorted(value for value in near if low <= value <= high)


def _patch(document: Document, sweep: Sweep, names: KnownNames) -> int:
    """The least number of pixels of which all models can read multiples."""
    found = [
        names.models.networks.get(names.field("model", choice).value)
        for choice in written_models(document, sweep)
    ]
    return lcm(*(getattr(network, "patch", 1) for network in found))


def _numeric(entry: Entry) -> dict[str, tuple[int, bool]]:
    """The numeric parameters of an entry, each with its first step and whether it is a whole
    number.
    """
    found: dict[str, tuple[int, bool]] = {}
    for step, method in enumerate(entry.names):
        for name, info in entry.known.methods[method].Params.model_fields.items():
            if takes(info.annotation, float) or takes(info.annotation, int):
                found.setdefault(name, (step, not takes(info.annotation, float)))
    return found
