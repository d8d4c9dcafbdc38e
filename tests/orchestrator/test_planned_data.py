"""Data that changes after it was planned or measured: other comparisons, and no number for what is
not there any more.
"""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from orchestrator.plan.planning import load_sweep
from workers.run import run

SWEEP = """\
schema: 1
name: changing
question: Does changed data count as answered?
defaults: {{image_size: 32}}
axes:
  model: [test_vit]
  data: ["imagefolder:{folder}"]
methods:
  - {{method: tome, r: 2}}
jobs:
  accuracy: {{images: 4}}
"""


@pytest.fixture
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A sweep over two classes of two random images, with a class map."""
    monkeypatch.setenv("BREAKEVEN_CACHE", str(tmp_path / "cache"))
    generator = np.random.default_rng(0)
    for name in ("ant", "cat"):
        (tmp_path / "data" / name).mkdir(parents=True)
        for index in range(2):
            pixels = Image.fromarray(generator.integers(0, 256, (32, 32, 3), dtype=np.uint8))
            pixels.save(tmp_path / "data" / name / f"{index}.bmp")
    (tmp_path / "data" / "class_map.txt").write_text("ant 310\ncat 281\n")
    file = tmp_path / "sweep.yaml"
    file.write_text(SWEEP.format(folder=tmp_path / "data"))
    return file


def ids(sweep: Path) -> list[str]:
    return [one for job in load_sweep(sweep, auto="cpu").jobs for one in job.comparison_ids()]


def test_changed_data_is_another_comparison(sweep: Path) -> None:
    """Another label, and two images of one size that change places: neither counts as answered by
    what was measured before.
    """
    data = sweep.parent / "data"
    first = ids(sweep)
    assert ids(sweep) == first
    (data / "class_map.txt").write_text("ant 281\ncat 310\n")
    second = ids(sweep)
    one, other = (data / name / "0.bmp" for name in ("ant", "cat"))
    assert one.stat().st_size == other.stat().st_size
    one.rename(data / "kept")
    other.rename(one)
    (data / "kept").rename(other)
    assert len({*first, *second, *ids(sweep)}) == 3


def test_data_that_changed_after_planning_is_not_measured(sweep: Path) -> None:
    """A job whose data is another one by now, or on this machine, ends with what to do, and not
    with an answer.
    """
    (job,) = load_sweep(sweep, auto="cpu").jobs
    assert not run(job).failures
    (sweep.parent / "data" / "class_map.txt").write_text("ant 281\ncat 310\n")
    (failure,) = run(job).failures
    assert failure.reason == "error"
    assert "holds other files than when the sweep was planned" in failure.message


def test_the_first_reading_of_big_data_is_shown(
    sweep: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """While files are hashed, standard error has how much of what, standard output nothing; the
    second time there is nothing.
    """
    monkeypatch.setattr("workers.data.REPORT_S", 0.0)
    monkeypatch.setattr("workers.data.SETTLED_NS", -1_000_000_000)
    ids(sweep)
    shown = capsys.readouterr()
    assert f"hashing imagefolder:{sweep.parent / 'data'}: 0 of 0 MB" in shown.err
    assert shown.out == ""
    ids(sweep)
    assert capsys.readouterr().err == ""
