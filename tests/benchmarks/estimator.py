"""Effective samples per second of the protocol and estimator of today over those of before, on the noise that a store recorded.

uv run python -m tests.benchmarks.estimator STORE [STORE …] [--rounds 30] [--former-share 0.16], of store files or dumps; seconds.
Stretches of so many consecutive rounds are analysed each by itself, once as before (median of the paired log ratios over one
column of the baseline) and once as today (two-way biweight over all columns). Around the attempt's mean their variances are
those of the two estimators on that noise. Times of a second baseline column count as time. Before, 16 % of a job were samples
(measured on the quickstart, `--former-share`); today's share is that of the rounds in the store's own attempts.
"""

import argparse
import json
import shutil
import sqlite3
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sweeps.stats.two_way import MIN_ROUNDS, Array, Rounds
from tests.benchmarks.old_and_new import opened

FORMER_SHARE = 0.16
STRETCHES = 4
"""Attempts with fewer stretches have no variance to compare."""
SAMPLES = """
SELECT a.ended_at - a.started_at, s.rounds, s.columns, s.arms, s.inner, s.seconds
FROM attempt AS a JOIN sample AS s ON s.attempt = a.id ORDER BY a.id"""


class Recorded(NamedTuple):
    """The samples of an attempt."""

    span: float
    """Seconds that the attempt took."""
    arms: tuple[int, ...]
    """By column."""
    inner: tuple[int, ...]
    """Forwards that make up a sample, by column."""
    seconds: Array
    """Of shape [rounds, columns], for each forward."""

    @property
    def in_samples(self) -> float:
        """Seconds in rounds."""
        return float((self.seconds * self.inner).sum())


class Noise(NamedTuple):
    """What an attempt's noise makes of both estimators, over stretches and arms."""

    former: float
    """Variance of the paired medians."""
    present: float
    """Variance of the two-way estimates."""
    columns_time: float
    """Time of a round without the second baseline column over that with it."""
    estimates: int

    @property
    def per_second(self) -> float:
        """Effective samples per second of sampling, present over former."""
        return self.former / self.present * self.columns_time


def recorded(store: Path) -> Iterator[Recorded]:
    """The samples of every attempt of a store of today's schema."""
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
        for span, rounds, columns, arms, inner, packed in connection.execute(SAMPLES):
            seconds = np.frombuffer(zlib.decompress(packed), dtype="<f8").reshape(rounds, columns)
            yield Recorded(span, tuple(json.loads(arms)), tuple(json.loads(inner)), seconds)


def noise(attempt: Recorded, length: int) -> Noise | None:
    """Both estimators on stretches of `length` rounds; `None` where there are fewer than `STRETCHES` or no second arm."""
    baseline, arms = attempt.arms[0], attempt.arms
    others = sorted({*arms} - {baseline})
    stretches = [attempt.seconds[start : start + length] for start in range(0, len(attempt.seconds) - length + 1, length)]
    if len(stretches) < STRETCHES or not others:
        return None
    former = [[np.median(np.log(each[:, 0] / each[:, arms.index(arm)])) for arm in others] for each in stretches]
    fits = [Rounds(each, arms) for each in stretches]
    present = [[fit.contrast(baseline, arm).effect for arm in others] for fit in fits]
    once = [column for column, arm in enumerate(arms) if column == arms.index(arm)]
    shares = np.median(attempt.seconds, axis=0) * attempt.inner
    variances = [float(np.mean(np.var(values, axis=0, ddof=1))) for values in (former, present)]
    return Noise(*variances, float(shares[once].sum() / shares.sum()), len(stretches) * len(others))


def table(store: Path, length: int, former_share: float) -> Iterator[str]:
    """The gain on each attempt's noise, and that of the store with the time spent on samples, for people."""
    attempts = list(recorded(store))
    found = [(attempt, each) for attempt in attempts if (each := noise(attempt, length)) is not None]
    yield f"{'rounds':>6} {'columns':>7} {'ms':>7} {'sd former':>9} {'sd now':>7} {'variance':>8} {'per s':>6}"
    for attempt, each in found:
        milliseconds = 1e3 * float(np.median(attempt.seconds[:, 0]))
        spread = f"{each.former**0.5:>9.2%} {each.present**0.5:>7.2%} {each.former / each.present:>8.2f} {each.per_second:>6.2f}"
        yield f"{len(attempt.seconds):>6} {attempt.seconds.shape[1]:>7} {milliseconds:>7.1f} {spread}"
    if not found:
        yield f"no attempt has {STRETCHES} stretches of {length} rounds; fewer rounds in each: --rounds {MIN_ROUNDS}"
        return
    share = sum(attempt.in_samples for attempt in attempts) / sum(attempt.span for attempt in attempts)
    gains = np.log([each.per_second for _, each in found])
    error = gains.std(ddof=1) / len(gains) ** 0.5 if len(gains) > 1 else float("nan")
    low, middle, high = np.exp(gains.mean() + error * np.array([-2, 0, 2]))
    yield f"per second of sampling: {middle:.2f} times ({low:.2f} to {high:.2f}, two standard errors over {len(found)} attempts)"
    if share > 1:
        yield "the attempts took less time than their samples: these are simulated, and have no share of time"
        return
    yield f"share of time in rounds: {share:.1%}, before {former_share:.1%}: {share / former_share:.2f} times"
    gain, ends = share / former_share * middle, (share / former_share * low, share / former_share * high)
    yield f"effective samples per second of a job: {gain:.1f} times ({ends[0]:.1f} to {ends[1]:.1f}); 5 were promised"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.estimator")
    parser.add_argument("stores", nargs="+", type=Path, metavar="STORE")
    parser.add_argument("--rounds", type=int, default=30, help="in each stretch")
    parser.add_argument("--former-share", type=float, default=FORMER_SHARE, help="of a job's time that went into samples before")
    options = parser.parse_args(arguments)
    if options.rounds < MIN_ROUNDS:
        parser.error(f"--rounds: at least {MIN_ROUNDS}")
    folder = Path(tempfile.mkdtemp(prefix="estimator-"))
    try:
        for number, path in enumerate(options.stores):
            (folder / str(number)).mkdir()
            print(f"\n{path}")
            for line in table(opened(path, folder / str(number)), options.rounds, options.former_share):
                print(line)
    finally:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
