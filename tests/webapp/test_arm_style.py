"""Arms are named by what tells them apart, and look the same wherever they are drawn."""

import json

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webapp import arm_style

EMPTY = pd.DataFrame(columns=[*arm_style.KEY, "baseline", "baseline_id"])


def frame(*rows: tuple[str, str], **columns: list[str]) -> pd.DataFrame:
    """Arms as (method, params), against dense, unless columns say otherwise."""
    plain = {"baseline": "dense", "baseline_id": "0", "dtype": "float32", "attention": "sdpa", "runtime": "eager", "kv_cache": None}
    return pd.DataFrame(rows, columns=["method", "params"]).assign(**(plain | columns))


def names(points: pd.DataFrame) -> list[str]:
    return list(arm_style.named(points, EMPTY)[0]["arm"])


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        (
            frame(("topk", '{"keep_rate":0.5,"layers":[3,6]}'), ("topk", '{"keep_rate":0.7,"layers":[3,6]}')),
            ["topk, keep rate 0.5", "topk, keep rate 0.7"],
        ),
        (frame(("topk", '{"keep_rate":0.5,"layers":[3,6]}')), ["topk, keep rate 0.5"]),
        (
            frame(("topk", '{"keep_rate":0.5,"layers":[3,6]}'), ("topk", '{"keep_rate":0.5,"layers":[4]}')),
            ["topk, layers 3/6", "topk, layers 4"],
        ),
        (frame(("dense", '{"replicate":1}'), ("dense", '{"replicate":2}')), ["dense, replicate 1", "dense, replicate 2"]),
        (
            frame(("topk", "{}"), ("topk", '{"runtime":"compile"}'), runtime=["eager", "compile"]),
            ["topk", "topk, compile"],
        ),
        (frame(("topk", "{}"), ("topk", "{}"), attention=["sdpa", "manual"]), ["topk, sdpa", "topk, manual"]),
        (
            frame(("tome+topk", '[{"method":"tome","r":8},{"method":"topk","keep_rate":0.5}]')),
            ["tome r 8 + topk keep rate 0.5"],
        ),
        (frame(("x", '{"exact":true}'), ("x", '{"exact":false}')), ["x, exact yes", "x, exact no"]),
    ],
    ids=["what varies", "numbers of an arm alone", "lists", "replicates", "overrides", "conditions", "stacks", "switches"],
)
def test_names(points: pd.DataFrame, expected: list[str]) -> None:
    """A name holds the parameters that vary, or the numbers of an arm that has no sibling."""
    assert names(points) == expected


def test_names_of_language_arms() -> None:
    """Names hold doses and what few arms say: a default that all or most share, a seed or a learning rate, is not told."""
    vocabulary = {"data": "topics", "finetune_steps": 20, "learning_rate": 0.001, "ngrams": 500, "seed": 0}
    sparse = {"calibration_tokens": 8192, "data": "docs", "form": "absorbed", "sparsity": 0.5}
    asked = [
        ("adaptivocab", vocabulary),
        ("adaptivocab", vocabulary | {"ngrams": 0}),
        ("larosa", sparse),
        ("larosa", sparse | {"form": "online"}),
        ("teal", {"calibration_tokens": 8192, "sparsity": 0.5}),
        ("dense", {"kv_cache": "virtual"}),
        ("adaptivocab+larosa", [{"method": "adaptivocab", **vocabulary}, {"method": "larosa", **sparse}, {"kv_cache": "virtual"}]),
    ]
    rows = [(method, json.dumps(params)) for method, params in asked]
    baseline = ['topk_activation(kernel="auto", sparsity=0.0)'] * 5 + [
        'topk_activation(kernel="auto", sparsity=0.0) [kv_cache=dynamic]'
    ] * 2
    points = frame(*rows, kv_cache=["dynamic"] * 5 + ["virtual"] * 2, baseline=baseline)
    assert names(points) == [
        "adaptivocab, ngrams 500",
        "adaptivocab, ngrams 0",
        "larosa, sparsity 0.5",
        "larosa, form online, sparsity 0.5",
        "teal, sparsity 0.5",
        "dense, virtual cache",
        "adaptivocab ngrams 500 + larosa sparsity 0.5, virtual cache",
    ]
    assert set(arm_style.named(points, EMPTY)[0]["against"]) == {"topk_activation, sparsity 0"}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("dense", "dense"),
        ("dense [dtype=bfloat16]", "dense, bfloat16"),
        ("dense [kv_cache=dynamic, replicate=1]", "dense, replicate 1, dynamic cache"),
        ("topk(keep_rate=0.5, layers=[3,6])", "topk, keep rate 0.5"),
        ("tome(r=8) + topk()", "tome r 8 + topk"),
        ("topk(keep rate a half)", "topk(keep rate a half)"),
    ],
    ids=["dense", "override", "several overrides", "parameters", "stack", "another form"],
)
def test_baselines_are_named_alike(text: str, name: str) -> None:
    """A baseline is named as an arm is, with whatever its text says that it does otherwise; a strange text stays as it is."""
    assert list(arm_style.named(frame(("evit", "{}"), baseline=[text]), EMPTY)[0]["against"]) == [name]


