"""The evidence of one point as data frames, kept until the store changes."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from store.read.evidence import evidence, evidence_checks
from store.read.evidence.evidence import PointEvidence, TimedPairs
from sweeps.language.confirmation import sweep_of
from sweeps.text.evidence import NoiseFinding, RuleLine
from webapp import queries
from webapp.charts.pair_series import PairFrames
from workers.methods import all_methods


class PointFrames(NamedTuple):
    """What the page shows of a speed-up by one metric."""

    timed: TimedPairs
    pairs: PairFrames
    rule: list[RuleLine]
    findings: list[NoiseFinding]
    checks: list[evidence_checks.CountCheck]
    attempts: pd.DataFrame
    """Rows of `attempt_chart`."""
    times: pd.DataFrame
    """Rows of `time_chart`."""
    readings: pd.DataFrame
    """`number`, `attempt`, `reading`, `value`."""


def read_point(
    comparison_id: str, environment: str | None, host: str | None, url: str | None = None
) -> PointEvidence:
    """See `store.read.evidence.evidence.point_evidence`, whose `StoreError` it raises."""

    def read(engine: Any) -> PointEvidence:
        return evidence.point_evidence(engine, comparison_id, environment, host)

    return queries.kept(read, "point", comparison_id, environment, host, url=url)


def point_frames(found: PointEvidence, metric: str, url: str | None = None) -> PointFrames:
    """The frames behind the charts of a point, and what is worked out beside them."""
    return queries.kept(
        lambda _: _frames(found, metric),
        "point_frames",
        found.comparison_id,
        *found.place,
        metric,
        url=url,
    )


def search_points(words: str, url: str | None = None) -> pd.DataFrame:
    """Answers whose ids begin with the words, or whose model, method or parameters hold each of
    them.
    """
    return pd.DataFrame(
        queries.kept(
            lambda engine: evidence.similar_comparisons(engine, words),
            "search",
            words,
            url=url,
        )
    )


def pairs_csv(found: PointEvidence, metric: str) -> bytes:
    """Every pair with all raw times, in seconds."""
    return pd.DataFrame(evidence_checks.pair_rows(found, metric)).to_csv(index=False).encode()


def single_sweep(found: PointEvidence) -> str:
    """A sweep file of this comparison alone; empty where a method of it is not installed here."""
    try:
        question = f"Is comparison {found.comparison_id} measured again the same?"
        return sweep_of([found.comparison], f"point-{found.question_id}", question, all_methods())
    except KeyError:
        return ""


def _frames(found: PointEvidence, metric: str) -> PointFrames:
    timed = next(each for each in found.timed if each.metric.name == metric)
    pairs = pd.DataFrame(evidence_checks.shown_pairs(timed))
    pairs = pairs.assign(
        ratio=np.exp(pairs["log"]),
        baseline_ms=1e3 * pairs["baseline_s"],
        arm_ms=1e3 * pairs["arm_s"],
    )
    running = [
        {"number": each.number, "attempt": each.attempt, **_speed(each.found)}
        for each in evidence_checks.running_speedups(timed)
    ]
    return PointFrames(
        timed,
        PairFrames(
            pairs.drop(columns=["log", "baseline_s", "arm_s"]),
            pd.DataFrame(running),
            timed.metric.floor,
        ),
        evidence_checks.worked_rule(timed),
        evidence_checks.findings(found, timed),
        evidence_checks.count_checks(found, timed),
        _attempts(timed),
        _times(timed),
        pd.DataFrame(
            evidence_checks.readings_by_pair(found, timed),
            columns=["number", "attempt", "reading", "value"],
        ),
    )


def _attempts(timed: TimedPairs) -> pd.DataFrame:
    rows = [
        {"row": f"Attempt {attempt}", "kind": "arm", **_speed(own)}
        for attempt, own in evidence_checks.attempt_speedups(timed)
    ]
    baselines = {each.row.attempt: each.row.baseline for each in timed.attempts}
    for null in evidence_checks.null_contrasts(timed):
        if null.arm == baselines[null.attempt]:
            name = f"Attempt {null.attempt}, baseline against itself"
            rows.append({"row": name, "kind": "baseline against itself", **_speed(null.found)})
    rows.append({"row": "Pooled: the answer", "kind": "pooled", **_speed(timed.pooling.speedup)})
    return pd.DataFrame(rows)


def _times(timed: TimedPairs) -> pd.DataFrame:
    parts = []
    for side in ("baseline", "arm"):
        own = np.sort(
            1e3 * np.concatenate([each.times(getattr(each.row, side)) for each in timed.attempts])
        )
        parts.append(
            pd.DataFrame({"side": side, "ms": own, "share": np.arange(1, len(own) + 1) / len(own)})
        )
    return pd.concat(parts, ignore_index=True)


def _speed(found: Any) -> Mapping[str, float]:
    """The speed-up with its interval; NaN where there is none."""
    known = np.isfinite(found.high)
    return {
        "speedup": found.value,
        "low": found.low if known else np.nan,
        "high": found.high if known else np.nan,
    }
