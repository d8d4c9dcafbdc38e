"""`breakeven import` of profilers' files: recognised by content, what they cover is printed, and
nothing is half imported.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from orchestrator.commands.import_files import file_format
from store.errors import StoreError
from tests.fixtures.device_traces import a_trace
from tests.fixtures.ncu_tables import CASTS, PREAMBLE, details_page, raw_page
from tests.fixtures.nsys_exports import write_nsys
from tests.fixtures.outcomes import OUTCOME
from tests.orchestrator.commands import breakeven

COMPARISON_ID = OUTCOME.job.comparison_ids()[0]
MARKS = (f"breakeven:comparison:{COMPARISON_ID}", "breakeven:side:arm", "breakeven:arm:1")


def profiles(folder: Path) -> int:
    """How many profiles the store in `folder` holds."""
    with closing(sqlite3.connect(folder / "breakeven.db")) as connection:
        return int(connection.execute("SELECT count(*) FROM profile_row").fetchone()[0])


@pytest.fixture
def outcome_file(tmp_path: Path) -> Path:
    """An outcome of the comparison that `MARKS` name."""
    path = tmp_path / "outcome.json"
    path.write_text(OUTCOME.model_copy(update={"failures": ()}).model_dump_json())
    return path


def test_outcome_and_profiles_in_one_import(tmp_path: Path, outcome_file: Path) -> None:
    """Outcome, timeline and kernels are imported together, tied, and summed up with what they
    cover; twice changes nothing.
    """
    write_nsys(tmp_path / "trace.sqlite", a_trace(4, marks=MARKS, before=("fill",) * 4), "2021")
    (tmp_path / "report.csv").write_text(
        PREAMBLE + raw_page([each._replace(name="gemm") for each in CASTS], nvtx=" ".join(MARKS))
    )
    names = ("report.csv", outcome_file.name, "trace.sqlite")
    first = breakeven("import", *names, folder=tmp_path)
    assert (first.returncode, first.stderr) == (0, "")
    lines = first.stdout.splitlines()
    assert lines[0] == "1 outcome imported"
    assert lines[1].startswith(
        f"trace.sqlite: imported; the arm of comparison {COMPARISON_ID}: topk"
    )
    assert lines[2] == "  nsys, forwards by 4 ranges breakeven:forward"
    assert "72 kernels profiled under 8 names, 18 per forward (of 76 in the file" in lines[3]
    assert any(line.startswith("report.csv: imported") for line in lines)
    assert (
        "3 kernels profiled under 1 name; they take 16.7 % of the arm's kernel time" in first.stdout
    )
    assert "(of these 3 kernels alone, not of the arm)" in first.stdout

    second = breakeven("import", *names, folder=tmp_path)
    assert second.stdout.count("in the store already, nothing changed") == 2
    assert "0 outcomes imported, 1 were in the store already" in second.stdout
    assert profiles(tmp_path) == 2


def test_profile_without_marks(tmp_path: Path) -> None:
    """A trace of someone else's program needs the number of forwards; without a comparison it is
    stored untied.
    """
    kernels = [f"kernel {number}" for number in range(30)]
    write_nsys(tmp_path / "trace.sqlite", a_trace(1, kernels, ranges=False), "inline")
    unknown = breakeven("import", "trace.sqlite", folder=tmp_path)
    assert (unknown.returncode, len(unknown.stderr.splitlines())) == (2, 1)
    assert "trace.sqlite: it has no ranges breakeven:forward; record it again" in unknown.stderr
    assert "--forwards K" in unknown.stderr
    assert not (tmp_path / "breakeven.db").exists()

    untied = breakeven(
        "import", "trace.sqlite", "--forwards", "3", "--arm", "my arm", folder=tmp_path
    )
    assert "trace.sqlite: imported; tied to no comparison: my arm" in untied.stdout
    assert "what share of the arm's kernel time they take is not known" in untied.stdout
    assert profiles(tmp_path) == 1


def test_details_page_in_utf_16(tmp_path: Path) -> None:
    """A table that PowerShell redirected is read."""
    (tmp_path / "report.csv").write_text(details_page(locale="C"), encoding="utf-16")
    done = breakeven("import", "report.csv", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        "3 kernels profiled under 2 names; what share of the arm's kernel time they take is not"
        " known" in done.stdout
    )


WRONG = {
    "a table of something else": (
        "x.csv",
        b"a;b\n1;2\n",
        "x.csv is none of what can be imported",
        "found a first line 'a;b'",
    ),
    "bytes": ("x.bin", b"\xff\xfe\x00\xd8\x00", "x.bin cannot be read", "neither text nor SQLite"),
    "a report of nsys": (
        "x.nsys-rep",
        b"anything",
        "export it first",
        "nsys export --type sqlite x.nsys-rep",
    ),
    "a cut-off export": (
        "x.sqlite",
        b"SQLite format 3\0" + bytes(10),
        "x.sqlite: it is cut off",
        "export it again",
    ),
}


@pytest.mark.parametrize(("name", "content", "wrong", "right"), WRONG.values(), ids=WRONG)
def test_wrong_files_are_one_line(
    tmp_path: Path, name: str, content: bytes, wrong: str, right: str
) -> None:
    """Whatever is wrong with a file is one line that names it and what would be right, with exit
    code 2; no store is made.
    """
    (tmp_path / name).write_bytes(content)
    done = breakeven("import", name, folder=tmp_path)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert wrong in done.stderr
    assert right in done.stderr
    assert not (tmp_path / "breakeven.db").exists()


def test_one_wrong_file_stops_the_import(tmp_path: Path, outcome_file: Path) -> None:
    """If one of several files is wrong, none is imported."""
    write_nsys(tmp_path / "trace.sqlite", a_trace(4, marks=MARKS))
    (tmp_path / "report.csv").write_text(raw_page().replace('"91.75"', '"91,75"'))
    done = breakeven("import", outcome_file.name, "trace.sqlite", "report.csv", folder=tmp_path)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert (
        "'91,75' is no finite number from 0 on with a decimal point; export it again with LC_ALL=C"
        in done.stderr
    )
    assert not (tmp_path / "breakeven.db").exists()


def test_options_of_the_other_kind(tmp_path: Path, outcome_file: Path) -> None:
    """Options of profiles are refused for outcomes, and those of outcomes for profiles."""
    done = breakeven("import", outcome_file.name, "--forwards", "3", folder=tmp_path)
    assert done.returncode == 2
    assert "--forwards belong to files of nsys and ncu; outcome.json holds outcomes" in done.stderr
    write_nsys(tmp_path / "trace.sqlite", a_trace(4))
    done = breakeven("import", "trace.sqlite", "--sweep", "sweep.yaml", folder=tmp_path)
    assert done.returncode == 2
    assert "--sweep sweep.yaml links outcomes, and trace.sqlite is a profile" in done.stderr


def test_formats_by_content(tmp_path: Path) -> None:
    """Names do not matter: content does."""
    write_nsys(tmp_path / "a.db", a_trace(1))
    (tmp_path / "b.txt").write_text(raw_page())
    (tmp_path / "c.ndjson").write_text('{"job": 1}\n')
    assert [file_format(tmp_path / name) for name in ("a.db", "b.txt", "c.ndjson")] == [
        "nsys",
        "ncu",
        "outcomes",
    ]
    assert file_format(tmp_path) == "outcomes"
    with pytest.raises(StoreError, match="cannot be read"):
        file_format(tmp_path / "none.csv")
