"""From a sweep file to jobs and comparisons: what each word of the language means, and a message for each wrong use."""

import hashlib
import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sweeps.axis import Choice, Logspace, Range, spread
from sweeps.expansion import Expansion, load
from sweeps.job import DENSE, Condition, Pair, Protocol
from sweeps.method import Method
from sweeps.reading import SweepError, read
from tests.sweeps.conftest import NETWORKS

Expand = Callable[..., Expansion]
Fault = Callable[..., SweepError]

MODEL = "defaults: {model: deit_tiny_patch16_224, image_size: 32}\n"
TOPK = "methods: [{method: topk}]\n"

QUICKSTART = """\
schema: 1
name: quickstart
question: From how many tokens on does token reduction pay on this machine?
defaults: {device: auto, dtype: float32, attention: sdpa, runtime: eager, batch_size: 1}
axes:
  model: [deit_tiny_patch16_224]
  image_size: [32, 48, 64, 96, 128, 160, 192, 224]
methods:
  - {method: topk, keep_rate: [0.5, 0.7], layers: [3, 6, 9]}
  - {method: tome, r_ratio: [0.02, 0.06]}
zip: []
exclude: []
include: []
jobs:
  latency: {pairs: {min: 30, max: 300}, half_width: 0.01, budget: 10s, timeout: 5m}
retry: {max_attempts: 2, when: [worker_crash, node_died]}
limits: {max_jobs: 5000}
"""


def arms(expansion: Expansion, job: int = 0) -> list[str]:
    """The arms of one job in words."""
    return [str(arm) for arm in expansion.jobs[job].arms]


def values(text: str, **options: bool) -> list[Any]:
    """The values of an axis written as `text`."""
    document = read("x.yaml", f"a: {text}")
    return [choice.value for choice in spread(document, ("a",), document.root["a"], **{"whole": False, **options})]


# ---- the example of the issue ----


def test_the_quickstart_expands_to_one_job_per_size(expand: Expand) -> None:
    """Each size is one job that measures four arms beside the unmodified model."""
    expansion = expand(QUICKSTART)
    assert (len(expansion.jobs), expansion.points, len(expansion.comparisons)) == (8, 8, 32)
    assert (expansion.excluded, expansion.duplicates, expansion.text) == (0, 0, QUICKSTART)
    job = expansion.jobs[0]
    assert job.condition == Condition(model="deit_tiny_patch16_224", image_size=32)
    assert job.arms[0] == DENSE
    assert job.pairs == (Pair(0, 1), Pair(0, 2), Pair(0, 3), Pair(0, 4))
    assert job.protocol == Protocol()
    assert arms(expansion)[1:] == [
        "topk(keep_rate=0.5, layers=[3,6,9])",
        "topk(keep_rate=0.7, layers=[3,6,9])",
        "tome(r_ratio=0.02)",
        "tome(r_ratio=0.06)",
    ]


def test_a_file_and_its_text_are_one_sweep(tmp_path: Path, methods: dict[str, Method], expand: Expand) -> None:
    """`load` reads the file itself when no text is given."""
    path = tmp_path / "quickstart.yaml"
    path.write_text(QUICKSTART)
    assert load(path, methods=methods, networks=NETWORKS, auto="cpu").jobs == expand(QUICKSTART).jobs


def test_auto_is_resolved_before_hashing(expand: Expand) -> None:
    """`device: auto` asks the same questions as the device that it stands for."""
    written = expand(QUICKSTART.replace("device: auto", "device: cpu"))
    assert [job.job_id for job in written.jobs] == [job.job_id for job in expand(QUICKSTART).jobs]


# ---- arms and their identities ----


@pytest.mark.parametrize("written", ["{method: topk, keep_rate: 1}", "{method: topk, keep_rate: 1.0, layers: [3, 6, 9]}"])
def test_one_way_of_running_is_one_arm(expand: Expand, written: str) -> None:
    """`keep_rate: 1`, `1.0` and spelled-out defaults are one arm."""
    both = expand(MODEL + f"methods: [{{method: topk, keep_rate: [1, 1.0]}}, {written}]\n")
    assert len(both.comparisons) == 1
    assert both.duplicates == 2


def test_an_omitted_parameter_is_its_default(expand: Expand) -> None:
    """A parameter left out and the same default written down ask one question."""
    entries = ("topk", "{method: topk}", "{method: topk, keep_rate: 0.7}")
    assert len({expand(MODEL + f"methods: [{written}]\n").comparisons[0].question_id for written in entries}) == 1


