"""Grid: the points that the axes of a sweep span, the keys that move together under `zip`, and the
rules of `exclude`.
"""

import itertools
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sweeps.errors import did_you_mean, unknown_word
from sweeps.geometry.model_families import ModelFamily
from sweeps.language.arm_parser import DENSE_NAME, Entry
from sweeps.language.axis import Choice, Form, expand_values, form_of, is_sequence, sequence
from sweeps.language.condition_parser import CONDITION_FIELDS, SHORTHANDS, THREADS_KEY, KnownNames
from sweeps.language.file_schema import Sweep
from sweeps.language.yaml_reader import Document, KeyPath, SweepError, shown
from sweeps.model.identity import canonical
from sweeps.model.job import Arm
from sweeps.model.kinds import THREAD_FIELDS

Test = Callable[[Any], bool]
OPERATORS = ("in", "ge", "gt", "le", "lt", "ne", "re")
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "ge": operator.ge,
    "gt": operator.gt,
    "le": operator.le,
    "lt": operator.lt,
}


class GridPoint(NamedTuple):
    """Values of condition fields, where they stand, and the places of the zip groups that the axes
    drive.
    """

    values: dict[str, Any]
    paths: dict[str, KeyPath]
    bound: dict[int, int]


def point(picks: Mapping[str, Choice], bound: dict[int, int]) -> GridPoint:
    return GridPoint(
        {name: pick.value for name, pick in picks.items()},
        {name: pick.path for name, pick in picks.items()},
        bound,
    )


def family_of(document: Document, sweep: Sweep, names: KnownNames) -> ModelFamily:
    """The family of the first model that the sweep names; all others must be of the same. Raises
    `SweepError`.
    """
    places: list[tuple[KeyPath, Mapping[str, Any]]] = [
        (("defaults",), sweep.defaults),
        (("axes",), sweep.axes),
    ]
    places += [(("include", index), written) for index, written in enumerate(sweep.include)]
    models = [
        choice
        for path, written in places
        if "model" in written
        for choice in expand_values(document, (*path, "model"), written["model"], str)
    ]
    if (
        found := next((family for choice in models if (family := names.family(choice.value))), None)
    ) is not None:
        return found
    for choice in models:
        names.field(document, "model", choice)  # raises what is wrong with it
    return names.models


def defaults(document: Document, sweep: Sweep, names: KnownNames) -> dict[str, Choice]:
    """The values under `defaults`; without a device there it is `auto`. Raises `SweepError`."""
    found = names.fields(
        document, ("defaults",), {"device": "auto", **sweep.defaults}, several=False
    )
    return {name: choices[0] for name, choices in found.items()}


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
    axes = names.fields(document, ("axes",), sweep.axes, several=True)
    fixed = defaults(document, sweep, names)
    for name in required:
        if name not in axes and name not in fixed:
            raise document.error(("axes", name), "is missing; give it under `axes` or `defaults`")
    group_of = _tie(document, sweep, axes, entries)
    dimensions: dict[int | str, list[str]] = {}
    for name in axes:
        key = THREADS_KEY if name in THREAD_FIELDS else name
        dimensions.setdefault(group_of.get(key, key), []).append(name)
    return _walk(axes, fixed, dimensions)


