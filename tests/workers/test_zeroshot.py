"""Zero-shot tasks: continuations against sums by hand, a task of lm-eval's from files, and what
happens where one cannot be run.
"""

import json
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from sweeps.model.condition import Condition
from sweeps.model.job import DENSE, Arm, Protocol
from sweeps.model.outcome import ArmOutcome, Outcome
from tests.workers.language_fixtures import scripted_language_arm
from tests.workers.saved_llm import saved, written
from tests.workers.tiny_llms import tiny_llm
from tests.workers.tiny_vits import calm
from tests.workers.vision_jobs import compared
from workers.data.text import Window
from workers.kinds.quality import (
    UNAVAILABLE,
    TaskResults,
    drops,
    score,
    score_continuation,
    score_whole,
)
from workers.models.language import load_language
from workers.run import run

calm = pytest.fixture(autouse=True)(calm)
scripted_language_arm = pytest.fixture(scripted_language_arm)
third_party = pytest.mark.filterwarnings("default")  # lm-eval and datasets warn of themselves
TEXTS = {"simple": "The if statement is", "empty": "", "spaced": "A class definition \n "}
CHOICES = (
    [" used for conditional execution", " never", " a loop", " x"],
    [" one", " two"],
    ["yes", "no", "perhaps"],
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A model in a folder, and a text."""
    folder = tmp_path_factory.mktemp("zeroshot")
    return {
        "model": str(saved(folder / "model", max_position_embeddings=1024)),
        "data": written(folder / "text"),
    }


def requested(
    place: dict[str, str],
    tasks: Sequence[str],
    arms: Sequence[Arm] = (DENSE, Arm(replicate=1)),
    documents: int | None = None,
) -> Outcome:
    """The answer to a quality job with these tasks."""
    protocol = Protocol(characters=400, tasks=tuple(tasks), documents=documents)
    return run(compared("quality", Condition(threads=1, **place), *arms, protocol=protocol))


def task(folder: Path, **more: Any) -> str:
    """The path of a task of three questions in `folder`, with the fields in `more` set."""
    data = folder / "questions.json"
    rows = [
        {"text": text, "choices": choices, "right": 0}
        for text, choices in zip(TEXTS.values(), CHOICES, strict=True)
    ]
    data.write_text("\n".join(map(json.dumps, rows)))
    kwargs = {"data_files": {"test": str(data)}, "cache_dir": str(folder / "cache")}
    fields = {
        "task": "three",
        "dataset_path": "json",
        "dataset_kwargs": kwargs,
        "output_type": "multiple_choice",
        "test_split": "test",
        "num_fewshot": 2,
        "doc_to_text": "{{text}}",
        "doc_to_choice": "{{choices}}",
        "doc_to_target": "right",
        "target_delimiter": "",
        "metric_list": [
            {"metric": name, "aggregation": "mean", "higher_is_better": True}
            for name in ("acc", "acc_norm")
        ],
        **more,
    }
    file = folder / "three.yaml"
    file.write_text(json.dumps(fields))
    return str(file)


def shots(arm: ArmOutcome) -> dict[str, Any]:
    found = {metric.name: metric for metric in arm.metrics if metric.name.startswith("zeroshot")}
    return {name: metric for name, metric in found.items() if not name.endswith("_drop")}


def lost(arm: ArmOutcome) -> dict[str, Any]:
    return {metric.name: metric for metric in arm.metrics if metric.name.endswith("_drop")}


def test_what_an_arm_loses_is_paired() -> None:
    """The interval is narrower where the documents that are right are the same."""
    baseline = TaskResults([], {"zeroshot_a_acc": [True] * 60 + [False] * 40}, complete=True)
    alike, other = (
        TaskResults([], {"zeroshot_a_acc": right, "zeroshot_b_acc": [True]}, complete=True)
        for right in ([True] * 50 + [False] * 50, [False] * 40 + [True] * 50 + [False] * 10)
    )
    (near,), (far,) = drops(baseline, alike), drops(baseline, other)
    assert [(row.name, row.unit, row.n) for row in (near, far)] == [
        ("zeroshot_a_acc_drop", "1", 100)
    ] * 2
    assert near.value == far.value == pytest.approx(0.1)
    assert near.low is not None
    assert near.high is not None
    assert far.low is not None
    assert far.high is not None
    assert 0 < near.low < 0.1 < near.high < far.high
    assert far.low < 0


def test_without_lm_eval_there_is_a_flag_and_no_number(
    place: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Bits per byte are measured, arms flagged, and the log names what to do."""
    monkeypatch.setitem(sys.modules, "lm_eval", None)
    with caplog.at_level(logging.WARNING, "workers"):
        outcome = requested(place, ["hellaswag", "piqa", "hellaswag"])
    assert not outcome.failures
    assert [arm.flags for arm in outcome.arms] == [(UNAVAILABLE,)] * 2
    assert outcome.text_scores is not None
    assert not any(shots(arm) for arm in outcome.arms)
    assert [record.args[0] for record in caplog.records if isinstance(record.args, tuple)] == [
        "hellaswag",
        "piqa",
    ]
    assert "uv pip install lm-eval" in caplog.text


@third_party
def test_a_task_from_files_by_hand(place: dict[str, str], tmp_path: Path) -> None:
    """Accuracies are those of the likelihoods, with lm-eval's standard error."""
    pytest.importorskip(
        "lm_eval", reason="lm-eval is no dependency; uv run --with lm-eval pytest runs this"
    )
    before = dict(os.environ)
    outcome = requested(place, [task(tmp_path)])
    assert {
        name: value
        for name, value in os.environ.items()
        if before.get(name) != value and "OFFLINE" in name
    } == {}
    assert not outcome.failures
    assert [arm.flags for arm in outcome.arms] == [(), ()]
    lm = load_language(Condition(**place))
    right = {"acc": 0, "acc_norm": 0}
    with torch.inference_mode():
        for text, choices in zip(TEXTS.values(), CHOICES, strict=True):
            likelihoods = [score_continuation(lm, text, choice)[0] for choice in choices]
            right["acc"] += likelihoods[0] == max(likelihoods)
            by_length = [
                value / len(choice) for value, choice in zip(likelihoods, choices, strict=True)
            ]
            right["acc_norm"] += by_length[0] == max(by_length)
    assert not lost(outcome.arms[0])
    assert {name: row.value for name, row in lost(outcome.arms[1]).items()} == {
        f"zeroshot_three_{name}_drop": 0 for name in right
    }
    for arm in outcome.arms:
        found = shots(arm)
        assert {name: (row.value, row.n, row.unit) for name, row in found.items()} == {
            f"zeroshot_three_{name}": (pytest.approx(count / 3), 3, "1")
            for name, count in right.items()
        }
        for row in found.values():
            assert (row.low is None) == (row.value in {0, 1})
            if row.low is not None:
                error = (row.value * (1 - row.value) / 2) ** 0.5
                assert (row.low, row.high) == (
                    pytest.approx(max(0, row.value - 1.96 * error), abs=1e-4),
                    pytest.approx(min(1, row.value + 1.96 * error), abs=1e-4),
                )


@third_party
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"dataset_path": "nobody/has_this", "dataset_kwargs": {}}, "nobody/has_this"),
        (
            {
                "output_type": "generate_until",
                "doc_to_choice": None,
                "metric_list": [{"metric": "exact_match"}],
            },
            "generate_until",
        ),
        ({"metric_list": [{"metric": "nonsense"}]}, "is not run"),
    ],
)
def test_a_task_that_cannot_be_run_here(
    place: dict[str, str],
    tmp_path: Path,
    fields: dict[str, Any],
    message: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A flag for it, and the other task its numbers."""
    pytest.importorskip(
        "lm_eval", reason="lm-eval is no dependency; uv run --with lm-eval pytest runs this"
    )
    (tmp_path / "good").mkdir()
    (tmp_path / "bad").mkdir()
    bad = task(tmp_path / "bad", **fields)
    with caplog.at_level(logging.WARNING, "workers"):
        outcome = requested(place, [bad, task(tmp_path / "good")])
    assert not outcome.failures
    assert [arm.flags for arm in outcome.arms] == [(UNAVAILABLE,)] * 2
    assert all(len(shots(arm)) == 2 for arm in outcome.arms)
    assert f"the zero-shot task {bad} is not run: " in caplog.text
    assert message in caplog.text


def test_white_space_belongs_to_the_continuation() -> None:
    """The white space after the context's last word is scored; nothing at all is certain."""
    lm = tiny_llm("llama")
    with torch.inference_mode():
        expected = score(lm, Window("It was", "  so")).log_p
        assert score_continuation(lm, "It was  ", "so") == (expected, False)
        assert score_continuation(lm, "It was", "  so") == (expected, False)
        assert score_continuation(lm, "  ", "so")[0] == pytest.approx(score_whole(lm, "  so"))
        assert score_continuation(lm, "It was", "") == (0.0, True)
