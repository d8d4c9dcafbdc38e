"""The words of findings, in one file beside this one: a change of wording shows there, line by
line. Write it anew with: python -m tests.sweeps.test_words
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from sweeps.analysis.labels import BITS, SPEEDUP, TOP1, Conclusion, conclude, unanswered
from sweeps.analysis.rows import (
    CeilingRow,
    ClaimRow,
    ConditionRow,
    CostModelRow,
    SizedRow,
    SpeedupRow,
)
from sweeps.analysis.waterfall import OperatorPair, operator_reasons
from sweeps.model.profile import ArmProfile, IntervalEstimate, Phase
from sweeps.stats.cost_model import Cost, RelativeCosts
from sweeps.stats.curve import Claim, Curve, Point
from sweeps.stats.pooling import Verdict, realised_of
from sweeps.text import condition_text
from sweeps.text.curves import (
    alike,
    break_even_cell,
    describe_break_even,
    describe_cost_model,
    describe_curve,
    describe_missing,
    earliest,
    merit_of,
    points_left_out,
    runtime_table,
)
from sweeps.text.effects import effect_phrase, effect_word
from sweeps.text.explanation import (
    bound,
    contradict,
    explain_capture,
    explain_operators,
    explain_rates,
    explain_wall,
)
from sweeps.text.reasons import (
    describe_fit,
    explain_ceiling,
    explain_costs,
    explain_own_work,
    explain_promise,
    is_bound,
    left_to_gain,
    name_size,
    profile_needed,
    realised_sentence,
)
from tests.fixtures.typed_rows import row_of

WORDS = Path(__file__).with_name("words.txt")
Bounds = tuple[float | None, float | None, float | None]


def conclusions() -> Iterator[tuple[str, Conclusion]]:
    for verdict, ends in {
        "faster": (1.2, 1.1, 1.3),
        "slower": (0.8, 0.7, 0.9),
        "same": (1.001, 0.995, 1.006),
        "same, above 1": (1.008, 1.004, 1.012),
        "unclear": (1.02, 0.95, 1.09),
        "unclear, above 1": (1.04, 1.01, 1.07),
        "unclear, below 1": (0.96, 0.93, 0.99),
        "insufficient": (1.5, 1.4, 1.6),
        "quarantined": (1.2, 1.1, 1.3),
    }.items():
        word = verdict.partition(",")[0]
        yield f"speed-up {verdict}", conclude(SPEEDUP, *ends, verdict=word, floor=0.02)
    yield "speed-up without interval", conclude(SPEEDUP, 1.2, None, 1.3, verdict="unclear")
    yield "speed-up without value", conclude(SPEEDUP, None, None, None, verdict=None)
    few = conclude(SPEEDUP, 1.2, 1.1, 1.3, verdict="insufficient", pairs=(3, 30))
    yield "speed-up of too few pairs", few
    for verdict, change in {
        "worse": (0.02, 0.01, 0.03),
        "same": (0.001, -0.002, 0.004),
        "same, above 0": (0.0015, 0.0001, 0.0028),
        "unclear": (0.004, -0.002, 0.01),
        "unclear, above 0": (0.0070, 0.0042, 0.0098),
    }.items():
        word = verdict.partition(",")[0]
        yield f"bits {verdict}", conclude(BITS, *change, verdict=word, floor=0.005)
    yield "top-1 worse", conclude(TOP1, 1.5, 1.0, 2.0, verdict="worse", floor=0.1)
    yield "top-1 the same", conclude(TOP1, 0.11, 0.01, 0.19, verdict="same")
    yield "queued", unanswered(SPEEDUP, "queued")
    yield "failed", unanswered(SPEEDUP, "failed", "out_of_memory")
    yield "not measured", unanswered(BITS, "not measured")
    yield "not requested", unanswered(BITS, "not requested")


def claim(verdict: str, *place: float | None, **more: object) -> ClaimRow:
    """A row of the view `break_even` of a curve of 8 points; `place`: x and its interval."""
    columns = {"axis": "tokens", "metric": "latency", "points": 8, "x_first": 4, "x_last": 196}
    why = "Along tokens: slower at 4 to 16, not clear at 36, faster at 64 to 196."
    x = dict(zip(("x", "x_low", "x_high"), place, strict=False))
    return row_of(ClaimRow, **{**columns, "verdict": verdict, "why": why, **x, **more})


def gains(verdict: str, *place: float | None, **more: object) -> ClaimRow:
    return claim(verdict, *place, direction="gains", **more)


def loses(verdict: str, *place: float | None, **more: object) -> ClaimRow:
    return claim(verdict, *place, direction="loses", **more)


CLAIMS = {
    "pays from a bracket": [gains("crossing", 40.0, 16.0, 64.0)],
    "pays from, below": [gains("pays_from", None, None, 64.0)],
    "pays from, a loss below": [gains("pays_from", None, None, 35.4, worst_loss=0.0366)],
    "pays from, no loss below": [gains("pays_from", None, None, 36.0, worst_loss=0.0)],
    "pays up to": [loses("crossing", None, 100.0, 144.0)],
    "pays up to, likely": [loses("crossing", 136.2, 100.7, 143.5)],
    "pays up to, beyond": [loses("pays_up_to", None, 100.7, None, worst_loss=1.496)],
    "pays at both ends": [
        loses("pays_at_both_ends", None, 100.0, 144.0),
        gains("pays_at_both_ends", 40.0, 16.0, 64.0),
    ],
    "pays at both ends, bounds": [
        loses("pays_at_both_ends", None, 9.3, None, worst_loss=0.0366),
        gains("pays_at_both_ends", None, None, 1225.0, worst_loss=0.0366, x_last=1600),
    ],
    "faster in part": [claim("pays_between")],
    "faster in part, a bracket": [gains("pays_between", 60.0, 53.0, 70.0)],
    "faster in part, two brackets": [
        loses("pays_between", None, 9.0, 16.0),
        gains("pays_between", 60.0, 53.0, 70.0),
    ],
    "pays everywhere": [claim("always")],
    "the same everywhere": [claim("same", largest_gain=0.0151)],
    "never": [claim("never", largest_gain=0.04)],
    "never, nor can it": [claim("never", largest_gain=-0.02)],
    "no effect": [claim("no_effect")],
    "cannot tell": [claim("unclear")],
    "nothing that counts": [claim("unclear", points=0, left_out="4, 9")],
    "a point left out": [claim("always", left_out="16")],
    "points missing": [claim("always", points_missing=2, host="node-1")],
    "along GMACs": [
        gains("pays_from", None, None, 0.30312, axis="gmacs", worst_loss=0.1, x_last=1.25)
    ],
    "along GMACs saved": [
        loses("pays_up_to", None, 0.4231, None, axis="gmacs_saved", worst_loss=0.1, x_first=0.2)
    ],
    "along batches": [
        gains("pays_from", None, None, 7.6, axis="batch_size", worst_loss=0.0, x_last=32)
    ],
    "along a parameter": [
        loses(
            "crossing", 0.55, 0.5, 0.7, axis="parameter", varied_parameter="keep_rate", x_first=0.3
        )
    ],
    "memory": [gains("crossing", 21.0, 16.0, 196.0, metric="peak_rss")],
}


def claims() -> Iterator[str]:
    for name, rows in CLAIMS.items():
        words = dict.fromkeys(describe_break_even(rows, "tokens", brief=at) for at in (True, False))
        yield from (name, *(f"  {text}" for text in words))
        if rows[0].axis == "tokens":
            cell = break_even_cell(rows)
            yield f"  {cell.text} ({cell.kind}, {cell.place})"
        yield from (f"  {line}" for row in rows[:1] for line in [describe_missing(row)] if line)
    yield describe_break_even([], "tokens")
    yield describe_break_even(CLAIMS["pays everywhere"], "prompt tokens")
    for share in ([0.3, None, 0.5, 0.9], [None], [0.5], [-2.0, -0.5]):
        yield realised_sentence("topk", realised_of(share))


def curves() -> Iterator[str]:
    def point(x: float, verdict: Verdict = "unclear", **more: bool) -> Point:
        return Point.model_validate({"x": x, "speedup": 1.0, "verdict": verdict, **more})

    points = (
        *(point(x, "slower") for x in (4, 9)),
        point(16),
        point(36, "faster"),
        point(64, no_op=True),
        point(100, wrong=True),
    )
    for curve in (Curve(axis="tokens", points=points), Curve(axis="tokens")):
        yield f"{describe_curve(curve)} Left out: {points_left_out(curve)}"


def cost_models() -> Iterator[str]:
    costs = {"alpha": 2e-3, "alpha_baseline": 1e-3, "beta": 8e-3, "beta_baseline": 1e-2}
    bounds = {
        f"{name}{end}": value * by
        for name, value in costs.items()
        for end, by in (("_low", 0.5), ("_high", 1.5))
    }
    places = {"predicted_x": 40.2, "predicted_x_low": 30.9, "predicted_x_high": 55.1}
    fits: dict[str, dict[str, object]] = {
        "a cost model that fits": {"misfit_p": 0.4, "verdict": "crossing", **places},
        "one with an upper end": {"misfit_p": 0.4, "predicted_x_high": 40.1},
        "one with a lower end that does not fit": {
            "misfit_p": 0.0012,
            "verdict": "misfit",
            "predicted_x_low": 40.9,
        },
        "a cost model that does not": {"misfit_p": 1e-6, "verdict": "misfit"},
        "a cost model of few points": {"misfit_p": None, "verdict": "undetermined"},
        "fixed costs that do not overlap": {"misfit_p": 0.4, "alpha_low": 0.0016},
        "costs that are not known": {"misfit_p": 0.4, "alpha": None, "beta": None},
    }
    for name, more in fits.items():
        row = row_of(CostModelRow, **{**costs, **bounds, "work_unit": "GMAC", "points": 8, **more})
        yield from (name, f"  {describe_cost_model(row, 'tokens') or 'predicts nothing'}")
        yield f"  {describe_fit(row)}"
        if {"alpha", "alpha_low", "predicted_x"} & more.keys():
            yield from (f"  {line}" for line in explain_costs(row))
    row = row_of(CostModelRow, **costs, **bounds, work_unit="GMAC", points=8)
    for ratios in (
        (Cost(1.2, 0.83, 1.75), Cost(1.16, 1.03, 1.31)),
        (Cost(1.2, 0.66, 2.2), Cost(1.16, 0.96, 1.41)),
        (Cost(0.8, 0.7, 0.9), Cost(1.16, 1.03, 1.31)),
    ):
        yield from ("costs beside ratios", *explain_costs(row, RelativeCosts(*ratios)))


TIMED = {
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


def promises() -> Iterator[str]:
    changes: dict[str, dict[str, object]] = {
        "a promise": {},
        "less time than promised": {"arm_ms": 5.0, "speedup": 2.0, "speedup_high": 2.2},
        "no promise": {"gmacs_total": 1.0, "gmacs_overhead": 0.0},
        "MACs that are not known": {"gmacs_total": None},
        "nothing removed": {"gmacs_total": 1.0, "flags": "no_effect"},
    }
    for name, more in changes.items():
        point = row_of(SpeedupRow, **TIMED | more)
        yield from (name, f"  {explain_promise(point)}", f"  {explain_own_work(point)}")
    yield profile_needed()
    for size in (
        {"image_size": 64, "tokens": 16},
        {"tokens": 64, "prompt_tokens": 64},
        {"image_size": 64},
        {"image_size": 78.4, "image_shape": "64x96", "tokens": 24},
    ):
        yield name_size(row_of(SizedRow, **size))


CEILINGS: dict[str, tuple[Bounds, Bounds]] = {
    "part of it its own cost": ((1.2, 1.1, 1.3), (1.3, 1.25, 1.35)),
    "no method can gain more": ((0.947, 0.907, 0.99), (1.021, 0.978, 1.066)),
    "no method can gain": ((0.8, 0.7, 0.9), (0.95, 0.92, 0.98)),
    "not its own cost": ((1.544, 1.479, 1.613), (1.603, 1.534, 1.676)),
    "its own cost": ((1.1, 1.08, 1.12), (1.8, 1.78, 1.82)),
    "whose it is not known": ((1.4, 1.2, 1.6), (1.6, 1.4, 1.8)),
    "all of the promise": ((1.7, 1.65, 1.75), (1.98, 1.9, 2.05)),
    "intervals that meet": ((1.1, 1.0, 1.2), (1.0, 0.95, 1.05)),
    "an arm that is faster": ((1.3, 1.2, 1.4), (1.0, 0.95, 1.05)),
    "a cut without an interval": ((1.1, 1.0, 1.2), (1.0, None, None)),
    "no cut": ((1.5, 1.4, 1.6), (None, None, None)),
}


def ceiling_row(reached: Bounds, ceiling: Bounds) -> CeilingRow:
    columns = [f"{name}{end}" for name in ("speedup", "ceiling") for end in ("", "_low", "_high")]
    figures = dict(zip(columns, (*reached, *ceiling), strict=True))
    return row_of(CeilingRow, **TIMED | figures | {"gmacs_baseline": 2.0, "gmacs_total": 1.0})


def ceilings() -> Iterator[str]:
    for name, both in CEILINGS.items():
        row = ceiling_row(*both)
        yield from (f"a ceiling: {name}", f"  {explain_ceiling(row)}", f"  {is_bound(row)}")


def figure(value: float, half: float | None) -> IntervalEstimate:
    if half is None:
        return IntervalEstimate(value=value)
    return IntervalEstimate(value=value, low=value - half, high=value + half)


def profile(
    wall_ms: float, launches: float = 100, phase: Phase = "forward", **classes: float
) -> ArmProfile:
    """A profile with these classes of time in ms; what they leave of the wall is the host's."""
    known = {name: ms / 1e3 for name, ms in classes.items()}
    known["host"] = wall_ms / 1e3 - sum(known.values())
    common = {"arm": 0, "tool": "torch", "phase": phase, "forwards": 5, "wall_s": wall_ms / 1e3}
    return ArmProfile.model_validate({**common, "times": known, "launches": launches})


