"""What the monitors read in a quiet block, of a busy neighbour, of hand-made counters, and between
rounds.
"""

import math
import multiprocessing
import multiprocessing.synchronize
import os
import threading
import time

import pytest

from workers.measure.monitors import (
    FOREIGN_S,
    MAX_READINGS,
    READING_SHARE,
    SERIES_PERIOD_S,
    Watch,
    cpu_findings,
    repeated,
    watch,
)

pytestmark = pytest.mark.alone

CORES = len(os.sched_getaffinity(0))
ZERO = {
    "wall": 0.0,
    "own": 0.0,
    "load": 0.5,
    "involuntary": 3.0,
    "busy": 100.0,
    "stolen": 2.0,
    "throttled": 0.0,
}


def spin(seconds: float, begun: "multiprocessing.synchronize.Event | None" = None) -> None:
    """Keep one core busy, from when `begun` is set."""
    if begun:
        begun.set()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def test_readings_of_real_work() -> None:
    """Every reading that Linux offers is there and finite, and own work differs from idling."""
    with watch("cpu", CORES) as seen:
        spin(0.3)
    assert all(math.isfinite(value) for value in seen.readings.values())
    assert {
        "seconds",
        "load_before",
        "load_after",
        "process_cores",
        "foreign_cores",
        "stolen_cores",
    } <= set(seen.readings)
    assert seen.readings["seconds"] >= 0.3
    with watch("cpu", CORES) as idle:
        time.sleep(0.3)
    assert idle.readings["process_cores"] < seen.readings["process_cores"]


def test_another_process_on_our_cores_is_contention() -> None:
    """A neighbour that keeps a core busy is seen and flagged when all cores are ours to use."""
    context = multiprocessing.get_context("spawn")
    begun = context.Event()
    neighbour = context.Process(target=spin, args=(600.0, begun), daemon=True)
    neighbour.start()
    try:
        assert begun.wait(60)
        with watch("cpu", CORES) as seen:
            time.sleep(1)
    finally:
        neighbour.terminate()
        neighbour.join()
    assert seen.readings["foreign_cores"] > 0.3
    assert "contended" in seen.flags


def later(**changed: float) -> dict[str, float]:
    """The counters ten seconds on, our process having used one core."""
    return {**ZERO, "wall": 10.0, "own": 10.0, "busy": 110.0, **changed}


@pytest.mark.parametrize(
    ("changed", "spare", "flags"),
    [
        ({}, 0, set()),
        ({"busy": 112.0}, 0, {"contended"}),
        ({"stolen": 4.0}, 0, {"contended"}),
        ({"busy": 110.5, "stolen": 2.4}, 0, set()),
        ({"busy": 120.0}, 1, set()),
        ({"busy": 130.0}, 1, {"contended"}),
        ({"throttled": 0.25}, 0, {"quota_throttled"}),
        ({"wall": 0.1, "own": 0.1, "busy": 100.1 + FOREIGN_S * 0.9}, 0, set()),
    ],
)
def test_flags_of_ten_seconds(changed: dict[str, float], spare: int, flags: set[str]) -> None:
    """Foreign or stolen time is contention beyond idle cores and ticks; a quota throttles."""
    readings, found = cpu_findings(ZERO, later(**changed), CORES - spare)
    assert found == flags
    if not changed:
        assert (readings["foreign_cores"], readings["process_cores"]) == (0, 1)


def test_what_the_machine_does_not_offer_is_absent() -> None:
    """No kernel counters: no readings made of them, rather than zeros."""
    bare = {name: ZERO[name] for name in ("wall", "own", "load")}
    readings, flags = cpu_findings(bare, {**bare, "wall": 10.0}, CORES)
    assert set(readings) == {"seconds", "load_before", "load_after", "process_cores"}
    assert not flags


def test_repeated_readings_surround_a_block() -> None:
    """One before it, more while it runs, and one after it, behind which none follows."""
    taken: list[float] = []
    with repeated(lambda: taken.append(time.perf_counter()), period_s=0.01):
        assert len(taken) == 1
        while len(taken) < 3:
            time.sleep(0.01)
        ended = time.perf_counter()
    assert taken == sorted(taken)
    assert taken[-1] > ended
    assert not [thread for thread in threading.enumerate() if "repeat" in thread.name]


class Clock:
    """A clock that a test moves; a reading takes `cost_s`."""

    def __init__(self, cost_s: float = 0.0) -> None:
        self.now, self.cost_s, self.taken = 100.0, cost_s, 0

    def __call__(self) -> float:
        return self.now

    def read(self) -> dict[str, float]:
        self.now += self.cost_s
        self.taken += 1
        return {"load": float(self.taken)}


def after_rounds(clock: Clock, rounds: int, round_s: float) -> Watch:
    series = Watch(clock.read, clock)
    for number in range(rounds):
        clock.now += round_s
        series.look(number + 1)
    return series


def test_readings_between_rounds_are_apart() -> None:
    """Short rounds are not read after each; long ones are, with the time and the rounds so far."""
    columns = after_rounds(Clock(), 100, round_s=0.01).series
    assert columns is not None
    assert len(columns["seconds"]) == 5
    first, second, *_ = (value for value in columns["seconds"] if value is not None)
    assert second - first >= SERIES_PERIOD_S
    columns = after_rounds(Clock(), 3, round_s=2.0).series
    assert columns == {
        "seconds": (2.0, 4.0, 6.0),
        "rounds": (1.0, 2.0, 3.0),
        "load": (1.0, 2.0, 3.0),
    }
    assert Watch(Clock().read, Clock()).series is None


def test_slow_readings_are_rare() -> None:
    """What a reading costs bounds how often it is taken."""
    clock = Clock(cost_s=0.05)
    after_rounds(clock, 10_000, round_s=0.01)
    assert clock.taken * clock.cost_s <= 1.1 * READING_SHARE * (clock.now - 100.0) + clock.cost_s


def test_a_long_series_is_thinned() -> None:
    """A bounded number of readings over the whole time, in order, the first among them."""
    columns = after_rounds(Clock(), 20_000, round_s=0.25).series
    assert columns is not None
    seconds = [value for value in columns["seconds"] if value is not None]
    assert MAX_READINGS / 2 <= len(seconds) <= MAX_READINGS
    assert seconds == sorted(seconds)
    assert (seconds[0], seconds[-1] > 0.9 * 5000) == (0.25, True)
