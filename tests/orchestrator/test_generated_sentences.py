"""Sentences of the report on language models, for generated numbers: each word agrees with the
interval before it.
"""

import re
from dataclasses import fields
from typing import Any

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.report.generation import (
    ArmComparison,
    QualityPointRow,
    with_quality,
)
from sweeps.analysis.rows import ComparisonState
from sweeps.model.kinds import KINDS
from tests.fixtures.typed_rows import row_of

WHERE = {
    "model": "m",
    "weights": "trained",
    "dtype": "float32",
    "attention": "sdpa",
    "baseline": "dense",
    "runtime": "eager",
}
WHERE |= {"quality_arm_id": "a", "quality_pair_id": "b"}
METRICS = KINDS["generation"].metrics
STATES: tuple[ComparisonState, ...] = ("queued", "failed", "not measured", "measured")
NUMBER = r"[+-]?\d+\.\d+"
SPEED = re.compile(rf"({NUMBER})x(?: \[({NUMBER}), ({NUMBER})\])? in [a-z ]+ \(([a-z ]+)\)")
SIDED = re.compile(rf"(better|worse) by ({NUMBER}) \[({NUMBER}), ({NUMBER})\] bits per byte")


def _ordered(drawn: tuple[float, float, float]) -> tuple[float, float, float]:
    low, value, high = sorted(drawn)
    return low, value, high


def bounds(size: float) -> st.SearchStrategy[tuple[float, float, float]]:
    """Low, value and high, near 0 more often than not."""
    near = st.one_of(st.just(0.0), st.floats(-size / 20, size / 20), st.floats(-size, size))
    return st.tuples(near, near, near).map(_ordered)


@st.composite
def speeds(draw: st.DrawFn, params: str = '{"r":1}', method: str = "a") -> list[dict[str, Any]]:
    """Rows of `speedup` for one arm: some metrics, each with an interval or none, with any
    verdict.
    """
    rows = []
    for metric in draw(st.sets(st.sampled_from(sorted(METRICS)), min_size=1)) | {"time_per_char"}:
        low, value, high = (2**bound for bound in draw(bounds(1.0)))
        pairs = draw(st.sampled_from((1, 5, 6, 40)))
        known = pairs >= 6
        rows.append(
            {
                **WHERE,
                "kind": "generation",
                "metric": metric,
                "method": method,
                "params": params,
                "arm_id": method,
                "pairs": pairs,
                "floor": 0.01,
                "flags": "",
                "speedup": value,
                "speedup_low": low if known else None,
                "speedup_high": high if known else None,
                "gmacs": 1.0,
                "gmacs_baseline": 1.0,
                "gmacs_total": 1.0,
                "speedup_macs": 1.0,
                "verdict": draw(
                    st.sampled_from(
                        ("faster", "slower", "same", "unclear", "insufficient", "quarantined")
                    )
                ),
            }
        )
    return rows


def effects(change: tuple[float, float, float] | None, verdict: str) -> pd.DataFrame:
    """No row or one of the view `effect` for the arm of `speeds`."""
    low, value, high = change or (0.0, 0.0, 0.0)
    row = {
        **WHERE,
        "method": "a",
        "params": '{"r":1}',
        **dict.fromkeys(("comparison_id", "environment", "host", "measured_at"), "2026"),
        **dict.fromkeys(("baseline_value", "arm_value", "arm_low", "arm_high"), 1.0),
        "kind": "quality",
        "metric": "bits_per_byte",
        "verdict": verdict,
        "floor": 0.005,
        "effect": value,
        "effect_low": low,
        "effect_high": high,
    }
    return pd.DataFrame([row] if change else [], columns=list(row))


def controls(change: tuple[float, float, float] | None, *, tuned: bool) -> pd.DataFrame:
    """No row or one of `store.read.quality.beside_controls` for the arm of `speeds`."""
    low, value, high = change or (None, None, None)
    row: dict[str, object] = {
        **WHERE,
        "method": "a",
        "params": '{"r":1}',
        "control": "a",
        "control_params": '{"r":0}',
    }
    row |= {"change": value, "change_low": low, "change_high": high}
    return pd.DataFrame([row] if tuned else [], columns=list(row))


def points(frame: pd.DataFrame) -> list[QualityPointRow]:
    """The rows as the report has them."""
    names = {field.name for field in fields(QualityPointRow)} & set(frame.columns)
    records = frame[sorted(names)].to_dict("records")
    return [
        row_of(
            QualityPointRow,
            **{str(name): None if pd.isna(cell) else cell for name, cell in record.items()},
        )
        for record in records
    ]


def check(text: str) -> None:
    """Every number with a word in a text agrees with it."""
    for value, low, high, word in SPEED.findall(text):
        if not low:
            assert word in {"no interval", "too few pairs", "quarantined"}
            continue
        assert float(low) <= float(value) <= float(high)
        side = "faster" if float(low) > 1 else "slower" if float(high) < 1 else None
        allowed = {side, f"probably {side}", "within floor"} if side else {"same", "unclear"}
        assert word in allowed | {"too few pairs", "quarantined"}, text
    for _side, value, low, high in SIDED.findall(text):
        assert 0 < float(low) <= float(value) <= float(high), text
    assert not re.search(r"(better|worse|gains|loses|costs|saves) (by )?[-+]", text)
    assert "nothing that shows" not in text


@settings(deadline=None, max_examples=40)
@given(
    rows=speeds(),
    change=st.one_of(st.none(), bounds(0.1)),
    verdict=st.sampled_from(("better", "worse", "same", "unclear")),
    state=st.sampled_from((*STATES, "not requested")),
    control=st.one_of(st.none(), bounds(0.1)),
    tuned=st.booleans(),
)
def test_a_sentence_contradicts_none_of_its_numbers(
    *,
    rows: list[dict[str, Any]],
    change: tuple[float, float, float] | None,
    verdict: str,
    state: str,
    control: tuple[float, float, float] | None,
    tuned: bool,
) -> None:
    """Speed-ups, quality and the control of a tuned arm; where quality has no numbers, the sentence
    names its state.
    """
    found = pd.DataFrame(rows)
    requested = pd.DataFrame(
        [
            {
                **WHERE,
                "method": "a",
                "params": '{"r":1}',
                "state": state,
                "reason": "crash",
                "kind": "quality",
            }
        ]
    )
    requested = requested if state != "not requested" else requested.iloc[:0]
    joined = with_quality(
        found, effects(change, verdict), requested, controls(control, tuned=tuned)
    )
    sentence = ArmComparison(points(joined), METRICS).describe("dense")
    check(sentence)
    if change is None:
        words = {
            "failed": "failed (crash)",
            "queued": "queued, not measured yet",
            "not requested": "not requested",
        }
        assert (
            f"quality {words.get(state, 'requested, but not measured')} against dense" in sentence
        )
    assert ("the control of its tuning, a r=0" in sentence) == tuned
    assert ("is not subtracted" in sentence) == (tuned and control is None)
