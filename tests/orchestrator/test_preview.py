"""What `plan` shows of arms before anything runs: tokens, MACs, and what a sweep requests in
vain.
"""

import json
import re
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from orchestrator.plan.planning import load_sweep
from orchestrator.plan.preview import MAX_ROWS, preview, preview_lines
from sweeps.language.yaml_reader import SweepError
from tests.orchestrator.commands import ROOT, breakeven, in_process

HEAD = (
    "schema: 1\nname: trial\nquestion: What will it do?\ndefaults: {device: cpu, model:"
    " deit_tiny_patch16_224}\n"
)
GRID = HEAD + "axes: {image_size: [64, 224]}\n"
AT_224 = HEAD + "axes: {image_size: [224]}\n"
MODEL = "deit_tiny_patch16_224"
RATE_TOLERANCE = (
    "methods: [{method: topk, keep_rate: 0.5}, {method: random, keep_rate: 0.5}, {method: tome, r:"
    " 1}]\n"
)
MILD = "methods: [{method: topk, keep_rate: [0.5, 0.999]}, {method: tome, r_ratio: 0.001}]\n"
LANGUAGE = "methods: [{method: topk_activation, sparsity: 0.5}, {method: adaptivocab, ngrams: 5}]\n"


def shown(text: str):
    return preview(load_sweep("trial.yaml", auto="cpu", text=text))


def warned(text: str) -> list[str]:
    return list(shown(text).warnings)


def test_plan_prints_tokens_and_macs_of_each_arm(tmp_path: Path) -> None:
    """At the smallest and the largest size every arm stands with its tokens per block and GMACs,
    equal ones in one row.
    """
    (tmp_path / "sweep.yaml").write_text(GRID + RATE_TOLERANCE)
    lines = breakeven("plan", "sweep.yaml", folder=tmp_path).stdout.splitlines()
    assert [line for line in lines if line.startswith("deit")] == [
        f"{MODEL}, 64 pixels:",
        f"{MODEL}, 224 pixels:",
    ]
    (topk,) = (
        line for line in lines if line.strip().startswith("topk keep_rate=0.5") and "197" in line
    )
    assert "197 x3, 99 x3, 50 x3, 26 x3" in topk
    assert "0.622" in topk
    assert any(
        line.split()[:1] == ["dense"] and line.split()[1:] == ["197", "x12", "1.254"]
        for line in lines
    )


def test_plan_as_json_has_every_arm(tmp_path: Path) -> None:
    """The same as data: tokens of each block, GMACs of the network and of the method, and the
    warnings.
    """
    (tmp_path / "sweep.yaml").write_text(
        AT_224 + "methods: [{method: tome, r: [8, 13]}]\nexclude: [{r: 9}]\n"
    )
    done = breakeven("plan", "sweep.yaml", "--format", "json", folder=tmp_path)
    plan = json.loads(done.stdout)
    assert [(arm["arm"], arm["image_size"], arm["tokens"][:2]) for arm in plan["arms"]] == [
        ("dense", 224, [197, 197]),
        ("tome r=8", 224, [189, 181]),
        ("tome r=13", 224, [184, 171]),
    ]
    assert plan["arms"][0]["gmacs"] > plan["arms"][1]["gmacs"] > plan["arms"][2]["gmacs"] > 0.7
    assert [warning.split(": ")[:2] for warning in plan["warnings"]] == [
        ["sweep.yaml:7", "exclude[0]"]
    ]
    assert done.stderr.splitlines() == [f"warning: {warning}" for warning in plan["warnings"]]


@pytest.mark.parametrize(
    ("stack", "fails"),
    [
        ("{method: larosa, sparsity: 0.5}, {method: teal, sparsity: 0.5}", True),
        ("{method: larosa, sparsity: 0.5}, {method: adaptivocab, ngrams: 5}", True),
        ("{method: adaptivocab, ngrams: 5}, {method: larosa, sparsity: 0.5}", False),
    ],
)
def test_stacks_that_are_known_to_fail_are_refused(stack: str, fails: bool) -> None:
    """Two methods cannot replace the same matrices, and a vocabulary cannot be adapted behind one
    that did.
    """
    head = (
        "schema: 1\nname: trial\ndefaults: {device: cpu, model: tiny_lm, prompt_tokens: 8,"
        " new_tokens: 8}\n"
    )
    with pytest.raises(SweepError) if fails else nullcontext():
        assert shown(f"{head}methods: [{{stack: [{stack}]}}]\n").counted


