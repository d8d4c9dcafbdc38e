"""The words of findings at three lengths, in one file beside this one: a change of wording shows
there, line by line. Write it anew with: python -m tests.sweeps.test_words
"""

from collections.abc import Iterator
from pathlib import Path

from sweeps.analysis.labels import BITS, SPEEDUP, TOP1, Conclusion, conclude, unanswered
from sweeps.analysis.rows import CeilingRow, ClaimRow, CostModelRow, SpeedupRow
from sweeps.stats.pooling import realised_of
from sweeps.text.curves import (
    break_even_cell,
    describe_break_even,
    describe_cost_model,
    describe_missing,
)
from sweeps.text.reasons import (
    describe_fit,
    explain_ceiling,
    explain_own_work,
    explain_promise,
    realised_sentence,
)
from tests.fixtures.typed_rows import row_of

WORDS = Path(__file__).with_name("words.txt")


def conclusions() -> Iterator[tuple[str, Conclusion]]:
    for verdict, ends in {
        "faster": (1.2, 1.1, 1.3),
        "slower": (0.8, 0.7, 0.9),
        "same": (1.001, 0.995, 1.006),
        "same, above 1": (1.008, 1.004, 1.012),
        "unclear": (1.02, 0.95, 1.09),
        "unclear, above 1": (1.04, 1.01, 1.07),
        "unclear, below 1": (0.96, 0.93, 0.99),
        "quarantined": (1.2, 1.1, 1.3),
    }.items():
        word = verdict.partition(",")[0]
        yield f"speed-up {verdict}", conclude(SPEEDUP, *ends, verdict=word, floor=0.02)
    yield "speed-up without interval", conclude(SPEEDUP, 1.2, None, None, verdict="unclear")
    few = conclude(SPEEDUP, 1.2, 1.1, 1.3, verdict="insufficient", pairs=(3, 30))
    yield "speed-up of too few pairs", few
    yield "bits better", conclude(BITS, -0.02, -0.03, -0.01, verdict="better", floor=0.005)
    yield "bits worse", conclude(BITS, 0.02, 0.01, 0.03, verdict="worse", floor=0.005)
    yield "bits the same", conclude(BITS, 0.001, -0.002, 0.004, verdict="same", floor=0.005)
    yield "bits unclear", conclude(BITS, 0.004, -0.002, 0.01, verdict="unclear", floor=0.005)
    yield "top-1 worse", conclude(TOP1, 1.5, 1.0, 2.0, verdict="worse", floor=0.1)
    yield "queued", unanswered(SPEEDUP, "queued")
    yield "failed", unanswered(SPEEDUP, "failed", "out_of_memory")
    yield "not measured", unanswered(BITS, "not measured")
    yield "not requested", unanswered(BITS, "not requested")


def claims() -> Iterator[tuple[str, list[ClaimRow]]]:
    def claim(verdict: str, **more: object) -> ClaimRow:
        columns = {"axis": "tokens", "metric": "latency", "points": 8, "x_first": 4, "x_last": 196}
        why = "Along tokens: slower at 4 to 16, not clear at 36, faster at 64 to 196."
        return row_of(ClaimRow, **{**columns, "verdict": verdict, "why": why, **more})

    at = {"x": 40.0, "x_low": 16.0, "x_high": 64.0}
    yield "pays from a bracket", [claim("crossing", direction="gains", **at)]
    yield "pays from, below", [claim("pays_from", direction="gains", x=None, x_high=64.0)]
    lost = {"direction": "loses", "x_low": 100.0, "x_high": 144.0}
    yield "pays up to", [claim("crossing", **lost)]
    beyond = claim("pays_up_to", direction="loses", x_low=100.0, worst_loss=0.03)
    yield "pays up to, beyond", [beyond]
    both = [claim("pays_at_both_ends", **lost), claim("pays_at_both_ends", direction="gains", **at)]
    yield "pays at both ends", both
    yield "pays in part", [claim("pays_between")]
    yield "pays everywhere", [claim("always")]
    yield "the same everywhere", [claim("same", largest_gain=0.015)]
    yield "never", [claim("never", largest_gain=0.04)]
    yield "no effect", [claim("no_effect")]
    yield "cannot tell", [claim("unclear")]
    yield "nothing that counts", [claim("unclear", points=0, left_out="4, 9")]
    yield "a point left out", [claim("always", left_out="16")]
    yield "points missing", [claim("always", points_missing=2, host="node-1")]


def rendered() -> Iterator[str]:
    """Cell, phrase and sentence of each finding."""
    for name, found in conclusions():
        yield from (name, f"  {found.word}", f"  {found.numbers}", f"  {found.phrase}")
    for name, rows in claims():
        brief = describe_break_even(rows, "tokens", brief=True)
        yield from (name, f"  {break_even_cell(rows).text}", f"  {brief}")
        yield f"  {describe_break_even(rows, 'tokens')}"
        yield from (f"  {line}" for line in [describe_missing(rows[0])] if line)
    costs = {
        "alpha": 2e-3,
        "alpha_baseline": 1e-3,
        "beta": 8e-3,
        "beta_baseline": 1e-2,
        "work_unit": "GMAC",
    }
    places = {"predicted_x": 40.0, "predicted_x_low": 30.0, "predicted_x_high": 55.0}
    fits: dict[str, dict[str, object]] = {
        "a cost model that fits": {"misfit_p": 0.4, "verdict": "crossing", **places},
        "a cost model that does not": {"misfit_p": 1e-6, "verdict": "misfit"},
        "a cost model of few points": {"misfit_p": None, "verdict": "undetermined"},
    }
    for name, more in fits.items():
        row = row_of(CostModelRow, **costs, **more, points=8)
        said = describe_cost_model(row, "tokens")
        yield from (name, f"  {said or 'predicts nothing'}", f"  {describe_fit(row)}")
    timed = {
        "kind": "latency",
        "metric": "latency",
        "method": "topk",
        "params": "{}",
        "verdict": "faster",
        "speedup": 1.2,
        "speedup_low": 1.1,
        "speedup_high": 1.3,
        "speedup_macs": 1.5,
        "realised_share": 0.4,
        "gmacs": 0.6,
        "gmacs_baseline": 1.0,
        "gmacs_overhead": 0.01,
        "gmacs_total": 0.61,
        "baseline_ms": 10.0,
        "arm_ms": 8.3,
        "floor": 0.01,
        "tokens": 196,
    }
    point = row_of(SpeedupRow, **timed)
    yield from ("a promise", f"  {explain_promise(point)}", f"  {explain_own_work(point)}")
    ceiling = {"ceiling": 1.3, "ceiling_low": 1.25, "ceiling_high": 1.35}
    yield from ("a ceiling", f"  {explain_ceiling(row_of(CeilingRow, **timed, **ceiling))}")
    several: dict[str, list[float | None]] = {
        "realised": [0.3, 0.5, 0.9],
        "realised at no point": [None],
    }
    for name, shares in several.items():
        yield from (name, f"  {realised_sentence('topk', realised_of(shares))}")


def test_words_are_those_on_record() -> None:
    assert "\n".join(rendered()) + "\n" == WORDS.read_text(encoding="utf-8")


if __name__ == "__main__":
    WORDS.write_text("\n".join(rendered()) + "\n", encoding="utf-8")