def test_comparisons_of_a_sweep_are_distinct(expand: Expand) -> None:
    """Whatever is asked twice, over axes, methods and extra points, is measured once and counted."""
    text = MODEL + "axes: {image_size: [32, 64, 32], batch_size: [1, 2]}\n"
    text += "methods: [{method: topk, keep_rate: [0.5, 0.5, 0.7], dtype: [float32, float16]}]\n"
    text += "include: [{image_size: 64, method: topk, keep_rate: 0.5}]\n"
    expansion = expand(text)
    ids = [comparison.comparison_id() for comparison in expansion.comparisons]
    assert len(ids) == len(set(ids)) == 4 * 4
    assert expansion.duplicates == 3 * 2 * 6 + 1 - 16
    assert [job_id for job in expansion.jobs for job_id in job.comparison_ids()] == ids


def test_overrides_equal_to_the_condition_merge(expand: Expand) -> None:
    """An override that repeats the condition makes no new arm, at each point for itself."""
    text = MODEL + "axes: {runtime: [eager, compile]}\nmethods: [{method: topk, runtime: eager}, topk]\n"
    expansion = expand(text)
    assert [len(job.arms) for job in expansion.jobs] == [2, 3]
    assert arms(expansion, 1)[1] == "topk(keep_rate=0.7, layers=[3,6,9]) [runtime=eager]"


def test_a_list_for_a_scalar_parameter_expands(expand: Expand) -> None:
    """Lists of scalar parameters and overrides multiply; a list of a sequence parameter is one value."""
    expansion = expand(MODEL + "methods: [{method: topk, keep_rate: [0.5, 0.7], layers: [3, 6], dtype: [float32, float16]}]\n")
    assert len(expansion.comparisons) == 4
    assert {tuple(arm.stack[0].params["layers"]) for arm in expansion.jobs[0].arms[1:]} == {(3, 6)}


def test_a_sequence_parameter_expands_through_each(expand: Expand) -> None:
    """`{each: …}` gives several lists, and serves unions of a number and a list."""
    expansion = expand(MODEL + "methods: [{method: topk, layers: {each: [[3], [3, 6]]}}, {method: tome, r: {each: [8, [8, 4]]}}]\n")
    lists = [arm.stack[0].params.get("layers", arm.stack[0].params.get("r")) for arm in expansion.jobs[0].arms[1:]]
    assert lists == [[3], [3, 6], 8, [8, 4]]


def test_series_expand_parameters_too(expand: Expand) -> None:
    """A range stands for its values wherever a list may stand."""
    tome, dense = "r: {range: {start: 2, stop: 6, step: 2}}", "replicate: {range: {start: 1, stop: 3}}"
    text = f"{MODEL}methods: [{{method: tome, {tome}}}, {{method: dense, {dense}}}]\n"
    assert arms(expand(text))[1:] == ["tome(r=2)", "tome(r=4)", "tome(r=6)", *(f"dense [replicate={n}]" for n in (1, 2, 3))]


def test_a_parameter_goes_before_an_override_of_its_name(expand: Expand) -> None:
    """A method with a parameter called dtype gets it; the condition's dtype stays."""
    step = expand(MODEL + "methods: [{method: mask, blocks: 2, dtype: int4}]\n").jobs[0].arms[1]
    assert step.stack[0].params == {"blocks": 2, "dtype": "int4", "mode": None}
    assert step.overrides.dtype is None


def test_stacks_keep_their_order(expand: Expand) -> None:
    """A stack is an ordered list of methods, with overrides beside it."""
    entries = "  - stack: [{method: topk, keep_rate: [0.5, 0.7]}, tome]\n    runtime: compile\n  - stack: [tome, {method: topk}]\n"
    expansion = expand(f"{MODEL}methods:\n{entries}")
    assert [arm.method for arm in expansion.jobs[0].arms] == ["dense", "topk+tome", "topk+tome", "tome+topk"]
    assert expansion.jobs[0].arms[1].overrides.runtime == "compile"


def test_an_arm_may_change_the_image_size(expand: Expand) -> None:
    """Smaller input is a way of running, too; its size must suit the patch."""
    assert arms(expand(MODEL + "methods: [{method: dense, image_size: 16}]\n")) == ["dense", "dense [image_size=16]"]


# ---- baselines ----


