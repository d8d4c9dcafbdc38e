"""breakeven.compare and breakeven.curve: results and inputs are checked, the process stays as it was,
processes of arms end with a line, and results come back from a store.
"""

import gc
import json
import math
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import breakeven
from orchestrator.api.callables import Calls, WorkerError
from sweeps.analysis.compared import judge
from sweeps.stats.curve import Point

pytestmark = pytest.mark.usefixtures("without_garbage")
KEPT: list[bytes] = []


def numbers(n: int = 2000) -> Any:
    return np.random.default_rng(0).standard_normal(n)


def total(values: Any) -> float:
    return float(values.sum())


def total_again(values: Any) -> float:
    return float(np.add.reduce(values))


def total_slowly(values: Any) -> float:
    return float(sum(values.tolist()))


def doubled(values: Any) -> Any:
    values *= 2
    return float(values.sum() / 2)


def short(values: Any) -> Any:
    return values[:3]


def broken(values: Any) -> Any:
    raise RuntimeError("out of luck")


def exits(values: Any) -> Any:
    os._exit(3)


def hangs(values: Any) -> Any:
    while True:
        time.sleep(0.01)


def chatty(values: Any) -> float:
    print("x" * 2**20)
    return total(values)


def leaks(values: Any) -> float:
    KEPT.append(b"x" * 2**25)
    return total(values)


def begins_thread(values: Any) -> float:
    threading.Thread(target=time.sleep, args=(0.5,), name="begun", daemon=True).start()
    return total(values)


def changes_torch(values: Any) -> float:
    torch.set_grad_enabled(False)
    os.environ["BREAKEVEN_TEST"] = "changed"
    return total(values)


def compared(**functions: Callable[..., Any]) -> breakeven.Result:
    return breakeven.compare({"old": total, **functions}, numbers, time=1)


def test_a_slower_function_is_found() -> None:
    """By far, so that it shows on a busy machine too; as text, as HTML and by attributes."""
    found = compared(new=total_slowly)
    assert found.ratio < 0.5
    assert found.verdict == judge(found.low, found.high) != "faster"
    assert found.seconds["new"] > found.seconds["old"]
    assert str(found).startswith(f"new: {found.verdict} ")
    assert f"<td>{found.verdict}</td>" in found._repr_html_()


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (short, "new: differs from old: the result has shape () against (3,)"),
        (doubled, "new: changes its inputs: argument 1[0] is "),
        (lambda values: (each for each in values), "the result has shape () against (2000,)"),
    ],
)
def test_other_results_are_an_error(function: Callable[..., Any], said: str) -> None:
    """A fast wrong arm has no speed-up; one that changes its inputs would do other work next."""
    with pytest.raises(breakeven.DifferentResultsError) as error:
        compared(new=function)
    assert said in str(error.value)


def test_results_are_checked_as_requested() -> None:
    """By tolerances, by a function that returns or raises, or not at all."""
    arms = {"old": lambda: 1.0, "new": lambda: 1.05}
    with pytest.raises(breakeven.DifferentResultsError, match=r"1\.0 against 1\.05"):
        breakeven.compare(arms, time=0.2)
    with pytest.raises(breakeven.DifferentResultsError, match=r"check\(old, new\) is False"):
        breakeven.compare(arms, time=0.2, check=lambda old, new: old == new)
    for check in ({"rtol": 0.1}, lambda old, new: new > old, None):
        breakeven.compare(arms, time=0.2, check=check)


def test_arms_fail_with_a_line_and_the_others_are_measured() -> None:
    """In this process those that raise, leak and begin threads."""
    found = compared(broken=broken, new=total_again)
    assert found.failures == {"broken": "raised RuntimeError: out of luck"}
    assert "broken: raised RuntimeError: out of luck" in str(found)
    assert found.only.pairs > 0
    with pytest.raises(breakeven.ArmFailedError, match="new: raised RuntimeError"):
        compared(new=broken)
    try:
        shared, leak = compared(new=leaks).notes
    finally:
        KEPT.clear()
    assert shared == "new also reads data that cannot be copied: both of its slots share it"
    assert leak.startswith("new: the process grew by ")
    assert compared(new=begins_thread).notes[0] == "new leaves threads running: begun"


