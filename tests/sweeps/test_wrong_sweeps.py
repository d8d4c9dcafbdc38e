"""Wrong sweeps: each is refused with one message that names file, line and key; one that is too
large before it is built.
"""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sweeps.language.yaml_reader import SweepError
from tests.sweeps.conftest import GRID, MODEL, TOPK, Expand, Refusal

BATCH = MODEL + "axes:\n  batch_size: "
SIZE = MODEL + "axes:\n  image_size: "
ENTRY = MODEL + "methods:\n  - "
SIZES = "image_size: {range: {start: 16, stop: 16000, step: 16}}"
SEEDS = "seed: {range: {start: 1, stop: 9999}}"


@pytest.mark.parametrize(
    "axes", [f"{{{SIZES}}}", f"{{{SIZES}, {SEEDS}, threads: {{range: {{start: 1, stop: 9999}}}}}}"]
)
def test_too_many_jobs_stop_the_count_early(refusal: Refusal, axes: str) -> None:
    """A sweep larger than `max_jobs` is refused with the number reached, without walking through
    it.
    """
    error = refusal(f"{MODEL}axes: {axes}\n{TOPK}limits:\n  max_jobs: 50\n")
    assert (error.line, error.key) == (7, "limits.max_jobs")
    assert "reached 51 jobs, more than limits.max_jobs: 50" in error.problem


def test_a_vast_grid_that_rules_empty_is_refused(refusal: Refusal) -> None:
    """Rules cannot make the walk through a grid endless."""
    error = refusal(
        f"{MODEL}axes: {{{SIZES}, {SEEDS}}}\n{TOPK}exclude: [{{image_size: {{gt: 0}}}}]\nlimits:"
        " {max_jobs: 50}\n"
    )
    assert "arms at points looked at" in error.problem


def test_too_many_arms_are_refused_before_they_are_built(refusal: Refusal) -> None:
    """The product of an entry's lists is counted, not built."""
    entry = (
        "{method: topk, keep_rate: {linspace: {start: 0.1, stop: 1, num: 9000}}, replicate: {range:"
        " {start: 0, stop: 9000}}}"
    )
    error = refusal(f"{MODEL}methods: [{entry}]\n")
    assert error.key == "methods[0]"
    assert "expands to 81009000 arms" in error.problem


