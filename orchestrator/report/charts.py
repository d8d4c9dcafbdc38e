"""Charts of a report as SVG, drawn by the web app in a process of its own, since this package does
not import it.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from orchestrator.report.data import Report
from sweeps.model.kinds import KINDS
from sweeps.model.metrics import METRICS
from sweeps.number_format import axis_label

TIMEOUT_S = 120.0
_AXES = ("tokens", "gmacs_saved")
_SIZE = re.compile(r'(<svg[^>]*?) width="([\d.]+)"([^>]*?) viewBox="0 0 ([\d.]+) ([\d.]+)"')
MARGIN = 1.12
"""By this factor a chart is made wider: a browser's letters may be wider than those that its labels
were measured with."""


class ReportChart(NamedTuple):
    """A chart, or why there is none."""

    title: str
    svg: str
    """Empty where there is none."""
    problem: str = ""


def draw_charts(report: Report, db: str | None) -> Iterator[ReportChart]:
    """The speed-up by each metric of the sweep against tokens, and against the MACs saved where a
    parameter varies.
    """
    known = set(report.speedups["metric"])
    along = set(report.break_evens["axis"])
    for metric in (name for kind in KINDS.values() for name in kind.metrics if name in known):
        for axis in _AXES:
            if axis == "tokens" or axis in along:
                title = f"Speed-up in {METRICS[metric].label} against {axis_label(axis).along}"
                yield _drawn(title, ["--axis", axis, "--metric", metric], report.name, db)


def _drawn(title: str, options: list[str], name: str, db: str | None) -> ReportChart:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "chart.svg"
        place = ["--db", db] if db else []
        command = [
            sys.executable,
            "-P",
            "-m",
            "webapp",
            "plot",
            "-o",
            str(out),
            *place,
            *options,
            "--",
            name,
        ]
        try:
            done = subprocess.run(
                command,
                env=dict(os.environ),
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return ReportChart(title, "", f"drawing took longer than {TIMEOUT_S:g} s")
        if done.returncode == 0 and out.exists():
            return ReportChart(title, _with_margin(out.read_text(encoding="utf-8")))
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        return ReportChart(title, "", last.removeprefix("breakeven: "))


def _with_margin(svg: str) -> str:
    """The SVG with room at its right end; as it is where its size is written in another way."""

    def widened(found: re.Match[str]) -> str:
        start, width, between, box, height = found.groups()
        return (
            f'{start} width="{float(width) * MARGIN:g}"{between} viewBox="0 0'
            f' {float(box) * MARGIN:g} {height}"'
        )

    return _SIZE.sub(widened, svg, count=1)