def test_a_store_that_holds_nothing_yet_is_planned_for(tmp_path: Path) -> None:
    """While a first run creates the store, its file is there and empty: `plan` shows that nothing
    is answered.
    """
    (tmp_path / "sweep.yaml").write_text(AT_224 + "methods: [{method: tome, r: 8}]\n")
    (tmp_path / "breakeven.db").touch()
    done = breakeven("plan", "sweep.yaml", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "0 of 1 comparison is answered" in done.stdout
    assert (tmp_path / "breakeven.db").stat().st_size == 0


def test_values_that_merge_into_one() -> None:
    """More than half of the tokens cannot go, so r of 99, 150 and 500 are one arm; values that
    differ somewhere are not named.
    """

    def merging(text: str) -> list[str]:
        return [warning for warning in warned(text) if "leave the same tokens" in warning]

    (warning,) = merging(AT_224 + "methods:\n  - method: tome\n    r: [50, 99, 150, 500]\n")
    assert warning.startswith(
        "trial.yaml:8: methods[0].r: r=99, r=150 and r=500 leave the same tokens in every block at "
    )
    assert warning.endswith("they are one arm measured 3 times")
    assert merging(GRID + "methods: [{method: tome, r: [33, 40]}]\n") == []
    assert warned(AT_224 + "methods: [{method: random, keep_rate: 0.5, seed: [0, 1]}]\n") == []


def test_amounts_that_remove_nothing() -> None:
    """A keep rate or share too mild to remove a token at any size is named; a control with nothing
    to remove on purpose is not.
    """
    topk, tome = warned(GRID + MILD)
    assert topk.startswith(
        f"trial.yaml:6: methods[0].keep_rate: keep_rate=0.999 removes no token at {MODEL}, 64"
        " pixels"
    )
    assert "methods[1].r_ratio: r_ratio=0.001 removes no token" in tome
    assert (
        warned(
            GRID + "methods: [{method: topk, keep_rate: 1}, {method: tome, r: 0}, {method: pitome,"
            " r_ratio: 0.0}]\n"
        )
        == []
    )


def test_a_capped_amount() -> None:
    """An r above half of the tokens is named with the blocks in which fewer merge; a milder one, a
    share and a budget are not.
    """
    (warning,) = warned(AT_224 + "methods:\n  - method: tome\n    r: [13, 120]\n")
    assert warning.startswith("trial.yaml:8: methods[0].r: ")
    assert "12 of 12 blocks" in warning
    (early,) = warned(AT_224 + "methods: [{method: hquota, r: 100, layers: early}]\n")
    assert "3 of 12 blocks" in early
    (both,) = warned(GRID + "methods: [{method: tome, r: 120}]\n")
    assert both.count("12 of 12 blocks") == 2
    assert warned(GRID + "methods: [{method: tome, r: 5}]\n") == []
    assert (
        warned(
            AT_224
            + "methods: [{method: tome, r: 13}, {method: pitome, r_ratio: 0.5}, {method: tome,"
            " budget: {gmacs: 0.3}}]\n"
        )
        == []
    )


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (
            "defaults: {model: llama-15m, new_tokens: 4, prompt_tokens: 8}\n"
            f"{LANGUAGE}jobs: {{generation: {{}}, quality: {{}}}}\n",
            1,
        ),
        (
            "defaults: {model: digits_vit_64, weights: trained}\nmethods: [{method: tome, r: 3}]\n"
            "jobs: {accuracy: {}}\n",
            0,
        ),
    ],
)
def test_quality_of_random_weights(text: str, count: int) -> None:
    """Random weights have no accuracy and no quality that a method could cost: the section that
    requests it is named.
    """
    found = warned("schema: 1\nname: trial\n" + text)
    assert len(found) == count
    assert [warning.split(": ")[1] for warning in found] == [
        f"jobs.{'accuracy' if 'accuracy' in text else 'quality'}"
    ] * count


