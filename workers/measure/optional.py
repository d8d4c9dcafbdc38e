"""What is measured besides the samples: where it raises there is no value, and a note states which
and why; nothing else is lost.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, TypeVar, cast

from workers.errors import TimedOut

UNMEASURED = "unmeasured"
"""The flag of an outcome with such a note."""
_T = TypeVar("_T")
_F = TypeVar("_F", bound=Callable[..., AbstractContextManager[Any]])
_REASONS: dict[str, str] = {}
"""Why not, by what could not be measured since the last `take_unmeasured`."""


@contextlib.contextmanager
def optional(what: str) -> Iterator[None]:
    """The block measures something besides the samples: what it raises, a time-out too, becomes a
    note.
    """
    try:
        yield
    except (Exception, TimedOut) as error:
        text = str(error).strip().partition("\n")[0]
        _REASONS.setdefault(what, f"{type(error).__name__}{text and f': {text}'}")


def optional_value(what: str, measure: Callable[[], _T], otherwise: Any) -> _T:
    """What `measure` returns, or `otherwise` where it raises (see `optional`)."""
    with optional(what):
        return measure()
    value: _T = otherwise
    return value


def optional_manager(what: str, otherwise: Callable[[], Any]) -> Callable[[_F], _F]:
    """Decorates a context manager that measures its block: where it raises, before or after, the
    block runs all the same, with what `otherwise` returns; what the block raises passes.
    """

    def decorate(opened: _F) -> _F:
        @functools.wraps(opened)
        @contextlib.contextmanager
        def measured(*args: Any, **options: Any) -> Iterator[Any]:
            value, stack = otherwise(), contextlib.ExitStack()
            with optional(what):
                value = stack.enter_context(opened(*args, **options))
            try:
                yield value
            finally:
                with optional(what):
                    stack.close()

        return cast(_F, measured)

    return decorate


def take_unmeasured() -> tuple[str, ...]:
    """A note for each measurement that raised since the last call."""
    notes = tuple(f"not measured: {what}: {why}" for what, why in _REASONS.items())
    _REASONS.clear()
    return notes
