"""The command `python -m workers.run`: what it prints, what it refuses, and what it does
without.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Literal

import psutil
import pytest

from sweeps.model.condition import Condition
from sweeps.model.job import Arm, Job, Protocol, Step
from sweeps.model.outcome import Outcome
from workers.measure.environment import PROJECT
from workers.run import INTERRUPTED, main

ALONE = """
import runpy, sys
for name in ("ray", "sqlmodel", "sqlalchemy", "alembic", "streamlit", "altair", "typer", "rich"):
    sys.modules[name] = None
runpy.run_module("workers.run", run_name="__main__", alter_sys=True)
"""


def job(seed: int = 0) -> Job:
    """One arm, six rounds."""
    condition = Condition(model="test_vit", image_size=32, seed=seed, threads=1)
    return Job(
        condition=condition,
        arms=(Arm(),),
        protocol=Protocol(pairs_min=6, pairs_max=6, budget_s=1.0),
    )


def edited(path: tuple[str | int, ...], value: Any) -> str:
    """A job file with another value at `path`."""
    step = Step(method="topk", params={"keep_rate": 0.5})
    document: Any = job().model_copy(update={"arms": (Arm(stack=(step,)),)}).model_dump(mode="json")
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return json.dumps(document)


LARGE = "an integer of 100 bits is too large"


def write(path: Path, text: str) -> Path:
    """The path, with the text in it."""
    path.write_text(text)
    return path


def test_prints_the_outcome_and_nothing_else(tmp_path: Path) -> None:
    """One outcome in JSON, in a process without Ray, store and app."""
    path = write(tmp_path / "job.json", job().model_dump_json())
    result = subprocess.run(
        [sys.executable, "-c", ALONE, str(path)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    assert Outcome.model_validate_json(result.stdout).job == job()


INTERRUPTIBLE = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent may have ignored it
runpy.run_module("workers.run", run_name="__main__", alter_sys=True)
"""


def loads_torch(pid: int, *, children: bool) -> bool:
    """Whether the process, or one of its children, has loaded torch."""
    process = psutil.Process(pid)
    return any(
        "libtorch_cpu" in mapped.path
        for each in (process.children() if children else [process])
        for mapped in each.memory_maps()
    )