def test_an_arm_that_hangs_is_interrupted() -> None:
    """After the time-out, in the main thread."""
    with pytest.raises(breakeven.ArmFailedError, match=r"new: still running after 0\.5 s"):
        breakeven.compare({"old": total, "new": hangs}, numbers, time=0.2, timeout=0.5)


def test_the_process_stays_as_it_was() -> None:
    """Garbage collection, torch's settings and the environment; what was changed is said."""
    assert gc.isenabled()
    frozen, threads = gc.get_freeze_count(), torch.get_num_threads()
    found = compared(new=changes_torch)
    assert gc.isenabled()
    assert gc.get_freeze_count() <= frozen  # objects that were frozen may have gone
    assert torch.is_grad_enabled()
    assert torch.get_num_threads() == threads
    assert "BREAKEVEN_TEST" not in os.environ
    assert any("gradients changed from True to False" in note for note in found.notes)


def test_short_functions_run_in_loops() -> None:
    """A sample is a millisecond or longer, whatever one call takes."""
    found = breakeven.compare({"old": lambda: None, "new": lambda: None}, time=0.5)
    samples = found.visits[0].samples
    assert samples.inner[0] > 1000
    assert np.median(samples.seconds) * max(samples.inner) > 5e-4


def test_inputs_are_made_for_each_visit_and_copied_for_each_arm() -> None:
    """A tuple is positional arguments, a dictionary named ones, all else one argument."""
    made = []

    def inputs(n: int) -> Any:
        made.append(n)
        return {"values": [n]}

    def kept(values: list[int]) -> int:
        ids.add(id(values))
        return len(values)

    ids: set[int] = set()
    calls = Calls({"old": kept, "new": kept}, inputs, {"n": 7}, {})
    for _ in range(2):
        for slot in calls.make():
            slot(1)
    assert made == [7, 7]
    assert len(ids) >= 4
    both = {"old": lambda a, b: a + b, "new": lambda a, b: b + a}
    assert breakeven.compare(both, lambda: (1, 2), time=0.2).pairs


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        *(
            ({"over": over}, "over needs one axis with two or more different finite numbers, not")
            for over in (
                {},
                {"n": []},
                {"n": [1]},
                {"n": [1, 1]},
                {"n": 5},
                {"n": "12"},
                {"n": ["a", "b"]},
                {"n": [1, math.nan]},
                {"n": [1, math.inf]},
                {"n": [1, 10**400]},
                {"n": [1, 2], "m": [1, 2]},
                [1, 2],
            )
        ),
        ({"time": "soon"}, "'soon' is no duration"),
        ({"time": ""}, "'' is no duration"),
        ({"time": 0}, "the time must be above 0 s and finite, not 0"),
        ({"time": -1}, "the time must be above 0 s and finite, not -1"),
        ({"time": math.inf}, "the time must be above 0 s and finite, not inf"),
        ({"time": math.nan}, "the time must be above 0 s and finite, not nan"),
        ({"timeout": math.inf}, "the time must be above 0 s and finite, not inf"),
        ({"timeout": 1e300}, "the time must be above 0 s and finite, not 1e+300"),
        ({"visits": -1}, "visits are a whole number from 1 on, or None, not -1"),
        ({"visits": 0}, "visits are a whole number from 1 on, or None, not 0"),
        ({"visits": 2.5}, "visits are a whole number from 1 on, or None, not 2.5"),
        ({"timeout": 0}, "the time must be above 0 s and finite, not 0"),
        ({"margin": 5}, "the margin is a share, such as 0.02 for 2 %, not 5"),
        ({"margin": "5%"}, "the margin is a share, such as 0.02 for 2 %, not '5%'"),
        ({"margin": 0}, "the margin is a share, such as 0.02 for 2 %, not 0"),
        ({"functions": {}}, "a comparison needs two or more different names, got []"),
        ({"functions": {"old": total}}, "a comparison needs two or more different names"),
        (
            {"functions": {"": total, "new": total}},
            "a comparison needs two or more different names",
        ),
        (
            {"functions": [total, total]},
            "functions need names, such as {'old': f, 'new': g}, not a list",
        ),
        ({"functions": {"old": total, "new": 5}}, "new is no function but int"),
        ({"inputs": 5}, "inputs is no function but int"),
        ({"inputs": None}, "inputs is no function but NoneType"),
        ({"inputs": lambda **_: None}, "inputs returns nothing: it must return the arguments"),
        ({"check": "1e-3"}, "check is a function, None, or has rtol and atol alone, not '1e-3'"),
        ({"check": {"rtoll": 1}}, "check is a function, None, or has rtol and atol alone"),
    ],
)
def test_wrong_requests_are_refused(arguments: dict[str, Any], said: str) -> None:
    """One sentence each, before anything is measured: no arm is called."""

    def called(*_: object) -> None:
        pytest.fail("measured")

    request: dict[str, Any] = {
        "functions": {"old": called, "new": called},
        "inputs": numbers,
        "over": {"n": [1, 2]},
        **arguments,
    }
    with pytest.raises((ValueError, TypeError)) as error:
        breakeven.curve(**request)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_functions_that_no_other_process_can_import_are_refused() -> None:
    """Where they cannot be sent either: one that holds a lock."""
    lock = threading.Lock()
    with pytest.raises(
        WorkerError, match="isolate=True needs functions that a new process can import"
    ):
        breakeven.compare({"old": lambda: lock, "new": lambda: lock}, time=1, isolate=True)


