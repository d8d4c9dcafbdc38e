"""From a sweep file to jobs and comparisons: arms and their identities, baselines, and how points
become jobs.
"""

import hashlib
from pathlib import Path

import pytest

from sweeps.language.expand import expand_file
from sweeps.model.condition import Condition, Rectangle
from sweeps.model.job import DENSE, Job, Pair, Protocol
from tests.fixtures.quickstart import QUICKSTART
from tests.sweeps.conftest import METHODS, MODEL, NETWORKS, TOPK, Expand, Refusal, arms

WIDE = Rectangle(height=64, width=96)

# ---- the example of the issue ----


def test_the_quickstart_expands_to_one_job_per_size(expand: Expand) -> None:
    """Each size is one job that measures four arms beside the unmodified model; `device: auto`
    gives the questions of the device that it stands for.
    """
    expansion = expand(QUICKSTART)
    written = expand(QUICKSTART.replace("device: auto", "device: cpu"))
    assert [job.job_id for job in written.jobs] == [job.job_id for job in expansion.jobs]
    assert (len(expansion.jobs), expansion.points, len(expansion.comparisons)) == (8, 8, 32)
    assert (expansion.excluded, expansion.duplicates, expansion.document.text) == (0, 0, QUICKSTART)
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


# ---- arms and their identities ----


def test_one_way_of_running_is_one_arm(expand: Expand) -> None:
    """`keep_rate: 1`, `1.0` and spelled-out defaults are one arm, as are a parameter left out and
    the same default written down.
    """
    spelled = "{method: topk, keep_rate: 1.0, layers: {list: [3, 6, 9]}}"
    both = expand(MODEL + f"methods: [{{method: topk, keep_rate: [1, 1.0]}}, {spelled}]\n")
    assert len(both.comparisons) == 1
    assert both.duplicates == 2
    written = "methods: [topk, {method: topk}, {method: topk, keep_rate: 0.7}]\n"
    assert len(expand(MODEL + written).comparisons) == 1


def test_comparisons_of_a_sweep_are_distinct(expand: Expand) -> None:
    """Whatever is requested twice, over axes, methods and extra points, is measured once and
    counted.
    """
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
    text = (
        MODEL
        + "axes: {runtime: [eager, compile]}\nmethods: [{method: topk, runtime: eager}, topk]\n"
    )
    expansion = expand(text)
    assert [len(job.arms) for job in expansion.jobs] == [2, 3]
    assert arms(expansion, 1)[1] == "topk(keep_rate=0.7, layers=[3,6,9]) [runtime=eager]"


def test_a_parameter_goes_before_an_override_of_its_name(expand: Expand) -> None:
    """A method with a parameter called dtype gets it; the condition's dtype stays."""
    step = expand(MODEL + "methods: [{method: mask, blocks: 2, dtype: int4}]\n").jobs[0].arms[1]
    assert step.stack[0].params == {"blocks": 2, "dtype": "int4", "mode": None}
    assert step.overrides.dtype is None


def test_stacks_keep_their_order(expand: Expand) -> None:
    """A stack is an ordered list of methods, with overrides beside it."""
    entries = (
        "  - stack: [{method: topk, keep_rate: [0.5, 0.7]}, tome]\n    runtime: compile\n  - stack:"
        " [tome, {method: topk}]\n"
    )
    expansion = expand(f"{MODEL}methods:\n{entries}")
    stacks = ["dense", "topk+tome", "topk+tome", "tome+topk"]
    assert [arm.method for arm in expansion.jobs[0].arms] == stacks
    assert expansion.jobs[0].arms[1].overrides.runtime == "compile"


# ---- baselines ----


def test_every_arm_is_compared_with_every_baseline_but_itself(expand: Expand) -> None:
    """Baselines come first in the job, an arm that is a baseline is there once, and no pair names
    one arm twice.
    """
    text = MODEL + "axes: {runtime: [compile]}\nbaselines: [dense, {runtime: eager}]\n"
    job = expand(text + "methods: [{method: dense, runtime: eager}, topk]\n").jobs[0]
    assert [str(arm) for arm in job.arms] == [
        "dense",
        "dense [runtime=eager]",
        "topk(keep_rate=0.7, layers=[3,6,9])",
    ]
    assert job.pairs == (Pair(0, 1), Pair(0, 2), Pair(1, 2))


def test_the_baseline_against_itself_needs_a_replicate(expand: Expand, refusal: Refusal) -> None:
    """An arm that is its baseline everywhere is an error that shows the way to an A/A test; a
    replicate is one.
    """
    error = refusal(f"{MODEL}methods:\n  - topk\n  - {{method: dense, runtime: eager}}\n")
    assert (error.line, error.key) == (6, "methods[1]")
    assert "for an A/A test write `replicate: 1`" in error.problem
    replicated = expand(MODEL + "methods: [{method: dense, replicate: 1}]\n")
    assert arms(replicated) == ["dense", "dense [replicate=1]"]


# ---- images that are no squares ----


