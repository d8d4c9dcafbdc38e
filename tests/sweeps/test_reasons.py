"""Sentences on why that need no profile, from rows whose reason is known."""

from typing import Any

import pytest

from sweeps.analysis.rows import CostModelRow, SizedRow, SpeedupRow
from sweeps.stats.cost_model import Cost, RelativeCosts
from sweeps.text.reasons import (
    describe_fit,
    explain_costs,
    explain_own_work,
    explain_promise,
    name_size,
    profile_needed,
    promise_of,
)
from tests.fixtures.typed_rows import row_of


def a_point(**more: Any) -> Any:
    figures = {
        "gmacs_baseline": 1.2,
        "gmacs_total": 0.6,
        "gmacs_overhead": 0.012,
        "baseline_ms": 20.0,
        "arm_ms": 12.5,
    }
    speed = {
        "speedup": 1.6,
        "speedup_low": 1.5,
        "speedup_high": 1.7,
        "verdict": "faster",
        "floor": 0.02,
        "flags": "",
    }
    return row_of(SpeedupRow, **{**figures, **speed, **more})


def a_fit(**more: Any) -> Any:
    costs = {"alpha": 0.005, "alpha_baseline": 0.004, "beta": 0.016, "beta_baseline": 0.015}
    bounds = {
        f"{name}{end}": value * by
        for name, value in costs.items()
        for end, by in (("_low", 0.5), ("_high", 1.5))
    }
    return row_of(
        CostModelRow,
        **{
            **costs,
            **bounds,
            "points": 8,
            "verdict": "fits",
            "misfit_p": 0.79,
            "work_unit": "GMAC",
            **more,
        },
    )


def test_promise_beside_measurement() -> None:
    """What would follow from MACs, and the rest, in ms."""
    text = explain_promise(a_point())
    assert text.startswith(
        "1.600x [1.500, 1.700] was measured (faster), its MACs promise 2.00x. It takes 12.5 ms, the"
        " baseline 20 ms;"
    )
    assert text.endswith(
        "if time followed MACs it would be 10 ms, so that 2.5 ms more are not explained by MACs"
    )


def test_faster_than_promised() -> None:
    """Less time than MACs explain is stated as less."""
    text = explain_promise(a_point(arm_ms=9.0, speedup=2.2, speedup_low=2.1, speedup_high=2.3))
    assert text.endswith("so that 1 ms less are not explained by MACs")


@pytest.mark.parametrize(
    ("total", "words"),
    [(1.2, "its MACs promise nothing (1x)"), (1.19, "its MACs promise nothing (1.01x)")],
)
def test_no_promise(total: float, words: str) -> None:
    """Within the floor of a speed-up nothing is promised, and no time is derived from it."""
    text = explain_promise(a_point(gmacs_total=total))
    assert text.endswith(words)
    assert " ms" not in text


@pytest.mark.parametrize("missing", ["gmacs_total", "gmacs_baseline"])
def test_unknown_macs(missing: str) -> None:
    """Without MACs there is no promise."""
    point = a_point(**{missing: None})
    assert promise_of(point) is None
    assert explain_promise(point).endswith("what its MACs promise is not known")


def test_own_work() -> None:
    """The method's own MACs as a share of the baseline's; none, and not known."""
    assert (
        explain_own_work(a_point()) == "the method itself adds 0.012 GMACs, 1 % of the baseline's"
    )
    assert explain_own_work(a_point(gmacs_overhead=0.0)).startswith(
        "the method itself adds no MACs"
    )
    assert explain_own_work(a_point(gmacs_overhead=None)) == ""


def test_where_nothing_is_removed() -> None:
    """What was measured there is no effect of fewer tokens, and is not called one."""
    text = explain_promise(
        a_point(
            gmacs_total=1.2, speedup=0.971, speedup_low=0.954, speedup_high=0.988, flags="no_effect"
        )
    )
    assert text.endswith(
        "though it removes nothing at this size: that is no effect of fewer tokens"
    )


def test_costs_with_their_intervals() -> None:
    """Fixed cost and cost of work of both sides; none where the fit is undetermined."""
    assert list(explain_costs(a_fit())) == [
        "fixed cost by the fit: 5 [2.5, 7.5] ms, the baseline's 4 [2, 6], intervals that overlap",
        (
            "cost of work by the fit: 16 [8, 24] ms per GMAC, the baseline's 15 [7.5, 22.5],"
            " intervals that overlap"
        ),
    ]
    assert "overlap" not in next(explain_costs(a_fit(alpha_low=0.0061)))
    nothing = dict.fromkeys(("alpha", "beta"), None)
    assert list(explain_costs(a_fit(**nothing))) == []


def test_costs_beside_the_ratios_of_paired_speed_ups() -> None:
    """The ratios decide what follows, as they are known better than ms; an interval that includes 1
    shows nothing.
    """
    found = list(
        explain_costs(a_fit(), RelativeCosts(Cost(1.2, 0.83, 1.75), Cost(1.16, 1.03, 1.31)))
    )
    assert found == [
        (
            "fixed cost: 1.20 [0.83, 1.75] times the baseline's: these 8 sizes cannot tell them"
            " apart (5 [2.5, 7.5] ms, the baseline's 4 [2, 6])"
        ),
        (
            "cost of work: 1.16 [1.03, 1.31] times the baseline's: more for each GMAC that remains"
            " (16 [8, 24] ms per GMAC, the baseline's 15 [7.5, 22.5])"
        ),
    ]
    unclear = list(
        explain_costs(a_fit(), RelativeCosts(Cost(1.2, 0.66, 2.2), Cost(1.16, 0.96, 1.41)))
    )
    assert (
        unclear[2]
        == "whether the fixed cost or the cost of work takes what is missing of the promise, these"
        " sizes do not show"
    )
    less = next(explain_costs(a_fit(), RelativeCosts(Cost(0.8, 0.7, 0.9), Cost(1.16, 1.03, 1.31))))
    assert "0.80 [0.70, 0.90] times the baseline's: less at every size" in less


@pytest.mark.parametrize(
    ("size", "words"),
    [
        ({"image_size": 64, "tokens": 16, "prompt_tokens": None}, "64 px (16 tokens)"),
        ({"image_size": None, "tokens": 64, "prompt_tokens": 64}, "64 prompt tokens"),
        ({"image_size": 64, "tokens": None, "prompt_tokens": None}, "64 px"),
        (
            {"image_size": 78.4, "image_shape": "64x96", "tokens": 24, "prompt_tokens": None},
            "64x96 px (24 tokens)",
        ),
    ],
)
def test_sizes_are_named_in_both_units(size: dict[str, Any], words: str) -> None:
    """Pixels and tokens of one input stand together."""
    assert name_size(SizedRow(**size)) == words


def test_what_a_profile_needs() -> None:
    """The section that makes one."""
    assert "`profile: {}`" in profile_needed()


def test_how_far_a_fit_may_be_believed() -> None:
    """What it is, and whether it fits."""
    assert (
        describe_fit(a_fit())
        == "a fit of fixed cost + cost of work over 8 sizes, which is no profile; it fits these"
        " points (p = 0.79)"
    )
    assert "does not fit these points (p = 0.001)" in describe_fit(
        a_fit(verdict="misfit", misfit_p=0.001)
    )
    assert describe_fit(a_fit(verdict="undetermined", points=2)).endswith(
        "no break-even is predicted"
    )
