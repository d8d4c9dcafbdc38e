"""Break-evens of curves as sentences: each verdict, its bounds, and what a brief one leaves out."""

from typing import Any, get_args

import pytest

from sweeps.analysis.rows import ClaimRow, CostModelRow
from sweeps.stats.curve import Claim
from sweeps.text.curves import describe_break_even, describe_cost_model
from tests.fixtures.typed_rows import row_of

COLUMNS = ("x", "x_low", "x_high", "direction", "worst_loss", "largest_gain", "varied_parameter")


def rows(verdict: str, *crossings: dict[str, Any], missing: int = 0, **figures: Any) -> list[Any]:
    """Rows of the view `break_even` of one curve of 8 points, from 4 to 196."""
    common = {
        **dict.fromkeys(COLUMNS),
        "verdict": verdict,
        "axis": "tokens",
        "metric": "latency",
        "points": 8 - missing,
        "points_missing": missing,
        "x_first": 4,
        "x_last": 196,
        "why": "Along the tokens: slower at 4, faster at 9 to 36, not clear at 64 to 196.",
    }
    return [
        row_of(ClaimRow, **(common | {"host": "a"} | figures | each)) for each in crossings or ({},)
    ]


def gains(x: float | None, low: float | None, high: float | None) -> dict[str, Any]:
    return {"x": x, "x_low": low, "x_high": high, "direction": "gains"}


def loses(x: float | None, low: float | None, high: float | None) -> dict[str, Any]:
    return gains(x, low, high) | {"direction": "loses"}


@pytest.mark.parametrize(
    ("found", "brief", "more"),
    [
        (
            rows("crossing", gains(36.2, 16, 64)),
            "pays from 64 tokens on (slower at 16; likely from 36)",
            "",
        ),
        (rows("crossing", gains(None, 16, 64)), "pays from 64 tokens on (slower at 16)", ""),
        (
            rows("crossing", loses(36.2, 16, 64)),
            "pays up to 16 tokens (slower at 64; likely to 36)",
            "",
        ),
        (
            rows("pays_from", gains(None, None, 35.4), worst_loss=0.0366),
            "pays from at most 36 tokens on",
            "; below, perhaps slower, by 3.7 % at most",
        ),
        (
            rows("pays_from", gains(None, None, 36), worst_loss=0.0),
            "pays from at most 36 tokens on",
            "; below, not slower",
        ),
        (
            rows("pays_from", gains(None, None, 36)),
            "pays from at most 36 tokens on",
            "; below, nothing bounds the loss",
        ),
        (
            rows("pays_up_to", loses(None, 100.7, None), worst_loss=1.496),
            "pays up to at least 100 tokens",
            "; beyond, perhaps slower, by 150 % at most",
        ),
        (
            rows(
                "pays_at_both_ends",
                loses(None, 9.3, None),
                gains(None, None, 63.2),
                worst_loss=0.0366,
            ),
            "pays up to at least 9 tokens, and pays from at most 64 tokens on",
            "; between, perhaps slower, by 3.7 % at most",
        ),
        (
            rows("pays_between", gains(None, 4, 9)),
            (
                "pays at some sizes only, along the tokens: slower at 4, faster at 9 to 36, not"
                " clear at 64 to 196"
            ),
            "",
        ),
        (rows("always"), "pays at every point measured, 4 to 196 tokens", ""),
        (
            rows("same", largest_gain=0.0181),
            "no different at any point measured, 4 to 196 tokens",
            "; it can gain 1.9 % at most",
        ),
        (
            rows("never", largest_gain=0.0151),
            "not shown to pay at any point measured, 4 to 196 tokens",
            "; it can gain 1.6 % at most",
        ),
        (
            rows("never", largest_gain=-0.02),
            "not shown to pay at any point measured, 4 to 196 tokens",
            "; it can gain nothing",
        ),
        (
            rows("no_effect"),
            "does nothing here",
            ": at every point it processes what the baseline does",
        ),
        (rows("unclear"), "cannot tell", "; more points or pairs are needed"),
        (rows("unclear", points=0), "cannot tell", "; a flag marks every point as wrong"),
        ([], "not analysed", ""),
    ],
)
def test_each_verdict_is_a_sentence(found: list[Any], brief: str, more: str) -> None:
    """The answer stands first, bounds are rounded so that they hold, and a brief sentence has no
    reasons.
    """
    assert describe_break_even(found, "tokens") == brief + more
    assert describe_break_even(found, "tokens", brief=True) == brief


