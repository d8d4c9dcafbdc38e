"""What a report opens with, what follows, that no table stands twice, and that nothing is cut where
it is piped.
"""

import re
from collections.abc import Sequence
from math import log
from pathlib import Path

import pytest

from orchestrator.report.data import load_report
from orchestrator.report.render import sections
from orchestrator.report.section import Section
from orchestrator.report.speedup import realised_interval, realised_text, speedup_sections
from sweeps.model.condition import Kind
from tests.orchestrator import vision_fixtures as vision
from tests.orchestrator.commands import breakeven
from tests.store.conftest import a_job, an_outcome
from tests.store.language_fixtures import (
    a_generation,
    a_generation_job,
    a_quality_job,
    a_reading,
    larosa,
)
from tests.webapp.simulated import store_outcomes

RATES = (0.5, 0.7)


def parts(path: str, name: str) -> list[Section]:
    return list(sections(load_report(path, name)))


def test_it_opens_with_the_answer_and_a_line_for_each_method(stored: Path) -> None:
    """One sentence, then one line for each method: with its curves, or with their number and the
    best of them.
    """
    first, *rest = parts(str(stored / "breakeven.db"), "quickstart")
    assert first.title == "Answers"
    lines = [line.text for line in first.lines]
    # so it is while other tests run
    answer, *methods = (line for line in lines if not line.startswith("measured beside"))
    assert re.match(
        r"[1-4] of 4 curves pay in at least a part of what was measured; best topk ", answer
    )
    assert [line.split()[0].rstrip(":") for line in methods] == ["tome", "topk", "random"], (
        "controls last"
    )
    titles = [section.title for section in rest]
    points = next(place for place, title in enumerate(titles) if title.startswith("deit_tiny"))
    order = [
        points,
        titles.index("Break-even in tokens"),
        titles.index("Cost model: time = launch + work"),
        titles.index("Audit of these numbers"),
        titles.index("Verdicts"),
    ]
    assert order == sorted(order)
    assert titles[-1] == "What to do next"


def test_many_curves_of_a_method_are_one_line(tmp_path: Path) -> None:
    """Four batch sizes of an arm: how many curves claim what, and the best one by name."""
    outcomes = [
        an_outcome(a_job(size, batch_size=batch), speedups=(speedup,))
        for batch in (1, 2, 4, 8)
        for size, speedup in ((64, 0.8), (128, 0.9), (224, 1.5))
    ]
    first = parts(store_outcomes(tmp_path / "s.db", "s", *outcomes), "s")[0]
    assert len(first.lines) == 2
    assert re.match(
        r"topk: 4 curves: 4 × has a break-even; best topk keep_rate=0.5.*, batch \d: pays at 196"
        r" tokens \(slower at 64\)",
        first.lines[1].text,
    )


def test_a_line_names_gain_and_cost(tmp_path: Path) -> None:
    """One size is no curve: of two arms the line of a method names the best one and counts the
    other; of a curve along the parameter it has the range of what its arms lose. A sweep that
    times nothing has an answer too.
    """

    def opening(name: str, kinds: Sequence[Kind], rates: Sequence[float]) -> str:
        arms = [vision.topk(rate) for rate in rates]
        outcomes = [vision.outcome(vision.job(kind, arms)) for kind in kinds]
        first = parts(store_outcomes(tmp_path / f"{name}.db", "s", *outcomes), "s")[0]
        (line,) = [line.text for line in first.lines]
        return line

    line = opening("two", ("latency", "accuracy"), vision.RATES[:2])
    assert line.startswith("topk keep_rate=0.2: 2.000x [")
    assert "quality worse by " in line
    assert line.endswith(" points against dense; 1 more comparison below")
    assert re.search(
        r"topk, keep_rate varies: pays at .* \(slower at .*\); "
        r"top-1 accuracy changes by \+0\.\d\d to \+2\d\.\d\d points \(above 0: worse\) on digits$",
        opening("four", ("latency", "accuracy"), vision.RATES),
    )
    assert opening("quality", ("accuracy",), vision.RATES).startswith(
        "topk keep_rate=0.8 on digits: top-1 accuracy the same within 0.2 points"
    )


def test_the_worst_surprises_come_first(tmp_path: Path) -> None:
    """Arms are ordered by how far they fall short of their promise; tokens of an arm stay in order,
    and conditions follow suit.
    """
    outcomes = [
        an_outcome(a_job(size, RATES, batch_size=batch), speedups=speedups)
        for batch, speedups in ((1, (1.5, 1.4)), (8, (1.5, 0.6)))
        for size in (128, 64)
    ]
    report = load_report(store_outcomes(tmp_path / "s.db", "s", *outcomes), "s")
    tables = [section for section in speedup_sections(report) if section.rows]
    assert ["batch 8" in tables[0].title, "batch 1" in tables[1].title] == [True, True]
    assert [('"keep_rate":0.7' in row.params, row.tokens) for row in tables[0].rows] == [
        (True, 16),
        (True, 64),
        (False, 16),
        (False, 64),
    ]
    for row in tables[0].rows:
        shares = realised_interval(row)
        assert shares is not None
        share, low, high = shares
        assert low < share < high
        assert (share < 0) == ('"keep_rate":0.7' in row.params)


def test_a_promise_of_nothing_has_no_share() -> None:
    """Within 2 % of 1 the share that arrived would be noise: there is none. A speed-up without an
    interval has none either.
    """
    row = type(
        "Row",
        (),
        {
            "verdict": "faster",
            "speedup": 1.5,
            "speedup_low": 1.4,
            "speedup_high": 1.6,
            "speedup_macs": 1.0,
        },
    )()
    assert realised_interval(row) is None
    row.speedup_macs = 1.5**2
    assert realised_interval(row) == pytest.approx(
        (0.5, log(1.4) / log(1.5**2), log(1.6) / log(1.5**2))
    )
    row.speedup_low, row.speedup_high = None, None
    assert realised_interval(row) is None
    assert realised_text(row) == "-"


def test_no_table_stands_twice(stored: Path, tmp_path: Path) -> None:
    """Neither a title with a table nor a row of points is repeated, in vision and in language
    reports.
    """
    timed = a_generation(a_generation_job(arms=[larosa(0.5), larosa(0.25)]), (1.0, 1.5, 1.2))
    language = store_outcomes(
        tmp_path / "s.db", "s", timed, a_reading(a_quality_job([larosa(0.5)]))
    )
    for path, name in ((str(stored / "breakeven.db"), "quickstart"), (language, "s")):
        tables = [section for section in parts(path, name) if section.rows]
        assert len({section.title for section in tables}) == len(tables)
        rows = [row for section in tables for row in section.cells()]
        assert len(set(rows)) == len(rows)


def test_headings_are_whole_where_a_report_is_piped(stored: Path) -> None:
    """Through a pipe, with COLUMNS=60, every heading and every cell is there."""
    report = load_report(str(stored / "breakeven.db"), "quickstart")
    table = next(section for section in speedup_sections(report) if section.rows)
    done = breakeven("report", "quickstart", "--detail", folder=stored, COLUMNS="60")
    assert "…" not in done.stdout
    for column in table.columns:
        for word in column.label.split():
            assert word in done.stdout
    for cells in table.cells():
        assert all(cell in done.stdout for cell in cells)
    line = next(line for line in done.stdout.splitlines() if "MACs promise" in line)
    assert len(line) > 60