def test_images_may_be_rectangles(expand: Expand) -> None:
    """Lists, single values and arms take height and width; a square keeps its question however it
    is written.
    """
    wide = "{height: 64, width: 96}"
    expansion = expand(MODEL + f"axes: {{image_size: [64, {wide}, 96]}}\n" + TOPK)
    assert [job.condition.image_size for job in expansion.jobs] == [64, WIDE, 96]
    (single,) = expand(
        f"defaults: {{model: deit_tiny_patch16_224, image_size: {wide}}}\n" + TOPK
    ).jobs
    assert single.comparison_ids() == expansion.jobs[1].comparison_ids()
    network = NETWORKS["deit_tiny_patch16_224"]
    assert network.patch_tokens(WIDE) == 24
    assert network.macs(WIDE, network.dense_tokens(WIDE)) == 139_321_344

    (square,) = expand(MODEL.replace("32", "{height: 32, width: 32}") + TOPK).jobs
    assert square.comparison_ids() == expand(MODEL + TOPK).jobs[0].comparison_ids()
    (own,) = expand(MODEL + f"methods: [{{method: topk, image_size: {wide}}}]\n").jobs
    assert own.arms[1].condition(own.condition).image_size == WIDE
    assert Job.model_validate_json(own.model_dump_json()) == own


# ---- jobs and limits ----


def test_big_blocks_are_split(expand: Expand) -> None:
    """No job has more arms than `arms_per_job`, each part has the baselines, and no pair is lost or
    doubled.
    """
    text = MODEL + "baselines: [dense, {runtime: compile}]\n"
    text += (
        "methods: [{method: topk, keep_rate: {linspace: {start: 0.1, stop: 1, num: 19}}}, {method:"
        " dense, runtime: compile}]\n"
    )
    expansion = expand(text + "limits: {arms_per_job: 8}\n")
    assert [len(job.arms) for job in expansion.jobs] == [8, 8, 8, 3]
    assert all(arms(expansion, job)[:2] == ["dense", "dense [runtime=compile]"] for job in range(4))
    ids = [comparison_id for job in expansion.jobs for comparison_id in job.comparison_ids()]
    assert len(ids) == len(set(ids)) == 19 * 2 + 1


# ---- runtimes ----


def test_jobs_with_another_engine_are_measured_warm(expand: Expand) -> None:
    """An arm with an exported graph makes its whole job warm, which is part of what is answered."""
    text = """
defaults: {model: deit_tiny_patch16_224, device: cpu, image_size: 64}
methods: [{method: topk, keep_rate: 0.5}, {method: dense, runtime: openvino}]
jobs: {latency: {}}
"""
    plain, warm = (
        expand(each).jobs[0]
        for each in (text.replace(", {method: dense, runtime: openvino}", ""), text)
    )
    assert (plain.warm, warm.warm) == (False, True)
    one, other = (job.comparison(job.pairs[0]) for job in (plain, warm))
    assert one.question_id == other.question_id
    assert one.comparison_id() != other.comparison_id()
    assert warm.only(warm.pairs[:1]).comparison_ids() == warm.comparison_ids()[:1]


def test_names_of_the_hub_are_those_of_timm(expand: Expand) -> None:
    """A model is the same by its bare name, with the hub's `timm/`, and as timm loads it from
    there.
    """
    jobs = [
        expand(f"defaults: {{model: {before}deit_tiny_patch16_224, image_size: 32}}\n{TOPK}").jobs
        for before in ("", "timm/", "hf-hub:timm/", "hf_hub:timm/")
    ]
    assert len(jobs) == 4
    assert all(each == jobs[0] for each in jobs)


def test_relative_paths_count_from_the_folder_of_the_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a sweep in another folder, those of weights and data reach the worker as paths from the
    current folder; absolute ones, and those of a sweep in the current folder, stay as written.
    """
    (tmp_path / "sweeps").mkdir()
    for place in ("sweeps/own.pt", "own.pt"):
        (tmp_path / place).write_bytes(place.encode())
    monkeypatch.chdir(tmp_path)

    def read(path: str, weights: str, data: str) -> tuple[str, str | None, str]:
        text = (
            "schema: 1\nname: trial\nquestion: q\ndefaults: {model: deit_tiny_patch16_224,"
            f" image_size: 32, weights: {weights}, data: 'imagefolder:{data}'}}\n{TOPK}"
            "jobs: {accuracy: {}}\n"
        )
        found = expand_file(path, methods=METHODS, networks=NETWORKS, auto="cpu", text=text)
        (job,) = found.jobs
        return job.condition.weights, job.condition.data, job.content_hashes["weights"]

    hashes = {
        place: hashlib.sha256(place.encode()).hexdigest() for place in ("sweeps/own.pt", "own.pt")
    }
    assert read("sweeps/x.yaml", "own.pt", "images") == (
        "./sweeps/own.pt",
        "imagefolder:./sweeps/images",
        hashes["sweeps/own.pt"],
    )
    assert read("sweeps/x.yaml", "../own.pt", "/images") == (
        "./own.pt",
        "imagefolder:/images",
        hashes["own.pt"],
    )
    assert read("x.yaml", "own.pt", "images")[:2] == ("own.pt", "imagefolder:images")
