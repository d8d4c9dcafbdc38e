"""Sweeps of accuracy: what each kind of job depends on, which data it is measured on, and a message
for each wrong use.
"""

from collections.abc import Callable
from typing import Any

import pytest

from sweeps.language.expand import Expansion, expand_file
from sweeps.language.yaml_reader import SweepError
from sweeps.model.condition import Condition, Overrides
from sweeps.model.job import DENSE, Protocol
from tests.sweeps.conftest import METHODS, NETWORKS

DIGITS = "digits_vit_64"
DEFAULTS = f"defaults: {{model: {DIGITS}, image_size: 32}}\n"
BOTH = "jobs: {latency: {}, accuracy: {images: 100, timeout: 10m}}\n"
ONLY = "jobs: {accuracy: {}}\n"
HEAD = "schema: 1\nname: trial\n"

Expand = Callable[..., Expansion]


def expand(text: str, **options: Any) -> Expansion:
    return expand_file(
        "trial.yaml", methods=METHODS, networks=NETWORKS, auto="cpu", text=HEAD + text, **options
    )


def refused(text: str, **options: Any) -> SweepError:
    with pytest.raises(SweepError) as caught:
        expand(text, **options)
    return caught.value


def test_without_jobs_latency_alone_is_requested() -> None:
    """Accuracy is measured where it is named, and latency where nothing is, or where it is named
    too.
    """
    text = DEFAULTS + "methods: [topk]\n"
    kinds = {
        "": ["latency"],
        "jobs: {}\n": ["latency"],
        "jobs: {latency: }\n": ["latency"],
        "jobs: {accuracy: }\n": ["accuracy"],
        "jobs: {accuracy: {images: 5}}\n": ["accuracy"],
        BOTH: ["latency", "accuracy"],
    }
    assert {jobs: [job.kind for job in expand(text + jobs).jobs] for jobs in kinds} == kinds


def test_accuracy_has_its_own_protocol() -> None:
    """Images and time-out are those of the sweep; rounds repeat the timing alone, which is planned
    with its own version of measuring, as are its comparisons.
    """
    asked = BOTH.replace("latency: {", "latency: {rounds: 3")
    jobs = expand(DEFAULTS + "methods: [topk]\n" + asked).jobs
    timed = [("latency", turn, 2) for turn in range(3)]
    planned = [(job.kind, job.round, job.protocol_version) for job in jobs]
    assert planned == [timed[0], ("accuracy", 0, 1), *timed[1:]]
    assert jobs[1].protocol == Protocol(images=100, timeout_s=600)
    assert all(job.comparisons()[0].protocol_version == job.protocol_version for job in jobs)


def test_accuracy_is_not_multiplied_by_what_only_time_depends_on() -> None:
    """Batch sizes, threads and runtimes make many latency jobs and one of accuracy, and nothing is
    a duplicate.
    """
    text = DEFAULTS + "axes: {batch_size: [1, 8], threads: [1, 2], runtime: [eager, compile]}\n"
    expansion = expand(text + "methods: [{method: topk, keep_rate: [0.5, 0.7]}]\n" + BOTH)
    assert [job.kind for job in expansion.jobs] == ["latency"] * 8 + ["accuracy"]
    assert expansion.jobs[-1].condition == Condition(model=DIGITS, image_size=32, data="digits")
    assert len(expansion.jobs[-1].pairs) == 2
    assert (expansion.points, expansion.duplicates, len(expansion.comparisons)) == (8, 0, 18)


