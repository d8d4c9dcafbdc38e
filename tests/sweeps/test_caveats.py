"""Each limit of a small or random model is one sentence."""

import pytest

from sweeps.analysis.rows import SpeedupRow
from sweeps.text.condition_text import cautions, load_caution, mean_caution, slow_caution
from tests.fixtures.typed_rows import row_of


@pytest.mark.parametrize(
    ("weights", "parameters", "sentences"),
    [
        (
            "trained",
            3_737_088,
            [
                "m of 3.74 M parameters ranks methods; it does not predict speed-ups or losses of"
                " models of 7B parameters."
            ],
        ),
        (
            "trained",
            None,
            [
                "m ranks methods; it does not predict speed-ups or losses of models of 7B"
                " parameters."
            ],
        ),
        (
            "random",
            7e9,
            [
                "m has random weights: its times are real, its quality does not predict that of a"
                " trained model."
            ],
        ),
        ("pretrained", 7e9, []),
    ],
    ids=["small", "trained here", "random", "a large one"],
)
def test_cautions(weights: str, parameters: float | None, sentences: list[str]) -> None:
    """A model below a thousand million parameters, or one trained on the spot, ranks methods
    only.
    """
    assert list(cautions("m", weights, parameters)) == sentences


def test_answers_from_a_loaded_machine_carry_that() -> None:
    """How many speed-ups were measured beside other programs; nothing on a quiet machine."""
    assert list(load_caution(["", None, "no_effect"])) == []
    assert next(load_caution(["contended", "", "contended,no_effect"])).startswith(
        "measured beside other programs: 2 of 3"
    )
    assert next(load_caution(["contended"])).startswith(
        "measured beside other programs: 1 of 1 speed-up;"
    )


def test_a_slow_host_is_named() -> None:
    """By the median over points of the newest run's speed; nothing where no visits were made, or
    near the quickest speed.
    """
    assert list(slow_caution([None, None])) == []
    assert list(slow_caution([0.95, 0.97, 0.8])) == []
    assert next(slow_caution([0.82, None, 0.81, 0.95])).startswith(
        "this host ran at 0.82 of its quickest known speed"
    )


def test_mean_times_that_disagree_are_named() -> None:
    """Points whose mean times tell something else, the first of them with both numbers; nothing
    where there is none.
    """
    fine = row_of(SpeedupRow, flags="contended", tokens=64, speedup=1.1, ratio_of_means=1.1)
    uneven = row_of(
        SpeedupRow, flags="mean_disagrees", tokens=64, speedup=1.08, ratio_of_means=0.834
    )
    assert list(mean_caution([("topk", fine)])) == []
    (sentence,) = mean_caution([("topk", fine), *[("tome", uneven)] * 5])
    assert "tome at 64 tokens is 0.83x as fast, not 1.08x" in sentence
    assert "2 more" in sentence