def test_every_arm_is_compared_with_every_baseline_but_itself(expand: Expand) -> None:
    """Baselines come first in the job, an arm that is a baseline is there once, and no pair names one arm twice."""
    text = MODEL + "axes: {runtime: [compile]}\nbaselines: [dense, {runtime: eager}]\n"
    job = expand(text + "methods: [{method: dense, runtime: eager}, topk]\n").jobs[0]
    assert [str(arm) for arm in job.arms] == ["dense", "dense [runtime=eager]", "topk(keep_rate=0.7, layers=[3,6,9])"]
    assert job.pairs == (Pair(0, 1), Pair(0, 2), Pair(1, 2))


def test_baselines_that_the_condition_makes_equal_are_one(expand: Expand) -> None:
    """`{runtime: eager}` is `dense` where the condition runs eagerly."""
    expansion = expand(MODEL + "baselines: [dense, {runtime: eager}]\n" + TOPK)
    assert len(expansion.comparisons) == 1
    assert expansion.duplicates == 1


def test_a_method_can_be_the_baseline(expand: Expand) -> None:
    """Methods are compared with each other by making one the baseline."""
    job = expand(MODEL + "baselines: [{method: topk, keep_rate: 0.5}]\nmethods: [topk, {method: dense}]\n").jobs[0]
    assert [arm.method for arm in job.arms] == ["topk", "topk", "dense"]
    assert job.pairs == (Pair(0, 1), Pair(0, 2))


@pytest.mark.parametrize("entry", ["{method: dense}", "{method: dense, runtime: eager}", "{method: dense, replicate: 0}"])
def test_the_baseline_against_itself_needs_a_replicate(expand: Expand, fault: Fault, entry: str) -> None:
    """An arm that is its baseline everywhere is an error that shows the way to an A/A test; a replicate is one."""
    error = fault(f"{MODEL}methods:\n  - topk\n  - {entry}\n")
    assert (error.line, error.key) == (6, "methods[1]")
    assert "for an A/A test write `replicate: 1`" in error.problem
    assert arms(expand(MODEL + "methods: [{method: dense, replicate: 1}]\n")) == ["dense", "dense [replicate=1]"]


# ---- axes ----


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("5", [5]),
        ("[1, 2]", [1, 2]),
        ("{range: {start: 1, stop: 7, step: 3}}", [1, 4, 7]),
        ("{range: {start: 1, stop: 6, step: 3}}", [1, 4]),
        ("{range: {start: 3, stop: 1, step: -1}}", [3, 2, 1]),
        ("{range: {start: 0.1, stop: 0.5, step: 0.1}}", [0.1, 0.2, 0.3, 0.4, 0.5]),
        ("{linspace: {start: 0, stop: 1, num: 3}}", [0.0, 0.5, 1.0]),
        ("{linspace: {start: 32, stop: 224, num: 4, multiple_of: 16}}", [32, 96, 160, 224]),
        ("{logspace: {start: 1, stop: 64}}", [1, 2, 4, 8, 16, 32, 64]),
        ("{logspace: {start: 1, stop: 70, base: 4}}", [1, 4, 16, 64]),
        ("{logspace: {start: 64, stop: 4096, num: 7, base: 2}}", [64, 128, 256, 512, 1024, 2048, 4096]),
        ("{logspace: {start: 8, stop: 1, num: 4}}", [8, 4, 2, 1]),
        ("{logspace: {start: 32, stop: 224, num: 5, multiple_of: 16}}", [32, 48, 80, 144, 224]),
        ("{each: [1, 2]}", [1, 2]),
    ],
)
def test_series(written: str, expected: list[float]) -> None:
    """Ranges include a stop that is hit, spaces include both ends, and no rounding error shows."""
    assert values(written) == expected


def test_points_of_integer_fields_are_whole() -> None:
    """Computed points are rounded where the field takes integers, and floats where it takes fractions."""
    assert [type(value) for value in values("{logspace: {start: 1, stop: 10, num: 3}}", whole=True)] == [int, int, int]
    assert values("{logspace: {start: 1, stop: 10, num: 3}}", whole=True) == [1, 3, 10]
    assert values("{logspace: {start: 1, stop: 10, num: 3}}")[1] == 3.16227766017


@given(st.integers(-1000, 1000), st.integers(-1000, 1000), st.integers(-50, 50).filter(bool))
def test_a_range_is_that_of_python_with_its_stop(start: int, stop: int, step: int) -> None:
    """For integers the language's range is Python's with an inclusive stop."""
    assert Range(start=start, stop=stop, step=step).values() == list(range(start, stop + (1 if step > 0 else -1), step))


