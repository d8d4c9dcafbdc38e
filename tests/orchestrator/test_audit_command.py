"""`breakeven audit` and `breakeven import --reference` as their users meet them: sources, formats,
exit codes and wrong usage.
"""

import json
from pathlib import Path

import pytest

from sweeps.importers.tables import shipped_references
from tests.orchestrator.commands import ROOT, breakeven

BACKGROUND = str(ROOT / "sweeps/references/batch_size_sweep_results.csv")


def test_the_background_csv(tmp_path: Path) -> None:
    """The batch sweep contradicts itself: exit code 1, the numbers, what would settle it, and what
    could not be checked.
    """
    done = breakeven("audit", BACKGROUND, "--latency", "per-batch", folder=tmp_path)
    assert done.returncode == 1
    assert done.stdout.splitlines()[0].startswith(
        "batch_size_sweep_results.csv: 3 contradictions in 10 rows, by "
    )
    assert "'tp' is throughput (guessed by its name)" in done.stdout
    assert "'model' is label (guessed by its name)" in done.stdout
    assert "contradiction: throughput_times_latency (rows 3 to 10)" in done.stdout
    assert "throughput × latency is one image" in done.stdout
    assert "to settle it: count the images of one forward" in done.stdout
    assert "device_work: kernel_ms" in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "code"), [("tr_nsys", 1), ("tome", 0)])
def test_shipped_references_by_name(tmp_path: Path, name: str, code: int) -> None:
    """References need no store; notes alone are no contradiction."""
    assert breakeven("audit", name, folder=tmp_path).returncode == code
    assert list(tmp_path.iterdir()) == []


def test_formats(tmp_path: Path) -> None:
    """Markdown is a table of findings, JSON has every field."""
    text = breakeven("audit", "tr_nsys", "--format", "markdown", folder=tmp_path).stdout
    assert text.startswith("# Audit of tr_nsys\n")
    assert "| severity | rule | rows | finding | what would settle it |" in text
    found = json.loads(breakeven("audit", "tr_nsys", "--format", "json", folder=tmp_path).stdout)
    assert found["contradictions"] == 2
    assert {"rule", "severity", "rows", "arms", "sentence", "settles"} == set(found["findings"][0])
    assert found["applied"]["device_work"] == 2


def test_tables_of_a_markdown_report(tmp_path: Path) -> None:
    """Each table has its report, and tables that cannot be audited are named; the worst decides the
    exit code.
    """
    path = tmp_path / "report.md"
    table = (
        "| batch | arm | speedup | latency change |\n|--|--|--|--|\n| 1 | topk | 0.90x |"
        " {change} |\n"
    )
    path.write_text(
        f"# Report\n\n{table.format(change='+11.1%')}\n{table.format(change='-50%')}\n| who"
        " |\n|--|\n| I |\n"
    )
    done = breakeven("audit", str(path), "--format", "json", folder=tmp_path)
    assert done.returncode == 1
    assert [(each["name"], each["contradictions"]) for each in json.loads(done.stdout)] == [
        ("report.md:3", 0),
        ("report.md:7", 1),
    ]
    assert done.stderr.count("the table at line 11 is left out") == 1
    path.write_text("| who |\n|--|\n| I |\n")
    assert breakeven("audit", str(path), folder=tmp_path).returncode == 2


def test_statements_of_the_command_line(tmp_path: Path) -> None:
    """Columns, baseline, break-even and peak are stated by flags."""
    path = tmp_path / "theirs.csv"
    path.write_text("what;Bilder pro s;GFLOPs;n\nnackt;100,0;17,6;196\nmit;900,0;5,6;196\n")
    flags = (
        *("--map", "what=label", "--map", "Bilder pro s=throughput", "--map", "n=tokens"),
        *("--baseline", "nackt", "--break-even", "tokens=400", "--peak-gflops", "1000"),
    )
    done = breakeven("audit", str(path), *flags, folder=tmp_path)
    assert done.returncode == 1
    assert "9.0 times as fast as the unmodified model" in done.stdout
    assert (
        "the break-even at 400 tokens lies above the largest measured, 196: it is extrapolated"
        in done.stdout
    )
    assert "beyond_peak" in done.stdout
    assert "commas in numbers are decimal points" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing",), "it is no file, and no reference that ships"),
        ((BACKGROUND, "--map", "tpp=throughput"), "did you mean 'tp'"),
        ((BACKGROUND, "--baseline", "dense"), "labels are baseline, with_tr"),
        ((BACKGROUND, "--break-even", "pixels=400"), "write AXIS=VALUE"),
        (("tome", "--map", "a=batch"), "--map is for CSV files"),
    ],
)
def test_wrong_usage(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    """Wrong usage is exit code 2 with what would be right."""
    done = breakeven("audit", *arguments, folder=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_sweep_of_the_store(stored: Path) -> None:
    """It is audited by its name; another name gets the nearest one."""
    found = breakeven("audit", "quickstart", folder=stored)
    assert found.returncode == 1, "simulated figures contradict each other"
    assert found.stdout.startswith("quickstart: 16 contradictions in 47 rows, ")
    wrong = breakeven("audit", "quickstrat", folder=stored)
    assert (wrong.returncode, "did you mean quickstart" in wrong.stderr) == (2, True)


def test_import_of_references(tmp_path: Path) -> None:
    """Published tables come into the store by name or file, once, as environments `published: …`,
    and are audited from there.
    """
    done = breakeven("import", "--reference", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == len(shipped_references())
    assert "tr_edwin (4 rows) imported: published: TopK on DeiT-B, Edwin's two cases" in done.stdout
    assert (
        "was in the store already"
        in breakeven("import", "--reference", "tome", folder=tmp_path).stdout
    )
    own = tmp_path / "own.yaml"
    own.write_text(
        "reference: 1\ntitle: Mine\nowner: I\nwhere: here\nrows: [{label: a, batch: 2, throughput:"
        " 3.0}]\n"
    )
    assert (
        "published: Mine" in breakeven("import", "--reference", "own.yaml", folder=tmp_path).stdout
    )
    own.unlink()
    # one row, with which nothing can be compared
    assert breakeven("audit", "own", folder=tmp_path).returncode == 2
    wrong = breakeven("import", "--reference", "tom", folder=tmp_path)
    assert (wrong.returncode, "did you mean 'tome'" in wrong.stderr) == (2, True)


def test_no_rule_could_be_applied(tmp_path: Path) -> None:
    """A row alone, or columns of which no rule is, is no audit: exit code 2, and no rule is listed
    as checked.
    """
    path = tmp_path / "one.csv"
    path.write_text("arm,speedup\ntome,1.3\ntopk,1.4\n")
    done = breakeven("audit", str(path), "--format", "json", folder=tmp_path)
    assert (done.returncode, json.loads(done.stdout)["applied"]) == (2, {})
    assert len(json.loads(done.stdout)["not_applied"]) > 20


def test_a_cell_of_many_digits(tmp_path: Path) -> None:
    """A number of 5,000 digits, or a text as long, is refused in one line that does not repeat
    it.
    """
    path = tmp_path / "long.csv"
    path.write_text(f"latency_ms,arm\n5,{'9' * 5000}\n")
    done = breakeven("audit", str(path), folder=tmp_path)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert ":2: " in done.stderr
    assert len(done.stderr) < 400
