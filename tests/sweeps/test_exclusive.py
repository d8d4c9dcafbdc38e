"""`exclusive` in a sweep: part of a timed question where it is `device`, of no identity where it is
not, and for GPUs alone.
"""

from sweeps.model.condition import Condition
from sweeps.model.job import DENSE, Comparison
from tests.sweeps.conftest import MODEL, TOPK, Expand


def test_node_is_what_nothing_written_means(expand: Expand) -> None:
    """Both spellings are the same question, which is that of sweeps written before the key was
    there.
    """
    (plain,) = expand(f"{MODEL}axes: {{image_size: [32]}}\n{TOPK}").comparisons
    (spelled,) = expand(f"{MODEL}axes: {{image_size: [32], exclusive: [node]}}\n{TOPK}").comparisons
    assert spelled.condition.exclusive is None
    assert spelled.question_id == plain.question_id
    assert "exclusive" not in spelled.condition.canonical_text


def test_both_ways_are_two_questions_of_one_sweep(expand: Expand) -> None:
    """An axis of both gives a question for each; timing with one GPU is another question, accuracy
    on it is not.
    """
    requested = expand(
        f"{MODEL}axes: {{image_size: [32], device: [cuda], exclusive: [node, device]}}\n{TOPK}"
    )
    assert [job.occupation for job in requested.jobs] == ["node", "device"]
    assert len({comparison.question_id for comparison in requested.comparisons}) == 2
    written = "jobs: {latency: {}, accuracy: {}}\n"
    data = (
        "axes: {image_size: [32], device: [cuda], exclusive: [node, device], data:"
        f" ['imagefolder:x']}}\n{TOPK}{written}"
    )
    both = expand(MODEL + data)
    assert [(job.kind, job.occupation) for job in both.jobs] == [
        ("latency", "node"),
        ("latency", "device"),
        ("accuracy", "shared"),
    ]


def test_values_of_inputs_are_a_question(expand: Expand) -> None:
    """Zeros are another question of timing and none of accuracy; `normal` is the question of sweeps
    that write nothing.
    """
    (plain,) = expand(f"{MODEL}axes: {{image_size: [32]}}\n{TOPK}").comparisons
    normal, zeros = expand(
        f"{MODEL}axes: {{image_size: [32], inputs: [normal, zeros]}}\n{TOPK}"
    ).comparisons
    assert (normal.condition.inputs, zeros.condition.inputs) == (None, "zeros")
    assert normal.question_id == plain.question_id != zeros.question_id
    written = "jobs: {latency: {}, accuracy: {}}\n"
    both = expand(
        f"{MODEL}axes: {{image_size: [32], inputs: [normal, zeros], data:"
        f" ['imagefolder:x']}}\n{TOPK}{written}"
    )
    assert [(job.kind, job.condition.inputs) for job in both.jobs] == [
        ("latency", None),
        ("latency", "zeros"),
        ("accuracy", None),
    ]


def test_a_rule_may_name_either(expand: Expand) -> None:
    """`node` in a rule means what it means in a condition."""
    requested = (
        f"{MODEL}axes: {{image_size: [32, 48], device: [cuda], exclusive: [node, device]}}\n{TOPK}"
    )
    rule = "exclude: [{exclusive: node, image_size: 48}]\n"
    assert [
        (job.condition.image_size, job.condition.exclusive) for job in expand(requested + rule).jobs
    ] == [(32, None), (32, "device"), (48, "device")]


def test_the_identity_of_timing_on_one_gpu_is_pinned() -> None:
    """What is stored under it must be found again."""
    condition = Condition(model="m", image_size=32, device="cuda", exclusive="device")
    arm = DENSE.model_copy(update={"replicate": 1})
    assert (
        Comparison(condition=condition, baseline=DENSE, arm=arm).question_id == "ad30ec90da9a0e64"
    )
