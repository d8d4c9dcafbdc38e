"""A CPU without AVX-512, on which oneDNN has no product of bfloat16: `ONEDNN_MAX_CPU_ISA=AVX2` in
the environment of a process of its own.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.orchestrator.commands import ROOT, SWEEP, breakeven

pytestmark = [pytest.mark.slow, pytest.mark.ray]
AVX2 = {"ONEDNN_MAX_CPU_ISA": "AVX2"}
WORKERS = ("dense_models", "generation", "latency", "own_arms", "profile")
"""Modules of tests whose jobs compute with torch and measure peaks. All of tests/workers takes much
longer than four minutes; OpenVINO has an oneDNN of its own, which refuses int8 under this variable;
what reads counters, caches, texts or files does not depend on the instructions of the CPU."""


def python(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "BREAKEVEN_DB": "", **AVX2},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_sweep_in_bfloat16_answers(tmp_path: Path) -> None:
    """Every comparison has a speed-up; the store has a peak of another library's product, and a
    note says which one could not be measured.
    """
    sweep = SWEEP.replace("{threads: 1}", "{threads: 1, dtype: bfloat16}")
    (tmp_path / "sweep.yaml").write_text(sweep.replace("[32, 48, 64]", "[32, 64]"))
    done = breakeven("run", "sweep.yaml", folder=tmp_path, **AVX2)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "not measured: bfloat16 products by oneDNN: RuntimeError: mkldnn" in done.stdout
    sql = "SELECT image_size, dtype, speedup > 0 AS measured FROM speedup ORDER BY image_size"
    shown = breakeven("query", sql, "--format", "json", folder=tmp_path)
    rows = [tuple(row.values()) for row in json.loads(shown.stdout)]
    assert rows == [(32, "bfloat16", 1), (64, "bfloat16", 1)]


def test_the_doctor_measures_the_rest(tmp_path: Path) -> None:
    """A line for the product that is not there, and the peaks of the others."""
    done = python("orchestrator", "doctor", folder=tmp_path)
    assert done.returncode in {0, 1}, done.stderr
    assert "not measured: bfloat16 products by oneDNN: RuntimeError: mkldnn" in done.stdout
    assert "GFLOP/s in bfloat16 matrix products (torch.mm)" in done.stdout
    assert "GFLOP/s in float32 matrix products" in done.stdout


def test_the_tests_of_workers_pass() -> None:
    """Those of `WORKERS`."""
    files = [f"tests/workers/test_{name}.py" for name in WORKERS]
    done = python("pytest", "-n", "2", "-q", *files, folder=ROOT)
    assert done.returncode == 0, done.stdout[-4000:]