def _walk(
    axes: Mapping[str, list[Choice]],
    fixed: Mapping[str, Choice],
    dimensions: Mapping[int | str, list[str]],
) -> Iterator[GridPoint]:
    for places in itertools.product(*(range(len(axes[names[0]])) for names in dimensions.values())):
        place = dict(zip(dimensions, places, strict=True))
        moved = {
            name: axes[name][place[key]] for key, names in dimensions.items() for name in names
        }
        yield point(
            {**fixed, **moved}, {key: at for key, at in place.items() if isinstance(key, int)}
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
        path: KeyPath = ("zip", index)
        if len(names) < 2:
            raise document.error(path, "needs at least two keys that move together")
        lengths: list[tuple[str, int]] = []
        for place, written in enumerate(names):
            name = SHORTHANDS.get(written, written)
            parameters = [each for label, each in moved if label == name]
            if name in taken:
                raise document.error(
                    (*path, place),
                    f"{written} moves in a group already; a key moves in one group only",
                )
            taken.add(name)
            if name in axes:
                group_of[name] = index
                lengths.append((written, len(axes[name])))
            elif not parameters:
                known = {*sweep.axes, *(label for label, _ in moved)}
                raise document.error(
                    (*path, place),
                    f"{written} is no axis and no list of a method{did_you_mean(written, known)}",
                )
            else:
                for each in parameters:
                    each.group = index
                    lengths.append((written, len(each.choices)))
        first, count = lengths[0]
        for other, length in lengths[1:]:
            if length != count:
                problem = (
                    f"{first} has {count} values, but {other} has {length}; keys that move together"
                    " need equally many"
                )
                raise document.error(path, problem)
    return group_of


def idle_groups(document: Document, sweep: Sweep, entries: Sequence[Entry]) -> Iterator[SweepError]:
    """What to warn of: groups of `zip` that change nothing, once `points` has tied their keys."""
    for index, names in enumerate(sweep.zip):
        axes = [sweep.axes[name] for name in names if name in sweep.axes]
        tied = max(
            (sum(parameter.group == index for parameter in item.parameters) for item in entries),
            default=0,
        )
        if (
            axes
            and not tied
            and all(isinstance(values, list) and len(values) == 1 for values in axes)
        ):
            yield document.error(
                ("zip", index),
                "moves nothing: each of its keys has one value; give them more, or leave it out",
            )
        elif not axes and tied < 2:
            problem = (
                "ties nothing: its keys stand in entries that expand one by one; tie keys of"
                " one entry, or an axis"
            )
            yield document.error(("zip", index), problem)


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


def rules(
    document: Document,
    written: Iterable[Mapping[str, Any]],
    known_names: KnownNames,
    methods: Iterable[str],
) -> list[Rule]:
    """The rules under `exclude`; `methods` are those that the sweep uses, whose parameters a rule
    may name. Raises `SweepError`.
    """
    used = list(methods)
    forms: dict[str, set[Form]] = {}
    for method in used:
        for name, info in known_names.methods[method].Params.model_fields.items():
            forms.setdefault(name, set()).add(form_of(info.annotation))
    known = {*CONDITION_FIELDS, "tokens", "method", "replicate", *forms}
    parser = _RuleParser(document, known_names, forms)
    result = []
    for index, rule in enumerate(written):
        path: KeyPath = ("exclude", index)
        if not rule:
            raise document.error(
                path,
                "is an empty rule, which would exclude everything; name a key or leave the"
                " rule out",
            )
        for key in rule:
            if key not in known:
                method, _, parameter = key.partition(".")
                if parameter in (
                    known_names.methods[method].Params.model_fields if method in used else ()
                ):
                    right = f"{{method: {method}, {parameter}: {shown(rule[key])}}}"
                    raise document.error((*path, key), f"is written {right} in a rule", at_key=True)
                raise document.unknown_key((*path, key), known)
        tests = tuple(
            (key, test)
            for key, value in rule.items()
            for test in parser.tests((*path, key), key, value)
        )
        result.append(Rule(tests))
    return result


class _RuleParser(NamedTuple):
    document: Document
    known_names: KnownNames
    parameters: Mapping[str, set[Form]]
    """What one value of each parameter of the methods is."""

    def tests(self, path: KeyPath, key: str, value: Any) -> list[Test]:
        forms = self.parameters.get(key, set())
        if is_sequence(value):
            form: Form = next((form for form in ("list", "schedule") if form in forms), "scalar")
            listed = sequence(self.document, path, value, form)
            return [self.equal(listed.path, key, listed.value)]
        if not isinstance(value, dict):
            if isinstance(value, list) and forms <= {"scalar"}:
                raise self.document.error(
                    path, "a list is no single value; did you mean {in: […]}?"
                )
            return [self.equal(path, key, value)]
        if not value:
            raise self.document.error(path, f"needs one of {', '.join(OPERATORS)}")
        return [
            self.operation((*path, name), key, name, operand) for name, operand in value.items()
        ]

    def operation(self, path: KeyPath, key: str, name: str, operand: Any) -> Test:
        if name not in OPERATORS:
            raise self.document.unknown_key(path, OPERATORS)
        if name == "in":
            if not isinstance(operand, list):
                raise self.document.error(path, "needs a list of values")
            tests = [self.equal((*path, index), key, item) for index, item in enumerate(operand)]
            return lambda value: any(test(value) for test in tests)
        if name == "ne":
            test = self.equal(path, key, operand)
            return lambda value: not test(value)
        if name == "re":
            return self.pattern(path, operand)
        if isinstance(operand, bool) or not isinstance(operand, int | float):
            raise self.document.error(path, "needs a number to compare with")
        compare = _COMPARE[name]
        return lambda value: (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and compare(value, operand)
        )

    def equal(self, path: KeyPath, key: str, operand: Any) -> Test:
        if (
            key == "method"
            and operand not in {DENSE_NAME, *self.known_names.methods}
            and "+" not in str(operand)
        ):
            raise self.document.error(
                path, unknown_word("method", operand, [DENSE_NAME, *self.known_names.methods])
            )
        if key in CONDITION_FIELDS and key not in self.parameters:
            operand = self.known_names.field(self.document, key, Choice(operand, path)).value
        wanted = _comparable(operand)
        return lambda value: _comparable(value) == wanted

    def pattern(self, path: KeyPath, operand: Any) -> Test:
        if not isinstance(operand, str):
            raise self.document.error(path, "needs a regular expression in quotes")
        try:
            regex = re.compile(operand)
        except (re.error, OverflowError) as error:
            raise self.document.error(path, f"is no regular expression: {error}") from None
        return lambda value: (
            regex.search(value if isinstance(value, str) else canonical(value)) is not None
        )


def _comparable(value: Any) -> Any:
    """A form in which 1 equals 1.0 but not true, and lists compare by content."""
    if isinstance(value, str):
        return value
    return (
        ("number", value)
        if isinstance(value, int | float) and not isinstance(value, bool)
        else canonical([value])
    )