@pytest.mark.parametrize(
    ("text", "line", "key", "expected"),
    [
        ("axes:\n  modle: [x]\n" + TOPK, 4, "axes.modle", "did you mean 'model'?"),
        ("axes:\n  tokens: [4]\n" + TOPK, 4, "axes.tokens", "unknown key 'tokens'"),
        (
            "axes:\n  model: [deit_tny_patch16_224]\n" + TOPK,
            4,
            "axes.model[0]",
            "did you mean 'deit_tiny_patch16_224'?",
        ),
        (
            "axes:\n  image_size: 32\n" + TOPK,
            3,
            "axes.model",
            "is missing; give it under `axes` or `defaults`",
        ),
        (MODEL + "axes:\n  image_size: []\n" + TOPK, 5, "axes.image_size", "is empty"),
        (
            MODEL + "axes:\n  image_size:\n    - 32\n    - 40\n" + TOPK,
            7,
            "axes.image_size[1]",
            "patch size 16; near by: 32 or 48",
        ),
        (
            SIZE + "{height: 64, width: 90}\n" + TOPK,
            5,
            "axes.image_size",
            "near by: 64x80 or 64x96",
        ),
        (
            SIZE + "{hight: 64, width: 96}\n" + TOPK,
            5,
            "axes.image_size.hight",
            "did you mean 'height'?",
        ),
        (SIZE + "[{height: 64}]\n" + TOPK, 5, "axes.image_size[0].width", "is missing"),
        (SIZE + "{height: 0, width: 32}\n" + TOPK, 5, "axes.image_size.height", "greater than 0"),
        (
            SIZE + "[64, {height: 32, width: 128}]\n" + TOPK,
            5,
            "axes.image_size[1]",
            "as many tokens as 64",
        ),
        (
            MODEL + "axes:\n  image_size: ['32']\n" + TOPK,
            5,
            "axes.image_size[0]",
            "did you mean 32 (without quotes)?",
        ),
        (MODEL + "axes:\n  image_size: [0]\n" + TOPK, 5, "axes.image_size[0]", "greater than 0"),
        (BATCH + "[true]\n" + TOPK, 5, "axes.batch_size[0]", "needs a whole number, not true"),
        (
            MODEL + "axes:\n  dtype: [float32, bf16]\n" + TOPK,
            5,
            "axes.dtype[1]",
            "did you mean 'bfloat16'?",
        ),
        (MODEL + "axes:\n  device: [gpu]\n" + TOPK, 5, "axes.device[0]", "did you mean 'cuda'?"),
        (MODEL + "axes:\n  dtype: [FP16]\n" + TOPK, 5, "axes.dtype[0]", "did you mean 'float16'?"),
        (MODEL + "axes:\n  dtype: [half]\n" + TOPK, 5, "axes.dtype[0]", "did you mean 'float16'?"),
        (MODEL + "axes:\n  dtype: [fp32]\n" + TOPK, 5, "axes.dtype[0]", "did you mean 'float32'?"),
        (
            MODEL + "axes:\n  dtype: [single]\n" + TOPK,
            5,
            "axes.dtype[0]",
            "did you mean 'float32'?",
        ),
        (
            MODEL + "axes:\n  dtype: [torch.bfloat16]\n" + TOPK,
            5,
            "axes.dtype[0]",
            "did you mean 'bfloat16'?",
        ),
        (
            MODEL + "axes:\n  dtype: [amp]\n" + TOPK,
            5,
            "axes.dtype[0]",
            "did you mean 'autocast-float16'?",
        ),
        (
            MODEL + "methods: [{method: dense, dtype: fp16}]\n",
            4,
            "methods[0].dtype",
            "did you mean 'float16'?",
        ),
        (
            MODEL + "methods: [{method: dense, attention: flash}]\n",
            4,
            "methods[0].attention",
            "did you mean 'sdpa'?",
        ),
        (
            MODEL + TOPK + "exclude:\n  - {topk.keep_rate: 0.5}\n",
            6,
            "exclude[0].topk.keep_rate",
            "{method: topk, keep_rate: 0.5}",
        ),
        (
            MODEL + TOPK + "exclude:\n  - {topk.rate: 0.5}\n",
            6,
            "exclude[0].topk.rate",
            "unknown key 'topk.rate'",
        ),
        (BATCH + "{range: {start: 4, stop: 1}}\n" + TOPK, 5, "axes.batch_size.range", "is empty"),
        (
            BATCH + "{range: {start: 1, stop: 4, step: 0}}\n" + TOPK,
            5,
            "axes.batch_size.range",
            "step is 0",
        ),
        (
            BATCH + "{range: {start: 1, stop: 1000000000}}\n" + TOPK,
            5,
            "axes.batch_size.range",
            "more than 10000",
        ),
        (
            BATCH + "{range: {start: 1, stop: 3, step: 0.5}}\n" + TOPK,
            5,
            "axes.batch_size.range",
            "whole number",
        ),
        (
            BATCH + "{range: {start: 1, stp: 3}}\n" + TOPK,
            5,
            "axes.batch_size.range.stp",
            "did you mean 'stop'?",
        ),
        (BATCH + "{rnge: {start: 1}}\n" + TOPK, 5, "axes.batch_size.rnge", "did you mean 'range'?"),
        (BATCH + "{range: 3}\n" + TOPK, 5, "axes.batch_size.range", "start, stop, step"),
        (BATCH + "{}\n" + TOPK, 5, "axes.batch_size", "exactly one of"),
        (BATCH + "{each: [1, 2]}\n" + TOPK, 5, "axes.batch_size.each", "unknown key 'each'"),
        (
            BATCH + "{logspace: {start: 0, stop: 4}}\n" + TOPK,
            5,
            "axes.batch_size.logspace.start",
            "greater than 0",
        ),
        (
            MODEL + "axes: {weights: random,\n  pretrained: true}\n" + TOPK,
            5,
            "axes.pretrained",
            "sets `weights` a second time",
        ),
        (MODEL + "axes: {pretrained: 1}\n" + TOPK, 4, "axes.pretrained", "needs true or false"),
        (
            MODEL + "axes:\n  checkpoint: random\n" + TOPK,
            5,
            "axes.checkpoint",
            "write `weights: random`",
        ),
        (
            MODEL + "axes:\n  checkpoint: nowhere.pt\n" + TOPK,
            5,
            "axes.checkpoint",
            "'nowhere.pt' cannot be read: No such file",
        ),
        (
            "defaults: {model: [deit_tiny_patch16_224]}\n" + TOPK,
            3,
            "defaults.model",
            "several go under `axes`",
        ),
        (MODEL + "methods: []\n", 4, "methods", "nothing to measure"),
        (
            ENTRY + "{method: tokp}\n",
            5,
            "methods[0].method",
            "unknown method 'tokp'; did you mean 'topk'?",
        ),
        (ENTRY + "{method: [topk, tome]}\n", 5, "methods[0].method", "one entry each"),
        (ENTRY + "{methd: topk}\n", 5, "methods[0].methd", "did you mean 'method'?"),
        (ENTRY + "{keep_rate: 0.5}\n", 5, "methods[0]", "names no method"),
        (
            ENTRY + "method: topk\n    keep_rat: 0.5\n",
            6,
            "methods[0].keep_rat",
            "did you mean 'keep_rate'?",
        ),
        (
            ENTRY + "method: topk\n    keep_rate: '0.5'\n",
            6,
            "methods[0].keep_rate",
            "did you mean 0.5",
        ),
        (
            ENTRY + "method: topk\n    keep_rate: true\n",
            6,
            "methods[0].keep_rate",
            "needs a number, not true",
        ),
        (
            ENTRY + "method: topk\n    keep_rate:\n      - 0.5\n      - 2\n",
            8,
            "methods[0].keep_rate[1]",
            "equal to 1, not 2",
        ),
        (
            ENTRY + "method: topk\n    layers:\n      list:\n      - 3\n      - x\n",
            9,
            "methods[0].layers.list[1]",
            "whole number",
        ),
        (ENTRY + "method: topk\n    layers: 3\n", 6, "methods[0].layers", "needs a list, not 3"),
        (
            ENTRY + "method: topk\n    layers: {list: [3,\n     40]}\n",
            5,
            "methods[0]",
            "layer 40 is beyond",
        ),
        (ENTRY + "{method: mask}\n", 5, "methods[0].blocks", "is missing"),
        (
            ENTRY + "{method: topk, runtim: eager}\n",
            5,
            "methods[0].runtim",
            "did you mean 'runtime'?",
        ),
        (
            ENTRY + "{method: topk, runtime: egaer}\n",
            5,
            "methods[0].runtime",
            "did you mean 'eager'?",
        ),
        (ENTRY + "{method: topk, batch_size: 2}\n", 5, "methods[0].batch_size", "unknown key"),
        (
            ENTRY + "{method: dense, replicate: -1}\n",
            5,
            "methods[0].replicate",
            "greater than or equal to 0",
        ),
        (
            ENTRY + "{method: dense, image_size: [16,\n    20]}\n",
            6,
            "methods[0].image_size[1]",
            "patch size 16",
        ),
        (ENTRY + "{stack: []}\n", 5, "methods[0].stack", "the empty stack is `method: dense`"),
        (ENTRY + "{stack: [dense]}\n", 5, "methods[0].stack[0]", "`dense` is the empty stack"),
        (ENTRY + "{stack: [{keep_rate: 1}]}\n", 5, "methods[0].stack[0]", "needs `method: NAME`"),
        (
            ENTRY + "{stack: [topk], method: tome}\n",
            5,
            "methods[0].method",
            "stands beside `stack`",
        ),
        (
            ENTRY + "{stack: [{method: topk, dtype: float16}]}\n",
            5,
            "methods[0].stack[0].dtype",
            "unknown key 'dtype'",
        ),
        (
            ENTRY + "{stack: [topk], keep_rate: 0.5}\n",
            5,
            "methods[0].keep_rate",
            "unknown key 'keep_rate'",
        ),
        (
            MODEL + TOPK + "baselines:\n  - {runtim: eager}\n",
            6,
            "baselines[0].runtim",
            "did you mean 'runtime'?",
        ),
        (MODEL + TOPK + "baselines: [dens]\n", 5, "baselines[0].method", "did you mean 'dense'?"),
        (
            MODEL
            + TOPK
            + "baselines: [{method: dense, replicate: [1, 2]}]\nlimits: {arms_per_job: 2}\n",
            5,
            "baselines",
            "no room",
        ),
        (
            GRID + "zip:\n  - [image_size, topk.keep_rate]\n",
            7,
            "zip[0]",
            "image_size has 3 values, but topk.keep_rate has 2",
        ),
        (
            GRID + "zip:\n  - [image_size, topk.keep_rat]\n",
            7,
            "zip[0][1]",
            "did you mean 'topk.keep_rate'?",
        ),
        (GRID + "zip:\n  - [image_size]\n", 7, "zip[0]", "at least two keys"),
        (GRID + "zip:\n  - [image_size, image_size]\n", 7, "zip[0][1]", "moves in a group already"),
        (
            GRID + "exclude:\n  - {keep_rat: 0.5}\n",
            7,
            "exclude[0].keep_rat",
            "did you mean 'keep_rate'?",
        ),
        (GRID + "exclude:\n  - {blocks: 2}\n", 7, "exclude[0].blocks", "unknown key 'blocks'"),
        (GRID + "exclude:\n  - {method: tokp}\n", 7, "exclude[0].method", "did you mean 'topk'?"),
        (
            GRID + "exclude:\n  - {dtype: {in: [bf16]}}\n",
            7,
            "exclude[0].dtype.in[0]",
            "did you mean 'bfloat16'?",
        ),
        (
            GRID + "exclude:\n  - {image_size: {gte: 3}}\n",
            7,
            "exclude[0].image_size.gte",
            "did you mean 'gt'?",
        ),
        (
            GRID + "exclude:\n  - {image_size: {ge: '3'}}\n",
            7,
            "exclude[0].image_size.ge",
            "needs a number",
        ),
        (
            GRID + "exclude:\n  - {image_size: [32, 64]}\n",
            7,
            "exclude[0].image_size",
            "did you mean {in: […]}?",
        ),
        (
            GRID + "exclude:\n  - {image_size: {in: 32}}\n",
            7,
            "exclude[0].image_size.in",
            "needs a list",
        ),
        (
            GRID + "exclude:\n  - {model: {re: '['}}\n",
            7,
            "exclude[0].model.re",
            "is no regular expression",
        ),
        (GRID + "exclude:\n  - {model: {re: 3}}\n", 7, "exclude[0].model.re", "in quotes"),
        (GRID + "exclude:\n  - {model: {}}\n", 7, "exclude[0].model", "needs one of in, ge"),
        (GRID + "exclude:\n  - {}\n", 7, "exclude[0]", "would exclude everything"),
        (
            GRID + "exclude:\n  - {image_size: {ge: 0}}\n",
            6,
            "exclude",
            "nothing is left to measure",
        ),
        (
            MODEL + "include:\n  - {image_size: 40, method: topk}\n",
            5,
            "include[0].image_size",
            "patch size 16",
        ),
        (
            MODEL + "include:\n  - {method: topk, batch_sze: 2}\n",
            5,
            "include[0].batch_sze",
            "unknown key",
        ),
        (MODEL + "include:\n  - {batch_size: 2}\n", 5, "include[0]", "names no method"),
        ("include:\n  - {image_size: 32, method: topk}\n", 4, "include[0].model", "is missing"),
        (GRID + "resources: []\n", 6, "resources", "needs the labels of a node, such as {zone: a}"),
        (GRID + "resources: [{}]\n", 6, "resources", "needs the labels of a node"),
        (
            GRID + "resources: gpu\n",
            6,
            "resources",
            "needs the labels of a node, such as {zone: a}, or a list of such mappings, not",
        ),
        (
            GRID + "resources: {zone: true}\n",
            6,
            "resources",
            "zone needs a label's value as text, or an amount",
        ),
        (GRID + "resources: [{zone: a}, {big: 0}]\n", 6, "resources", "big needs a label's value"),
    ],
)
def test_wrong_sweeps(refusal: Refusal, text: str, line: int, key: str, expected: str) -> None:
    """Every wrong sweep ends with one message that names file, line and key, and what would be
    right.
    """
    error = refusal(text)
    assert (error.line, error.key) == (line, key)
    assert expected in error.problem
    assert str(error) == f"trial.yaml:{line}: {key}: {error.problem}"