def test_the_readmes_own_sweeps_warn_of_nothing() -> None:
    """What README shows as a sweep to copy is planned without a warning."""
    texts = re.findall(
        r"```yaml\n(schema: 1\n.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL
    )
    assert len(texts) >= 2
    for text in texts:
        assert warned(text) == [], text


def test_budgets_out_of_reach() -> None:
    """A budget that no size can keep to is an error with the range; one that only some sizes can is
    a warning.
    """
    with pytest.raises(
        SweepError,
        match=(
            r"trial.yaml:8: methods\[1\].budget: tome: a budget of 50 GMACs is out of reach at 64"
        ),
    ):
        shown(
            GRID + "methods:\n  - {method: tome, r: 1}\n  - {method: tome, budget: {gmacs: 50}}\n"
        )
    (warning,) = warned(GRID + "methods:\n  - {method: tome, budget: {gmacs: 0.7}}\n")
    assert warning.startswith(
        "trial.yaml:7: methods[0].budget: tome: a budget of 0.7 GMACs is out of reach at 64 pixels"
    )
    assert "any r gives between" in warning


def test_rules_and_groups_without_effect() -> None:
    """A rule that matches no arm, and a group under `zip` that ties or moves nothing."""
    arms = "methods: [{method: topk, keep_rate: [0.5, 0.7]}, {method: tome, r: [1, 2]}]\n"
    (rule,) = warned(
        GRID + arms + "exclude:\n  - {keep_rate: 0.5, image_size: 64}\n  - {keep_rate: 0.6}\n"
    )
    assert (
        rule == "trial.yaml:9: exclude[1]: takes out nothing: no arm at any point matches this rule"
    )
    (tie,) = warned(GRID + arms + "zip:\n  - [topk.keep_rate, tome.r]\n")
    assert tie.startswith("trial.yaml:8: zip[0]: ties nothing")
    (idle,) = warned(
        GRID.replace("224]", "224], batch_size: [1], threads: [1]")
        + arms
        + "zip:\n  - [batch_size, threads]\n"
    )
    assert idle.startswith("trial.yaml:8: zip[0]: moves nothing")
    assert warned(GRID + arms + "zip: [[image_size, tome.r]]\n") == []
    overlapping = "exclude: [{image_size: 64}, {image_size: {le: 64}}]\n"
    assert warned(GRID + arms + overlapping) == []


def test_what_only_the_worker_can_count() -> None:
    """Models of the hub, and arms with another tokenizer, are counted when they run; language arms
    show MACs of one sequence.
    """
    head = (
        "schema: 1\nname: trial\nquestion: Why?\ndefaults: {device: cpu, prompt_tokens: 64,"
        " new_tokens: 8}\n"
    )
    local = shown(head + "axes: {model: [llama-15m]}\n" + LANGUAGE)
    assert [one.gmacs is None for one in local.counted] == [False, False, True]
    assert local.counted[0].gmacs > local.counted[1].gmacs > 0
    assert any("counted when run" in line for line in preview_lines(local))
    hub = shown(
        head + "axes: {model: [someone/something]}\nmethods: [{method: dense, kv_cache: static}]\n"
    )
    assert {one.gmacs for one in hub.counted} == {None}


def test_batches_leave_out_nothing() -> None:
    """Rows are skipped for one sequence only: with several, a sparse arm's MACs in the plan are the
    unmodified model's.
    """
    head = (
        "schema: 1\nname: trial\nquestion: Why?\ndefaults: {device: cpu, model: llama-15m,"
        " prompt_tokens: 64, new_tokens: 8}\n"
    )
    text = (
        head + "axes: {batch_size: [1, 4]}\nmethods: [{method: topk_activation, sparsity: 0.5}]\n"
    )
    one, batch = (
        [each.gmacs for each in shown(text).counted if each.workload.sequences == count]
        for count in (1, 4)
    )
    assert one[0] == batch[0] == batch[1] > one[1]


def test_many_arms_stay_a_page() -> None:
    """Of a hundred arms so many rows are printed, and how many are not."""
    text = (
        AT_224
        + "methods: [{method: topk, keep_rate: {linspace: {start: 0.1, stop: 0.9, num: 100}}}]\n"
    )
    text += "jobs: {latency: {passes: 12}}\n"
    lines = list(preview_lines(shown(text)))
    assert len(lines) == MAX_ROWS + 3
    assert "more rows; --format json has all" in lines[-1]


