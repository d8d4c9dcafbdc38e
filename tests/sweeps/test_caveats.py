"""Each limit of a small or random model is one sentence."""

import pytest

from sweeps.caveats import cautions, load_caution


@pytest.mark.parametrize(
    ("weights", "parameters", "sentences"),
    [
        (
            "trained",
            3_737_088,
            ["m of 3.74 M parameters ranks methods; it does not predict speed-ups or losses of models of 7B parameters."],
        ),
        ("trained", None, ["m ranks methods; it does not predict speed-ups or losses of models of 7B parameters."]),
        ("random", 7e9, ["m has random weights: its times are real, its quality does not predict that of a trained model."]),
        ("pretrained", 7e9, []),
    ],
    ids=["small", "trained here", "random", "a large one"],
)
def test_cautions(weights: str, parameters: float | None, sentences: list[str]) -> None:
    """A model below a thousand million parameters, or one trained on the spot, ranks methods only."""
    assert list(cautions("m", weights, parameters)) == sentences


def test_answers_from_a_loaded_machine_carry_that() -> None:
    """How many speed-ups were measured beside other programs; nothing on a quiet machine."""
    assert list(load_caution(["", None, "no_effect"])) == []
    assert next(load_caution(["contended", "", "contended,no_effect"])).startswith("measured beside other programs: 2 of 3")
    assert next(load_caution(["contended"])).startswith("measured beside other programs: 1 of 1 speed-up;")
