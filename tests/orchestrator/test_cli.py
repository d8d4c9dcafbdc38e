"""Commands that plan, run and import, as their users meet them: exit codes, messages, and whole
runs in their own process.
"""

import sqlite3
from pathlib import Path

import pytest

from tests.orchestrator.commands import SWEEP, breakeven, in_process


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("batch_sise: [1]", "did you mean 'batch_size'?"),
        ("image_size: [33]", "not a multiple of"),
    ],
)
def test_wrong_sweep_is_reported_and_nothing_is_stored(
    tmp_path: Path, wrong: str, message: str
) -> None:
    """A wrong sweep ends with exit code 2 and one line with file, line, key and what would be
    right; no store appears.
    """
    lines = SWEEP.splitlines()
    key = wrong.partition(":")[0]
    lines = [text for text in lines if not text.strip().startswith(f"{key}:")]
    at = next(number for number, text in enumerate(lines) if text.startswith("axes:")) + 1
    lines.insert(at, f"  {wrong}")
    (tmp_path / "wrong.yaml").write_text("\n".join(lines) + "\n")

    done = in_process("run", "wrong.yaml", folder=tmp_path)

    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert f"wrong.yaml:{at + 1}: " in done.stderr
    assert message in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["wrong.yaml"]


def test_device_that_is_not_there_is_refused_at_once(tmp_path: Path) -> None:
    """A sweep for a GPU on a machine without one ends with exit code 2 and the reason, before Ray
    starts or a store is made.
    """
    from workers.measure.environment import devices

    if "cuda" in devices():
        pytest.skip("this machine has a GPU")
    (tmp_path / "sweep.yaml").write_text(SWEEP)

    done = in_process("run", "sweep.yaml", "--device", "cuda", folder=tmp_path)
    assert done.returncode == 2
    assert "the sweep requires device cuda, and there is only cpu" in done.stderr
    assert not (tmp_path / "breakeven.db").exists()


def test_ray_that_cannot_start_is_one_line(tmp_path: Path) -> None:
    """Where Ray has no place for its files a run ends with exit code 2 and a line that names the
    place.
    """
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    done = in_process("run", "sweep.yaml", folder=tmp_path, RAY_TMPDIR="/nowhere")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "Ray cannot be started here, because it has no place for its files" in done.stderr
    assert "/nowhere/breakeven-" in done.stderr


@pytest.mark.ray
@pytest.mark.usefixtures("shared_ray")
def test_a_time_out_before_the_requested_pairs_is_no_answer(tmp_path: Path) -> None:
    """A run whose time is up before `pairs: min` ends with exit code 1, the count, and the command
    that adds pairs.
    """
    few = (
        SWEEP.replace("[32, 48, 64]", "[32]")
        .replace("min: 30, max: 30", "min: 99999, max: 99999")
        .replace("budget: 15s", "budget: 1s")
    )
    (tmp_path / "sweep.yaml").write_text(few)

    done = in_process("run", "sweep.yaml", folder=tmp_path)

    assert done.returncode == 1, done.stderr
    text = " ".join(done.stdout.split())
    assert (
        "1 comparison is insufficient: time was up before the pairs that `pairs: min` requires"
        in text
    )
    assert "this adds pairs to them: breakeven run sweep.yaml" in text
    assert "0 of 1 comparison is answered" in " ".join(
        breakeven("plan", "sweep.yaml", folder=tmp_path).stdout.split()
    )
    with sqlite3.connect(tmp_path / "breakeven.db") as connection:
        assert connection.execute("SELECT verdict FROM speedup").fetchall() == [("insufficient",)]
    connection.close()
