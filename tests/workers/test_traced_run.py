"""One arm alone for an outside profiler: the ranges that it makes, as torch's own profiler sees
them, and the command.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from torch.profiler import ProfilerActivity, profile

from sweeps.importers.traces import FORWARD_RANGE, PREFILL_RANGE, Mark, read_marks
from sweeps.model.condition import Condition
from sweeps.model.job import DENSE, Arm, Job, Pair, Protocol, Step
from tests.workers.saved_llm import saved, written
from tests.workers.vision_jobs import TOPK, job
from workers.kinds.traced_run import run_traced, tie_of
from workers.run import main

TOME = Arm(stack=(Step(method="tome", params={"r": 1}),))


def ranges(call: Callable[[], object]) -> Counter[str]:
    """How often each range was made."""
    with profile(activities=[ProfilerActivity.CPU]) as found:
        call()
    return Counter(
        event.name
        for event in found.events() or ()
        if event.name.startswith(("breakeven:", "block ", "reduction"))
    )


@pytest.mark.parametrize(
    ("arm", "side", "reductions"), [(0, "baseline", 0), (1, "arm", 3), (2, "arm", 6)]
)
def test_ranges_of_a_vision_model(arm: int, side: str, reductions: int) -> None:
    """Exactly the requested forwards with their blocks, in the ranges of a comparison."""
    requested = job([DENSE, TOPK, TOME], image_size=64)
    comparison = requested.comparison_ids()[max(arm, 1) - 1]
    found = ranges(lambda: run_traced(requested, arm, 3))
    assert found[FORWARD_RANGE] == 3
    assert read_marks(found) == Mark((comparison,), side, arm)
    assert found[f"breakeven:comparison:{comparison}"] == 1
    assert found[f"breakeven:side:{side}"] == found[f"breakeven:arm:{arm}"] == 1
    assert found["block 0"] == found["block 5"] >= 3
    assert found["reduction"] == reductions * found["block 0"]
    assert "block 6" not in found


def test_ranges_of_a_language_model(tmp_path: Path) -> None:
    """Forwards are decode steps, over as many runs as they take; each run has its prefill."""
    place = {"model": str(saved(tmp_path / "model")), "data": written(tmp_path / "text")}
    condition = Condition(
        threads=1,
        prompt_tokens=24,
        new_tokens=6,
        kv_cache="dynamic",
        decoding="teacher_forcing",
        **place,
    )
    requested = Job(kind="generation", condition=condition, arms=(DENSE,), protocol=Protocol())
    found = ranges(lambda: run_traced(requested, 0, 7))
    assert found[FORWARD_RANGE] == 7
    assert found[PREFILL_RANGE] == 2
    assert not [name for name in found if name.startswith("breakeven:comparison")]


def test_ties_of_arms() -> None:
    """As the arm of its first comparison, or as the baseline; an arm in no comparison has none."""
    requested = job([DENSE, TOPK, TOME], pairs=[Pair(0, 1)])
    (comparison,) = requested.comparison_ids()
    assert [tie_of(requested, arm) for arm in range(3)] == [
        (comparison, "baseline"),
        (comparison, "arm"),
        None,
    ]


def test_the_command_prints_how_to_record_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Command lines of both tools, and what ran; no outcome is written."""
    path = tmp_path / "job.json"
    path.write_text(job([DENSE, TOPK]).model_dump_json())
    assert main([str(path), "--arm", "1", "--forwards", "2"]) == 0
    shown = capsys.readouterr().out
    for tool in (
        "nsys profile",
        "nsys export --type sqlite",
        "ncu --profile-from-start off --nvtx",
        "breakeven import",
    ):
        assert tool in shown
    assert f"-m workers.run {path} --arm 1 --forwards 2" in shown
    assert "2 forwards of arm 1, topk" in shown
    assert "arm of comparison" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--arm", "2"], "arm 2 is none of the job's: 0: dense; 1: topk"),
        (["--arm", "-1"], "arm -1 is none of the job's"),
        (["--arm", "1", "--forwards", "0"], "at least one forward"),
    ],
)
def test_wrong_arms(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A message names what the job has; nothing runs."""
    path = tmp_path / "job.json"
    path.write_text(job([DENSE, TOPK]).model_dump_json())
    assert main([str(path), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_two_jobs_have_no_arm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An arm is one of a job."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text(job([DENSE]).model_dump_json())
    assert main([str(tmp_path), "--arm", "0"]) == 2
    assert "one job, and 2 are given" in capsys.readouterr().err