def beside(baseline: ArmProfile, arm: ArmProfile, half: float | None = 0.01) -> ArmProfile:
    """The arm with its differences from the baseline, each with an interval of `half` of the wall
    to each side.
    """
    wall = baseline.wall_s or 1.0
    changes = {
        name: figure((arm.times.get(name, 0.0) - baseline.times.get(name, 0.0)) / wall, half)
        for name in dict.fromkeys((*arm.times, *baseline.times))
    }
    speedup = figure(wall / (arm.wall_s or 1.0), half)
    changed = {"baseline": 0, "rounds": 30, "speedup": speedup, "changes": changes}
    return arm.model_copy(update=changed)


def explanations() -> Iterator[str]:
    full, small = profile(10, device=9), profile(5.57, launches=175, device=4.08)
    cases: dict[str, tuple[ArmProfile, ArmProfile, float | None, str]] = {
        "a launch-bound GPU": (
            profile(8.0, launches=312, device=3.8, launch=3.0),
            profile(8.05, launches=337, device=2.0, launch=4.0),
            0.01,
            "cuda",
        ),
        "a launch-bound GPU that became slower": (
            profile(6.55, launches=312, device=3.0),
            profile(7.29, launches=337, device=1.6),
            0.01,
            "cuda",
        ),
        "a CPU whose operators dominate": (
            profile(30, launches=200, device=28),
            profile(20, launches=221, device=17.8),
            0.02,
            "cpu",
        ),
        "a CPU where dispatch dominates": (
            profile(3.0, launches=200, device=1.2),
            profile(3.3, launches=260, device=0.8),
            0.01,
            "cpu",
        ),
        "an arm that does nothing": (full, full, 0.001, "cpu"),
        "noise": (profile(2.7, device=2.2), profile(2.75, device=2.66), 0.25, "cpu"),
        "too few rounds": (full, profile(5, device=4), None, "cpu"),
        "a prefill": (
            profile(10, device=9, phase="prefill"),
            profile(8, device=7, phase="prefill"),
            0.01,
            "cpu",
        ),
        "a decode step": (
            profile(10, device=9, phase="decode"),
            profile(8, device=7, phase="decode"),
            0.01,
            "cpu",
        ),
    }
    for name, (baseline, arm, half, device) in cases.items():
        yield from (name, f"  {explain_wall(baseline, beside(baseline, arm, half), device)}")
    arm = beside(profile(10, device=6), profile(9.4, device=5.7), half=0.04)
    arm = arm.model_copy(update={"speedup": figure(10 / 9.4, 0.01)})
    yield from ("no class explains", f"  {explain_wall(profile(10, device=6), arm, 'cpu')}")
    yield from ("no rounds", f"  {explain_wall(full, profile(5, device=4), 'cpu')}")
    arm = beside(full, profile(8, device=7))
    arm = arm.model_copy(update={"changes": {**arm.changes, "host": figure(0.0, None)}})
    yield from ("a class without interval", f"  {explain_wall(full, arm, 'cpu')}")
    arm = beside(full, profile(9.8, device=8.8))
    for name, timed in {"contradicted": (1.2, 0.05), "compatible": (1.05, 0.04)}.items():
        yield from (name, f"  {explain_wall(full, arm, 'cpu', figure(*timed))}")
    arm = beside(small, profile(5.82, launches=205, device=4.11), half=0.012)
    arm = arm.model_copy(update={"speedup": IntervalEstimate(value=0.957, low=0.912, high=1.005)})
    for name, timed in {"slower": (0.947, 0.04), "unclear": (0.97, 0.05)}.items():
        yield from (f"timed {name}", f"  {explain_wall(small, arm, 'cpu', figure(*timed))}")
    faster = IntervalEstimate(value=1.03, low=1.001, high=1.06)
    yield from ("timed faster", f"  {explain_wall(small, arm, 'cpu', faster)}")
    bare = ArmProfile(arm=0, tool="ncu", forwards=1)
    yield f"kernels alone: {bound(bare, 'cuda')} {explain_wall(bare, full, 'cuda')}"
    yield f"kernels of the arm alone: {explain_wall(full, bare, 'cuda')}"
    yield f"waits: {bound(profile(10, device=2, sync=6), 'cuda')}"
    yield f"gaps: {bound(profile(10, device=2, idle=7), 'cuda')}"
    captured = IntervalEstimate(value=7.3 / 3.1, low=2.3, high=2.4)
    yield explain_capture(0.0073, 0.0031, captured)
    yield explain_capture(0.010, 0.0099, IntervalEstimate(value=10 / 9.9, low=0.98, high=1.04))
    yield explain_capture(0.010, 0.005, None)


