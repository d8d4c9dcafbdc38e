"""Rooflines by hand: the limit that holds, what is left to gain, and nothing where it is not
known.
"""

from typing import Any

import pytest

from sweeps.model.profile import Activities, ArmProfile, Peaks, TimeClass
from sweeps.stats.roofline import DISPATCH, Shapes, operator_work, roofline
from sweeps.text.reasons import describe_roofline

PEAKS = Peaks(gflops=100.0, gb_per_s=10.0, dtype="float32", threads=2)


def profiled(wall: float, device: float, **work: Any) -> ArmProfile:
    """A matrix product with `gmacs` and `moved` bytes that takes `product` seconds, and another
    operator that takes the rest.
    """
    product = work.get("product", device)
    times: dict[TimeClass, float] = {"device": device, "host": wall - device}
    gelu = Activities(name="gelu", activity="operator", count=1, seconds=device - product)
    known = {"name": "mm", "seconds": product, "gmacs": work["gmacs"], "bytes_moved": work["moved"]}
    activities = (gelu.model_copy(update=known), gelu)
    return ArmProfile(
        arm=0, tool="torch", forwards=1, wall_s=wall, times=times, activities=activities
    )


@pytest.mark.parametrize(
    ("profile", "limit"),
    [
        (profiled(1.0, 0.9, gmacs=40.0, moved=1e9), "compute"),
        (profiled(1.0, 0.9, gmacs=1.0, moved=8e9), "memory"),
        (profiled(1.0, 0.3, gmacs=14.0, moved=1e9), "host"),
        (profiled(1.0, 0.9, gmacs=5.0, moved=1e9), "neither"),
        (profiled(1.0, 0.9, gmacs=40.0, moved=8.9e9), "memory"),
    ],
)
def test_the_limit_that_holds(profile: ArmProfile, limit: str) -> None:
    """The larger share of a peak while the device works, unless the host takes half of the wall."""
    found = roofline(profile, PEAKS)
    assert found is not None
    assert found.limit == limit


def test_rates_and_shares_are_those_of_device_time() -> None:
    """20 GMACs and 4 GB in 0.8 s on the device: 50 GFLOP/s, half the peak, and 5 GB/s, half of
    that.
    """
    found = roofline(profiled(1.0, 0.8, gmacs=20.0, moved=4e9), PEAKS)
    assert found is not None
    assert found[1:6] == pytest.approx((50, 5, 0.5, 0.5, 0.8))


def test_what_products_leave_is_the_ceiling() -> None:
    """Of 1 s products take 0.6: without them 0.4 s are left, so at most 2.5 times as fast."""
    found = roofline(profiled(1.0, 0.8, gmacs=20.0, moved=4e9, product=0.6), PEAKS)
    assert found is not None
    assert found.ceiling == pytest.approx(2.5)
    assert describe_roofline(found, PEAKS).endswith(
        "arithmetic is the limit; without its matrix products it would be at most 2.50x as fast"
    )


def test_without_peaks_only_the_host_can_be_the_limit() -> None:
    """Rates are there, shares are not."""
    found = roofline(profiled(1.0, 0.8, gmacs=20.0, moved=4e9), None)
    assert found is not None
    assert (found.limit, found.compute_share, found.memory_share) == ("neither", None, None)
    assert found.gflops == pytest.approx(50)


def test_nothing_without_times() -> None:
    """A profile of single kernels has no wall to compare with."""
    assert roofline(ArmProfile(arm=0, tool="ncu", forwards=1), PEAKS) is None
    bare = ArmProfile(
        arm=0, tool="torch", forwards=1, wall_s=1.0, times={"device": 0.5, "host": 0.5}
    )
    found = roofline(bare, PEAKS)
    assert found is not None
    assert found[1:5] == (None, None, None, None)
    assert found.ceiling is None


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
        None,
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
