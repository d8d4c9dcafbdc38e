"""Registry of methods: a file in `vision/`, `language/` or a folder of $BREAKEVEN_METHODS, or an
entry point, is a method.
"""

import importlib
import importlib.util
import logging
import os
import pkgutil
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial, wraps
from importlib.metadata import entry_points
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, cast

from sweeps.errors import UserError
from sweeps.model.condition import Condition, ImageSize
from sweeps.model.identity import canonical, digest
from sweeps.model.job import Arm
from sweeps.model.kinds import Modality
from sweeps.model.method import (
    AnyMethod,
    BlockTokens,
    LanguageNetwork,
    Network,
    Params,
    Purpose,
    condition_refusal,
    modality_of,
)
from workers.errors import Unsupported
from workers.methods import language, vision

_LOG = logging.getLogger(__name__)
AnyNetwork = Network | LanguageNetwork
VARIABLE = "BREAKEVEN_METHODS"
STORE_VARIABLE = "BREAKEVEN_DB"
ENTRY_POINTS = "breakeven.methods"
"""Group of entry points under which an installed package offers methods: `NAME =
"package.module"`."""


_Candidate = tuple[str, Path, Callable[[], ModuleType]]
"""A method's name, its file, and what imports it."""


class InvalidMethod(UserError):  # noqa: N818 - reads as what it is in a message
    """A method file that cannot be used; the message names the file and the missing or wrong
    part, or the line that raised an error.
    """


class NotImportable(InvalidMethod):
    """A method file that is not Python, or that raises while it is imported."""


_OUTSIDE: set[str] = set()
"""Files of methods that are not this project's own."""


def all_methods() -> Mapping[str, AnyMethod]:
    """Every method by name, without importing torch. One from outside that cannot be used is left
    out, with a line in the log.
    """
    return load_methods(os.environ.get(VARIABLE, ""))[0]


def left_out() -> Mapping[str, str]:
    """What of outside cannot be used, a file's stem or a folder, and why: a line that names it."""
    return {
        name: str(error) for name, error in load_methods(os.environ.get(VARIABLE, ""))[1].items()
    }


def error_line(error: BaseException) -> str:
    """An error as one line, which begins with the file and the line of the user's method that the
    error passed through last, if any.
    """
    text = str(error).strip().partition("\n")[0] or type(error).__name__
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename in _OUTSIDE and not isinstance(error, InvalidMethod):
            return f"{frame.filename}:{frame.lineno}: {type(error).__name__}: {text}"
    return text


def of_modality(modality: Modality) -> Mapping[str, Any]:
    """The methods for models of a modality, by name."""
    return {
        name: method for name, method in all_methods().items() if modality_of(method) == modality
    }


def resolve(arm: Arm, modality: Modality) -> list[tuple[Any, Any]]:
    """The method and the parameters of each step of the arm's stack.

    Raises `InvalidMethod` for a name or a version that this installation does not have.
    """
    known, found = of_modality(modality), []
    for step in arm.stack:
        if step.method not in known:
            if step.method in left_out():
                raise InvalidMethod(left_out()[step.method])
            raise InvalidMethod(
                f"there is no method {step.method!r} for {modality} models; there are"
                f" {', '.join(known)}"
            )
        method = known[step.method]
        if step.version != method.VERSION:
            raise InvalidMethod(
                f"version {step.version} of {step.method!r} is requested, and version"
                f" {method.VERSION} is installed"
            )
        found.append((method, method.Params.model_validate(step.params)))
    return found


def apply_stack(arm: Arm, model: Any, condition: Condition, network: AnyNetwork) -> Any:
    """The model with the arm's methods applied, under the arm's own condition. Raises
    `Unsupported`, and what a method raises.
    """
    for step, (method, params) in zip(arm.stack, resolve(arm, network.modality), strict=True):
        if (reason := condition_refusal(step.method, params, condition)) is not None:
            raise Unsupported(reason)
        model = method.apply(model, params.choose(condition, network))
    return model


def stack_refusal(arm: Arm, network: AnyNetwork) -> str | None:
    """Why the arm's stack cannot run on this network, or `None`."""
    names = [step.method for step in arm.stack]
    steps = list(zip(names, resolve(arm, network.modality), strict=True))
    if isinstance(network, Network) and network.refusal is not None:
        removing = (name for name, (_, params) in steps if params.amounts)
        why = f"no token of {network.name} can be removed: {network.refusal}"
        return next((f"{name}: {why}" for name in removing), None)
    reducing = [name for name, (method, params) in steps if _reduces(method, params, network)]
    if len(reducing) > 1:
        return (
            f"{' and '.join(reducing)} both change the number of tokens; only one method of a"
            " stack can: write one file whose reduction does both (docs/methods.md)"
        )
    replacing: list[str] = []
    for name, (_, params) in steps:
        if replacing and params.retokenizes():
            return f"{name} must come before {replacing[0]}, which changes the model that it adapts"
        if params.replaces_matrices:
            replacing.append(name)
    if len(replacing) > 1:
        return (
            f"{' and '.join(replacing)} replace the same matrices; only one method of a stack can"
        )
    reasons = ((name, method.refuses(params, network)) for name, (method, params) in steps)
    return next((f"{name}: {reason}" for name, reason in reasons if reason is not None), None)