def operators() -> Iterator[str]:
    addmm = OperatorPair("aten::addmm", 2.919, 2.711, 49, 49, 0.0904, 0.0475)
    norm = OperatorPair("aten::native_layer_norm", 0.545, 0.632, 25, 25, None, None)
    copy = OperatorPair("aten::copy_", 0.084, 0.076, 49, 52, None, None)
    added = [
        OperatorPair(f"aten::{name}", 0, ms, 0, 3, None, None)
        for name, ms in (("baddbmm", 0.154), ("_softmax", 0.066))
    ]
    many = [OperatorPair(f"aten::a{n}", 0, 0.1 / (n + 1), 0, 1, None, None) for n in range(9)]
    for name, pairs in {
        "products that stay": [addmm, norm, copy, *added],
        "as much as their MACs": [addmm._replace(arm_ms=1.55)],
        "less work, as many bytes": [
            addmm._replace(baseline_bytes=24.6e6, arm_bytes=23.4e6, arm_ms=2.8),
            norm,
        ],
        "more than their MACs": [addmm._replace(arm_ms=1.2)],
        "many operators": [addmm, *many],
        "nothing stands out": [norm._replace(arm_ms=0.545)],
        "no operators": [],
    }.items():
        yield from (name, f"  {explain_operators(operator_reasons(pairs))}")
    for rates in ((137, 108, True), (100, 130, False), (100, 103, True), (None, 108, True)):
        yield f"rates {rates}: {explain_rates(*rates[:2], less_work=bool(rates[2]))}"