@given(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6), st.integers(2, 50))
def test_a_logspace_keeps_its_ends_and_its_ratio(start: float, stop: float, num: int) -> None:
    """Both ends are hit, and neighbours differ by one factor."""
    points = Logspace(start=start, stop=stop, num=num).values()
    assert (len(points), points[0], points[-1]) == (num, start, stop)
    ratios = [math.log(after / before) for before, after in itertools.pairwise(points)]
    assert max(ratios) - min(ratios) < 1e-9


def test_an_each_is_a_value_with_its_own_line() -> None:
    """Every value of a list knows its line, so that a message can point at it."""
    document = read("x.yaml", "a:\n  each:\n    - 1\n    - 2\n")
    assert spread(document, ("a",), document.root["a"], whole=True)[1] == Choice(2, ("a", "each", 1))
    assert document.lines["a", "each", 1] == 4


def test_weights_have_shorthands(expand: Expand, tmp_path: Path) -> None:
    """`pretrained: true` is `weights: pretrained`, and a checkpoint's content goes into the identity of answers."""
    assert expand(MODEL + "axes: {pretrained: [true, false]}\n" + TOPK).jobs[0].condition.weights == "pretrained"
    path = tmp_path / "model.pt"
    path.write_bytes(b"weights")
    job = expand(MODEL + f"axes: {{checkpoint: {path}}}\n" + TOPK).jobs[0]
    assert (job.condition.weights, job.contents) == (str(path), {"weights": hashlib.sha256(b"weights").hexdigest()})
    other = expand(MODEL + f"axes: {{weights: {path}}}\n" + TOPK, content_hash=lambda _: "another").jobs[0]
    assert other.comparisons()[0].question_id == job.comparisons()[0].question_id
    assert other.comparison_ids() != job.comparison_ids()


# ---- zip, exclude, include ----


def test_axes_can_move_together(expand: Expand) -> None:
    """A group crosses with the other axes, but not within itself."""
    text = MODEL + "axes: {image_size: [32, 64], batch_size: [8, 2], dtype: [float32, float16]}\n" + TOPK
    jobs = expand(text + "zip: [[image_size, batch_size]]\n").jobs
    points = [(job.condition.image_size, job.condition.batch_size, job.condition.dtype) for job in jobs]
    assert points == [(32, 8, "float32"), (32, 8, "float16"), (64, 2, "float32"), (64, 2, "float16")]


def test_a_parameter_can_move_with_an_axis(expand: Expand) -> None:
    """A fixed r scaled with the image size: one value of r per size."""
    text = MODEL + "axes: {image_size: [32, 64, 96]}\nmethods: [{method: tome, r: {each: [1, 4, 9]}}, topk]\n"
    expansion = expand(text + "zip: [[image_size, tome.r]]\n")
    assert [arms(expansion, job)[1] for job in range(3)] == ["tome(r=1)", "tome(r=4)", "tome(r=9)"]
    assert len(expansion.comparisons) == 6


def test_parameters_of_one_entry_can_move_together(expand: Expand) -> None:
    """Within an entry, and within a stack, grouped parameters do not multiply."""
    text = MODEL + "methods: [{stack: [{method: topk, keep_rate: [0.5, 0.7]}, {method: tome, r_ratio: [0.1, 0.2]}]}]\n"
    expansion = expand(text + "zip: [[topk.keep_rate, tome.r_ratio]]\n")
    stacks = [arm.stack for arm in expansion.jobs[0].arms[1:]]
    pairs = [(topk.params["keep_rate"], tome.params["r_ratio"]) for topk, tome in stacks]
    assert pairs == [(0.5, 0.1), (0.7, 0.2)]
    assert len(expand(text).comparisons) == 4


BATCH = MODEL + "axes:\n  batch_size: "
ENTRY = MODEL + "methods:\n  - "
GRID = MODEL + "axes: {image_size: [32, 64, 96]}\nmethods: [{method: topk, keep_rate: [0.5, 0.7]}, {method: tome, r: 4}]\n"


@pytest.mark.parametrize(
    ("rule", "excluded"),
    [
        ("{image_size: 64}", 3),
        ("{image_size: {in: [32, 96]}}", 6),
        ("{image_size: {gt: 32, lt: 96}}", 3),
        ("{tokens: {ge: 16}}", 6),
        ("{tokens: {le: 4}}", 3),
        ("{method: topk}", 6),
        ("{method: {ne: topk}}", 3),
        ("{method: {re: ^to.e$}}", 3),
        ("{keep_rate: 0.5}", 3),
        ("{keep_rate: {ge: 0}}", 6),
        ("{r: {ne: 3}}", 3),
        ("{r: 4.0}", 3),
        ("{layers: [3, 6, 9], keep_rate: {lt: 0.6}, image_size: 32}", 1),
        ("{method: tome, keep_rate: 0.5}", 0),
        ("{model: {re: base}}", 0),
        ("{runtime: eager, image_size: 32}", 3),
        ("{replicate: 0, image_size: 32}", 3),
    ],
)
def test_rules_take_arms_out(expand: Expand, rule: str, excluded: int) -> None:
    """All keys of a rule must match; a parameter that an arm does not have never does."""
    expansion = expand(GRID + f"exclude: [{rule}]\n")
    assert expansion.excluded == excluded
    assert len(expansion.comparisons) == 9 - excluded


