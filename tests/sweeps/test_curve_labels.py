"""Break-evens of curves as sentences: each verdict, its bounds, what it would take, and what a brief one leaves out."""

from types import SimpleNamespace
from typing import Any, get_args

import pytest

from sweeps.curve_labels import describe_break_even, describe_cost_model
from sweeps.stats.breakeven import Claim

COLUMNS = (
    "more_seconds",
    "x",
    "x_low",
    "x_high",
    "direction",
    "grid_limited",
    "fitted",
    "worst_loss",
    "largest_gain",
    "pairs_factor",
    "varied_parameter",
    "cost_model",
    "measured_x",
    "measured_x_low",
    "measured_x_high",
)


def rows(verdict: str, *crossings: dict[str, Any], missing: int = 0, **figures: Any) -> list[Any]:
    """Rows of the view `break_even` of one curve of 8 points."""
    common = {
        **dict.fromkeys(COLUMNS),
        "verdict": verdict,
        "axis": "tokens",
        "metric": "latency",
        "points": 8 - missing,
        "points_missing": missing,
    }
    return [SimpleNamespace(**(common | {"host": "a"} | figures | each)) for each in crossings or ({},)]


def gains(x: float | None, low: float | None, high: float | None, **more: Any) -> dict[str, Any]:
    return {"x": x, "x_low": low, "x_high": high, "direction": "gains", **more}


def loses(x: float | None, low: float | None, high: float | None, **more: Any) -> dict[str, Any]:
    return gains(x, low, high) | {"direction": "loses", **more}


def alone(x: float | None, low: float | None, high: float | None) -> dict[str, Any]:
    """Where the points put it without the cost model, which is known."""
    return {"cost_model": "fits", "measured_x": x, "measured_x_low": low, "measured_x_high": high}