def cautions() -> Iterator[str]:
    for weights, parameters in (("trained", 3_737_088), ("trained", None), ("random", 7e9)):
        yield from condition_text.cautions("m", weights, parameters)
    yield f"a large model: {list(condition_text.cautions('m', 'pretrained', 7e9))}"
    for flags in (["", None, "no_effect"], ["contended", "", "contended,no_effect"], ["contended"]):
        yield f"flags {flags}: {list(condition_text.load_caution(flags))}"
    for speeds in ([None, None], [0.95, 0.97, 0.8], [0.82, None, 0.81, 0.95]):
        yield f"speeds {speeds}: {list(condition_text.slow_caution(speeds))}"
    fine = row_of(SpeedupRow, flags="contended", tokens=64, speedup=1.231, speedup_slow=1.178)
    uneven = row_of(
        SpeedupRow, flags="mean_disagrees", tokens=64, speedup=1.08, ratio_of_means=0.834
    )
    differ = row_of(
        SpeedupRow, flags="contended,states_differ", tokens=196, speedup=1.231, speedup_slow=1.178
    )
    for point, times in ((fine, 1), (uneven, 5), (differ, 5)):
        points = [(f"topk {number}", point) for number in range(times)]
        yield f"means: {list(condition_text.mean_caution(points))}"
        yield f"states: {list(condition_text.states_caution(points))}"