def test_a_curve_crosses_and_is_kept_in_a_store(tmp_path: Path) -> None:
    """Slower at few, faster at many: the break-even lies between; the same figures come back, by
    every public view, and again after saving twice.
    """

    def linear(values: Any) -> float:
        return float(sum(values.tolist()))

    def fixed(values: Any) -> float:
        sum(range(1000))
        return total(values)

    found = breakeven.curve({"linear": linear, "fixed": fixed}, numbers, {"n": [4, 40_000]}, time=4)
    first, last = found.points()
    assert [type(point) for point in found.points()] == [Point, Point]
    assert (first.verdict, last.verdict) == ("slower", "faster")
    (crossing,) = found.break_even.crossings
    assert (crossing.low, crossing.high, crossing.direction) == (4, 40_000, "gains")
    assert "fixed: pays at n 40,000 (slower at 4)" in str(found)
    assert "<td>40000</td>" in found._repr_html_()

    store = str(tmp_path / "breakeven.db")
    assert found.save(store) == found.save(store) == "fixed vs linear"
    frame = breakeven.open(store).speedup()
    assert list(frame["tokens"]) == [4, 40_000]
    assert list(frame["speedup"]) == pytest.approx([first.speedup, last.speedup])
    assert [json.loads(values) for values in frame["axis_values"]] == [{"n": 4}, {"n": 40_000}]
    assert set(frame["arm_label"]) == {"fixed"}
    assert set(breakeven.open(store).break_even()["x_high"]) == {40_000}
    with pytest.raises(AttributeError, match="did you mean 'speedup'"):
        breakeven.open(store).speedups()


def test_the_store_counts_what_runs_differ_by(tmp_path: Path) -> None:
    """Of one comparison saved, beyond the interval of the measurement: both spend the same part of
    the error.
    """
    found = breakeven.compare({"old": total, "new": total_again}, numbers, time=1, visits=2)
    found.save(str(tmp_path / "store.db"), "named")
    (row,) = breakeven.open(str(tmp_path / "store.db")).speedup().to_dict("records")
    assert row["speedup"] == pytest.approx(found.ratio)
    assert (row["speedup_low"] or 0.0) <= found.low * (1 + 1e-9)
    assert row["pairs"] == found.pairs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "said"),
    [
        (exits, "ended the process with exit status 3"),
        (hangs, "still running after 12 s"),
    ],
)
def test_apart_an_arm_takes_nothing_down(function: Callable[..., Any], said: str) -> None:
    """It is left out, and the others are measured in the same or another process."""
    arms = {"old": total, "bad": function, "new": total_again}
    found = breakeven.compare(arms, numbers, time=1, timeout=12, isolate=True)
    assert found.failures == {"bad": said}
    assert found.only.pairs > 0


@pytest.mark.slow
def test_apart_output_is_read_and_said() -> None:
    """However much: it reaches neither this process nor the disk."""
    arms = {"old": total, "new": chatty}
    found = breakeven.compare(arms, numbers, time=1, isolate=True)
    assert found.ratio < 0.5
    assert "the arms printed" in found.notes[-1]
