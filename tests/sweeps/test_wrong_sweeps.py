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

from sweeps.language.file_schema import Sweep, parse, seconds
from sweeps.language.yaml_reader import SweepError, read
from sweeps.model.job import Protocol
from tests.sweeps.conftest import GRID, MODEL, TOPK, Expand, Refusal
from tests.sweeps.llm_sweeps import TINY, refused

SIZES = "image_size: {range: {start: 16, stop: 16000, step: 16}}"
SEEDS = "seed: {range: {start: 1, stop: 9999}}"


def test_too_many_jobs_stop_the_count_early(refusal: Refusal) -> None:
    """A sweep larger than `max_jobs` is refused with the number reached, without walking through
    it.
    """
    axes = f"{{{SIZES}, {SEEDS}, threads: {{range: {{start: 1, stop: 9999}}}}}}"
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
    ["model", "image_size", "deit_tiny_patch16_224", "method", "topk", "keep_rate", "range", "in"]
)
plain = words | st.integers(-2, 64) | st.floats(0, 2, width=16) | st.booleans() | st.none()
anything = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.dictionaries(
        st.sampled_from(sorted({*Sweep.model_fields} - {"schema_version"})),
        anything,
        max_size=3,
    )
)
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


# ---- the keys of a sweep file ----


HEAD = "schema: 1\nname: trial\n"


def test_everything_but_schema_and_name_has_a_default() -> None:
    """The defaults of the language."""
    sweep = parse(read("x.yaml", HEAD))
    assert sweep.baselines == ("dense",)
    assert sweep.jobs.protocols("vision") == {"latency": Protocol()}
    assert (sweep.retry.max_attempts, sweep.retry.when) == (2, ("worker_crash", "node_died"))
    assert (sweep.limits.max_jobs, sweep.limits.arms_per_job) == (5000, 16)


def test_a_protocol_is_read_with_its_units() -> None:
    """Durations come out in seconds, and what is not written keeps its default."""
    latency = "{pairs: {max: 50}, half_width: 0.02, budget: 250ms, timeout: 2m, rounds: 3}"
    sweep = parse(read("x.yaml", f"{HEAD}jobs: {{latency: {latency}}}\n"))
    expected = Protocol(
        pairs_min=30, pairs_max=50, half_width=0.02, budget_s=0.25, timeout_s=120.0, rounds=3
    )
    assert sweep.jobs.latency.protocol() == expected


@pytest.mark.parametrize(
    ("written", "value"),
    [("250ms", 0.25), ("1.5m", 90.0), ("1h", 3600.0), ("2 s", 2.0), (0.5, 0.5)],
)
def test_durations(written: str | float, value: float) -> None:
    """Milliseconds, seconds, minutes, hours, or a plain number of seconds."""
    assert seconds(written) == value


@pytest.mark.parametrize("written", ["10x", "", "-1s", "1m30s", True, [1]])
def test_what_is_no_duration(written: Any) -> None:
    """Anything else is refused with examples of what is right."""
    with pytest.raises(ValueError, match="write 250ms, 10s, 5m, 1h"):
        seconds(written)


@pytest.mark.parametrize(
    ("text", "line", "key", "message"),
    [
        ("name: x\n", 1, "schema", "is missing; write `schema: 1`"),
        ("schema: 1\n", 1, "name", "is missing"),
        ("schema: 2\nname: x\n", 1, "schema", "write `schema: 1`"),
        ("schema: true\nname: x\n", 1, "schema", "write `schema: 1`"),
        ("schema: 1\nname: a b\n", 2, "name", "match pattern"),
        ("schema: 1\nname: 3\n", 2, "name", "needs text, not 3"),
    ],
)
def test_wrong_keys_and_values(text: str, line: int, key: str, message: str) -> None:
    """Each message names file, line and key, and what would be right."""
    with pytest.raises(SweepError) as caught:
        parse(read("x.yaml", text))
    assert (caught.value.line, caught.value.key) == (line, key)
    assert message in caught.value.problem
    assert str(caught.value).startswith(f"x.yaml:{line}: {key}: ")