def rendered() -> Iterator[str]:
    """Cell, phrase and sentence of each finding."""
    for name, found in conclusions():
        yield from (
            name,
            f"  {effect_word(found)}",
            f"  {found.numbers}",
            f"  {effect_phrase(found)}",
        )
    for lines in (claims, curves, cost_models, promises, ceilings):
        yield from lines()
    for lines in (explanations, operators, cautions):
        yield from lines()


def test_words_are_those_on_record() -> None:
    assert "\n".join(rendered()) + "\n" == WORDS.read_text(encoding="utf-8")


def test_every_claim_has_words_of_its_own() -> None:
    assert {row.verdict for rows in CLAIMS.values() for row in rows} == set(get_args(Claim))
    assert len({describe_break_even(rows, "tokens") for rows in CLAIMS.values()}) == len(CLAIMS)


def test_several_curves_in_a_cell() -> None:
    """Of several arms the one that pays first is shown; of one arm on several hosts what they agree
    on.
    """
    late = [gains("pays_from", None, None, 100.0)]
    rows = ([claim("never")], late, [claim("unclear")], CLAIMS["pays from, below"])
    cells = [break_even_cell(each) for each in rows]
    assert earliest(cells) == 3
    assert alike(cells[1:2] * 2).text == "≤ 100"
    both = alike(cells[:2])
    assert (both.text, both.kind) == ("differs", "differs")
    assert "≤ 100: pays at every point measured from 100 to 196 tokens" in both.sentence


