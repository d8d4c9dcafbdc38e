"""The command line in a process of its own, and a small sweep for it."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SWEEP = """\
schema: 1
name: tiny
question: Does it run from one end to the other?
defaults: {threads: 1}
axes:
  model: [deit_tiny_patch16_224]
  image_size: [32, 48, 64]
methods:
  - {method: topk, keep_rate: 0.5}
jobs:
  latency: {pairs: {min: 30, max: 30}, budget: 500ms, timeout: 1m}
"""


def breakeven(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command in `folder`, as a user would."""
    return subprocess.run(
        [sys.executable, "-m", "orchestrator", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "BREAKEVEN_DB": "", **environment},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