def promised_tokens(arm: Arm, network: Network, image_size: ImageSize) -> tuple[BlockTokens, ...]:
    """The tokens that the arm's stack promises for each block, once `stack_refusal` gave `None`;
    `budget.solve` comes before.
    """
    dense = network.dense_tokens(image_size)
    promised = (
        method.tokens(params, network, image_size) for method, params in resolve(arm, "vision")
    )
    return next((each for each in promised if each != dense), dense)


def without_effect(arm: Arm, network: Network, image_size: ImageSize) -> bool:
    """Whether methods that reduce tokens leave all of them here, so that the arm does what the
    baseline does.

    Methods whose amount a budget can solve reduce tokens, and those that only cut. An arm with
    overrides does something else in any case.
    """
    return (
        bool(arm.stack)
        and all(value is None for _, value in arm.overrides)
        and all(
            hasattr(method, "SOLVES") or params.purpose == "ceiling"
            for method, params in resolve(arm, "vision")
        )
        and promised_tokens(arm, network, image_size) == network.dense_tokens(image_size)
    )


def method_macs(arm: Arm, network: AnyNetwork, *lengths: ImageSize) -> int:
    """MACs that the arm's methods themselves add; the network's own are `network.macs`.

    `lengths`: of a vision model the image size, per image; of a language model the tokens of the
    prompt, read at once, and those decoded one by one, per sequence.
    """
    return sum(
        method.macs(params, network, *lengths) for method, params in resolve(arm, network.modality)
    )


def skipped_macs(arm: Arm, network: LanguageNetwork, tokens: int, sequences: int = 1) -> int:
    """MACs per sequence that the arm's methods promise to leave out while `tokens` tokens of
    `sequences` are decoded one by one.
    """
    return sum(
        method.skipped(params, network, tokens)
        for method, params in resolve(arm, "language")
        if sequences == 1 or not params.one_sequence
    )


def retokenizes(arm: Arm) -> bool:
    """Whether the arm reads other tokens than the unmodified model."""
    return any(params.retokenizes() for _, params in resolve(arm, "language"))


def purpose(method: str) -> Purpose:
    """What a method is for, or a stack of them (`a+b`): that of a part which is no optimisation, if
    there is one.

    A method that is not installed counts as an optimisation.
    """
    known = all_methods()
    found = (known[name].Params.purpose for name in method.split("+") if name in known)
    return next((each for each in found if each != "optimisation"), "optimisation")


def tuning_control(arm: Arm, among: Sequence[Arm]) -> tuple[Arm, int | None] | None:
    """The control of an arm whose method also tunes the model: the same tuning without what the
    method adds.

    Of a stack it is preferably the stack with that step exchanged, else that step alone; the second
    part is its place in `among`, `None` if it is not there. `None` for an arm that nothing tunes,
    or whose method is not installed.
    """
    known = all_methods()
    for place, step in enumerate(arm.stack):
        if step.method not in known or step.version != known[step.method].VERSION:
            continue
        try:
            params = known[step.method].Params.model_validate(step.params).control()
        except ValueError:  # parameters of another version of the method
            continue
        if params is None:
            continue
        tuned = step.model_copy(update={"params": params.model_dump(mode="json")})
        keys = list(map(_quality_key, among))
        stacks = ((*arm.stack[:place], tuned, *arm.stack[place + 1 :]), (tuned,))
        for stack in stacks:
            control = Arm(stack=stack, overrides=arm.overrides)
            if (key := _quality_key(control)) in keys:
                return control, keys.index(key)
        return Arm(stack=stacks[0]), None
    return None


def _quality_key(arm: Arm) -> str:
    """Equal for arms that compute the same: runtime and KV cache play no part."""
    steps = [(step.method, step.params) for step in arm.stack]
    return canonical([steps, arm.overrides.dtype, arm.overrides.attention])


def chosen_implementation(arm: Arm, condition: Condition, network: Network) -> str | None:
    """Which implementations the arm's methods run by under its own condition, where they choose;
    `None` where none does.
    """
    steps = resolve(arm, "vision")
    chosen = (params.chosen_implementation(condition, network) for _, params in steps)
    return "+".join(filter(None, chosen)) or None


def _reduces(method: Any, params: Any, network: Any) -> bool:
    """Whether the method changes the number of tokens; of a budget the amount is solved later and
    depends on the image size.
    """
    if not hasattr(method, "tokens") or method.refuses(params, network) is not None:
        return False
    size, budgeted = network.image_size, getattr(params, "budget", None) is not None
    return budgeted or method.tokens(params, network, size) != network.dense_tokens(size)