@pytest.mark.parametrize(
    ("found", "whole", "brief"),
    [
        (rows("crossing", gains(36.2, 16, 64)), "pays from 36 tokens on (16 to 64) by the points alone", None),
        (rows("crossing", loses(36.2, 16, 64)), "stops paying at 36 tokens (16 to 64) by the points alone", None),
        (
            rows("crossing", gains(36.2, 16, 64, grid_limited=True)),
            "slower at 16 tokens, pays from 64 on; where between was not measured",
            None,
        ),
        (
            rows("crossing", loses(36.2, 16, 64, grid_limited=True)),
            "pays up to 16 tokens, slower at 64; where between was not measured",
            None,
        ),
        (
            rows("crossing", gains(21.1, 16, 196, grid_limited=True), points=2),
            "slower at 16 tokens, faster at 196; where between was not measured",
            None,
        ),
        (
            rows("crossing", loses(21.1, 16, 196, grid_limited=True), points=2),
            "faster at 16 tokens, slower at 196; where between was not measured",
            None,
        ),
        (
            rows("crossing", gains(12.7, 11.4, 14.2, fitted=True)),
            "pays from 13 tokens on (11 to 15) by the cost model",
            None,
        ),
        (
            rows("crossing", gains(20.1, 15.4, 26.9, fitted=True, **alone(17.2, 9, 36))),
            "pays from 20 tokens on (15 to 27) by the cost model, from 17 (9 to 36) by the points alone",
            None,
        ),
        (
            rows("crossing", loses(20.1, 15.4, 26.9, fitted=True, **alone(17.2, 9, 36))),
            "stops paying at 20 tokens (15 to 27) by the cost model, at 17 (9 to 36) by the points alone",
            None,
        ),
        (
            rows("crossing", gains(20.1, 15.4, 26.9, fitted=True, **alone(None, None, 100))),
            "pays from 20 tokens on (15 to 27) by the cost model, from at most 100 by the points alone",
            None,
        ),
        (
            rows("crossing", gains(20.1, 15.4, 26.9, fitted=True, **alone(None, None, None))),
            "pays from 20 tokens on (15 to 27) by the cost model, which the points alone do not show",
            None,
        ),
        (rows("crossing", gains(None, 16, 64)), "pays from 64 tokens on (16 to 64) by the points alone", None),
        (rows("crossing", loses(None, 16, 64)), "stops paying at 16 tokens (16 to 64) by the points alone", None),
        (
            rows("crossing", loses(100.4, 64, 144), gains(36.2, 16, 64)),
            "crosses 1× at 36 tokens (16 to 64), at 100 tokens (64 to 144), by the points alone",
            None,
        ),
        (
            rows("crossing", loses(100.4, 64, 144, grid_limited=True), gains(36.2, 16, 64)),
            "crosses 1× at 36 tokens (16 to 64), between 64 and 144 tokens, by the points alone",
            None,
        ),
        (
            rows("pays_from", gains(None, None, 35.4), worst_loss=0.0366),
            "pays from at most 36 tokens on by the points alone; below, perhaps slower, by 3.7 % at most",
            "pays from at most 36 tokens on by the points alone",
        ),
        (
            rows("pays_from", gains(None, None, 62.8, fitted=True, **alone(None, None, 100)), worst_loss=0.0728),
            "pays from at most 63 tokens on by the cost model, from at most 100 by the points alone; "
            "below, perhaps slower, by 7.3 % at most",
            "pays from at most 63 tokens on by the cost model, from at most 100 by the points alone",
        ),
        (
            rows("pays_from", gains(None, None, 0.3649, fitted=True), axis="gmacs", worst_loss=0.0),
            "pays from at most 0.365 GMACs on by the cost model, later by the points alone; below, not slower",
            "pays from at most 0.365 GMACs on by the cost model, later by the points alone",
        ),
        (
            rows("pays_from", gains(None, None, 36), worst_loss=0.0),
            "pays from at most 36 tokens on by the points alone; below, not slower",
            "pays from at most 36 tokens on by the points alone",
        ),
        (
            rows("pays_from", gains(None, None, 36)),
            "pays from at most 36 tokens on by the points alone; below, nothing bounds the loss",
            "pays from at most 36 tokens on by the points alone",
        ),
        (
            rows("pays_up_to", loses(None, 100.7, None), worst_loss=1.496),
            "pays up to at least 100 tokens by the points alone; beyond, perhaps slower, by 150 % at most",
            "pays up to at least 100 tokens by the points alone",
        ),
        (
            rows("pays_up_to", loses(None, 120.7, None, fitted=True, **alone(None, 100, None)), worst_loss=0.02),
            "pays up to at least 120 tokens by the cost model, up to at least 100 by the points alone; "
            "beyond, perhaps slower, by 2.0 % at most",
            "pays up to at least 120 tokens by the cost model, up to at least 100 by the points alone",
        ),
        (rows("always"), "pays at every point measured, 4 to 196 tokens", "pays at every point measured"),
        (
            rows("never", largest_gain=0.0151),
            "not shown to pay at any point measured, 4 to 196 tokens; it can gain 1.6 % at most",
            "not shown to pay at any point measured, 4 to 196 tokens",
        ),
        (
            rows("never", largest_gain=-0.02),
            "not shown to pay at any point measured, 4 to 196 tokens; it can gain nothing",
            "not shown to pay at any point measured, 4 to 196 tokens",
        ),
        (rows("no_effect"), "does nothing here: at every point it processes what the baseline does", "does nothing here"),
        (rows("unclear"), "cannot tell; more points or pairs are needed", "cannot tell"),
        (rows("unclear", pairs_factor=1.2), "cannot tell; about 2 times as many pairs would decide it", "cannot tell"),
        (rows("unclear", pairs_factor=3.1), "cannot tell; about 4 times as many pairs would decide it", "cannot tell"),
        (
            rows("unclear", pairs_factor=3.1, more_seconds=250.0),
            "cannot tell; about 4 min more (4 times as many pairs) would decide it",
            "cannot tell",
        ),
        (
            rows("pays_at_both_ends", loses(None, 9.3, None), gains(None, None, 63.2), worst_loss=0.0366),
            "pays up to at least 9 tokens, and from at most 64 tokens on by the points alone; "
            "between, perhaps slower, by 3.7 % at most",
            "pays up to at least 9 tokens, and from at most 64 tokens on by the points alone",
        ),
        (rows("unclear", pairs_factor=51.0), "cannot tell; not even 50 times as many pairs would decide it", "cannot tell"),
        (rows("unclear", points=0), "cannot tell; a flag marks every point as wrong", "cannot tell"),
        (
            rows("never", missing=3),
            "not shown to pay at any point measured, 4 to 196 tokens; incomplete, 3 of 8 points are missing on host a",
            None,
        ),
        ([], "not analysed", None),
    ],
)
def test_each_verdict_is_a_sentence(found: list[Any], whole: str, brief: str | None) -> None:
    """The answer stands first, bounds are rounded so that they hold, and a brief sentence has no reasons."""
    assert describe_break_even(found, "tokens", (4, 196)) == whole
    assert describe_break_even(found, "tokens", (4, 196), brief=True) == (brief or whole)


