"""Accuracy jobs on real models: what an evaluation holds, what arms lose, and what becomes of arms
and data that fail.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from sweeps.model.condition import Condition, Overrides
from sweeps.model.job import Arm, Job, Protocol, Step
from sweeps.model.outcome import Outcome, unpack
from sweeps.stats.quality import compare_predictions, predictions_problem
from tests.workers.scripted_arm import scripted_arm as method_files
from tests.workers.vision_jobs import compared, image_folder, metrics
from workers.data import images
from workers.data.preprocessing import Preprocessing
from workers.errors import alarm
from workers.kinds import accuracy, item_job
from workers.kinds.accuracy import divergence, features
from workers.models.vision import load_vision
from workers.run import run

DENSE = Arm()
HALF = Arm(stack=(Step(method="topk", params={"keep_rate": 0.5, "layers": [1, 3]}),))
ALL = Arm(stack=(Step(method="topk", params={"keep_rate": 1.0, "layers": [1, 3]}),))
LATE = "if len(calls) > 2: "
"""An arm that has been prepared goes wrong during the evaluation."""
DIGITS = Condition(model="digits_vit_64", image_size=32, data="digits")


@pytest.fixture(autouse=True, scope="module")
def calm() -> Iterator[None]:
    """One thread, and small batches, so that there are several."""
    threads = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(item_job, "use_threads", lambda _: torch.set_num_threads(1))
        patch.setattr(accuracy, "LARGEST_BATCH", 16)
        yield
    torch.set_num_threads(threads)


def job(*arms: Arm, condition: Condition = DIGITS, images: int | None = 40, **fields: Any) -> Job:
    """All other arms against the first."""
    options = {"protocol": Protocol(images=images), **fields}
    return compared("accuracy", condition, *arms, **options)


def answers(outcome: Outcome) -> dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Predicted classes, ranks and margins by arm."""
    assert outcome.predictions is not None
    return {
        each.arm: (unpack(each.predicted, "i2"), unpack(each.rank, "i2"), unpack(each.margin, "f4"))
        for each in outcome.predictions.arms
    }


scripted_arm = pytest.fixture(method_files)


@pytest.fixture
def folder(tmp_path: Path) -> Condition:
    """A condition on a folder of 12 images in three classes, for a model with 10 outputs."""
    return DIGITS.model_copy(update={"data": image_folder(tmp_path / "images")})


@pytest.fixture(scope="module")
def evaluated(calm: None) -> Outcome:
    """TopK that keeps half and all, half precision and a smaller image beside the dense arm."""
    others = (Overrides(dtype="bfloat16"), Overrides(image_size=16))
    outcome = run(job(DENSE, HALF, ALL, *(Arm(overrides=each) for each in others)))
    assert not outcome.failures
    return outcome