def test_rules_are_alternatives(expand: Expand) -> None:
    """An arm is out when any rule matches it; a point without arms is no point."""
    expansion = expand(GRID + "exclude: [{image_size: 32}, {keep_rate: 0.5}]\n")
    assert (expansion.points, expansion.excluded, len(expansion.comparisons)) == (2, 5, 4)


def test_a_rule_sees_what_the_arm_overrides(expand: Expand) -> None:
    """Rules look at the condition as the arm runs it, and at every step of a stack."""
    text = MODEL + "methods: [{method: topk, runtime: [eager, compile]}, {stack: [tome, {method: topk, keep_rate: 0.1}]}]\n"
    assert len(expand(text + "exclude: [{runtime: compile}]\n").comparisons) == 2
    assert len(expand(text + "exclude: [{method: topk, keep_rate: {lt: 0.5}}]\n").comparisons) == 2
    assert len(expand(text + "exclude: [{method: tome+topk}]\n").comparisons) == 2


def test_an_impossible_size_may_be_excluded(expand: Expand, fault: Fault) -> None:
    """A size that one model's patch does not divide is no error where a rule takes it out, and is one elsewhere."""
    text = "axes:\n  model: [deit_tiny_patch16_224, vit_base_patch32_224]\n  image_size: [32,\n    48]\n" + TOPK
    error = fault(text)
    assert (error.line, error.key) == (6, "axes.image_size[1]")
    assert "image_size 48 is not a multiple of vit_base_patch32_224's patch size 32; near by: 32 or 64" in error.problem
    assert expand(text + "exclude: [{model: {re: patch32}, image_size: 48}]\n").points == 3


def test_extra_points_are_not_filtered(expand: Expand) -> None:
    """An included point takes the rest from `defaults`, and no rule touches it."""
    text = GRID + "exclude: [{image_size: {ge: 0}}]\ninclude: [{image_size: 224, batch_size: 8, method: topk, keep_rate: 0.1}]\n"
    expansion = expand(text)
    assert len(expansion.jobs) == 1
    assert expansion.jobs[0].condition == Condition(model="deit_tiny_patch16_224", image_size=224, batch_size=8)
    assert arms(expansion) == ["dense", "topk(keep_rate=0.1, layers=[3,6,9])"]


def test_a_sweep_may_hold_extra_points_only(expand: Expand) -> None:
    """Without methods the axes span no grid; points of one condition share a job."""
    text = MODEL + "include: [{method: topk}, {stack: [tome], dtype: float16}, {method: tome, r: 2}]\n"
    expansion = expand(text)
    assert [(job.condition.dtype, len(job.arms)) for job in expansion.jobs] == [("float32", 3), ("float16", 2)]


# ---- jobs and limits ----


def test_rounds_repeat_every_job(expand: Expand) -> None:
    """With n rounds each job is there n times, round after round; comparisons stay what they are."""
    expansion = expand(GRID + "jobs: {latency: {rounds: 3}}\n")
    assert [job.round for job in expansion.jobs] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert len({job.job_id for job in expansion.jobs}) == 9
    assert len(expansion.comparisons) == 9


def test_big_blocks_are_split(expand: Expand) -> None:
    """No job has more arms than `arms_per_job`, each part has the baselines, and no pair is lost or doubled."""
    text = MODEL + "baselines: [dense, {runtime: compile}]\n"
    text += "methods: [{method: topk, keep_rate: {linspace: {start: 0.1, stop: 1, num: 19}}}, {method: dense, runtime: compile}]\n"
    expansion = expand(text + "limits: {arms_per_job: 8}\n")
    assert [len(job.arms) for job in expansion.jobs] == [8, 8, 8, 3]
    assert all(arms(expansion, job)[:2] == ["dense", "dense [runtime=compile]"] for job in range(4))
    ids = [comparison_id for job in expansion.jobs for comparison_id in job.comparison_ids()]
    assert len(ids) == len(set(ids)) == 19 * 2 + 1


