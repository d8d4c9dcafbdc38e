"""Operators in words, from pairs whose difference is known."""

from sweeps.text.explanation import OperatorPair, explain_operators, explain_rates

ADDMM = OperatorPair("aten::addmm", 2.919, 2.711, 49, 49, 0.0904, 0.0475)
NORM = OperatorPair("aten::native_layer_norm", 0.545, 0.632, 25, 25, None, None)
COPY = OperatorPair("aten::copy_", 0.084, 0.076, 49, 52, None, None)
ADDED = [
    OperatorPair(f"aten::{name}", 0, ms, 0, 3, None, None)
    for name, ms in (("baddbmm", 0.154), ("_softmax", 0.066))
]


def test_products_that_stay_and_what_was_added() -> None:
    """The case of a small image: half the MACs of addmm in nearly all of its time, and operators
    that were not there.
    """
    assert (
        explain_operators([ADDMM, NORM, COPY, *ADDED])
        == "by operator (totals of the profiled rounds, without intervals): matrix products save"
        " less time than MACs: addmm takes 2.71 of 2.92 ms with 53 % of its MACs; added were"
        " baddbmm 0.15 ms, softmax 0.066 ms, together 0.22 ms; longer than the baseline's became"
        " native_layer_norm 0.632 instead of 0.545 ms"
    )


def test_products_that_save_as_much_as_their_macs() -> None:
    """Within a few per cent, as nothing here has an interval; and more than them, where a cache
    holds what remains.
    """
    assert "save what their MACs do" in explain_operators([ADDMM._replace(arm_ms=1.55)])
    assert "save more time than MACs" in explain_operators([ADDMM._replace(arm_ms=1.2)])


def test_many_are_counted() -> None:
    """The largest are named, the others counted."""
    many = [
        OperatorPair(f"aten::a{place}", 0, 0.1 / (place + 1), 0, 1, None, None)
        for place in range(9)
    ]
    assert (
        "a0 0.1 ms, a1 0.05 ms, a2 0.033 ms, a3 0.025 ms and 5 more, together 0.28 ms"
        in explain_operators([ADDMM, *many])
    )


def test_nothing_stands_out() -> None:
    """Equal profiles, or none."""
    assert explain_operators([NORM._replace(arm_ms=0.545)]) == ""
    assert explain_operators([]) == ""


def test_rates() -> None:
    """How well both sides use the machine; alike within a few per cent, and not known without
    both.
    """
    assert (
        explain_rates(137, 108, less_work=True)
        == "while it works, the machine reaches 108 GFLOP/s, with the baseline 137: less work uses"
        " the machine less well"
    )
    assert explain_rates(100, 130, less_work=False).endswith("it uses the machine better")
    assert explain_rates(100, 103, less_work=True).endswith("with the baseline 100")
    assert explain_rates(None, 108, less_work=True) == ""
