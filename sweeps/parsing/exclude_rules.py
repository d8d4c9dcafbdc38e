"""Rules: which arms at which points `exclude` takes out of a sweep."""

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from sweeps.identity import canonical
from sweeps.job import Arm
from sweeps.parsing.arm_parser import DENSE_NAME
from sweeps.parsing.axis import Choice, Form, form_of, is_sequence, sequence
from sweeps.parsing.condition_parser import CONDITION_FIELDS, KnownNames
from sweeps.parsing.yaml_reader import Document, KeyPath
from sweeps.suggestions import unknown_word

Test = Callable[[Any], bool]
OPERATORS = ("in", "ge", "gt", "le", "lt", "ne", "re")
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {"ge": operator.ge, "gt": operator.gt, "le": operator.le, "lt": operator.lt}


class Rule(NamedTuple):
    """Tests that must all hold. A stack is matched when one of its steps is."""

    tests: tuple[tuple[str, Test], ...]
    renamed: Mapping[str, Mapping[str, str]] = {}
    """By method: what parameters are called in a sweep that an arm has by an older name."""

    def matches(self, point: Mapping[str, Any], arm: Arm) -> bool:
        """`point` holds the condition fields as the arm overrides them, and `tokens`."""
        about = {**point, "replicate": arm.replicate}
        steps: list[tuple[tuple[str, ...], Mapping[str, Any]]] = [
            ((step.method, arm.method), self.present(step.method, step.params)) for step in arm.stack
        ]
        return any(
            all(_holds(key, test, names, {**about, **params}) for key, test in self.tests)
            for names, params in steps or [((DENSE_NAME,), {})]
        )

    def present(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """`params` by the names that a sweep has for them."""
        renamed = self.renamed.get(method)
        return {renamed.get(name, name): value for name, value in params.items()} if renamed else params


def _holds(key: str, test: Test, names: tuple[str, ...], values: Mapping[str, Any]) -> bool:
    if key == "method":
        return any(test(name) for name in names)
    return key in values and test(values[key])


def rules(document: Document, written: Iterable[Mapping[str, Any]], known_names: KnownNames, methods: Iterable[str]) -> list[Rule]:
    """The rules under `exclude`; `methods` are those that the sweep uses, whose parameters a rule may name. Raises `SweepError`."""
    used = list(methods)
    fields = {method: known_names.methods[method].Params.model_fields for method in used}
    parameters: dict[str, set[Form]] = {}
    for name, info in (field for own in fields.values() for field in own.items()):
        parameters.setdefault(name, set()).add(form_of(info.annotation))
    former = {
        method: {info.serialization_alias: name for name, info in own.items() if info.serialization_alias}
        for method, own in fields.items()
    }
    renamed = {method: names for method, names in former.items() if names}
    known = {*CONDITION_FIELDS, "tokens", "method", "replicate", *parameters}
    result = []
    for index, rule in enumerate(written):
        path: KeyPath = ("exclude", index)
        if not rule:
            raise document.error(path, "is an empty rule, which would exclude everything; name a key or leave the rule out")
        for key in rule:
            if key not in known:
                name = known_names.present_name(used, key)
                raise document.unknown_key((*path, key), known if name == key else [name])
        reader = _Reader(document, known_names, parameters)
        tests = tuple((key, test) for key, value in rule.items() for test in reader.tests((*path, key), key, value))
        result.append(Rule(tests, renamed))
    return result


class _Reader(NamedTuple):
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
                raise self.document.error(path, "a list is no single value; did you mean {in: […]}?")
            return [self.equal(path, key, value)]
        if not value:
            raise self.document.error(path, f"needs one of {', '.join(OPERATORS)}")
        return [self.operation((*path, name), key, name, operand) for name, operand in value.items()]

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
        return lambda value: isinstance(value, int | float) and not isinstance(value, bool) and compare(value, operand)

    def equal(self, path: KeyPath, key: str, operand: Any) -> Test:
        if key == "method" and operand not in {DENSE_NAME, *self.known_names.methods} and "+" not in str(operand):
            raise self.document.error(path, unknown_word("method", operand, [DENSE_NAME, *self.known_names.methods]))
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
        return lambda value: regex.search(value if isinstance(value, str) else canonical(value)) is not None


def _comparable(value: Any) -> Any:
    """A form in which 1 equals 1.0 but not true, and lists compare by content."""
    if isinstance(value, str):
        return value
    return ("number", value) if isinstance(value, int | float) and not isinstance(value, bool) else canonical([value])