@cache
def load_methods(folders: str) -> tuple[Mapping[str, AnyMethod], Mapping[str, InvalidMethod]]:
    """The project's own methods, those of installed packages, and those in `folders` (separated as
    in $PATH), by name.

    Beside them what of the latter two cannot be used. Raises `InvalidMethod` for one of our own.
    """
    found = {name: _imported(file, load) for name, file, load in _own()}
    problems: dict[str, InvalidMethod] = {}
    for name, file, load in (*_installed(), *_outside(folders, problems)):
        if name in found:
            problems[name] = InvalidMethod(
                f"{file}: there is a method {name!r} already; rename the file"
            )
            continue
        try:
            found[name] = method = cast(Any, _imported(file, load))
        except InvalidMethod as problem:
            problems[name] = problem
            continue
        _OUTSIDE.add(method.__file__)
        for function in {*FUNCTIONS[modality_of(method)]} - {"apply"}:
            setattr(method, function, _naming_errors(getattr(method, function)))
    for reason in problems.values():
        _LOG.warning("%s; it is left out", reason)
    return MappingProxyType(dict(sorted(found.items()))), MappingProxyType(problems)


def _imported(file: Path, load: Callable[[], ModuleType]) -> AnyMethod:
    """A method from its file. Raises `InvalidMethod`, and `NotImportable`, which is one."""
    kept = os.environ.pop(STORE_VARIABLE, None)  # a method has no business with the store
    try:
        return checked(load(), file)
    except InvalidMethod:
        raise
    except (Exception, SystemExit) as error:
        reason = str(error).partition("\n")[0]
        raise NotImportable(
            f"{file}: cannot be imported: {type(error).__name__}: {reason}"
        ) from error
    finally:
        if kept is not None:
            os.environ[STORE_VARIABLE] = kept


def _naming_errors(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a user's file, which raises `InvalidMethod` with file and line."""

    @wraps(function)
    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Exception as error:
            raise InvalidMethod(error_line(error)) from error

    return call


def _own() -> Iterator[_Candidate]:
    for package in (vision, language):
        for info in pkgutil.iter_modules(package.__path__):
            load = partial(importlib.import_module, f"{package.__name__}.{info.name}")
            yield info.name, Path(package.__path__[0]) / f"{info.name}.py", load


def _installed() -> Iterator[_Candidate]:
    for point in entry_points(group=ENTRY_POINTS):
        yield point.name, Path(point.value), point.load


def _outside(folders: str, problems: dict[str, InvalidMethod]) -> Iterator[_Candidate]:
    """The files in folders; one that cannot be listed is a problem. Modules beside a method can be
    imported, after all others.
    """
    for folder in filter(None, folders.split(os.pathsep)):
        try:
            files = sorted(file for file in Path(folder).iterdir() if file.suffix == ".py")
        except OSError as error:
            problems[folder] = InvalidMethod(
                f"${VARIABLE} names {folder}, which is not a folder that can be read:"
                f" {error.strerror}"
            )
            continue
        if (place := str(Path(folder).resolve())) not in sys.path:
            sys.path.append(place)
        for file in files:
            if file.stem.isidentifier() and not file.stem.startswith("_"):
                yield file.stem, file, partial(_loaded, file)


def _loaded(file: Path) -> ModuleType:
    """The module of a file outside the package, under a name of its own, because two folders may
    hold files of the same name.
    """
    name = f"breakeven_methods_{digest(str(file))[:12]}.{file.stem}".replace(".", "_")
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pydantic look up their module there
    spec.loader.exec_module(module)
    return module


FUNCTIONS = {
    "vision": ("tokens", "macs", "refuses", "apply"),
    "language": ("macs", "skipped", "refuses", "apply"),
}
"""What a method file of each modality has."""


def checked(module: ModuleType, file: Path) -> AnyMethod:
    """`module` as a method, once it has every part. Raises `InvalidMethod`."""
    if not (module.__doc__ or "").strip():
        raise InvalidMethod(f"{file}: has no docstring; its first line describes the method")
    own = getattr(module, "MODALITY", "vision")
    if own not in FUNCTIONS:
        raise InvalidMethod(
            f"{file}: MODALITY is {own!r}; it is language, or left out for vision models"
        )
    parts: dict[str, Any] = {"PAPER": str, "VERSION": int, "Params": type}
    parts |= dict.fromkeys(FUNCTIONS[own], Callable)
    for part, kind in parts.items():
        if not isinstance(getattr(module, part, None), kind):
            raise InvalidMethod(
                f"{file}: lacks {part} ({kind.__name__}), which every method has; see"
                " workers/methods/README.md"
            )
    if not issubclass(module.Params, Params):
        raise InvalidMethod(f"{file}: Params must be a subclass of sweeps.model.method.Params")
    fields, solves = module.Params.model_fields, getattr(module, "SOLVES", None)
    if solves is not None and not (solves in fields and "budget" in fields):
        raise InvalidMethod(
            f"{file}: SOLVES names {solves!r}; Params must have both that and a budget (see"
            " workers/token_reduction/__init__.py)"
        )
    return cast(AnyMethod, module)