def test_the_evaluation_is_what_the_model_predicts(evaluated: Outcome) -> None:
    """Classes, ranks, margins and KL are those of a plain forward of the same images, in order."""
    outcome = evaluated
    assert outcome.predictions is not None
    assert predictions_problem(outcome.predictions) is None
    found = images("digits")
    places = [place * len(found) // 40 for place in range(40)]
    model = load_vision(DIGITS, torch.device("cpu")).model
    prepare = Preprocessing(model, DIGITS, {32})
    with torch.inference_mode():
        logits = (
            model(torch.stack([prepare(found.read(place), "")[32] for place in places]))
            .double()
            .numpy()
        )
    labels = found.labels[places]
    assert unpack(outcome.predictions.labels, "i2").tolist() == labels.tolist()
    predicted, rank, margin = answers(outcome)[0]
    true = logits[range(40), labels]
    others = np.where(np.arange(10) == labels[:, None], -np.inf, logits)
    assert predicted.tolist() == logits.argmax(1).tolist()
    assert rank.tolist() == (others > true[:, None]).sum(1).tolist()
    np.testing.assert_allclose(margin, true - others.max(1), rtol=1e-3, atol=1e-5)
    assert outcome.predictions.classes == 10
    assert [(pair.baseline, pair.arm) for pair in outcome.predictions.pairs] == [
        (0, arm) for arm in range(1, 5)
    ]


def test_what_an_arm_loses(evaluated: Outcome) -> None:
    """Metrics are those of `stats.classification`; a baseline loses nothing."""
    assert evaluated.predictions is not None
    dense, half, everything = evaluated.arms[:3]
    assert set(metrics(dense)) == {"top1", "top5", "diversity"}
    agreement = compare_predictions(evaluated.predictions, 0, 1)
    assert agreement.kl is not None
    assert agreement.margin_change is not None
    rows = metrics(half)
    assert rows["top1"] == pytest.approx(agreement.top1.value)
    assert rows["kl"] == pytest.approx(agreement.kl.value)
    assert rows["kl"] > 0
    assert rows["margin_change"] == pytest.approx(agreement.margin_change.value)
    assert rows["margin_change_p05"] == agreement.margin_change_p05
    assert rows["margin_change_p05"] < rows["margin_change"]
    assert 0 < rows["cka"] < 1
    assert rows["cka_block_0"] == pytest.approx(1, abs=1e-9)  # nothing is removed before block 1
    assert rows["angle_block_0"] == pytest.approx(0, abs=1e-2)
    assert rows["angle_last"] == rows["angle_block_11"] > rows["angle_block_1"] > 0
    assert rows["relative_cost"] == pytest.approx((half.gmacs + half.gmacs_overhead) / dense.gmacs)
    assert (half.tokens, half.tokens_final, half.batch) == (64, 17, 16)
    assert half.flags == ()
    neutral = metrics(everything)
    assert neutral["kl"] == pytest.approx(0, abs=1e-9)
    assert neutral["cka"] == pytest.approx(1, abs=1e-6)
    assert neutral["top1"] == metrics(dense)["top1"]


def test_neither_batch_size_nor_runtime_nor_batching_matters(
    evaluated: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers depend on no batch size, runtime or batching."""
    monkeypatch.setattr(accuracy, "LARGEST_BATCH", 32)
    graph = HALF.model_copy(update={"overrides": Overrides(runtime="cudagraph")})
    second = run(
        job(
            DENSE,
            graph,
            condition=DIGITS.model_copy(update={"batch_size": 7, "runtime": "compile"}),
        )
    )
    assert not second.failures
    for index in (0, 1):
        for one, other in zip(answers(evaluated)[index], answers(second)[index], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)
    assert metrics(evaluated.arms[1])["cka"] == pytest.approx(
        metrics(second.arms[1])["cka"], abs=0.05
    )


def test_arms_of_other_types_and_sizes(evaluated: Outcome) -> None:
    """Half precision and a smaller image are evaluated on the same images as the dense arm."""
    half, small_image = (metrics(arm) for arm in evaluated.arms[3:])
    assert 0 < half["kl"] < 0.01
    assert half["relative_cost"] == 1
    assert small_image["relative_cost"] < 0.3
    assert evaluated.arms[4].tokens == 16


def test_an_arm_in_int8() -> None:
    """Calibrated on the data's images it predicts about what the float32 arm predicts."""
    for library in ("openvino", "nncf"):
        pytest.importorskip(library, reason="the extra `runtimes` is not installed")
    if "ONEDNN_MAX_CPU_ISA" in os.environ:
        pytest.skip("OpenVINO's oneDNN refuses int8 where its instructions are limited")
    quantised = HALF.model_copy(update={"overrides": Overrides(dtype="int8")})
    outcome = run(job(HALF, quantised))
    assert not outcome.failures
    found = metrics(outcome.arms[1])
    assert 0 < found["kl"] < 0.02
    assert not {"cka", "angle", "diversity"} & found.keys()
    assert outcome.arms[1].trace == outcome.arms[0].trace
    predicted, quantised_predicted = (answers(outcome)[arm][0] for arm in (0, 1))
    assert (predicted == quantised_predicted).mean() > 0.9


def test_arms_that_fail_on_the_way(scripted_arm: Any) -> None:
    """An arm that goes wrong among the images fails alone."""
    broken = (
        scripted_arm("not_a_number", LATE + "output = output * float('nan')"),
        scripted_arm("error", LATE + "raise RuntimeError('on purpose')"),
        scripted_arm("out_of_memory", LATE + "raise MemoryError"),
    )
    outcome = run(job(DENSE, *broken, HALF))
    assert {failure.arm: failure.reason for failure in outcome.failures} == {
        1: "not_a_number",
        2: "error",
        3: "out_of_memory",
    }
    assert all(
        f"while evaluating {failure.reason}" in failure.message for failure in outcome.failures
    )
    assert [arm.arm for arm in outcome.arms] == [0, 4]
    assert outcome.predictions is not None
    assert [arm.arm for arm in outcome.predictions.arms] == [0, 4]
    assert predictions_problem(outcome.predictions) is None
    assert metrics(outcome.arms[1])["kl"] > 0


def test_some_of_the_models_classes(folder: Condition) -> None:
    """With a class map only the outputs that it names compete."""
    outcome = run(job(DENSE, HALF, condition=folder, images=None))
    assert not outcome.failures
    assert outcome.predictions is not None
    assert (outcome.predictions.images, outcome.predictions.classes) == (12, 3)
    assert unpack(outcome.predictions.labels, "i2").tolist() == [7] * 4 + [2] * 4 + [5] * 4
    predicted, rank, _ = answers(outcome)[0]
    assert set(predicted.tolist()) <= {7, 2, 5}
    assert rank.max() <= 2
    assert metrics(outcome.arms[0])["top5"] == 100


def test_unreadable_images(folder: Condition) -> None:
    """Unreadable images are named and flagged, and the rest is evaluated, if there is any."""
    root = Path((folder.data or "").removeprefix("imagefolder:"))
    (root / "b" / "4.png").write_text("no image")
    before = run(job(DENSE, HALF, condition=folder, images=None))
    assert before.flags == ("unreadable_images",)
    assert before.predictions is not None
    assert before.predictions.unreadable == ("b/4.png",)
    assert before.predictions.images == 11
    for file in root.glob("*/*.png"):
        file.write_text("no image")
    after = run(job(DENSE, HALF, condition=folder, images=None))
    assert [(failure.arm, failure.reason) for failure in after.failures] == [(None, "unsupported")]
    assert "none of the 12 images can be read, the first being a/0.png" in after.failures[0].message


@pytest.mark.parametrize(
    ("fields", "reason", "message"),
    [
        ({"data": None}, "unsupported", "needs data"),
        ({"data": "imagefolder:/nowhere"}, "error", "/nowhere is not on this machine"),
        (
            {"model": "test_vit", "image_size": 64},
            "unsupported",
            "the data has 10 classes and the model's head 1000",
        ),
        ({"corruption": "rain", "severity": 1}, "unsupported", "there are brightness, contrast"),
        ({"corruption": "jpeg"}, "unsupported", "severity None"),
        (
            {"model": "test_vit", "image_size": 64, "weights": "trained"},
            "unsupported",
            "there is a recipe for digits_vit_64",
        ),
    ],
)
def test_jobs_that_cannot_be(fields: dict[str, Any], reason: str, message: str) -> None:
    """What does not fit together is a failure of the whole job, with a message."""
    outcome = run(job(DENSE, HALF, condition=DIGITS.model_copy(update=fields)))
    assert [(failure.arm, failure.reason) for failure in outcome.failures] == [(None, reason)]
    assert message in outcome.failures[0].message
    assert outcome.predictions is None


def test_time_that_is_up_is_no_failure_of_an_arm(scripted_arm: Any) -> None:
    """A time-out among the images fails the whole job, which names how far it came."""
    slow = scripted_arm("slow", LATE + "time.sleep(60)")
    run(job(DENSE))  # loading the model is not what is to be cut short here
    with alarm(3):
        outcome = run(job(DENSE, slow))
    assert [(failure.arm, failure.reason) for failure in outcome.failures] == [(None, "timeout")]
    assert "of 40 images had been evaluated; allow a longer timeout" in outcome.failures[0].message


def test_memory_that_does_not_suffice_halves_the_batch(
    evaluated: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a batch does not fit, its halves are run, and nothing but the memory is different."""
    forward = features

    def scarce(model: Any) -> Any:
        model.register_forward_pre_hook(lambda _, args: _refuse_more_than(5, args[0]))
        return forward(model)

    monkeypatch.setattr(accuracy, "features", scarce)
    outcome = run(job(DENSE, HALF))
    assert not outcome.failures
    for index in (0, 1):
        for one, other in zip(answers(evaluated)[index], answers(outcome)[index], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


def _refuse_more_than(most: int, x: Tensor) -> None:
    if len(x) > most:
        raise torch.OutOfMemoryError("on purpose")


def test_equal_logits_are_ranked_as_argmax_does(scripted_arm: Any) -> None:
    """An arm that gives every class the same logit predicts the first one, and is right for that
    class alone.
    """
    outcome = run(job(DENSE, scripted_arm("constant", "output = output * 0")))
    assert outcome.predictions is not None
    labels = unpack(outcome.predictions.labels, "i2")
    predicted, rank, margin = answers(outcome)[1]
    assert predicted.tolist() == [0] * 40
    assert rank.tolist() == labels.tolist()
    assert margin.tolist() == [0] * 40
    assert metrics(outcome.arms[1])["top1"] == pytest.approx(100 * (labels == 0).mean())


def test_divergence_by_hand() -> None:
    """KL of two distributions, and none of equal ones, whatever is added to the logits."""
    one, other = (
        torch.tensor([[0.8, 0.2], [0.5, 0.5]]).double(),
        torch.tensor([[0.5, 0.5], [0.5, 0.5]]).double(),
    )
    found = divergence(one.log() + 3, other.log())
    expected = 0.8 * np.log(0.8 / 0.5) + 0.2 * np.log(0.2 / 0.5)
    assert found.tolist() == pytest.approx([expected, 0], abs=1e-12)
