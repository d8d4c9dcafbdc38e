"""The sweeps that ship: each is expanded with the real methods and the catalogue, and every arm of
it could run.
"""

import hashlib
import json
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from sweeps.geometry.llm_geometry import languages
from sweeps.geometry.vit_catalogue import networks
from sweeps.language.expand import Expansion, expand_file
from workers import methods
from workers.arms.budget import cost, solve

FOLDER = Path(__file__).parents[2] / "sweeps"
FILES = sorted(path.name for path in FOLDER.glob("*.yaml"))
PINNED = json.loads(Path(__file__).with_name("questions.json").read_text())
"""The questions of the sweeps that shipped, in order: their number and a digest of their
identities."""
SKIPPING = ("larosa", "teal", "topk_activation", "wina")
LANGUAGE = [name for name in FILES if name.startswith("llm_")]
ON_GPU = ("tr_batch_and_size", "tome_vs_ours_early", "full_depth_2.7g", "flops_saved")


@cache
def expanded(name: str) -> Expansion:
    return expand_file(
        FOLDER / name, methods=methods.all_methods(), networks=networks(), auto="cpu"
    )


def once(name):
    """The jobs of the first pass: of those in several, each condition is measured once in every one
    of them.
    """
    jobs = expanded(name).jobs
    turns = Counter(job.round for job in jobs if job.protocol.passes > 1)
    assert len(set(turns.values())) <= 1
    return [job for job in jobs if not job.round]


def traces(name, method):
    """The tokens that the distinct arms of a method promise, in the order of the file."""
    found = {}
    for job in expanded(name).jobs:
        network = networks()[job.condition.model]
        for arm in job.arms:
            if arm.method == method:
                size = arm.condition(job.condition).image_size
                found[arm] = methods.promised_tokens(solve(arm, network, size).arm, network, size)
    return list(found.values())


def unskipped(step):
    return step.method == "topk_activation" and step.params["sparsity"] == 0


@pytest.mark.parametrize("file", PINNED)
def test_shipped_sweeps_keep_their_questions(file):
    """Every question of a shipped sweep has its pinned identity, so that no stored answer is lost
    unnoticed.
    """
    questions = [comparison.question_id for comparison in expanded(file).comparisons]
    digest = hashlib.sha256("\n".join(questions).encode()).hexdigest()
    assert {"questions": len(questions), "digest": digest} == PINNED[file]


@pytest.mark.parametrize("file", FILES)
def test_every_arm_can_run(file):
    """The file is valid, is named like its sweep, and no arm is refused or has a budget out of
    reach; nothing is duplicate, unless two baselines are one under some condition.
    """
    expansion = expanded(file)
    assert expansion.sweep.name == file.removesuffix(".yaml")
    assert expansion.sweep.question.endswith("?")
    assert not expansion.duplicates or len(expansion.sweep.baselines) > 1
    for job in expansion.jobs:
        for arm in job.arms:
            if job.kind in ("generation", "quality"):
                assert methods.stack_refusal(arm, languages()[job.condition.model]) is None
            elif job.kind == "call":
                assert {step.code.partition(":")[0] for step in arm.stack} <= job.files.keys()
            else:
                assert solve(
                    arm, networks()[job.condition.model], arm.condition(job.condition).image_size
                )


@pytest.mark.parametrize(
    "file", [name for name in LANGUAGE if "larosa" in (FOLDER / name).read_text()]
)
def test_sparsity_is_measured_against_our_own_dense_kernel(file):
    """Where rows are skipped, the same kernel that skips none is a baseline: else threads or layout
    would be sold as sparsity.
    """
    for job in expanded(file).jobs:
        skipping = {
            index
            for index, arm in enumerate(job.arms)
            if any(step.method in SKIPPING for step in arm.stack)
        }
        (control,) = (
            index
            for index, arm in enumerate(job.arms)
            if [step for step in arm.stack if unskipped(step)]
        )
        assert {arm for baseline, arm in job.pairs if baseline == control} >= skipping - {control}


def test_language_on_a_cpu_has_speed_and_quality_of_the_same_arms():
    """`llm_cpu.yaml` measures every method, alone and together, in both kinds of jobs, so that
    their join is never empty.
    """
    jobs = {job.kind: job for job in expanded("llm_cpu.yaml").jobs}
    assert set(jobs) == {"generation", "quality"}
    assert {arm.method for arm in jobs["generation"].arms} >= {
        "larosa",
        "teal",
        "adaptivocab",
        "adaptivocab+larosa",
    }
    stacks = {kind: {str(arm.stack) for arm in job.arms} for kind, job in jobs.items()}
    assert stacks["quality"] <= stacks["generation"]


@pytest.mark.parametrize("name", ON_GPU)
def test_each_gpu_sweep_has_a_twin_for_the_cpu(name):
    """The twin has the same methods, in at most 20 jobs of a model that a CPU can run, on the CPU
    only.
    """
    large, small = expanded(f"{name}.yaml"), expanded(f"{name}_cpu.yaml")
    assert {job.condition.device for job in large.jobs} == {"cuda"}
    assert {job.condition.device for job in small.jobs} == {"cpu"}
    assert {arm.method for job in large.jobs for arm in job.arms} == {
        arm.method for job in small.jobs for arm in job.arms
    }
    assert len(once(f"{name}_cpu.yaml")) <= 20


@pytest.mark.parametrize("name", ["tome_vs_ours_early.yaml", "tome_vs_ours_early_cpu.yaml"])
def test_early_arms_have_equal_tokens(name):
    """For each r, ToMe and hquota leave equally many tokens in the first three blocks, and none
    goes after those.
    """
    tome, ours = traces(name, "tome"), traces(name, "hquota")
    assert len(tome) == len(ours) == 6
    assert tome == ours
    assert all(trace[3:] == (trace[3],) * (len(trace) - 3) for trace in tome)


@pytest.mark.parametrize("name", ["full_depth_2.7g.yaml", "full_depth_2.7g_cpu.yaml"])
def test_all_methods_at_one_price(name):
    """Every arm with a budget costs 2.70 GMACs or at most 1 % less, its own part included; the
    small image and r=13 about that.
    """
    job = expanded(name).jobs[0]
    network = networks()[job.condition.model]
    spent = []
    for arm in job.arms:
        size = arm.condition(job.condition).image_size
        gmacs = cost(solve(arm, network, size).arm, network, size) / 1e9
        if any(step.params.get("budget") for step in arm.stack):
            assert 2.673 < gmacs <= 2.7
            spent.append(arm.method)
        elif arm.overrides.image_size or any(step.params.get("r") for step in arm.stack):
            assert gmacs == pytest.approx(2.7, abs=0.1)
    assert sorted(spent) == ["hquota", "random", "tome", "topk"]