def test_no_verdict_is_without_words() -> None:
    """Every verdict that a curve can have begins with words of its own, which name no range where none is known."""
    crossings = {"crossing": gains(36, 16, 64), "pays_from": gains(None, None, 36), "pays_up_to": loses(None, 36, None)}
    crossings["pays_at_both_ends"] = gains(None, 9, 36)
    words = {verdict: describe_break_even(rows(verdict, crossings.get(verdict, {})), "tokens") for verdict in get_args(Claim)}
    assert len(set(words.values())) == len(words)
    assert words["always"] == "pays at every point measured"
    assert words["never"] == "not shown to pay at any point measured"


def test_other_axes() -> None:
    """Bounds in GMACs and shares of them have three digits and their unit; tokens that of the input."""
    found = rows("pays_from", gains(None, None, 0.30312), axis="gmacs", worst_loss=0.1)
    below = "by the points alone; below, perhaps"
    assert describe_break_even(found, "tokens") == f"pays from at most 0.303 GMACs on {below} slower, by 10 % at most"
    saved = rows("pays_up_to", loses(None, 0.4231, None), axis="gmacs_saved", worst_loss=0.1)
    up_to = "pays up to at least 42.3 % of GMACs saved by the points alone"
    assert describe_break_even(saved, "tokens", brief=True) == up_to
    assert describe_break_even(rows("always"), "prompt tokens", (8, 64)) == "pays at every point measured, 8 to 64 prompt tokens"
    batch = rows("pays_from", gains(None, None, 7.6), axis="batch_size", worst_loss=0.0)
    assert describe_break_even(batch, "tokens", brief=True) == "pays from at most batch size 8 on by the points alone"
    assert (
        describe_break_even(rows("always", axis="batch_size"), "tokens", (1, 8))
        == "pays at every point measured, batch size 1 to 8"
    )
    threads = rows("pays_up_to", loses(None, 4.2, None), axis="threads", worst_loss=0.0)
    assert describe_break_even(threads, "tokens", brief=True) == "pays up to at least 4 threads by the points alone"
    memory = rows("pays_from", gains(None, None, 36), metric="peak_rss", worst_loss=0.02)
    assert describe_break_even(memory, "tokens") == f"pays from at most 36 tokens on {below} more, by 2.0 % at most"
    rate = rows("crossing", loses(0.55, 0.5, 0.7), axis="parameter", varied_parameter="keep_rate")
    assert describe_break_even(rate, "tokens") == "stops paying at keep_rate 0.55 (0.5 to 0.7) by the points alone"
    neighbours = rows("crossing", gains(0.55, 0.5, 0.7, grid_limited=True), axis="parameter", varied_parameter="keep_rate")
    words = "slower at keep_rate 0.5, pays from 0.7 on; where between was not measured"
    assert describe_break_even(neighbours, "tokens") == words
    amounts = rows("crossing", gains(21, 16, 196, grid_limited=True), metric="peak_rss", points=2)
    assert describe_break_even(amounts, "tokens") == "more at 16 tokens, less at 196; where between was not measured"


MODEL = {
    "alpha_baseline": 4e-3,
    "alpha": 4.6e-3,
    "beta_baseline": 10e-3,
    "beta": 9e-3,
    "work_unit": "GMAC",
    "misfit_p": 0.4,
    **{f"{side}_x{end}": None for side in ("predicted", "measured") for end in ("", "_low", "_high")},
}
LAUNCH = "launch 4.6 ms (baseline 4), work per GMAC 9 ms (baseline 10): predicts break-even "


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ({}, ""),
        (
            {"predicted_x": 36.2, "predicted_x_low": 30.9, "predicted_x_high": 40.1, "measured_x_low": 16, "measured_x_high": 64},
            LAUNCH + "at 36 (30 to 41) tokens, by the points alone at (16 to 64) tokens",
        ),
        ({"predicted_x_high": 40.1, "measured_x_high": 64}, LAUNCH + "at most 41 tokens, by the points alone at most 64 tokens"),
        (
            {"predicted_x_low": 40.9, "verdict": "misfit", "misfit_p": 0.0012},
            LAUNCH + "at least 40 tokens, the points alone show none; it does not fit (p = 0.0012)",
        ),
    ],
)
def test_a_cost_model_has_a_line_where_it_predicts_a_break_even(found: dict[str, Any], text: str) -> None:
    """Launch, work, and the prediction beside what was measured; a misfit is stated."""
    assert describe_cost_model(SimpleNamespace(**({"verdict": "fits"} | MODEL | found)), "tokens") == text