def test_missing_points_are_counted() -> None:
    """An incomplete curve names how many of its points are missing, also in brief."""
    whole = describe_break_even(rows("always", missing=3), "tokens", brief=True)
    assert (
        whole
        == "pays at every point measured, 4 to 196 tokens; incomplete, 3 of 8 points are missing on"
        " host a"
    )


def test_no_verdict_is_without_words() -> None:
    """Every verdict that a curve can have begins with words of its own."""
    crossings = {
        "crossing": gains(36, 16, 64),
        "pays_from": gains(None, None, 36),
        "pays_up_to": loses(None, 36, None),
    }
    both = (loses(None, 9, None), gains(None, None, 36))
    found = {verdict: rows(verdict, crossings.get(verdict, {})) for verdict in get_args(Claim)}
    found["pays_at_both_ends"] = rows("pays_at_both_ends", *both)
    assert len({describe_break_even(each, "tokens") for each in found.values()}) == len(
        get_args(Claim)
    )


def test_other_axes() -> None:
    """Bounds in GMACs and shares of them have three digits and their unit; tokens that of the
    input.
    """
    found = rows("pays_from", gains(None, None, 0.30312), axis="gmacs", worst_loss=0.1)
    assert describe_break_even(found, "tokens", brief=True) == "pays from at most 0.303 GMACs on"
    saved = rows("pays_up_to", loses(None, 0.4231, None), axis="gmacs_saved", worst_loss=0.1)
    assert (
        describe_break_even(saved, "tokens", brief=True)
        == "pays up to at least 42.3 % of GMACs saved"
    )
    assert (
        describe_break_even(rows("always"), "prompt tokens")
        == "pays at every point measured, 4 to 196 prompt tokens"
    )
    batch = rows("pays_from", gains(None, None, 7.6), axis="batch_size", worst_loss=0.0)
    assert describe_break_even(batch, "tokens", brief=True) == "pays from at most batch size 8 on"
    always = rows("always", axis="batch_size", x_first=1, x_last=8)
    assert (
        describe_break_even(always, "tokens") == "pays at every point measured, batch size 1 to 8"
    )
    memory = rows("crossing", gains(21, 16, 196), metric="peak_rss")
    assert (
        describe_break_even(memory, "tokens")
        == "pays from 196 tokens on (more at 16; likely from 21)"
    )
    rate = rows("crossing", loses(0.55, 0.5, 0.7), axis="parameter", varied_parameter="keep_rate")
    assert (
        describe_break_even(rate, "tokens")
        == "pays up to keep_rate 0.5 (slower at 0.7; likely to 0.55)"
    )


MODEL = {
    "alpha_baseline": 4e-3,
    "alpha": 4.6e-3,
    "beta_baseline": 10e-3,
    "beta": 9e-3,
    "work_unit": "GMAC",
    "misfit_p": 0.4,
    **{f"predicted_x{end}": None for end in ("", "_low", "_high")},
}
LAUNCH = "launch 4.6 ms (baseline 4), work per GMAC 9 ms (baseline 10): predicts break-even "


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ({}, ""),
        (
            {"predicted_x": 36.2, "predicted_x_low": 30.9, "predicted_x_high": 40.1},
            LAUNCH + "at 36 (30 to 41) tokens",
        ),
        ({"predicted_x_high": 40.1}, LAUNCH + "at most 41 tokens"),
        (
            {"predicted_x_low": 40.9, "verdict": "misfit", "misfit_p": 0.0012},
            LAUNCH + "at least 40 tokens; it does not fit (p = 0.0012)",
        ),
    ],
)
def test_a_cost_model_has_a_line_where_it_predicts_a_break_even(
    found: dict[str, Any], text: str
) -> None:
    """Launch, work, and the prediction; a misfit is stated."""
    assert (
        describe_cost_model(row_of(CostModelRow, **({"verdict": "fits"} | MODEL | found)), "tokens")
        == text
    )