def test_baselines_of_an_old_store() -> None:
    """Where a store is older than the identities of baselines their texts tell them apart."""
    points = frame(("evit", "{}"), ("evit", "{}"), baseline=["dense", "topk(r=8)"], baseline_id=[None, None])
    assert list(arm_style.named(points, EMPTY)[0]["against"]) == ["dense", "topk, r 8"]


VALUES = st.one_of(
    st.integers(-2, 2), st.floats(-1, 1), st.booleans(), st.sampled_from(["a", "b", "1", "yes"]), st.lists(st.integers(0, 2))
)
PARAMS = st.dictionaries(
    st.sampled_from(["r", "form", "seed_of", "budget"]), VALUES | st.dictionaries(st.just("r"), VALUES, min_size=1)
)
STEPS = st.lists(st.tuples(st.sampled_from(["tome", "topk"]), PARAMS), min_size=1, max_size=2)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(STEPS, st.sampled_from(["dynamic", "virtual"]), st.sampled_from(["float32", "bfloat16"])), min_size=1))
def test_no_two_arms_share_a_name(asked: list[tuple[list[tuple[str, dict[str, object]]], str, str]]) -> None:
    """Whatever arms a frame has, each has a name of its own."""
    rows = [
        (
            "+".join(method for method, _ in steps),
            json.dumps([{"method": m, **p} for m, p in steps] if len(steps) > 1 else steps[0][1]),
        )
        for steps, _, _ in asked
    ]
    points = frame(*rows, kv_cache=[cache for _, cache, _ in asked], dtype=[dtype for _, _, dtype in asked])
    told = arm_style.named(points, EMPTY)[0]
    assert len(told.drop_duplicates([*arm_style.KEY])) == told["arm"].nunique()


def test_names_stay_while_rows_are_filtered() -> None:
    """A frame that has names keeps them, though fewer arms would need fewer words."""
    points, break_evens = arm_style.named(frame(("topk", '{"a":1,"b":2}'), ("topk", '{"a":3,"b":2}')), EMPTY)
    assert list(arm_style.named(points.iloc[:1], break_evens)[0]["arm"]) == ["topk, a 1"]


def test_styles() -> None:
    """Within a method arms differ in colour and dash, in order of their numbers; its first colour does not depend on the others."""
    many = arm_style.named(frame(*[("tome", f'{{"r":{r}}}') for r in (13, 8, 4)], ("evit", "{}"), ("topk", "{}")), EMPTY)[0]
    look = arm_style.styles(many)
    assert [name for name in look if name.startswith("tome")] == ["tome, r 4", "tome, r 8", "tome, r 13"]
    assert len({style.color for style in look.values()}) == 5
    assert len({tuple(look[f"tome, r {r}"].dash) for r in (4, 8, 13)}) == 3
    alone = arm_style.styles(many[many["method"] == "evit"])
    assert alone["evit"] == look["evit"]


def luminance(color: str) -> float:
    """Relative luminance of an sRGB colour (WCAG 2.2)."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("color", sorted({color for ramp in (*arm_style.RAMPS.values(), *arm_style.OTHER_RAMPS) for color in ramp}))
def test_colours_read_on_both_themes(color: str) -> None:
    """Every colour keeps a contrast of 3 or more to white and to the dark theme's background."""
    assert 1.05 / (luminance(color) + 0.05) >= 3
    assert (luminance(color) + 0.05) / (luminance("#191814") + 0.05) >= 3
