"""Arms are named by what tells them apart, and look the same wherever they are drawn."""

import pandas as pd
import pytest

from webapp import arms

EMPTY = pd.DataFrame(columns=[*arms.KEY])


def frame(*rows: tuple[str, str], **columns: list[str]) -> pd.DataFrame:
    """Arms as (method, params), against dense, unless columns say otherwise."""
    plain = {"baseline": "dense", "dtype": "float32", "attention": "sdpa", "runtime": "eager", "kv_cache": None}
    return pd.DataFrame(rows, columns=["method", "params"]).assign(**(plain | columns))


def names(points: pd.DataFrame) -> list[str]:
    return list(arms.named(points, EMPTY)[0]["arm"])


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
            ["topk, eager", "topk, compile"],
        ),
        (
            frame(("tome+topk", '[{"method":"tome","r":8},{"method":"topk","keep_rate":0.5}]')),
            ["tome+topk, tome r 8, topk keep rate 0.5"],
        ),
        (frame(("x", '{"exact":true}'), ("x", '{"exact":false}')), ["x, exact yes", "x, exact no"]),
    ],
    ids=["what varies", "numbers of an arm alone", "lists", "replicates", "overrides", "stacks", "switches"],
)
def test_names(points: pd.DataFrame, expected: list[str]) -> None:
    """A name holds the parameters that vary, or the numbers of an arm that has no sibling."""
    assert names(points) == expected


def test_names_stay_while_rows_are_filtered() -> None:
    """A frame that has names keeps them, though fewer arms would need fewer words."""
    points, break_evens = arms.named(frame(("topk", '{"a":1,"b":2}'), ("topk", '{"a":3,"b":2}')), EMPTY)
    assert list(arms.named(points.iloc[:1], break_evens)[0]["arm"]) == ["topk, a 1"]


def test_styles() -> None:
    """Within a method arms differ in colour and dash, in order of their numbers; its first colour does not depend on the others."""
    many = arms.named(frame(*[("tome", f'{{"r":{r}}}') for r in (13, 8, 4)], ("evit", "{}"), ("topk", "{}")), EMPTY)[0]
    look = arms.styles(many)
    assert [name for name in look if name.startswith("tome")] == ["tome, r 4", "tome, r 8", "tome, r 13"]
    assert len({style.color for style in look.values()}) == 5
    assert len({tuple(look[f"tome, r {r}"].dash) for r in (4, 8, 13)}) == 3
    alone = arms.styles(many[many["method"] == "evit"])
    assert alone["evit"] == look["evit"]


def luminance(color: str) -> float:
    """Relative luminance of an sRGB colour (WCAG 2.2)."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("color", sorted({color for ramp in (*arms.RAMPS.values(), *arms.OTHER_RAMPS) for color in ramp}))
def test_colours_read_on_both_themes(color: str) -> None:
    """Every colour keeps a contrast of 3 or more to white and to the dark theme's background."""
    assert 1.05 / (luminance(color) + 0.05) >= 3
    assert (luminance(color) + 0.05) / (luminance("#191814") + 0.05) >= 3