def test_a_row_for_each_runtime_and_dtype() -> None:
    """In the order of the runtimes; with the likeliest place where there is one, a dash for an arm
    of one size; one runtime alone needs no table.
    """
    likely = gains("crossing", 18.4, 16.0, 36.0)
    kinds = (("openvino", "float32"), ("eager", "float32"), ("eager", "bfloat16"))
    points = [row_of(ConditionRow, runtime=runtime, dtype=dtype) for runtime, dtype in kinds]
    curves = [(point, "topk", [likely]) for point in points]
    found = runtime_table([*curves, (points[0], "tome", [])])
    assert list(found) == ["eager bfloat16", "eager float32", "openvino float32"]
    assert found["eager float32"] == {"topk": f"{break_even_cell([likely]).text}, likely 18"}
    assert found["openvino float32"]["tome"] == "-"
    assert runtime_table(curves[1:]) == {}


def test_the_better_curve_pays_from_an_earlier_measured_point_on() -> None:
    """What is shown counts before what is likely; then the likeliest place, as in the quickstart:
    a curve that pays from at most 36 on is better than one from 64 on, likely 27.
    """
    better = [
        claim("always"),
        gains("crossing", 17.0, 9.0, 25.0),
        gains("crossing", 20.0, 4.0, 25.0),
        gains("pays_from", None, None, 36.0),
        gains("crossing", 27.0, 4.0, 64.0),
        gains("pays_between", 60.0, 53.0, 70.0),
        claim("never"),
    ]
    merits = [merit_of([row]) for row in better]
    assert merits == sorted(set(merits), reverse=True)


def test_contradictions_need_both_intervals() -> None:
    """Without an interval nothing contradicts; intervals that touch do not."""
    assert contradict(figure(1.0, 0.1), figure(1.3, 0.1))
    assert contradict(figure(1.3, 0.1), figure(1.0, 0.1))
    assert not contradict(figure(1.0, 0.1), figure(1.2, 0.1))
    assert not contradict(figure(1.0, None), figure(2.0, 0.1))


def test_without_an_interval_all_may_be_left_to_gain() -> None:
    assert left_to_gain(ceiling_row((1.5, None, None), (1.8, 1.7, 1.9)))[1:] == (0.0, math.inf)


if __name__ == "__main__":
    WORDS.write_text("\n".join(rendered()) + "\n", encoding="utf-8")
