"""CSV files from anyone: names and units of columns, both notations of numbers, and what is wrong
with the rest.
"""

from pathlib import Path

import pytest

from sweeps.errors import UserError
from sweeps.importers.tables import CsvColumns, parse_mapping, read_csv_rows, read_markdown_tables


def csv_file(folder: Path, text: str | bytes) -> Path:
    path = folder / "table.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_names_are_guessed_and_the_guesses_are_listed(tmp_path: Path) -> None:
    """Columns are found by their names; which are not used is listed."""
    found = read_csv_rows(
        csv_file(tmp_path, "bs,arm,tp,colour\n2,dense,10.5,red\n4,topk,20,blue\n")
    )
    assert found.columns == {"bs": "batch", "arm": "label", "tp": "throughput"}
    assert found.unknown == ("colour",)
    assert [(row.batch, row.label, row.throughput) for row in found.rows] == [
        (2, "dense", 10.5),
        (4, "topk", 20.0),
    ]


def test_a_column_called_model_may_hold_arms(tmp_path: Path) -> None:
    """`model` is the arm where it distinguishes a baseline, and the model elsewhere; FLOPs are read
    as GMACs, which is noted.
    """
    found = read_csv_rows(csv_file(tmp_path, "model,tp,flops\nbaseline,10,17.6\nwith_tr,9,5.6\n"))
    assert [row.label for row in found.rows] == ["baseline", "with_tr"]
    assert found.rows[0].gmacs == 17.6
    assert any("GMACs" in note for note in found.notes)
    other = read_csv_rows(csv_file(tmp_path, "model,tp\ndeit_tiny_patch16_224,10\n"))
    assert (other.rows[0].model, other.rows[0].label) == ("deit_tiny_patch16_224", "")


@pytest.mark.parametrize(
    ("header", "cell", "latency_ms"),
    [
        ("Latency (s)", "0.00655", 6.55),
        ("latency [µs]", "6550", 6.55),
        ("time_us", "6550", 6.55),
        ("latency_ms", "0.00655 s", 6.55),
        ("step_time", "6.55", 6.55),
    ],
)
def test_units_in_headers(tmp_path: Path, header: str, cell: str, latency_ms: float) -> None:
    """A unit in the header or behind a number is understood."""
    found = read_csv_rows(csv_file(tmp_path, f"batch,{header}\n1,{cell}\n"))
    assert found.rows[0].latency_ms == pytest.approx(latency_ms)


@pytest.mark.parametrize(
    ("header", "unit"),
    [
        ("latency (ms/image)", "per_image"),
        ("latency [ms per batch]", "per_batch"),
        ("latency_ms", None),
    ],
)
def test_what_a_latency_is_the_time_of(tmp_path: Path, header: str, unit: str | None) -> None:
    """A header may state whether a latency is that of a batch or an image."""
    assert read_csv_rows(csv_file(tmp_path, f"batch,{header}\n1,6.5\n")).latency == unit


def test_semicolons_and_decimal_commas(tmp_path: Path) -> None:
    """A file of a German spreadsheet: semicolons between columns, commas in numbers; the reading is
    noted.
    """
    found = read_csv_rows(
        csv_file(tmp_path, "batch;throughput;latency_ms\n1;152,7;6,55\n8;157,7;6,34\n")
    )
    assert [(row.throughput, row.latency_ms) for row in found.rows] == [
        (152.7, 6.55),
        (157.7, 6.34),
    ]
    assert "commas in numbers are decimal points" in found.notes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('batch,tp\n1,6.5\n8,"6,55"\n', "3: tp: '6,55' is no number; write a decimal point"),
        ("batch;latency;tp\n1;6.5;152,7\n", "2: tp: '152,7' is no number; write a decimal point"),
        ("batch;kernels;latency\n1;6,856;6,5\n", "2: kernels: '6,856' is no whole number"),
        ("batch,latency\n1,6,5\n", "2: has 3 cells, the header has 2"),
    ],
)
def test_other_decimal_commas_are_refused(tmp_path: Path, text: str, message: str) -> None:
    """A comma is a decimal point only beside semicolons and where no number has a point; else its
    line and column are named.
    """
    with pytest.raises(UserError, match=f"table.csv:{message}"):
        read_csv_rows(csv_file(tmp_path, text))


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    """Empty lines above and between the rows count, and rows without a value in any cell are left
    out.
    """
    with pytest.raises(UserError, match=r"table.csv:7: tp: 'fast' is no number"):
        read_csv_rows(csv_file(tmp_path, "\n \nbatch,tp\n\n1,10\n,\n2,fast\n"))
    found = read_csv_rows(csv_file(tmp_path, "\n\nbatch,tp\n\n1,10\n , \n2,20\n"))
    assert [(row.batch, row.throughput) for row in found.rows] == [(1, 10), (2, 20)]


def test_a_file_that_is_cut_off(tmp_path: Path) -> None:
    """A row that ends early, or inside quotation marks, is refused: what it lacks was not left
    empty.
    """
    with pytest.raises(UserError, match=r"table.csv:3: has 1 cells, the header has 2"):
        read_csv_rows(csv_file(tmp_path, "batch,tp\n1,10\n2"))
    with pytest.raises(UserError, match=r"table.csv: is no table: .*end of data"):
        read_csv_rows(csv_file(tmp_path, 'batch,kernels\n1,10\n2,"6,8'))


