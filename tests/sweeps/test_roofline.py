"""Rooflines by hand: the limit that holds, what is left to gain, and nothing where it is not
known.
"""

from typing import Any

import pytest

from sweeps.model.profile import ArmProfile, Peaks, TimeClass
from sweeps.stats.roofline import DISPATCH, Roofline, Shapes, operator_work, roofline
from sweeps.text.reasons import describe_roofline

PEAKS = Peaks(gflops=100.0, gb_per_s=10.0, dtype="float32", threads=2)


def of_forward(
    wall_s: float, device_s: float, gmacs: float | None, moved: float | None, **more: Any
) -> Roofline | None:
    """Of a forward with so many GMACs and bytes."""
    times: dict[TimeClass, float] = {"device": device_s, "host": wall_s - device_s}
    profile = ArmProfile(arm=0, tool="torch", forwards=1, wall_s=wall_s, times=times)
    known = {"peaks": PEAKS, "products": None, **more}
    return roofline(profile, gmacs=gmacs, bytes_moved=moved, **known)


@pytest.mark.parametrize(
    ("device_s", "gmacs", "moved", "limit"),
    [
        (0.9, 40.0, 1e9, "compute"),
        (0.9, 1.0, 8e9, "memory"),
        (0.3, 14.0, 1e9, "host"),
        (0.9, 5.0, 1e9, "neither"),
        (0.9, 40.0, 8.9e9, "memory"),
    ],
)
def test_the_limit_that_holds(device_s: float, gmacs: float, moved: float, limit: str) -> None:
    """The larger share of a peak while the device works, unless the host takes half of the wall."""
    found = of_forward(1.0, device_s, gmacs, moved)
    assert found is not None
    assert found.limit == limit


def test_rates_and_shares_are_those_of_device_time() -> None:
    """20 GMACs and 4 GB in 0.8 s on the device: 50 GFLOP/s, half the peak, and 5 GB/s, half of
    that; without peaks there are rates alone.
    """
    found, bare = (of_forward(1.0, 0.8, 20.0, 4e9, peaks=peaks) for peaks in (PEAKS, None))
    assert found is not None
    assert found[1:6] == pytest.approx((50, 5, 0.5, 0.5, 0.8))
    assert bare is not None
    assert bare[:5] == ("neither", pytest.approx(50), pytest.approx(5), None, None)


def test_what_products_leave_is_the_ceiling() -> None:
    """Of 1 s products take 0.6: without them 0.4 s are left, so at most 2.5 times as fast."""
    found = of_forward(1.0, 0.8, 20.0, 4e9, products=0.75)
    assert found is not None
    assert found.ceiling == pytest.approx(2.5)
    everything = of_forward(1.0, 0.5, 20.0, 4e9, products=2.0)
    assert everything is not None
    assert everything.ceiling is None
    assert describe_roofline(found, PEAKS).endswith(
        "arithmetic is the limit; without its matrix products it would be at most 2.50x as fast"
    )


def test_nothing_without_times() -> None:
    """A profile of single kernels has no wall to compare with."""
    kernels = ArmProfile(arm=0, tool="ncu", forwards=1)
    assert roofline(kernels, PEAKS, gmacs=1.0, bytes_moved=1.0, products=None) is None
    found = of_forward(1.0, 0.5, None, None)
    assert found is not None
    assert (found[1:5], found.ceiling) == ((None, None, None, None), None)


# ---- work of operators by hand ----


SDPA = "scaled_dot_product"
CASES: list[tuple[str, Shapes, int | None, int | None]] = [
    ("aten::mm", [[3, 4], [4, 5]], 60, 4 * (12 + 20 + 15)),
    ("aten::baddbmm", [[2, 1, 5], [2, 3, 4], [2, 4, 5], [], []], 120, 4 * (10 + 24 + 40 + 30)),
    ("aten::mkldnn_linear", [[2, 3, 4], [5, 4], [5]], 6 * 20, 4 * (24 + 20 + 30)),
    ("aten::mkldnn_convolution", [[2, 3, 32, 32], [8, 3, 16, 16], [8], [], []], 49152, 49408),
    (
        f"aten::_{SDPA}_flash_attention_for_cpu",
        [[1, 2, 7, 8], [1, 2, 9, 8], [1, 2, 9, 6]],
        1764,
        4 * (112 + 144 + 108 + 84),
    ),
    ("aten::add", [[2, 8], [8], []], None, 4 * (16 + 8 + 16)),
    ("aten::mul_", [[2, 8], [8]], None, 4 * (16 + 8)),
    ("aten::gelu", [[2, 8], []], None, 4 * 32),
    ("aten::native_layer_norm", [[2, 8], [], [8], [8], []], None, 4 * (16 + 16 + 16)),
    ("aten::topk", [[2, 8], [], [], [], []], None, 16 * 16),
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


def test_what_gives_no_work() -> None:
    """Views, allocations and operators that call others are not counted twice, and what shapes do
    not determine is absent.
    """
    for name in ("view", "linear", f"{SDPA}_attention", "empty"):
        assert f"aten::{name}" in DISPATCH
        assert operator_work(f"aten::{name}", [[8, 8], [8, 8]], 4) == (None, None)
    for shapes in ([], [[]], [[3], [4]], [[3, 4]], [[2, 3, 4, 5], [5, 6]]):
        assert operator_work("aten::mm", shapes, 4) == (None, None)
        assert operator_work("aten::some_new_operator", shapes, 4) == (None, None)
