"""Search axis: the feasible values between the ends of a search's bracket, put where a grid would
stand in the sweep.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor, isqrt, lcm, log, prod
from typing import Any

from sweeps.errors import did_you_mean
from sweeps.language.axis import expand_values, takes
from sweeps.language.condition_parser import KnownNames
from sweeps.language.file_schema import BreakEvenSearch, Sweep
from sweeps.language.yaml_reader import Document, KeyPath
from sweeps.model.condition import image_shape, pixel_size
from sweeps.model.job import Protocol
from sweeps.model.kinds import KINDS

SEARCH_AXES = ("image_size", "batch_size", "prompt_tokens", "threads")
"""Fields of the condition along which a search can go."""
_FINENESS = 3
"""Values within the factor at which a search stops, where there are more than it needs."""
_LINEAR = 48
"""Values of a bracket that reaches 0."""


def with_search(document: Document, sweep: Sweep, names: KnownNames) -> Sweep:
    """The sweep with all feasible values of its search on the axis, as if it were a grid. Raises
    `SweepError`.
    """
    search = sweep.search
    if search is None:
        return sweep
    _check(document, sweep, search, names)
    values = _feasible(document, sweep, search, names)
    if len(values) < 2:
        low, high = search.bracket
        problem = (
            f"holds {len(values)} feasible value{'' if len(values) == 1 else 's'} of {search.axis}"
            f" from {low:g} to {high:g}"
        )
        raise document.error(("search", "bracket"), f"{problem}; a search needs two at least")
    if search.axis in SEARCH_AXES:
        return sweep.model_copy(update={"axes": {**sweep.axes, search.axis: values}})
    methods = tuple(_with_values(written, search.axis, values, names) for written in sweep.methods)
    return sweep.model_copy(update={"methods": methods})


def with_sizes_between(document: Document, sweep: Sweep, names: KnownNames) -> Sweep:
    """A grid along `image_size` with further sizes between its smallest and its largest; another
    sweep as it is.

    These are squares, and rectangles one patch wider than high.
    """
    if (
        sweep.search is not None
        or "image_size" not in sweep.axes
        or any("image_size" in keys for keys in sweep.zip)
    ):
        return sweep
    written = {"image_size": sweep.axes["image_size"]}
    (choices,) = names.fields(document, ("axes",), written, several=True).values()
    sizes = {prod(image_shape(choice.value)): choice.value for choice in choices}
    patch, smallest, largest = _patches(document, sweep, names), min(sizes), max(sizes)
    for height in range(patch, isqrt(largest) + 1, patch):
        for width in (height, height + patch):
            if smallest < height * width < largest:
                sizes.setdefault(height * width, pixel_size(height, width))
    limits = sweep.limits.model_copy(update={"max_jobs": sweep.limits.max_jobs * len(sizes)})
    axes = {**sweep.axes, "image_size": list(sizes.values())}
    return sweep.model_copy(update={"axes": axes, "limits": limits})


def check_kinds(document: Document, sweep: Sweep, protocols: Mapping[str, Protocol]) -> None:
    """Refuse beside a search what is not timed, and several rounds. Raises `SweepError`."""
    for kind, protocol in protocols.items() if sweep.search is not None else ():
        path: KeyPath = ("jobs", KINDS[kind].section)
        if not KINDS[kind].sampled:
            problem = (
                f"{kind} has no break-even; a sweep with a search has timing jobs alone, so leave"
                " it to a sweep of its own"
            )
            raise document.error(path, problem, at_key=True)
        if protocol.rounds > 1:
            problem = (
                "is the grid's way to repeat; a search repeats where it is needed: leave it out, or"
                " write passes"
            )
            raise document.error((*path, "rounds"), problem)


def _check(document: Document, sweep: Sweep, search: BreakEvenSearch, names: KnownNames) -> None:
    path: KeyPath = ("search", "axis")
    parameters = [_parameters(written, names) for written in sweep.methods]
    shared = set.intersection(*map(set, parameters)) if parameters else set()
    if search.axis not in SEARCH_AXES and search.axis not in shared:
        known = (*SEARCH_AXES, *sorted(shared))
        hint = did_you_mean(search.axis, known)
        raise document.error(
            path,
            f"{search.axis!r} is no axis of a search, nor a numeric parameter of every"
            f" method{hint}",
        )
    for key, section in (("axes", sweep.axes), ("defaults", sweep.defaults)):
        if search.axis in section:
            problem = (
                "stands under `search` too, which takes the place of a grid; leave it out under"
                f" `{key}`"
            )
            raise document.error((key, search.axis), problem, at_key=True)
    if search.axis not in SEARCH_AXES:
        for index, written in enumerate(sweep.methods):
            for step in _steps(written):
                if search.axis in step:
                    problem = "stands under `search` too, which gives its values; leave it out here"
                    raise document.error(("methods", index, search.axis), problem, at_key=True)
    if sweep.include:
        raise document.error(
            ("include",),
            "adds points to a grid, and this sweep has a search; leave one of the two out",
            at_key=True,
        )


def _feasible(
    document: Document, sweep: Sweep, search: BreakEvenSearch, names: KnownNames
) -> list[Any]:
    low, high = search.bracket
    if search.axis == "image_size":
        step = _patches(document, sweep, names)
        heights = range(step * max(1, ceil(low / step)), floor(high) + 1, step)
        return [
            pixel_size(height, width)
            for height in heights
            for width in (height, height + step)
            if width <= high
        ]
    whole = search.axis in SEARCH_AXES or any(
        _is_whole(written, search.axis, names) for written in sweep.methods
    )
    if search.axis in SEARCH_AXES:
        low = max(low, 1.0)
    places = _spread(low, high, search.stop.factor)
    if whole:
        return sorted(
            {
                value
                for place in places
                for value in (floor(place), ceil(place))
                if low <= value <= high
            }
        )
    return sorted({float(f"{place:.6g}") for place in places})


def _spread(low: float, high: float, factor: float) -> list[float]:
    """Places from `low` to `high`, `_FINENESS` of them within `factor`; evenly spaced where they
    reach 0.
    """
    if low <= 0:
        return [low + (high - low) * step / _LINEAR for step in range(_LINEAR + 1)]
    steps = max(1, ceil(_FINENESS * log(high / low) / log(factor)))
    return [low, *(low * (high / low) ** (step / steps) for step in range(1, steps)), high]


def _patches(document: Document, sweep: Sweep, names: KnownNames) -> int:
    """The least number of pixels of which all models can read multiples."""
    patches = [1]
    for key, section in (("defaults", sweep.defaults), ("axes", sweep.axes)):
        if "model" in section:
            for choice in expand_values(document, (key, "model"), section["model"], str):
                network = names.models.networks.get(names.field(document, "model", choice).value)
                patches.append(getattr(network, "patch", 1))
    return lcm(*patches)


def _steps(written: Mapping[str, Any] | str) -> Sequence[Mapping[str, Any]]:
    if isinstance(written, str):
        return [{"method": written}]
    stack = written.get("stack")
    listed: Iterable[Any] = stack if isinstance(stack, list) else [written]
    return [
        {"method": each} if isinstance(each, str) else each
        for each in listed
        if isinstance(each, str | dict)
    ]


def _numeric(step: Mapping[str, Any], names: KnownNames) -> dict[str, bool]:
    """The numeric parameters of a method, and whether they are whole numbers."""
    method = names.methods.get(str(step.get("method")))
    fields = {} if method is None else method.Params.model_fields
    found = {name: info.annotation for name, info in fields.items()}
    return {
        name: not takes(annotation, float)
        for name, annotation in found.items()
        if takes(annotation, float) or takes(annotation, int)
    }


def _parameters(written: Mapping[str, Any] | str, names: KnownNames) -> dict[str, bool]:
    return {
        name: whole for step in _steps(written) for name, whole in _numeric(step, names).items()
    }


def _is_whole(written: Mapping[str, Any] | str, axis: str, names: KnownNames) -> bool:
    return _parameters(written, names)[axis]


def _with_values(
    written: Mapping[str, Any] | str, axis: str, values: list[Any], names: KnownNames
) -> dict[str, Any]:
    """An entry whose first step with the parameter has all values."""
    entry = {"method": written} if isinstance(written, str) else dict(written)
    if "stack" not in entry:
        return {**entry, axis: values}
    steps = [dict(step) for step in _steps(written)]
    at = next(index for index, step in enumerate(steps) if axis in _numeric(step, names))
    steps[at] = {**steps[at], axis: values}
    return {**entry, "stack": steps}
