"""Shares of the promised saving, and break-evens in the cells of a map."""

from typing import Any

import pytest

from sweeps.analysis.rows import ClaimRow
from sweeps.stats.pooling import realised_of
from sweeps.text.curves import alike, break_even_cell, earliest
from sweeps.text.reasons import realised_sentence
from tests.fixtures.typed_rows import row_of


def test_shares_of_a_method() -> None:
    """Median and range with the points that they rest on; those without a promise do not count."""
    found = realised_of([0.2, None, 0.6, 0.9, None])
    assert found is not None
    assert (found.median, found.least, found.most, found.points) == (0.6, 0.2, 0.9, 3)
    assert (
        realised_sentence("topk", found)
        == "topk: 60 % of the promised saving arrives at the median (3 points from 20 % to 90 %)."
    )
    assert realised_of([None]) is None
    assert (
        realised_sentence("a", None)
        == "a: its MACs promise nothing that could arrive (within 2 % of none), or are not known."
    )
    lost = realised_of([-2.0, -0.5])
    assert (
        realised_sentence("tome", lost)
        == "tome: none of the promised saving arrives at the median, below -100 % (2 points from"
        " below -100 % to -50 %)."
    )
    assert (
        realised_sentence("one", realised_of([0.5]))
        == "one: 50 % of the promised saving arrives (1 point)."
    )


def row(
    verdict: str,
    x: float | None = None,
    low: float | None = None,
    high: float | None = None,
    direction: str | None = None,
) -> Any:
    more: dict[str, object] = {
        "axis": "tokens",
        "varied_parameter": None,
        "metric": "latency",
        "worst_loss": None,
        "largest_gain": None,
        "points": 3,
    }
    more |= {
        "points_missing": 0,
        "host": "h",
        "why": "",
        "prompt_tokens": None,
        "x_first": 4.0,
        "x_last": 196.0,
    }
    return row_of(
        ClaimRow, verdict=verdict, x=x, x_low=low, x_high=high, direction=direction, **more
    )


@pytest.mark.parametrize(
    ("rows", "text", "kind", "place"),
    [
        ([row("crossing", 60, 53.4, 70.2, "gains")], "53 to 71", "pays", 70.2),
        ([row("crossing", 140, 120.5, 150, "loses")], "up to 120", "limited", 0.0),
        ([row("pays_between", 60, 53, 70, "gains")], "in part", "limited", 0.0),
        ([row("pays_from", high=35.2, direction="gains")], "≤ 36", "pays", 35.2),
        ([row("pays_up_to", low=100.7, direction="loses")], "up to 100", "limited", 0.0),
        (
            [
                row("pays_at_both_ends", low=16, direction="loses"),
                row("pays_at_both_ends", high=1225.0, direction="gains"),
            ],
            "up to 16, from 1,225",
            "limited",
            0.0,
        ),
        ([row("same")], "no different", "never", None),
        ([row("always")], "always", "pays", 0.0),
        ([row("never")], "gains ≤ 5 %", "never", None),
        ([row("no_effect")], "no effect", "none", None),
        ([row("unclear")], "?", "unclear", None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_cell_never_claims_more_than_the_interval(
    rows: list[Any], text: str, kind: str, place: float | None
) -> None:
    """Ends are rounded outwards, bounds are shown as bounds, and what is not known is a question
    mark.
    """
    cell = break_even_cell(rows)
    assert (cell.text, cell.kind, cell.place) == (text, kind, place)
    assert cell.sentence


def test_several_curves_in_a_cell() -> None:
    """Of several arms the one that pays first is shown; of one arm on several hosts what they agree
    on.
    """
    cells = [
        break_even_cell([row(*each)])
        for each in (
            ("never",),
            ("pays_from", None, None, 100.0, "gains"),
            ("unclear",),
            ("pays_from", None, None, 36.0, "gains"),
        )
    ]
    assert earliest(cells) == 3
    assert alike(cells[1:2] * 2).text == "≤ 100"
    both = alike(cells[:2])
    assert (both.text, both.kind) == ("differs", "differs")
    assert "≤ 100: pays from at most 100 tokens on" in both.sentence