def test_latency_is_not_multiplied_by_data() -> None:
    """Corruptions and severities make many accuracy jobs and one of latency; images without
    corruption have no severity.
    """
    text = DEFAULTS + "axes: {corruption: [null, jpeg, contrast], severity: [1, 3]}\n"
    expansion = expand(text + "methods: [topk]\n" + BOTH)
    assert [job.kind for job in expansion.jobs] == ["latency"] + ["accuracy"] * 5
    plain = expand(DEFAULTS + "methods: [topk]\n")
    assert expansion.jobs[0].job_id == plain.jobs[0].job_id
    seen = {(job.condition.corruption, job.condition.severity) for job in expansion.jobs[1:]}
    assert seen == {(None, None), ("jpeg", 1), ("jpeg", 3), ("contrast", 1), ("contrast", 3)}
    assert expansion.duplicates == 0


def test_an_override_that_accuracy_does_not_depend_on_collapses() -> None:
    """The same method under two runtimes is one arm of accuracy, and dense under another runtime is
    the baseline itself.
    """
    text = DEFAULTS
    text += (
        "methods: [{method: topk, runtime: [eager, compile], dtype: [float32, bfloat16]}, {method:"
        " dense, runtime: compile}]\n"
    )
    latency, accuracy = expand(text + "baselines: [dense, {runtime: compile}]\n" + BOTH).jobs
    assert len(latency.arms) == 6
    overrides = [Overrides(), Overrides(), Overrides(dtype="bfloat16")]
    assert [arm.overrides for arm in accuracy.arms] == overrides
    assert accuracy.arms[0] == DENSE
    assert [tuple(pair) for pair in accuracy.pairs] == [(0, 1), (0, 2)]
    problem = refused(f"{DEFAULTS}methods: [{{method: dense, runtime: compile}}]\n{ONLY}").problem
    assert "equals its baseline" in problem


def test_contents_come_from_the_caller() -> None:
    """Further hashes join the checkpoint's, for each condition as its kind has it; they make
    answers stale.
    """
    requested: list[Condition] = []

    def contents(condition: Condition) -> dict[str, str]:
        requested.append(condition)
        return {"recipe": "ab"} if condition.data is None else {"recipe": "ab", "data": "cd"}

    text = (
        DEFAULTS.replace("32}", "32, weights: trained, data: digits}")
        + "axes: {batch_size: [1, 2]}\nmethods: [topk]\n"
    )
    expansion = expand(text + BOTH, contents=contents)
    timed, whole = {"recipe": "ab"}, {"recipe": "ab", "data": "cd"}
    assert [job.content_hashes for job in expansion.jobs] == [timed, timed, whole]
    assert len(requested) == 3
    plain = expand(text + BOTH)
    assert [job.comparisons() for job in plain.jobs] == [
        job.comparisons() for job in expansion.jobs
    ]
    assert not {*plain.jobs[2].comparison_ids()} & {*expansion.jobs[2].comparison_ids()}


def test_contents_that_cannot_be_told() -> None:
    """A folder that cannot be read is refused where it is written."""

    def contents(condition: Condition) -> dict[str, str]:
        raise FileNotFoundError(2, "No such file or directory", condition.data)

    text = (
        "defaults:\n  model: deit_tiny_patch16_224\n  image_size: 32\n  data:"
        " imagefolder:nowhere\nmethods: [topk]\n"
    )
    found = refused(text + ONLY, contents=contents)
    assert (found.line, found.key) == (6, "defaults.data")
    assert "No such file" in found.problem


def test_a_section_stands_for_the_kind_of_the_models() -> None:
    """`profile` requests the profile of vision models here, and nothing else; it depends on no
    data.
    """
    jobs = expand(DEFAULTS + "methods: [topk]\njobs: {profile: {budget: 3s}}\n").jobs
    assert [(job.kind, job.protocol.budget_s, job.occupation) for job in jobs] == [
        ("profile", 3.0, "node")
    ]
    both = expand(
        DEFAULTS
        + "axes: {corruption: [jpeg, contrast], severity: 1}\nmethods: [topk]\njobs: {accuracy: {},"
        " profile: {}}\n"
    ).jobs
    assert [job.kind for job in both] == ["accuracy", "accuracy", "profile"], (
        "no profile depends on the data"
    )
