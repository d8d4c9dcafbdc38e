"""Flags: which mark a measurement as wrong and which only as noisy or incomplete."""

import pytest

from sweeps.model.flags import FLAGS, flags_of_attempts, quarantine_reasons, split_flags, wrong

SLOWED = {"thermal_slowdown", "hardware_slowdown", "power_brake", "quota_throttled"}
WRONG = {
    *SLOWED,
    "consistency_check_failed",
    "state_changed",
    "token_trace_mismatch",
    "text_differs",
    "text_too_short",
}


@pytest.mark.parametrize("flag", FLAGS)
def test_each_flag_is_wrong_or_noisy(flag: str) -> None:
    """Figures of another question are wrong; noise, a busy neighbour, a low priority or a part left
    out are not.
    """
    assert wrong([flag]) == (flag in WRONG)


def test_one_wrong_flag_is_enough() -> None:
    """Noise beside it changes nothing, and an undeclared flag counts as wrong."""
    assert wrong(["contended", "thermal_slowdown"])
    assert not wrong(["contended", "low_priority", "no_effect"])
    assert not wrong([])
    assert wrong(["contended", "a_later_flag"])


@pytest.mark.parametrize(
    ("joined", "flags"),
    [
        (None, []),
        ("", []),
        ("power_brake", ["power_brake"]),
        ("contended,no_effect", ["contended", "no_effect"]),
    ],
)
def test_flags_of_a_column(joined: str | None, flags: list[str]) -> None:
    """They are joined by commas; an empty column has none."""
    assert split_flags(joined) == flags


def test_what_another_run_may_not_have_comes_with_advice() -> None:
    """A busy or throttled machine, a low priority and a short warm-up have advice for the next
    run.
    """
    advised = {name for name, flag in FLAGS.items() if flag.advice}
    assert advised == {
        "contended",
        *SLOWED,
        "low_priority",
        "warmup_not_converged",
        "runs_disagree",
        "slow_state",
    }
    assert all(flag.meaning for flag in FLAGS.values())


def test_a_slowed_machine_quarantines() -> None:
    """Heat, hardware and quotas do; other flags, wrong or noisy, and those that are not declared do
    not.
    """
    assert {flag for flag in FLAGS if quarantine_reasons([flag])} == SLOWED
    assert quarantine_reasons(["contended", "thermal_slowdown", "a_later_flag", "power_brake"]) == (
        "thermal_slowdown",
        "power_brake",
    )
    assert quarantine_reasons([]) == ()


@pytest.mark.parametrize(("disturbed", "flagged"), [(0, False), (2, False), (3, True), (12, True)])
def test_a_few_disturbed_visits_flag_no_answer(disturbed: int, flagged: bool) -> None:
    """Noise counts from a quarter of twelve visits on; whatever else was raised counts once."""
    visits = [
        ["contended"] * (turn < disturbed)
        + ["pass_skipped"] * (turn == 5)
        + ["later"] * (turn == 7)
        for turn in range(12)
    ]
    expected = {"pass_skipped", "later"} | ({"contended"} if flagged else set())
    assert flags_of_attempts(visits) == expected
    assert flags_of_attempts([["contended"]]) == {"contended"}