def test_thousands_and_other_decorations(tmp_path: Path) -> None:
    """Grouped thousands, per cent, times signs, empty cells and a byte-order mark are read as they
    are meant.
    """
    text = (
        '\ufeffbatch,kernels,speedup,top1,latency_ms\n1,"6,856",0.90x,79.5'
        ' %,\n2,"1,234,567",1.10×,n/a,-\n\n'
    )
    found = read_csv_rows(csv_file(tmp_path, text))
    assert [(row.kernels, row.speedup, row.top1, row.latency_ms) for row in found.rows] == [
        (6856, 0.9, 79.5, None),
        (1234567, 1.1, None, None),
    ]
    tabs = read_csv_rows(csv_file(tmp_path, "batch\tkernel_time\tkernels\n1\t1.5\t6,856\n"))
    assert (tabs.rows[0].kernel_ms, tabs.rows[0].kernels) == (1.5, 6856)


def test_a_label_may_state_its_condition(tmp_path: Path) -> None:
    """Sizes and batches that every label states are columns; those of some labels alone stay where
    they are.
    """
    found = read_csv_rows(csv_file(tmp_path, "arm,tp\nbs=1 dense,10\nbs=8 dense keep=2,20\n"))
    assert [(row.label, row.batch) for row in found.rows] == [("dense", 1), ("dense keep=2", 8)]
    some = read_csv_rows(csv_file(tmp_path, "arm,tp\nbs=1 dense,10\ndense,20\n"))
    assert [(row.label, row.batch) for row in some.rows] == [("bs=1 dense", None), ("dense", None)]


def test_a_mapping_wins(tmp_path: Path) -> None:
    """A mapped column is what it is mapped to, whatever its name; the others are still guessed."""
    found = read_csv_rows(
        csv_file(tmp_path, "n,speed,tp\n4,10,3\n"), mapping={"n": "batch", "speed": "throughput"}
    )
    assert (found.rows[0].batch, found.rows[0].throughput) == (4, 10.0)
    assert found.unknown == ("tp",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("batch,tp\n", "has no rows below its header"),
        ("1,2\n3,4\n", "its first line holds numbers"),
        ("batch,batch\n1,2\n", "stands there twice"),
        ("name,colour\ndense,red\n", "no column is a measurement"),
        ("batch,tp\n1,fast\n", r":2: tp: 'fast' is no number"),
        ("batch,tp\n1.5,10\n", r":2: batch: '1.5' is no whole number"),
        ("batch,latency\n1,+11.3%\n", r":2: latency: '\+11.3%' is no latency_ms"),
        ("batch,tp\n0,10\n", r":2: batch: "),
        ("batch,top1\n1,140\n", r":2: top1: "),
        (b"batch,tp\n1,\xff\n", "is not UTF-8"),
        ("tp,throughput\n1,2\n", None),
    ],
)
def test_bad_files(tmp_path: Path, text: str | bytes, message: str | None) -> None:
    """Whatever is no table of measurements is an error that names the file, the line and the
    column.
    """
    path = csv_file(tmp_path, text)
    if message is None:
        assert read_csv_rows(path).unknown == ("throughput",)
        return
    with pytest.raises(UserError, match=message) as caught:
        read_csv_rows(path)
    assert str(path) in str(caught.value)
    with pytest.raises(UserError, match="there is no such file"):
        read_csv_rows(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"bsz": "batch"}, "unknown column 'bsz'; did you mean 'bs'"),
        ({"bs": "btch"}, "unknown field 'btch'; did you mean 'batch'"),
        ({"bs": "throughput", "tp": "throughput"}, "are both mapped to 'throughput'"),
    ],
)
def test_wrong_mappings(tmp_path: Path, mapping: dict[str, str], message: str) -> None:
    """A column or field that does not exist gets the nearest one."""
    with pytest.raises(UserError, match=message):
        read_csv_rows(csv_file(tmp_path, "bs,tp\n1,10\n"), mapping=mapping)


def test_mappings_of_the_command_line() -> None:
    """`COLUMN=FIELD`; a column may hold an equals sign."""
    assert parse_mapping(["tp=throughput", "a=b=batch"]) == {"tp": "throughput", "a=b": "batch"}
    with pytest.raises(UserError, match="write COLUMN=FIELD"):
        parse_mapping(["tp"])
    with pytest.raises(UserError, match="did you mean 'throughput'"):
        parse_mapping(["tp=troughput"])


@pytest.mark.parametrize(
    ("header", "cell", "share"),
    [
        ("sparsity (%)", "50", 0.5),
        ("sparsity_pct", "0.5", 0.005),
        ("sparsity [percent]", "1%", 0.01),
        ("sparsity", "50 %", 0.5),
        ("sparsity", "0.5", 0.5),
    ],
)
def test_shares_in_per_cent(tmp_path: Path, header: str, cell: str, share: float) -> None:
    """A share in per cent is read as one where its cell or its header names them; above 1 it is
    refused where none does.
    """
    text = f"arm,{header},latency (ms)\ndense,0,100\nlarosa,{{}},90\n"
    found = read_csv_rows(csv_file(tmp_path, text.format(cell)))
    assert found.rows[1].sparsity == pytest.approx(share)
    if header == "sparsity":
        with pytest.raises(UserError, match=r"table.csv:3: sparsity: .* not 50"):
            read_csv_rows(csv_file(tmp_path, text.format("50")))


# ---- pipe tables of Markdown reports ----


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
