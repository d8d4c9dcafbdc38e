"""Declarations of flags: what each means for a measurement, whether it makes it wrong, and what to
do.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Flag:
    """What is known of a flag before it is raised."""

    meaning: str
    wrong: bool = False
    """Whether the figures are not those of the question; else they are, with more noise or without
    a part."""
    quarantine: bool = False
    """Whether the machine was slowed meanwhile: the attempt counts only where there is no other,
    has no verdict then, and the question stays open."""
    noise: bool = False
    """Whether it means noise alone, which intervals count: an answer has it where `NOISE_SHARE` of
    its attempts have it."""
    harmless: bool = False
    """Whether it is only information, and nothing needs to be done."""
    advice: str = ""
    """For a flag that another run may not have: what to do before it."""


NOISE_SHARE = 0.25
"""Of the attempts behind an answer; fewer that were disturbed widen its interval, and need no
flag."""


def _slowed(meaning: str, advice: str) -> Flag:
    """A flag by which an attempt is quarantined."""
    return Flag(meaning, wrong=True, quarantine=True, advice=advice)


COUNTS_UNCHECKED, VOID = "counts_unchecked", "void"
FLAGS: Mapping[str, Flag] = {
    "contended": Flag(
        "other processes used the cores or the GPU: intervals are wider, and on a quiet machine"
        " speed-ups may be others",
        noise=True,
        advice="run again when the machine is quiet, or with `threads: cores - 1` in the sweep",
    ),
    "thermal_slowdown": _slowed(
        "heat lowered the clocks",
        "heat lowered the clocks; let the device cool, or fix lower clocks, and run again",
    ),
    "hardware_slowdown": _slowed(
        "the GPU's hardware lowered its clocks for another reason than heat or a power brake",
        "the hardware lowered its clocks; look at its power supply and cooling, and run again",
    ),
    "power_brake": _slowed(
        "an external power brake lowered the GPU's clocks",
        "a power brake lowered the clocks; look at the power supply, and run again",
    ),
    "quota_throttled": _slowed(
        "a cgroup quota withheld CPU time for more than 1 % of the time",
        "the container's CPU quota withheld time; allow it more cores or request fewer `threads`,"
        " and run again",
    ),
    "low_priority": Flag(
        "the timed process had a lower priority than others, and could not raise it",
        noise=True,
        advice=(
            "others may have taken the cores: `threads: 1` or `threads: cores - 1` in the sweep"
            " measures more steadily; or start the node's Ray with RAY_worker_niceness=0, and run"
            " again"
        ),
    ),
    "warmup_not_converged": Flag(
        "warm-up ended before every arm was steady",
        noise=True,
        advice="warm-up had not converged; run again",
    ),
    "consistency_check_failed": Flag(
        "counts of images or tokens, or clocks, contradict each other", wrong=True
    ),
    "state_changed": Flag("an arm changed the process that times the others", wrong=True),
    "traced": Flag(
        "a debugger, a profiler or a measurement of coverage ran in the timed process, which slows"
        " Python code unevenly",
        wrong=True,
        advice="run again without a debugger, a profiler or coverage",
    ),
    "other_threads": Flag(
        "other threads of the timed process ran meanwhile",
        noise=True,
        advice="end the other threads, or compare with `isolate=True`, and run again",
    ),
    "cached_result": Flag(
        "an arm returned one object again, far quicker than at its first call: results may be kept",
        advice="compare with `--fresh-inputs` (in Python `fresh_inputs=True`)",
    ),
    "token_trace_mismatch": Flag(
        "blocks processed other tokens than the method promised", wrong=True
    ),
    "text_differs": Flag("the arm decoded to other text than it was fed", wrong=True),
    "text_too_short": Flag("a run ended below the requested characters", wrong=True),
    "runs_disagree": Flag(
        "runs lie further apart than what their visits differ by explains",
        advice="runs disagree: the machine changes between them; run again when it is quiet",
    ),
    "slow_state": Flag(
        "the machine ran below its quickest known speed nearly all the time, and speed-ups may be"
        " others when it is quick",
        advice=(
            "the machine was slower than it has been; run again when it is quiet, which adds its"
            " visits to these"
        ),
    ),
    "states_differ": Flag(
        "the speed-up is clearly another one while the machine is slow; both are stated",
        harmless=True,
    ),
    "mean_disagrees": Flag(
        "some forwards take much longer: mean times tell something else than those of a typical"
        " forward"
    ),
    "unmeasured": Flag(
        "something besides the times could not be measured; notes state what and why",
        harmless=True,
    ),
    "memory_unmeasured": Flag("the peak of memory cannot be read here"),
    "pass_skipped": Flag("memory and energy were not measured: no time was left, or it failed"),
    "isolated_run_skipped": Flag("no time was left for a process of the arm's own, or it failed"),
    "unreadable_images": Flag("some images could not be read and were left out"),
    "zeroshot_unavailable": Flag("a requested zero-shot task could not run here"),
    VOID: Flag(
        "a comparison of which nothing may be concluded: its control moved or failed, or the"
        " machine was slowed in every visit",
        wrong=True,
    ),
    COUNTS_UNCHECKED: Flag(
        "it was imported where its model or a method is not known, so that its tokens and MACs are"
        " as stated",
        harmless=True,
    ),
    "no_effect": Flag(
        "the method removed nothing at this size: the arm does what the baseline does",
        harmless=True,
    ),
}


def wrong(flags: Iterable[str]) -> bool:
    """Whether one of the flags marks a measurement as wrong; one that is not declared does."""
    return any(flag not in FLAGS or FLAGS[flag].wrong for flag in flags)


def flags_of_attempts(flags: Sequence[Iterable[str]]) -> set[str]:
    """The flags of an answer, from those of each attempt: all, but those of noise only where enough
    attempts have them.
    """
    raised = Counter(flag for own in flags for flag in set(own))
    return {
        flag
        for flag, number in raised.items()
        if flag not in FLAGS or not FLAGS[flag].noise or number >= NOISE_SHARE * len(flags)
    }


def quarantine_reasons(flags: Iterable[str]) -> tuple[str, ...]:
    """Those of the flags by which an attempt is quarantined; empty where it is not."""
    return tuple(flag for flag in flags if flag in FLAGS and FLAGS[flag].quarantine)


def contended(flags: Iterable[str]) -> bool:
    """Whether other processes had the cores or the GPU, so that passes of one job may differ."""
    return "contended" in flags


def warmup_converged(flags: Iterable[str]) -> bool:
    """Whether every arm was steady before it was timed; else intervals are wider (see
    `sweeps.stats.timing`).
    """
    return "warmup_not_converged" not in flags


def split_flags(joined: str | None) -> list[str]:
    """The flags in a column, where they are joined by commas."""
    return [flag for flag in (joined or "").split(",") if flag]
