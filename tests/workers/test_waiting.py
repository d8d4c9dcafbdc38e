"""How many turns threads spin before they sleep: the choice over simulated times, what it rests on,
and where it is stored.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from workers import waiting
from workers.measure.environment import PROJECT, chosen_by, environment_of, host_facts, spin_turns
from workers.measure.threads import ThreadPolicy, policy_readings, policy_variables, present_policy
from workers.waiting import (
    SPIN_VARIABLE,
    TURNS_VARIABLE,
    WaitTimes,
    choose_turns,
    stored_times,
    times_file,
    wait_note,
    wait_times,
)

NS, US = 1e-9, 1e-6
EPYC = WaitTimes(27 * NS, 16 * US, 27 * US)
SLOW = EPYC._replace(gap_s=90 * US)
LONG = EPYC._replace(gap_s=900 * US)
FAILED = WaitTimes(problem="RuntimeError: no torch")


@pytest.mark.parametrize(
    ("times", "turns"),
    [
        (EPYC, "3000"),
        # of a turn that is 1.8 times as long, and a wake-up that is
        (WaitTimes(48 * NS, 40 * US, 30 * US), "3000"),
        # without a hypervisor, where a turn of a Xeon takes 140 cycles
        (WaitTimes(48 * NS, 4 * US, 25 * US), "1000"),
        # a turn of one cycle, as on ARM, outlasts nothing
        (WaitTimes(0.7 * NS, 5 * US, 25 * US), "unset"),
        (SLOW, "10000"),
        (LONG, "unset"),
        (FAILED, "3000"),
    ],
)
def test_the_turns_outlast_the_gap(times: WaitTimes, turns: str) -> None:
    """The fewest that do, with the margin and a wake-up to spare; nothing is shorter than that on
    quiet cores.
    """
    assert choose_turns(times) == turns
    if turns not in {"unset", "1000"} and not times.problem:
        shorter = waiting.TURNS[waiting.TURNS.index(turns) - 1]
        assert int(shorter) * times.turn_s < 1.5 * times.gap_s + times.wake_s
        assert int(turns) * times.turn_s > 1.5 * times.gap_s


@pytest.mark.parametrize(("times", "shortened"), [(EPYC, False), (SLOW, True), (LONG, True)])
def test_shorter_only_beside_a_busy_core(times: WaitTimes, shortened: bool) -> None:
    """Where more than 3 000 turns would be needed, with a note; with 3 000 a load changes
    nothing, so that it does not split environments.
    """
    busy = times._replace(busy=True)
    assert choose_turns(busy) == "3000"
    assert bool(wait_note(busy)) == shortened == (choose_turns(times) != "3000")
    assert "3000 turns only, since others kept a core busy" in wait_note(busy) or not shortened
    assert wait_note(times) == ""


@pytest.mark.parametrize("factor", [0.8, 1.25])
def test_the_choice_does_not_hang_on_the_noise_of_the_times(factor: float) -> None:
    """Each of the times of a measured host may be a fifth off."""
    for name in ("turn_s", "wake_s", "gap_s"):
        assert choose_turns(EPYC._replace(**{name: factor * getattr(EPYC, name)})) == "3000"


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host on which nobody has set the turns, and the file of its times."""
    monkeypatch.setenv("BREAKEVEN_CACHE", str(tmp_path))
    monkeypatch.delenv(SPIN_VARIABLE, raising=False)
    monkeypatch.delenv(TURNS_VARIABLE, raising=False)
    return times_file(host_facts())


