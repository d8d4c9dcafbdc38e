"""Results in comparisons of functions, in Python and of files: what is compared, what is refused by
the name of its type, what is not there yet, and what an arm keeps.
"""

import asyncio
import datetime
import enum
import functools
import json
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pytest
import torch

import breakeven
from orchestrator.api.closures import own_arrays, reads_shared_data
from orchestrator.api.function_arms import restored
from orchestrator.api.measured_functions import plain
from tests.orchestrator.commands import breakeven as command
from workers.measure.results import NotComparableError, first_difference
from workers.measure.timer import RepeatedCall, SampleTime, completion, stopwatch


class Point:
    def __init__(self, x: object) -> None:
        self.x = x


class Slotted:
    __slots__ = ("x",)


class Color(enum.Enum):
    RED, BLUE = "red", "blue"


EYE = torch.eye(3)


def verdict(compare: Callable[[], str | None]) -> str:
    try:
        return "equal" if compare() is None else "different"
    except NotComparableError:
        return "refused"


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (Decimal("1.5"), Decimal("1.5"), "equal"),
        (Decimal("1.5"), Decimal("1.6"), "different"),
        (Path("a"), Path("b"), "different"),
        (datetime.date(2026, 1, 2), datetime.date(2026, 1, 2), "equal"),
        (Point(1), Point(1), "equal"),
        (Point(1), Point([2]), "different"),
        (Point(1), Color.RED, "different"),
        (Color.RED, Color.BLUE, "different"),
        (Slotted(), Slotted(), "refused"),
        ([Point(Lock())], [Point(Lock())], "refused"),
        (EYE.to_sparse(), EYE, "equal"),
        (EYE.to_sparse(), 2 * EYE.to_sparse(), "different"),
        (EYE.to(torch.float8_e4m3fn), EYE.to(torch.float8_e4m3fn), "equal"),
        (EYE.to(torch.float8_e5m2), (2 * EYE).to(torch.float8_e5m2), "different"),
        (EYE.to(torch.bfloat16), (EYE + EYE / 128).to(torch.bfloat16), "equal"),
        (np.float32(1), np.float32(1.001), "different"),
    ],
)
def test_files_and_python_compare_alike(old: object, new: object, found: str) -> None:
    """What a process sends of its results has the verdict of the results themselves."""

    def sent(value: object) -> Any:
        return restored(json.loads(json.dumps(plain(value))))

    assert verdict(lambda: first_difference(old, new)) == found
    assert verdict(lambda: first_difference(sent(old), sent(new))) == found


def test_a_result_that_holds_itself_is_refused() -> None:
    """And arguments that hold themselves are no error."""
    node = Point(None)
    node.x = [node, node]
    with pytest.raises(NotComparableError, match="Point, nested deeper than 20"):
        restored(plain(node))
    assert plain(node) == plain(node)


async def coroutine() -> int:
    await asyncio.sleep(0)
    return 3


async def generator() -> AsyncIterator[int]:
    for number in range(3):
        yield number


class Collection:
    """As of dask."""

    def __dask_graph__(self) -> None: ...
    def compute(self) -> int:
        return 3


def test_results_that_are_not_there_yet_are_completed() -> None:
    """And any other result is as it is."""
    with ThreadPoolExecutor(1) as pool:
        lazy = [coroutine(), generator(), (n for n in range(3)), map(abs, [-1]), Collection()]
        results: list[Any] = [*lazy, pool.submit(abs, -1)]
        completed = [finish(each) for each in results if (finish := completion(each)) is not None]
    assert completed == [3, [0, 1, 2], [0, 1, 2], [1], 3, 1]
    assert [completion(each) for each in (3, [1], EYE, Point(1), "text", None)] == [None] * 6


def test_results_are_completed_inside_a_running_loop() -> None:
    """As a notebook has one; it goes on afterwards."""

    async def cell() -> Any:
        result = coroutine()
        finish = completion(result)
        assert finish is not None
        found = finish(result)
        await asyncio.sleep(0)
        return found

    with ThreadPoolExecutor(1) as thread:  # another test may have left a loop in this one
        assert thread.submit(asyncio.run, cell()).result() == 3


def test_the_work_of_a_generator_is_timed() -> None:
    """By each of a thousand calls."""
    ran = []

    def lazily(n: int) -> Iterator[int]:
        for number in range(n):
            ran.append(number)
            yield number

    call = RepeatedCall(lazily, ((3,), {}))
    assert call() == [0, 1, 2]
    assert call.time(stopwatch("cpu"), 1000).wall > 0
    assert len(ran) == 3 + 3000


def test_each_call_can_have_inputs_of_its_own() -> None:
    """Made outside of the time, and none used twice."""
    seen: list[int] = []
    made = iter(range(1000, 2000))
    call = RepeatedCall(seen.append, ((3,), {}))

    def clock(step: Callable[[], object], inner: int) -> SampleTime:
        for _ in range(inner):
            step()
        return SampleTime(float(inner), None)

    taken = call.time(clock, 130, lambda: ((next(made),), {}))
    assert sorted(seen) == [3, *range(1000, 1130)]
    assert taken.wall == pytest.approx((64 * 64 * 2 + 2 * 2) / 130)


@pytest.mark.parametrize("fresh_inputs", [False, True])
def test_an_arm_that_keeps_its_results_is_flagged(fresh_inputs: bool) -> None:
    """Unless each call has inputs that it does not know; in Python."""
    numbers = iter(range(10**9))

    def work(n: int) -> int:
        return sum(range(n, n + 5000))

    result = breakeven.compare(
        {"old": work, "new": functools.lru_cache(work)},
        lambda: next(numbers),
        time=0.5,
        fresh_inputs=fresh_inputs,
    )
    assert ("cached_result" in result.flags) != fresh_inputs
    assert ("new returned one object again" in " ".join(result.notes)) != fresh_inputs


def test_closures_have_arrays_of_their_own_in_each_slot() -> None:
    """And everything else in common; what is no closure is as it is."""
    values, seen = np.ones(3), []

    def scaled(factor: float, *, plus: float = 1.0) -> float:
        seen.append(values.ctypes.data)
        return float(values.sum()) * factor + plus

    copies = [own_arrays(scaled) for _ in range(2)]
    assert [each(2.0) for each in (*copies, scaled)] == [7.0] * 3
    assert len(set(seen)) == 3
    part = values[1:]

    def alone() -> float:
        return float(values.sum())

    def overlapping() -> float:
        return float(values.sum() + part.sum())

    assert own_arrays(overlapping) is overlapping
    shared = [reads_shared_data(each) for each in (alone, overlapping, scaled)]
    assert shared == [False, True, True], "`scaled` also reads a list"
    assert own_arrays(len) is len
    assert own_arrays(coroutine) is coroutine


def test_files_are_flagged_too_and_state_how_garbage_is_collected(tmp_path: Path) -> None:
    """A function of a file that keeps its results, against one that is a coroutine."""
    (tmp_path / "a.py").write_text(
        "import functools\n"
        "async def f(n=50_000): return sum(range(n))\n"
        "@functools.lru_cache\n"
        "def g(n=50_000): return sum(range(n))\n"
    )
    options = ("--time", "2s", "--timeout", "1m")
    shown = command("compare", "a.py:f", "a.py:g", *options, folder=tmp_path).stdout
    assert "cached_result" in shown
    assert "Garbage is collected between the samples" in " ".join(shown.split())
