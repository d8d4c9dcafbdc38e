"""The quality beside a speed-up is that of the same arm and baseline, whatever caches and runtimes
they were timed with.
"""

import pandas as pd

from store.read.quality import join_quality
from store.rows.row_mapping import quality_ids
from sweeps.model.condition import Overrides
from sweeps.model.job import DENSE, Arm, Step

WHERE = {"model": "m", "weights": "trained", "dtype": "float32", "attention": "sdpa"}
WHERE |= dict.fromkeys(("image_size", "image_shape"))


def speed(method: str, params: str, baseline: Arm = DENSE) -> dict[str, object]:
    columns = {**WHERE, "method": method, "params": params}
    return {**columns, **quality_ids(columns, baseline), "verdict": "faster"}


def quality(
    method: str, params: str, at: str, bits: float, baseline: Arm = DENSE, **more: object
) -> dict[str, object]:
    own = speed(method, params, baseline)
    return {**own, "measured_at": at, "bits_per_byte": bits, **more}


def test_the_newest_quality_of_the_same_arm() -> None:
    """Caches and runtimes are left out on both sides; other overrides, parameters and baselines are
    not. Without a quality the columns are empty.
    """
    stack = '[{"method":"a","r":1},{"method":"b"}%s]'
    cached, half = (
        Arm(overrides=Overrides(kv_cache="dynamic", dtype=of)) for of in (None, "bfloat16")
    )
    speeds = [
        speed("a", '{"r":1}'),
        speed("a", '{"r":1,"kv_cache":"virtual"}', cached),
        speed("a+b", stack % ',{"kv_cache":"virtual","runtime":"compile"}', half),
        speed("a", '{"r":2}'),
        speed("a", '{"r":1}', Arm(stack=(Step(method="b", params={"r": 1}),))),
    ]
    qualities = [
        quality("a", '{"r":1}', "2026-02", 2.0),
        quality("a", '{"r":1}', "2026-01", 9.0),
        quality("a+b", stack % "", "2026-01", 3.0, Arm(overrides=Overrides(dtype="bfloat16"))),
    ]
    found = join_quality(pd.DataFrame(speeds), pd.DataFrame(qualities))
    assert list(found["bits_per_byte"].fillna(0)) == [2.0, 2.0, 3.0, 0, 0]
    assert list(found["verdict"]) == ["faster"] * 5
    assert list(found.columns) == [*speeds[0], "measured_at", "bits_per_byte"]
    found = join_quality(pd.DataFrame(speeds[:1]), pd.DataFrame(columns=list(qualities[0])))
    assert found["bits_per_byte"].isna().tolist() == [True]


def test_images_as_they_are_come_before_corrupted_ones() -> None:
    """The change on clean images stands beside a speed-up, also where corrupted ones were evaluated
    later.
    """
    rows = [
        quality("a", "{}", "2026-01", 2.0, corruption=None),
        quality("a", "{}", "2026-02", 9.0, corruption="fog"),
        quality("b", "{}", "2026-01", 8.0, corruption="fog"),
    ]
    found = join_quality(pd.DataFrame([speed("a", "{}"), speed("b", "{}")]), pd.DataFrame(rows))
    assert list(found["bits_per_byte"]) == [2.0, 8.0]
    assert list(found["corruption"].fillna("none")) == ["none", "fog"]
