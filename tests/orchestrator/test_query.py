"""`breakeven query` prints rows while they are found, in every format, and states why there are no
more.
"""

import csv
import io
import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator import text_table
from orchestrator.commands import query
from orchestrator.commands.query import FORMS, QueryFormat
from orchestrator.text_table import markdown_row, table_lines
from store.read import user_sql
from store.read.user_sql import open_query, run_query
from tests.orchestrator.commands import ROOT, breakeven

ENDLESS = "WITH RECURSIVE a(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM a)"
ALL = ("--rows", "1000000000")
FORMATS: tuple[QueryFormat, ...] = ("table", "csv", "json", "markdown")


@pytest.mark.parametrize("form", ["table", "json"])
def test_rows_leave_before_the_last_is_found_and_a_closed_pipe_ends_it(
    stored: Path, form: QueryFormat
) -> None:
    """Of a result without end the first rows can be read; when their reader goes away the command
    ends without a word.
    """
    arguments = ["query", f"{ENDLESS} SELECT x FROM a", "--format", form, "--seconds", "600", *ALL]
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "BREAKEVEN_DB": str(stored / "breakeven.db"),
    }
    pipe, command = subprocess.PIPE, [sys.executable, "-m", "orchestrator", *arguments]
    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True) as running:
        assert running.stdout
        assert running.stderr
        lines = [running.stdout.readline() for _ in range(5000)]
        assert any("1000" in line for line in lines)
        assert running.poll() is None
        running.stdout.close()
        assert running.wait(timeout=120) in {0, 1}
        assert running.stderr.read() == ""


def test_rows_of_a_table_are_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """After those that the widths are made of, or as many as came in time; later values that are
    wider are printed whole.
    """
    taken = 0

    def rows() -> Iterator[tuple[int, str]]:
        nonlocal taken
        for taken in range(1, 5001):
            yield taken, "wider than before" if taken > text_table.FIRST_ROWS else "x"

    lines = table_lines(("n", "text"), rows())
    assert next(lines) == "   n  text"
    assert taken == text_table.FIRST_ROWS
    assert [next(lines) for _ in range(text_table.FIRST_ROWS)][-1] == "1000  x"
    assert taken == text_table.FIRST_ROWS
    assert next(lines) == "1001  wider than before"
    assert taken == text_table.FIRST_ROWS + 1
    monkeypatch.setattr(text_table, "FIRST_SECONDS", 0.0)
    next(table_lines(("n", "text"), rows()))
    assert taken == 1


def test_the_same_as_from_the_whole_result(stored: Path) -> None:
    """Each format holds what it would hold if it were made of all rows at once, also of none."""
    assert set(FORMATS) == set(FORMS)
    for sql in (
        "SELECT * FROM speedup ORDER BY comparison_id",
        "SELECT tokens, arm_label FROM speedup WHERE 0",
    ):
        found = run_query(str(stored / "breakeven.db"), sql)
        shown = {
            form: breakeven("query", sql, "--format", form, folder=stored).stdout
            for form in FORMATS
        }
        assert list(csv.reader(io.StringIO(shown["csv"]))) == [
            list(found.columns),
            *(["" if value is None else str(value) for value in row] for row in found.rows),
        ]
        records = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
        for record in records:
            record["params"] = json.loads(record["params"])
        assert shown["json"] == json.dumps(records, indent=1) + "\n"
        assert shown["table"].splitlines() == list(table_lines(found.columns, found.rows))
        rows = [found.columns, ["---"] * len(found.columns), *found.rows]
        assert shown["markdown"].splitlines() == [markdown_row(row) for row in rows]


@pytest.mark.parametrize("form", ["table", "json"])
def test_memory_does_not_grow_with_the_rows(stored: Path, form: QueryFormat) -> None:
    """Of 4 MB of text in 4 000 rows a few are held at a time."""
    sql = f"{ENDLESS} SELECT x, hex(zeroblob(500)) FROM a"
    with open_query(str(stored / "breakeven.db"), sql, rows=4_000, seconds=600) as found:
        tracemalloc.start()
        size = sum(len(text) for text in FORMS[form](found.columns, found))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert (found.returned, found.limit) == (4_000, "rows")
    assert size > 4_000_000
    assert peak < 2_000_000


def test_limits_are_stated_at_the_end(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows up to a limit are printed; which it was, and what to do, follows on stderr."""
    done = breakeven(
        "query", f"{ENDLESS} SELECT x FROM a", "--rows", "3", "--format", "csv", folder=stored
    )
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "x\n1\n2\n3\n",
        "only the first 3 rows; --rows takes more\n",
    )
    monkeypatch.setattr(user_sql, "RESULT_BYTES", 1000)
    done = breakeven(
        "query",
        f"{ENDLESS} SELECT hex(zeroblob(100)) AS x FROM a",
        "--format",
        "csv",
        folder=stored,
    )
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 6)
    assert done.stderr.startswith("only the first 5 rows; their texts and blobs are ")
    assert query.ENDED_BY["bytes"] in done.stderr


@pytest.mark.parametrize("form", ["csv", "json"])
def test_what_is_refused_later_states_how_much_was_printed(stored: Path, form: QueryFormat) -> None:
    """A statement that runs out of time leaves whole lines, an error with their number, and JSON
    that nothing takes for whole.
    """
    late = f"{ENDLESS} SELECT x FROM a WHERE x <= 1500 OR x < 0"
    done = breakeven("query", late, "--seconds", "2", "--format", form, *ALL, folder=stored)
    assert done.returncode == 2
    assert "query refused: it took longer than 2 s" in done.stderr
    # sqlite3 holds one row until it has the next
    assert done.stderr.endswith("; only the first 1,499 rows are printed\n")
    assert done.stdout.count("1499") == 1
    if form == "json":
        with pytest.raises(json.JSONDecodeError):
            json.loads(done.stdout)
    else:
        assert len(done.stdout.splitlines()) == 1500


def test_what_is_refused_at_once_prints_nothing(stored: Path) -> None:
    """No headings of a result that does not exist."""
    for sql in ("SELECT nothing FROM speedup", f"{ENDLESS} SELECT max(x) FROM a GROUP BY x < 0"):
        done = breakeven("query", sql, "--seconds", "0.2", "--format", "csv", folder=stored)
        assert (done.returncode, done.stdout) == (2, "")
        assert "are printed" not in done.stderr
