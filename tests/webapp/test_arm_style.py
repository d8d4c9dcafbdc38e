"""Arms have the labels of the report, no two the same, and one style wherever they are drawn."""

import json
from collections.abc import Sequence

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webapp.display import arm_style

EMPTY = pd.DataFrame(columns=[*arm_style.KEY, "baseline", "baseline_id"])


def frame(*rows: tuple[str, str], **columns: Sequence[str | None]) -> pd.DataFrame:
    """Arms as (method, params), against dense, unless columns differ."""
    plain = {
        "baseline": "dense",
        "baseline_id": "0",
        "dtype": "float32",
        "attention": "sdpa",
        "runtime": "eager",
        "kv_cache": None,
    }
    return pd.DataFrame(rows, columns=["method", "params"]).assign(**(plain | columns))


def names(points: pd.DataFrame) -> list[str]:
    return list(arm_style.label_arms(points, EMPTY)[0]["arm"])


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        (
            frame(
                ("topk", '{"keep_rate":0.7,"layers":[3,6,9]}'),
                ("topk", '{"keep_rate":0.7,"layers":[4]}'),
            ),
            ["topk keep_rate=0.7", "topk keep_rate=0.7 layers=[4]"],
        ),
        (
            frame(("dense", '{"replicate":1}'), ("dense", '{"replicate":2}')),
            ["dense replicate=1", "dense replicate=2"],
        ),
        (
            frame(("tome", "{}"), ("tome", '{"runtime":"compile"}'), runtime=["eager", "compile"]),
            ["tome", 'tome runtime="compile"'],
        ),
        (
            frame(("tome", "{}"), ("tome", "{}"), attention=["sdpa", "eager"]),
            ["tome, sdpa", "tome, eager"],
        ),
        (
            frame(
                ("teal", '{"sparsity":0.4}'),
                (
                    "larosa+teal",
                    '[{"method":"larosa","sparsity":0.4},{"method":"teal","sparsity":0.4},{"kv_cache":"virtual"}]',
                ),
                ("teal", '{"sparsity":0.4}'),
                kv_cache=["dynamic", "virtual", "static"],
            ),
            [
                "teal sparsity=0.4, dynamic cache",
                'larosa sparsity=0.4 + teal sparsity=0.4 [kv_cache="virtual"]',
                "teal sparsity=0.4, static cache",
            ],
        ),
    ],
)
def test_labels(points: pd.DataFrame, expected: list[str]) -> None:
    """A label is that of the report, with the qualifiers in which conditions differ; an override
    stands in it already.
    """
    assert names(points) == expected


def test_baselines() -> None:
    """A baseline has the shortest of its texts, which the overrides of arms beside it lengthen;
    equal texts are distinguished.
    """
    texts = ["dense", "dense [kv_cache=dynamic]", "topk(r=8)", "topk(r=8)"]
    points = frame(*[("evit", "{}")] * 4, baseline=texts, baseline_id=["1", "1", "2", "3"])
    assert list(arm_style.label_arms(points, EMPTY)[0]["against"]) == [
        "dense",
        "dense",
        "topk(r=8) (2)",
        "topk(r=8) (3)",
    ]


VALUES = st.one_of(
    st.integers(-2, 2),
    st.floats(-1, 1),
    st.booleans(),
    st.sampled_from(["a", "b", "1", "yes"]),
    st.lists(st.integers(0, 2)),
)
PARAMS = st.dictionaries(
    st.sampled_from(["r", "form", "seed_of", "budget"]),
    VALUES | st.dictionaries(st.just("r"), VALUES, min_size=1),
)
STEPS = st.lists(st.tuples(st.sampled_from(["tome", "topk"]), PARAMS), min_size=1, max_size=2)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            STEPS, st.sampled_from(["dynamic", "virtual"]), st.sampled_from(["float32", "bfloat16"])
        ),
        min_size=1,
    )
)
def test_no_two_arms_share_a_label(
    requested: list[tuple[list[tuple[str, dict[str, object]]], str, str]],
) -> None:
    """Whatever arms a frame has, each has a label of its own."""
    rows = [
        (
            "+".join(method for method, _ in steps),
            json.dumps([{"method": m, **p} for m, p in steps] if len(steps) > 1 else steps[0][1]),
        )
        for steps, _, _ in requested
    ]
    points = frame(
        *rows,
        kv_cache=[cache for _, cache, _ in requested],
        dtype=[dtype for _, _, dtype in requested],
    )
    labelled = arm_style.label_arms(points, EMPTY)[0]
    assert len(labelled.drop_duplicates([*arm_style.KEY])) == labelled["arm"].nunique()


def test_styles() -> None:
    """Within a method arms differ in colour and dash, in order of their numbers; its first colour
    does not depend on the others.
    """
    many = arm_style.label_arms(
        frame(*[("tome", f'{{"r":{r}}}') for r in (16, 8, 4)], ("evit", "{}"), ("topk", "{}")),
        EMPTY,
    )[0]
    look = arm_style.arm_styles(many)
    assert [name for name in look if name.startswith("tome")] == [
        "tome r=4",
        "tome r=8",
        "tome r=16",
    ]
    assert len({style.color for style in look.values()}) == 5
    assert len({tuple(look[f"tome r={r}"].dash) for r in (4, 8, 16)}) == 3
    alone = arm_style.arm_styles(many[many["method"] == "evit"])
    assert alone["evit"] == look["evit"]


def luminance(color: str) -> float:
    """Relative luminance of an sRGB colour (WCAG 2.2)."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_colours_read_on_both_themes() -> None:
    """Every colour keeps a contrast of 3 or more to white and to the dark theme's background; as
    many methods as there are ramps have a ramp each.
    """
    for ramp in (*arm_style.RAMPS, arm_style.BASELINE_RAMP):
        for color in map(luminance, ramp):
            assert 1.05 / (color + 0.05) >= 3
            assert (color + 0.05) / (luminance("#191814") + 0.05) >= 3
    names = list(map(str, range(len(arm_style.RAMPS))))
    styles = arm_style.arm_styles(pd.DataFrame({"method": names, "arm": names}))
    assert len({style.color for style in styles.values()}) == len(arm_style.RAMPS)