def test_the_choice_is_part_of_the_environment_and_the_times_are_not(
    host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Times that lead to the same choice are one environment; a worker, which has the choice from
    the process that started it, is in that one too, whatever its condition requests.
    """
    host.write_text(json.dumps(EPYC))
    here = environment_of("cpu")
    assert here.facts["spin_turns"] == "3000"
    host.write_text(json.dumps(EPYC._replace(gap_s=28 * US, wake_s=17 * US)))
    assert environment_of("cpu") == here
    host.write_text(json.dumps(SLOW))
    assert environment_of("cpu").environment_id != here.environment_id
    slow = environment_of("cpu")
    assert policy_variables(ThreadPolicy("brief"), {})[SPIN_VARIABLE] == "10000"
    passive = policy_variables(ThreadPolicy("passive"), {})
    assert SPIN_VARIABLE not in passive
    monkeypatch.setenv(TURNS_VARIABLE, passive[TURNS_VARIABLE])
    assert environment_of("cpu") == slow


def test_times_are_readings_of_a_job(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the turns are chosen by them; with turns that a user has set there are none."""
    host.write_text(json.dumps(EPYC))
    monkeypatch.setenv(SPIN_VARIABLE, "3000")
    assert policy_readings() == pytest.approx(
        {
            "threads_spin": 0,
            "threads_pinned": 0,
            "spin_turn_ns": 27,
            "wake_us": 16,
            "operator_gap_us": 27,
        }
    )
    monkeypatch.setenv(SPIN_VARIABLE, "9000")
    assert policy_readings() == {"threads_spin": 0, "threads_pinned": 0}
    host.write_text(json.dumps(FAILED))
    monkeypatch.setenv(SPIN_VARIABLE, "3000")
    assert policy_readings() == {"threads_spin": 0, "threads_pinned": 0}
    assert wait_note(FAILED) == (
        "threads spin for 3000 turns, the default; not measured: RuntimeError: no torch"
    )


def test_turns_that_a_user_has_set_are_kept(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By OpenMP's variable or ours, which replaces it; nothing is measured then."""
    monkeypatch.setenv(SPIN_VARIABLE, "9000")
    assert (spin_turns(), environment_of("cpu").facts["spin_turns"]) == ("9000", "9000")
    assert policy_variables(ThreadPolicy(), os.environ)[SPIN_VARIABLE] == "9000"
    monkeypatch.setenv(TURNS_VARIABLE, "unset")
    assert SPIN_VARIABLE not in policy_variables(ThreadPolicy(), os.environ)
    assert (host.exists(), chosen_by()) == (False, None)


def test_unset_is_a_policy_of_its_own(host: Path) -> None:
    """A process without variables of OpenMP waits as jobs do where that is the choice, else not."""
    host.write_text(json.dumps(LONG))
    assert present_policy() == ThreadPolicy("brief")
    host.write_text(json.dumps(EPYC))
    assert present_policy() is None


def test_this_host_is_measured_once(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In plausible times, and by no process that finds them; a gap is longer than a turn."""
    variables = {**os.environ, "PYTHONPATH": str(PROJECT), "OMP_NUM_THREADS": "2"}
    times = wait_times(host_facts(), variables)
    if not times.problem:
        assert NS / 3 < times.turn_s < US < times.gap_s < 0.01
        assert US < times.wake_s < 0.01
    monkeypatch.setattr(subprocess, "run", None)
    assert wait_times(host_facts(), variables) == times == stored_times(host_facts())


def test_a_probe_that_fails_costs_the_default(
    host: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is stored, so that all processes of a run choose the same; where nothing can be stored,
    each of them takes the default.
    """
    monkeypatch.setattr(sys, "executable", "no-such-python")
    assert spin_turns() == "3000"
    times = stored_times(host_facts())
    assert times is not None
    assert times.problem.startswith("FileNotFoundError")
    (tmp_path / "file").touch()
    monkeypatch.setenv("BREAKEVEN_CACHE", str(tmp_path / "file"))
    assert wait_times(host_facts(), os.environ).problem
    assert spin_turns() == "3000"


@pytest.mark.parametrize("text", ["", "[1, 2]", '{"turn_s": 1.0}', '["a", "b", "c", "d", "e"]'])
def test_a_file_that_holds_no_times_is_none(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program's, or of another version."""
    monkeypatch.setattr(waiting, "times_file", lambda _: tmp_path / "times")
    (tmp_path / "times").write_text(text)
    assert waiting.stored_times({}) is None
