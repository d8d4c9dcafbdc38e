"""Numbers before nouns: `1 thread`, `2 threads`."""

import ast
import re
from pathlib import Path

from webapp.screens.compare import QUESTION_PARTS

ROOT = Path(__file__).parents[1]
FOLDERS = (
    *("orchestrator/commands", "orchestrator/plan", "sweeps/analysis/audit"),
    *("webapp/publish", "webapp/screens"),
)
"""What prints counts of things of which there may be one."""
PLURAL = re.compile(
    r" (?:more |new )*(?:arms|attempts|blocks|comparisons|cores|files|images|items|jobs|kernels"
    r"|outcomes|pairs|rows|threads|tokens|visits)\b"
)
NEVER_ONE = {
    ("preview.py", "enough"): "as many images as `same` takes",
    ("devices.py", "len(own)"): "a counter is frozen in several rows",
    ("devices.py", "len(wrong)"): "printed from two on",
    ("records.py", "wrong.sum()"): "printed from two on",
    ("records.py", "right"): "with two decimals",
    ("pages.py", "asked.pairs_max"): "two at least",
    ("point.py", "precision.pairs_max"): "two at least",
    ("promise.py", "len(rows)"): "printed where more than the chart's are there",
    ("promise.py", "len(arms)"): "printed from two on",
    ("sql.py", "ROWS"): "a limit",
}
"""Numbers that are never 1, by file and expression, and why."""


def numbers_before_plurals(path: Path) -> set[tuple[str, str]]:
    """The file and the expression of each number in a string before a noun in the plural."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            for number, after in zip(node.values, node.values[1:], strict=False):
                if (
                    isinstance(number, ast.FormattedValue)
                    and isinstance(after, ast.Constant)
                    and PLURAL.match(str(after.value))
                ):
                    found.add((path.name, ast.unparse(number.value)))
    return found


def test_one_of_a_thing_is_no_plural() -> None:
    """A number that may be 1 is printed by `count`, in commands, plans, audits and pages."""
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    assert set().union(*map(numbers_before_plurals, paths)) == NEVER_ONE.keys()


def test_numbers_before_plurals_are_found(tmp_path: Path) -> None:
    """Whatever their format; of `count` none is."""
    file = tmp_path / "x.py"
    file.write_text(
        """f"{n} threads {count(m, 'job')} and {k:,} more rows of {j} 'arms'" """.strip()
    )
    assert numbers_before_plurals(file) == {("x.py", "n"), ("x.py", "k")}


def test_the_columns_of_two_sides() -> None:
    """What the page Compare calls answers of one arm, with one of a thing."""
    for name, text in {
        "prompt_tokens": "1 token",
        "new_tokens": "1 new token",
        "requested_threads": "1 thread",
    }.items():
        assert QUESTION_PARTS[name].format(1.0, s="") == text