words = st.sampled_from(
    [
        "model",
        "image_size",
        "deit_tiny_patch16_224",
        "method",
        "topk",
        "dense",
        "keep_rate",
        "range",
        "in",
    ]
)
plain = words | st.integers(-2, 64) | st.floats(0, 2, width=16) | st.booleans() | st.none()
anything = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
KEYS = [
    "defaults",
    "axes",
    "methods",
    "baselines",
    "zip",
    "exclude",
    "include",
    "jobs",
    "retry",
    "limits",
    "name",
    "question",
]


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.dictionaries(st.sampled_from(KEYS), anything, max_size=3))
def test_any_content_expands_or_is_refused(expand: Expand, changes: dict[str, Any]) -> None:
    """Whatever stands under the keys of a sweep, it expands or is refused with a `SweepError`."""
    sweep = {
        "name": "trial",
        "defaults": {"model": "deit_tiny_patch16_224", "image_size": 32},
        "methods": ["topk"],
        **changes,
    }
    text = "".join(f"{key}: {json.dumps(value)}\n" for key, value in sweep.items())
    try:
        expansion = expand("schema: 1\n" + text)
    except SweepError as error:
        assert str(error).startswith("trial.yaml")  # noqa: PT017 - refusing is as right as expanding
    else:
        assert expansion.jobs
        assert expansion.comparisons
