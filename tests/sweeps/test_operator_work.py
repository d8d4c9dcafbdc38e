"""Work of operators by hand: MACs and bytes from shapes, and nothing where shapes do not determine
them.
"""

import pytest

from sweeps.stats.roofline import DISPATCH, Shapes, operator_work

CASES: list[tuple[str, Shapes, int | None, int | None]] = [
    ("aten::mm", [[3, 4], [4, 5]], 60, 4 * (12 + 20 + 15)),
    ("aten::addmm", [[5], [3, 4], [4, 5], [], []], 60, 4 * (5 + 12 + 20 + 15)),
    ("aten::bmm", [[2, 3, 4], [2, 4, 5]], 120, 4 * (24 + 40 + 30)),
    ("aten::baddbmm", [[2, 1, 5], [2, 3, 4], [2, 4, 5], [], []], 120, 4 * (10 + 24 + 40 + 30)),
    ("aten::mkldnn_linear", [[2, 3, 4], [5, 4], [5]], 6 * 20, 4 * (24 + 20 + 30)),
    (
        "aten::mkldnn_convolution",
        [[2, 3, 32, 32], [8, 3, 16, 16], [8], [], []],
        8 * 8 * 768,
        4 * (6144 + 6144 + 64),
    ),
    (
        "aten::_scaled_dot_product_flash_attention_for_cpu",
        [[1, 2, 7, 8], [1, 2, 9, 8], [1, 2, 9, 6]],
        14 * 9 * 14,
        None,
    ),
    ("aten::add", [[2, 8], [8], []], None, 4 * (16 + 8 + 16)),
    ("aten::mul_", [[2, 8], [8]], None, 4 * (16 + 8)),
    ("aten::gelu", [[2, 8], []], None, 4 * 32),
    ("aten::native_layer_norm", [[2, 8], [], [8], [8], []], None, 4 * (16 + 16 + 16)),
    ("aten::_softmax", [[2, 8], [], []], None, 4 * 32),
    ("aten::sum", [[2, 8], [], []], None, 4 * 16),
    ("aten::topk", [[2, 8], [], [], [], []], None, 16 * 16),
    ("aten::gather", [[2, 8, 4], [], [2, 3, 4], []], None, 24 * 16),
    ("aten::cat", [[[2, 3], [2, 5]], []], None, 2 * 4 * 16),
    ("aten::fill_", [[2, 8], []], None, 4 * 16),
]


@pytest.mark.parametrize(
    ("name", "shapes", "macs", "moved"), CASES, ids=[case[0] for case in CASES]
)
def test_work_by_hand(name: str, shapes: Shapes, macs: int | None, moved: int | None) -> None:
    """Numbers of four bytes, each read or written once."""
    found = operator_work(name, shapes, 4)
    assert found.macs == macs
    if moved is not None or macs is None:
        assert found.bytes_moved == moved


def test_half_precision_moves_half_the_bytes() -> None:
    """MACs stay, bytes follow the size of a number."""
    whole, half = (operator_work("aten::mm", [[3, 4], [4, 5]], size) for size in (4, 2))
    assert (half.macs, 2 * (half.bytes_moved or 0)) == (whole.macs, whole.bytes_moved)


@pytest.mark.parametrize(
    "name", ["aten::view", "aten::linear", "aten::scaled_dot_product_attention", "aten::empty"]
)
def test_what_only_dispatches_does_no_work(name: str) -> None:
    """Views, allocations and operators that call others are not counted twice."""
    assert name in DISPATCH
    assert operator_work(name, [[8, 8], [8, 8]], 4) == (None, None)


@pytest.mark.parametrize("shapes", [[], [[]], [[3], [4]], [[3, 4]], [[2, 3, 4, 5], [5, 6]]])
def test_shapes_that_fit_no_product_give_nothing(shapes: Shapes) -> None:
    """What cannot be derived is absent, and no number is made up for it."""
    assert operator_work("aten::mm", shapes, 4) == (None, None)
    assert operator_work("aten::some_new_operator", shapes, 4) == (None, None)
