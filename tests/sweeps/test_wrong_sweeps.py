"""Wrong sweeps: each is refused with one message that names file, line and key; one that is too
large before it is built.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sweeps.language.yaml_reader import SweepError
from tests.sweeps.conftest import GRID, MODEL, TOPK, Expand, Refusal
from tests.sweeps.llm_sweeps import TINY, refused

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


NAMES = {
    "ACCURACY": "jobs: {accuracy: {}}\n",
    "BATCH": MODEL + "axes:\n  batch_size: ",
    "ENTRY": MODEL + "methods:\n  - ",
    "GATE": "methods: [skip]\n",
    "GRID": GRID,
    "LM": TINY[:-2] + ", ",
    "MODEL": MODEL,
    "ONE": "methods: [topk]\n",
    "SEARCH": "defaults: {model: deit_tiny_patch16_224}\n"
    + TOPK
    + "search: {axis: image_size, bracket: ",
    "SIZE": MODEL + "axes:\n  image_size: ",
    "SKIP": TINY + "methods: [skip]\n",
    "TINY": TINY,
    "TOPK": TOPK,
    "VIT": MODEL[:-2] + ", ",
}
"""What stands in angle brackets in `refused.txt`."""
REFUSED = [
    line
    for line in Path(__file__).with_name("refused.txt").read_text().splitlines()
    if not line.startswith("#")
]


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_sweeps(case: str) -> None:
    """Every wrong sweep ends with one message that names file, line and key, and what would be
    right.
    """
    message, written = case.split(" <- ")
    line, key, expected = message.split(": ", 2)
    text = re.sub("<([A-Z]+)>", lambda name: NAMES[name[1]], written.replace("\\n", "\n"))
    error = refused(f"{text}\n", corruptions=("jpeg", "contrast"))
    assert (error.line, error.key) == (int(line), key)
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