SIZES = "image_size: {range: {start: 16, stop: 16000, step: 16}}"
SEEDS = "seed: {range: {start: 1, stop: 9999}}"


@pytest.mark.parametrize("axes", [f"{{{SIZES}}}", f"{{{SIZES}, {SEEDS}, threads: {{range: {{start: 1, stop: 9999}}}}}}"])
def test_too_many_jobs_stop_the_count_early(fault: Fault, axes: str) -> None:
    """A sweep larger than `max_jobs` is refused with the number reached, without walking through it."""
    error = fault(f"{MODEL}axes: {axes}\n{TOPK}limits:\n  max_jobs: 50\n")
    assert (error.line, error.key) == (7, "limits.max_jobs")
    assert "reached 51 jobs, more than limits.max_jobs: 50" in error.problem


def test_a_vast_grid_that_rules_empty_is_refused(fault: Fault) -> None:
    """Rules cannot make the walk through a grid endless."""
    error = fault(f"{MODEL}axes: {{{SIZES}, {SEEDS}}}\n{TOPK}exclude: [{{image_size: {{gt: 0}}}}]\nlimits: {{max_jobs: 50}}\n")
    assert "arms at points looked at" in error.problem


def test_too_many_arms_are_refused_before_they_are_built(fault: Fault) -> None:
    """The product of an entry's lists is counted, not built."""
    entry = "{method: topk, keep_rate: {linspace: {start: 0.1, stop: 1, num: 9000}}, replicate: {range: {start: 0, stop: 9000}}}"
    error = fault(f"{MODEL}methods: [{entry}]\n")
    assert error.key == "methods[0]"
    assert "expands to 81009000 arms" in error.problem


# ---- what is wrong, and where ----


