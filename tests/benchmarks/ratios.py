"""Speed-ups of what a benchmark timed in interleaved rounds of one process."""

import os
import sys
from collections.abc import Sequence

from sweeps.model.outcome import Samples
from sweeps.stats.pooling import SpeedUp, within_process
from sweeps.stats.timing import Rounds
from workers.measure.threads import ThreadPolicy, policy_variables, present_policy


def speedup(samples: Samples, baseline: int, arm: int) -> SpeedUp:
    """Of one arm of the samples over another, by `within_process`: what another visit would show is
    not in its interval.

    Benchmarks compare arms in one stretch of rounds with each other, and claim nothing of other
    stretches.
    """
    rounds = Rounds(samples.seconds, samples.arms)
    return within_process(rounds.contrast(baseline, arm), rounds.rounds)


def column(samples: Samples, arm: int) -> Sequence[float]:
    """Seconds of an arm, in the order of the rounds; of its first column, if it has two."""
    place = samples.arms.index(arm)
    return [row[place] for row in samples.seconds]


def restart_with_default_threads() -> None:
    """Replace this process, which has loaded torch, by one whose threads wait as those of jobs do,
    unless its own do.
    """
    if present_policy() != ThreadPolicy():
        os.execve(
            sys.executable,
            [sys.executable, *sys.orig_argv[1:]],
            policy_variables(ThreadPolicy(), os.environ),
        )