@pytest.mark.parametrize(
    ("data", "job", "limits"),
    [
        ("digits", "accuracy: {images: 100}", ["5 points", "1,917 images"]),
        ('"imagefolder:photos"', "accuracy: {}", []),
    ],
)
def test_a_plan_names_what_so_many_images_cannot_show(
    data: str, job: str, limits: list[str], tmp_path: Path
) -> None:
    """Below 1,917 images no two arms can be `same` within 0.2 points; the smallest drop that can be
    shown stands with it.
    """
    for label in range(10):
        (tmp_path / "photos" / str(label)).mkdir(parents=True)
        (tmp_path / "photos" / str(label) / "1.png").write_bytes(b"")
    head = (
        HEAD.replace(MODEL, "digits_vit_64")
        + f"methods: [{{method: topk, keep_rate: 0.5}}]\njobs: {{{job}}}\n"
    )
    text = head.replace("device: cpu", f"device: cpu, weights: trained, data: {data}").replace(
        "photos", f"{tmp_path}/photos"
    )
    found = preview(load_sweep(str(tmp_path / "trial.yaml"), auto="cpu", text=text)).limits
    assert len(found) == bool(limits)
    assert [limit in found[0] for limit in limits] == [True] * len(limits)


def test_a_plan_names_text_that_is_too_short() -> None:
    """Four windows have no interval, whatever they are of."""
    head = (
        "schema: 1\nname: trial\nquestion: Q?\ndefaults: {device: cpu, model: tiny_lm, weights:"
        " trained, data: docs}\n"
    )
    found = {
        characters: (
            shown(f"{head}jobs: {{quality: {{characters: {characters}}}}}\n{LANGUAGE}").limits
        )
        for characters in (1500, 100_000)
    }
    assert [len(limits) for limits in found.values()] == [1, 0]


def test_plan_states_what_run_refuses_here(tmp_path: Path) -> None:
    """A GPU that is not there is one line beside the plan, unless its jobs are written for another
    machine; `run` refuses it with the same reason. More threads than cores are a warning.
    """
    (tmp_path / "sweep.yaml").write_text(
        GRID.replace("cpu", "cuda") + "methods: [{method: tome, r: 1}]\n"
    )
    planned, ran = (
        in_process(command, "sweep.yaml", folder=tmp_path) for command in ("plan", "run")
    )
    reason = "the sweep requires device cuda, and there is only cpu"
    assert (planned.returncode, ran.returncode) == (0, 2)
    assert f"`run` refuses this here: {reason}" in planned.stderr
    assert f"breakeven: {reason}" in ran.stderr
    elsewhere = breakeven("plan", "sweep.yaml", "--jobs", "jobs", folder=tmp_path)
    assert "refuses" not in elsewhere.stderr
    (tmp_path / "sweep.yaml").write_text(
        GRID.replace("cpu", "cpu, threads: 5000") + "methods: [{method: tome, r: 1}]\n"
    )
    crowded = breakeven("plan", "sweep.yaml", folder=tmp_path)
    assert "warning: threads: 5000 is more than the" in crowded.stderr


def test_runtimes_that_are_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every comparison needs one the plan names it and `run` refuses it at once; where some
    do, both warn.
    """
    for package in ("onnxruntime", "onnxscript"):
        monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    reason = "onnxruntime and onnxscript are not installed here: uv sync --extra runtimes"
    for methods, line in (
        (
            "[{method: dense, runtime: onnxruntime}]",
            f"every comparison requires runtime onnxruntime, but {reason}",
        ),
        (
            "[{method: dense, runtime: onnxruntime}, {method: tome, r: 1}]",
            f"arms with runtime onnxruntime will be `unsupported`: {reason}",
        ),
    ):
        (tmp_path / "sweep.yaml").write_text(f"{GRID}methods: {methods}\n")
        assert line in breakeven("plan", "sweep.yaml", folder=tmp_path).stderr
    (tmp_path / "sweep.yaml").write_text(
        f"{GRID}methods: [{{method: dense, runtime: onnxruntime}}]\n"
    )
    ran = in_process("run", "sweep.yaml", folder=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert f"every comparison requires runtime onnxruntime, but {reason}" in ran.stderr
