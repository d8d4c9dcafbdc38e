"""Roofline: which limit of the machine holds for an arm, and how much faster it could be without
its matrix products.
"""

from typing import Literal, NamedTuple

from sweeps.model.profile import ArmProfile, Peaks

Limit = Literal["host", "compute", "memory", "neither"]
_HALF = 0.5
"""A limit holds from this share on: of the wall for the host, of a peak while the device works for
the others."""


class Roofline(NamedTuple):
    """Where an arm stands on a machine; `None` where it is not known."""

    limit: Limit
    gflops: float | None
    """1e9 floating-point operations per second while the device works, two per MAC."""
    gb_per_s: float | None
    """1e9 bytes per second meanwhile."""
    compute_share: float | None
    """`gflops` as a share of the peak."""
    memory_share: float | None
    device_share: float
    """Of the wall."""
    ceiling: float | None
    """Speed-up at most if all matrix products took no time; everything else stays."""


def gmacs_of(profile: ArmProfile) -> float | None:
    """GMACs of a forward where shapes gave them; `None` where they gave none."""
    found = [each.gmacs for each in profile.activities if each.gmacs is not None]
    return sum(found) if found else None


def bytes_of(profile: ArmProfile) -> float | None:
    """Bytes of a forward where shapes or counters gave them; `None` where they gave none."""
    found = [each.bytes_moved for each in profile.activities if each.bytes_moved is not None]
    return sum(found) if found else None


def product_share(profile: ArmProfile) -> float | None:
    """Share of the time of kernels or operators that those take which multiply matrices; `None`
    where none is known to.
    """
    total = sum(each.seconds for each in profile.activities)
    return (
        sum(each.seconds for each in profile.activities if each.gmacs) / total or None
        if total
        else None
    )


def roofline(
    profile: ArmProfile,
    peaks: Peaks | None,
    *,
    gmacs: float | None = None,
    bytes_moved: float | None = None,
    products: float | None = None,
) -> Roofline | None:
    """Which limit holds for a profiled arm; `None` without its wall and classes of time.

    MACs and bytes per forward, and the share `products` of device time that matrix products take,
    are those of the profile's activities unless they are given. Bytes are counted once per
    operator, so that what a cache keeps makes `memory_share` too large, above 1 in the extreme.
    """
    wall_s, device_s = profile.wall_s, profile.times.get("device")
    if not wall_s or not device_s:
        return None
    gmacs = gmacs_of(profile) if gmacs is None else gmacs
    bytes_moved = bytes_of(profile) if bytes_moved is None else bytes_moved
    products = product_share(profile) if products is None else products
    gflops = None if gmacs is None else 2 * gmacs / device_s
    gb_per_s = None if bytes_moved is None else bytes_moved / 1e9 / device_s
    compute = None if gflops is None or peaks is None else gflops / peaks.gflops
    memory = None if gb_per_s is None or peaks is None else gb_per_s / peaks.gb_per_s
    limit: Limit = "neither"
    if 1 - device_s / wall_s >= _HALF:
        limit = "host"
    elif max(compute or 0.0, memory or 0.0) >= _HALF:
        limit = "compute" if (compute or 0.0) >= (memory or 0.0) else "memory"
    left = None if products is None else wall_s - products * device_s
    ceiling = None if left is None or left <= 0 else wall_s / left
    return Roofline(limit, gflops, gb_per_s, compute, memory, device_s / wall_s, ceiling)


_LIMITS: dict[Limit, str] = {
    "host": "most of the wall is no device work, so that neither arithmetic nor memory holds it",
    "compute": "arithmetic is the limit",
    "memory": "memory is the limit",
    "neither": (
        "neither arithmetic nor memory reaches half of its peak: small kernels or operators hold it"
    ),
}


def describe_roofline(found: Roofline, peaks: Peaks) -> str:
    """One sentence: rates beside the peaks, the limit that holds, and what is left to gain."""
    rates = []
    if found.gflops is not None:
        rates.append(f"{found.gflops:.3g} of {peaks.gflops:.3g} GFLOP/s")
    if found.gb_per_s is not None:
        rates.append(f"{found.gb_per_s:.3g} of {peaks.gb_per_s:.3g} GB/s")
    text = (
        f"{' and '.join(rates)} while the device works: {_LIMITS[found.limit]}"
        if rates
        else _LIMITS[found.limit]
    )
    if found.ceiling is not None:
        text += f"; without its matrix products it would be at most {found.ceiling:.2f}x as fast"
    return text
