"""Pipe tables of Markdown reports: found among prose, cells without markup, those without
measurements named by line.
"""

from pathlib import Path

import pytest

from sweeps.errors import UserError
from sweeps.importers.csv_table import CsvColumns, read_markdown_tables

REPORT = """\
# A report | with a pipe

| Configuration | GPU Time (ms) | Kernels | Real Throughput | Latency Δ |
|:--|--:|---|---|---|
| is=224 bs=1 baseline | 154.34 | 6,856 | 100 img/s | |
| **is=224 bs=1 WITH TR** | **82.39 (-46.6%)** | 7,422 (+566) | ≈ 50 img/s (−50%) | +100.0%
| is=448 bs=8 baseline | 568.5 | 6,855 | 32.8 img/s |

| a \\| b | colour |
|--------|--------|
| x      | red    |

Batch Size | TP
--- | ---
1-16 | 155

| KL | Top-1 (%) |
| --- | --- |
| −0.04 | 79 |
"""


def tables_of(folder: Path, text: str) -> dict[int, CsvColumns | UserError]:
    path = folder / "report.md"
    path.write_text(text, encoding="utf-8")
    return dict(read_markdown_tables(path))


def test_tables_among_prose(tmp_path: Path) -> None:
    """Emphasis, changes in brackets and signs of approximation are no part of a number; labels may
    state the condition.
    """
    found = tables_of(tmp_path, REPORT)
    assert list(found) == [3, 9, 13, 17]
    first = found[3]
    assert isinstance(first, CsvColumns)
    assert first.columns == {
        "Configuration": "label",
        "GPU Time (ms)": "kernel_ms",
        "Kernels": "kernels",
        "Real Throughput": "throughput",
        "Latency Δ": "latency_change",
    }
    rows = [
        (row.label, row.image_size, row.batch, row.kernel_ms, row.kernels, row.throughput)
        for row in first.rows
    ]
    assert rows == [
        ("baseline", 224, 1, 154.34, 6856, 100),
        ("WITH TR", 224, 1, 82.39, 7422, 50),
        ("baseline", 448, 8, 568.5, 6855, 32.8),
    ]
    assert [row.latency_change for row in first.rows] == [None, 100, None]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (9, r"no column is a measurement.*its columns are a \| b, colour"),
        (13, r"report.md:15: Batch Size: '1-16' is no number"),
        (17, r"report.md:19: kl: .* not -0.04"),
    ],
)
def test_others_are_named(tmp_path: Path, line: int, problem: str) -> None:
    found = tables_of(tmp_path, REPORT)[line]
    assert isinstance(found, UserError)
    with pytest.raises(UserError, match=problem):
        raise found


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("# Words | alone\n", "has no table"),
        ("tp | tp\n--|--\n1|2\n", "'tp' stands there twice"),
        ("tp | bs\n--|--\n", "has no rows"),
        ("tp | bs\n--|--\n1|2|3\n", "has 3 cells, the header has 2"),
    ],
)
def test_broken_tables(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        raise next(
            error for error in tables_of(tmp_path, text).values() if isinstance(error, UserError)
        )