@pytest.mark.parametrize("policy", [None, "active"])
def test_progress_and_interruption(tmp_path: Path, policy: Literal["active"] | None) -> None:
    """Jobs are announced; Ctrl-C ends in one line and 130, and outcomes are kept."""
    (tmp_path / "jobs").mkdir()
    write(tmp_path / "jobs/1.json", job().model_dump_json())
    long = job().model_copy(
        update={
            "protocol": Protocol(pairs_min=100_000, pairs_max=100_000, budget_s=200, timeout_s=300)
        }
    )
    long = long.model_copy(
        update={"condition": long.condition.model_copy(update={"wait_policy": policy})}
    )
    write(tmp_path / "jobs/2.json", long.model_dump_json())
    command = [
        sys.executable,
        "-c",
        INTERRUPTIBLE,
        str(tmp_path / "jobs"),
        "--out",
        str(tmp_path / "out"),
    ]
    with subprocess.Popen(
        command, cwd=PROJECT, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            assert process.stderr is not None
            shown = [process.stderr.readline()]
            while shown[-1] and "2.json" not in shown[-1]:
                shown.append(process.stderr.readline())
            while not loads_torch(process.pid, children=policy is not None):
                time.sleep(0.05)
            time.sleep(1)  # until the job runs
            os.killpg(process.pid, signal.SIGINT)
            rest = process.stderr.read().splitlines()
        finally:
            process.kill()
    assert process.returncode == INTERRUPTED, rest
    assert [name for line in shown for name in ("1.json", "2.json") if name in line] == [
        "1.json",
        "2.json",
    ], shown
    assert len(rest) == 1, rest
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["1.json"]


def test_what_is_not_answered_shows_in_the_exit_code(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """An unforeseen error is printed, named on standard error, and makes it 1."""
    broken = job().model_copy(
        update={
            "condition": Condition(
                model="deit_tiny_patch16_224", image_size=32, weights="missing.pt"
            )
        }
    )
    assert main([str(write(tmp_path / "job.json", broken.model_dump_json()))]) == 1
    printed = capfd.readouterr()
    assert Outcome.model_validate_json(printed.out).failures
    assert "job.json: error:" in printed.err


def test_a_folder_of_one_job_is_answered_in_a_folder(tmp_path: Path) -> None:
    """What is written does not depend on how many jobs a folder holds."""
    broken = job().model_copy(
        update={"condition": job().condition.model_copy(update={"weights": "missing.pt"})}
    )
    (tmp_path / "jobs").mkdir()
    file = write(tmp_path / "jobs/1.json", broken.model_dump_json())
    assert main([str(tmp_path / "jobs"), "--out", str(tmp_path / "out")]) == 1
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["1.json"]
    assert main([str(file), "--out", str(tmp_path / "single.json")]) == 1
    assert (tmp_path / "single.json").is_file()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a job"),
        ("{}", "condition: Field required"),
        (json.dumps({**job().model_dump(mode="json"), "colour": "red"}), "colour"),
        (json.dumps({**job().model_dump(mode="json"), "kind": "smell"}), "kind"),
        (edited(("condition", "image_size"), 10**30), LARGE),
        (edited(("condition", "image_size"), -32), "condition.image_size"),
        (edited(("condition", "batch_size"), 10**30), LARGE),
        (edited(("condition", "seed"), -(10**30)), LARGE),
        (edited(("arms", 0, "stack", 0, "version"), 10**30), LARGE),
        (edited(("round",), 10**30), LARGE),
        (edited(("protocol_version",), 99), "protocol_version: 99, expected 2 at most"),
        (edited(("protocol", "timeout_s"), 1e300), "protocol.timeout_s: Input should be less than"),
    ],
)
def test_a_bad_file_is_refused_before_anything_runs(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    """Exit code 2, the file and the key named, and the good job beside it is not started."""
    good = write(tmp_path / "good.json", job().model_dump_json())
    assert (
        main([str(good), str(write(tmp_path / "bad.json", text)), "--out", str(tmp_path / "out")])
        == 2
    )
    printed = capfd.readouterr()
    assert printed.out == ""
    assert "bad.json" in printed.err
    assert message in printed.err
    assert len(printed.err.splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("condition", "image_size"), 33, "image_size 33 is not a multiple of test_vit's patch"),
        (("arms", 0, "stack", 0, "version"), 99, "version 99 of 'topk' is requested, and version"),
        (("arms", 0, "stack", 0, "version"), -1, "version -1 of 'topk' is requested, and version"),
    ],
)
def test_impossible_sizes_and_versions(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    path: tuple[str | int, ...],
    value: int,
    message: str,
) -> None:
    """What only a model or a method can refuse is a failure of the outcome, and a line."""
    main([str(write(tmp_path / "job.json", edited(path, value))), "--quiet"])
    printed = capfd.readouterr()
    assert len(printed.err.splitlines()) == 1
    assert message in printed.err
    (failure,) = Outcome.model_validate_json(printed.out).failures
    assert message in failure.message


def test_wrong_usage_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Each wrong use has its own message and exit code 2."""
    good = write(tmp_path / "good.json", job().model_dump_json())
    twin = tmp_path / "twin"
    twin.mkdir()
    for arguments, message in (
        ([str(tmp_path / "none.json")], "cannot be read"),
        ([str(twin)], "holds no job file"),
        ([str(good), "--out", str(good)], "would be overwritten"),
        ([str(good), str(good), "--out", str(tmp_path / "out")], "same name"),
        ([str(good), "--out", str(good / "inside.json")], "no folder to write to"),
    ):
        assert main(arguments) == 2
        assert message in capfd.readouterr().err