@pytest.mark.parametrize(
    ("text", "line", "key", "told"),
    [
        ("axes:\n  modle: [x]\n" + TOPK, 4, "axes.modle", "did you mean 'model'?"),
        ("axes:\n  tokens: [4]\n" + TOPK, 4, "axes.tokens", "unknown key 'tokens'"),
        ("axes:\n  model: [deit_tny_patch16_224]\n" + TOPK, 4, "axes.model[0]", "did you mean 'deit_tiny_patch16_224'?"),
        ("axes:\n  image_size: 32\n" + TOPK, 3, "axes.model", "is missing; give it under `axes` or `defaults`"),
        ("axes:\n  model: deit_tiny_patch16_224\n" + TOPK, 3, "axes.image_size", "is missing"),
        (MODEL + "axes:\n  image_size: []\n" + TOPK, 5, "axes.image_size", "is empty"),
        (MODEL + "axes:\n  image_size:\n    - 32\n    - 40\n" + TOPK, 7, "axes.image_size[1]", "patch size 16; near by: 32 or 48"),
        (MODEL + "axes:\n  image_size: ['32']\n" + TOPK, 5, "axes.image_size[0]", "did you mean 32 (without quotes)?"),
        (MODEL + "axes:\n  image_size: [0]\n" + TOPK, 5, "axes.image_size[0]", "greater than 0"),
        (BATCH + "[true]\n" + TOPK, 5, "axes.batch_size[0]", "needs a whole number, not true"),
        (MODEL + "axes:\n  dtype: [float32, bf16]\n" + TOPK, 5, "axes.dtype[1]", "did you mean 'bfloat16'?"),
        (MODEL + "axes:\n  device: [gpu]\n" + TOPK, 5, "axes.device[0]", "not one of cpu, cuda"),
        (BATCH + "{range: {start: 4, stop: 1}}\n" + TOPK, 5, "axes.batch_size.range", "is empty"),
        (BATCH + "{range: {start: 1, stop: 4, step: 0}}\n" + TOPK, 5, "axes.batch_size.range", "step is 0"),
        (BATCH + "{range: {start: 1, stop: 1000000000}}\n" + TOPK, 5, "axes.batch_size.range", "more than 10000"),
        (BATCH + "{range: {start: 1, stop: 3, step: 0.5}}\n" + TOPK, 5, "axes.batch_size.range", "whole number"),
        (BATCH + "{range: {start: 1, stp: 3}}\n" + TOPK, 5, "axes.batch_size.range.stp", "did you mean 'stop'?"),
        (BATCH + "{rnge: {start: 1}}\n" + TOPK, 5, "axes.batch_size.rnge", "did you mean 'range'?"),
        (BATCH + "{range: 3}\n" + TOPK, 5, "axes.batch_size.range", "start, stop, step"),
        (BATCH + "{}\n" + TOPK, 5, "axes.batch_size", "exactly one of"),
        (BATCH + "{each: 3}\n" + TOPK, 5, "axes.batch_size.each", "needs a list"),
        (BATCH + "{logspace: {start: 0, stop: 4}}\n" + TOPK, 5, "axes.batch_size.logspace.start", "greater than 0"),
        (MODEL + "axes: {weights: random,\n  pretrained: true}\n" + TOPK, 5, "axes.pretrained", "sets `weights` a second time"),
        (MODEL + "axes: {pretrained: 1}\n" + TOPK, 4, "axes.pretrained", "needs true or false"),
        (MODEL + "axes:\n  checkpoint: random\n" + TOPK, 5, "axes.checkpoint", "write `weights: random`"),
        (MODEL + "axes:\n  checkpoint: nowhere.pt\n" + TOPK, 5, "axes.checkpoint", "'nowhere.pt' cannot be read: No such file"),
        ("defaults: {model: [deit_tiny_patch16_224]}\n" + TOPK, 3, "defaults.model", "several go under `axes`"),
        (MODEL + "methods: []\n", 4, "methods", "nothing to measure"),
        (ENTRY + "{method: tokp}\n", 5, "methods[0].method", "unknown method 'tokp'; did you mean 'topk'?"),
        (ENTRY + "{method: [topk, tome]}\n", 5, "methods[0].method", "one entry each"),
        (ENTRY + "{methd: topk}\n", 5, "methods[0].methd", "did you mean 'method'?"),
        (ENTRY + "{keep_rate: 0.5}\n", 5, "methods[0]", "names no method"),
        (ENTRY + "method: topk\n    keep_rat: 0.5\n", 6, "methods[0].keep_rat", "did you mean 'keep_rate'?"),
        (ENTRY + "method: topk\n    keep_rate: '0.5'\n", 6, "methods[0].keep_rate", "did you mean 0.5"),
        (ENTRY + "method: topk\n    keep_rate: true\n", 6, "methods[0].keep_rate", "needs a number, not true"),
        (ENTRY + "method: topk\n    keep_rate:\n      - 0.5\n      - 2\n", 8, "methods[0].keep_rate[1]", "equal to 1, not 2"),
        (ENTRY + "method: topk\n    layers:\n      - 3\n      - x\n", 8, "methods[0].layers[1]", "whole number"),
        (ENTRY + "method: topk\n    layers: 3\n", 6, "methods[0].layers", "needs a list, not 3"),
        (ENTRY + "method: topk\n    layers: [3,\n     40]\n", 5, "methods[0]", "layer 40 is beyond"),
        (ENTRY + "{method: mask}\n", 5, "methods[0].blocks", "is missing"),
        (ENTRY + "{method: topk, runtim: eager}\n", 5, "methods[0].runtim", "did you mean 'runtime'?"),
        (ENTRY + "{method: topk, runtime: egaer}\n", 5, "methods[0].runtime", "did you mean 'eager'?"),
        (ENTRY + "{method: topk, batch_size: 2}\n", 5, "methods[0].batch_size", "unknown key"),
        (ENTRY + "{method: dense, replicate: -1}\n", 5, "methods[0].replicate", "greater than or equal to 0"),
        (ENTRY + "{method: dense, image_size: [16,\n    20]}\n", 6, "methods[0].image_size[1]", "patch size 16"),
        (ENTRY + "{stack: []}\n", 5, "methods[0].stack", "the empty stack is `method: dense`"),
        (ENTRY + "{stack: [dense]}\n", 5, "methods[0].stack[0]", "`dense` is the empty stack"),
        (ENTRY + "{stack: [{keep_rate: 1}]}\n", 5, "methods[0].stack[0]", "needs `method: NAME`"),
        (ENTRY + "{stack: [topk], method: tome}\n", 5, "methods[0].method", "stands beside `stack`"),
        (ENTRY + "{stack: [{method: topk, dtype: float16}]}\n", 5, "methods[0].stack[0].dtype", "unknown key 'dtype'"),
        (ENTRY + "{stack: [topk], keep_rate: 0.5}\n", 5, "methods[0].keep_rate", "unknown key 'keep_rate'"),
        (MODEL + TOPK + "baselines:\n  - {runtim: eager}\n", 6, "baselines[0].runtim", "did you mean 'runtime'?"),
        (MODEL + TOPK + "baselines: [dens]\n", 5, "baselines[0].method", "did you mean 'dense'?"),
        (MODEL + TOPK + "baselines: [{method: dense, replicate: [1, 2]}]\nlimits: {arms_per_job: 2}\n", 5, "baselines", "no room"),
        (GRID + "zip:\n  - [image_size, topk.keep_rate]\n", 7, "zip[0]", "image_size has 3 values, but topk.keep_rate has 2"),
        (GRID + "zip:\n  - [image_size, topk.keep_rat]\n", 7, "zip[0][1]", "did you mean 'topk.keep_rate'?"),
        (GRID + "zip:\n  - [image_size]\n", 7, "zip[0]", "at least two keys"),
        (GRID + "zip:\n  - [image_size, image_size]\n", 7, "zip[0][1]", "moves in a group already"),
        (GRID + "exclude:\n  - {keep_rat: 0.5}\n", 7, "exclude[0].keep_rat", "did you mean 'keep_rate'?"),
        (GRID + "exclude:\n  - {blocks: 2}\n", 7, "exclude[0].blocks", "unknown key 'blocks'"),
        (GRID + "exclude:\n  - {method: tokp}\n", 7, "exclude[0].method", "did you mean 'topk'?"),
        (GRID + "exclude:\n  - {dtype: {in: [bf16]}}\n", 7, "exclude[0].dtype.in[0]", "did you mean 'bfloat16'?"),
        (GRID + "exclude:\n  - {image_size: {gte: 3}}\n", 7, "exclude[0].image_size.gte", "did you mean 'gt'?"),
        (GRID + "exclude:\n  - {image_size: {ge: '3'}}\n", 7, "exclude[0].image_size.ge", "needs a number"),
        (GRID + "exclude:\n  - {image_size: [32, 64]}\n", 7, "exclude[0].image_size", "did you mean {in: […]}?"),
        (GRID + "exclude:\n  - {image_size: {in: 32}}\n", 7, "exclude[0].image_size.in", "needs a list"),
        (GRID + "exclude:\n  - {model: {re: '['}}\n", 7, "exclude[0].model.re", "is no regular expression"),
        (GRID + "exclude:\n  - {model: {re: 3}}\n", 7, "exclude[0].model.re", "in quotes"),
        (GRID + "exclude:\n  - {model: {}}\n", 7, "exclude[0].model", "needs one of in, ge"),
        (GRID + "exclude:\n  - {}\n", 7, "exclude[0]", "would exclude everything"),
        (GRID + "exclude:\n  - {image_size: {ge: 0}}\n", 6, "exclude", "nothing is left to measure"),
        (MODEL + "include:\n  - {image_size: 40, method: topk}\n", 5, "include[0].image_size", "patch size 16"),
        (MODEL + "include:\n  - {method: topk, batch_sze: 2}\n", 5, "include[0].batch_sze", "unknown key"),
        (MODEL + "include:\n  - {batch_size: 2}\n", 5, "include[0]", "names no method"),
        ("include:\n  - {image_size: 32, method: topk}\n", 4, "include[0].model", "is missing"),
    ],
)
def test_wrong_sweeps(fault: Fault, text: str, line: int, key: str, told: str) -> None:
    """Every wrong sweep ends with one message that names file, line and key, and what would be right."""
    error = fault(text)
    assert (error.line, error.key) == (line, key)
    assert told in error.problem
    assert str(error) == f"trial.yaml:{line}: {key}: {error.problem}"


words = st.sampled_from(["model", "image_size", "deit_tiny_patch16_224", "method", "topk", "dense", "keep_rate", "range", "in"])
plain = words | st.integers(-2, 64) | st.floats(0, 2, width=16) | st.booleans() | st.none()
anything = st.recursive(plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3), max_leaves=8)
KEYS = ["defaults", "axes", "methods", "baselines", "zip", "exclude", "include", "jobs", "retry", "limits", "name", "question"]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from(KEYS), anything, max_size=3))
def test_any_content_expands_or_is_refused(expand: Expand, changes: dict[str, Any]) -> None:
    """Whatever stands under the keys of a sweep, it expands or is refused with a `SweepError`."""
    sweep = {"name": "trial", "defaults": {"model": "deit_tiny_patch16_224", "image_size": 32}, "methods": ["topk"], **changes}
    text = "".join(f"{key}: {json.dumps(value)}\n" for key, value in sweep.items())
    try:
        expansion = expand("schema: 1\n" + text)
    except SweepError as error:
        assert str(error).startswith("trial.yaml")  # noqa: PT017 - refusing is as right as expanding
    else:
        assert expansion.jobs
        assert expansion.comparisons
