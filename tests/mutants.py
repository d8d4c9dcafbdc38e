"""Mutation test of statistics, recording, failure isolation and token code: `python -m
tests.mutants --seed 1 --count 20`.

Each mutant is one change in a copy of the tree: another comparison, another sign, a constant one
larger, a dropped `not`. It is killed if a test that covers its file fails. A survivor is a missing
test, or a change without effect.
"""

import argparse
import ast
import copy
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
STORED = [
    "tests/store/test_record.py",
    "tests/store/test_accuracy.py",
    "tests/store/test_language.py",
]
METHODS = "tests/workers/test_methods.py"
COVER = {
    "sweeps/stats/*.py": ["tests/sweeps", *STORED],
    "store/write/record.py": ["tests/store"],
    "store/derive/*.py": ["tests/store"],
    "sweeps/analysis/audit/*.py": [
        "tests/sweeps/test_audit_rules.py",
        "tests/sweeps/test_audit.py",
    ],
    "orchestrator/loop/dispatcher.py": [
        "tests/orchestrator/test_failing_arms.py",
        "tests/orchestrator/test_dispatcher.py",
    ],
    "workers/token_reduction/token_ops.py": ["tests/workers/test_token_ops.py", METHODS],
    "workers/token_reduction/__init__.py": [
        "tests/workers/test_align.py",
        "tests/workers/test_budget.py",
        "tests/workers/test_tome_cpp.py",
        METHODS,
    ],
}
"""Files that are changed, and the tests that cover them."""
SLOW = ("tests/store/test_postgresql.py", "tests/store/test_processes.py")
TIMEOUT_S = 300.0
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}


class Mutant(NamedTuple):
    """One change of one expression."""

    path: str
    node: ast.expr
    changed: ast.expr

    def __str__(self) -> str:
        return (
            f"{self.path}:{self.node.lineno}  {ast.unparse(self.node)}  -> "
            f" {ast.unparse(self.changed)}"
        )

    def apply(self, text: str) -> str:
        """The file with the changed expression in its place."""
        lines = text.encode().splitlines(keepends=True)
        assert self.node.end_lineno is not None
        assert self.node.end_col_offset is not None
        start = sum(map(len, lines[: self.node.lineno - 1])) + self.node.col_offset
        end = sum(map(len, lines[: self.node.end_lineno - 1])) + self.node.end_col_offset
        return (
            text.encode()[:start] + f"({ast.unparse(self.changed)})".encode() + text.encode()[end:]
        ).decode()


def variants(node: ast.AST) -> Iterator[ast.expr]:
    """The changes of one expression, if it has any."""
    match node:
        case ast.Compare():
            for place, operator in enumerate(node.ops):
                if type(operator) in COMPARISONS:
                    changed = copy.deepcopy(node)
                    changed.ops[place] = COMPARISONS[type(operator)]()
                    yield changed
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS and not isinstance(
            left, ast.Constant | ast.JoinedStr
        ):
            yield ast.BinOp(left, OPERATORS[type(op)](), right)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.BoolOp(op=op, values=values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield ast.Constant(value + 1)


def mutants(path: str) -> list[Mutant]:
    """All mutants of a file but those of annotations, assertions, f-strings and decorators."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = []
        if isinstance(node, ast.AnnAssign | ast.arg):
            parts = [node.annotation]
        elif isinstance(node, ast.FunctionDef):
            parts = [node.returns, *node.decorator_list]
        elif isinstance(node, ast.Assert | ast.JoinedStr):
            parts = [node]
        skipped.update(inner for part in parts if part is not None for inner in ast.walk(part))
    kept = [node for node in ast.walk(tree) if node not in skipped and isinstance(node, ast.expr)]
    return [Mutant(path, node, changed) for node in kept for changed in variants(node)]


def drawn(seed: int, count: int) -> list[Mutant]:
    """Mutants drawn without replacement, the pattern of `COVER` first: small files count as much as
    large ones.
    """
    draw = random.Random(seed)
    files = {
        pattern: [str(file.relative_to(ROOT)) for file in sorted(ROOT.glob(pattern))]
        for pattern in COVER
    }
    pools = {
        pattern: [mutant for file in paths for mutant in mutants(file)]
        for pattern, paths in files.items()
    }
    found: list[Mutant] = []
    while len(found) < count and any(pools.values()):
        pool = pools[draw.choice([pattern for pattern, left in pools.items() if left])]
        found.append(pool.pop(draw.randrange(len(pool))))
    return found


def killed(mutant: Mutant, tree: Path) -> bool:
    """Whether a test that covers the file fails in the copy `tree` with this change."""
    tests = next(tests for pattern, tests in COVER.items() if Path(mutant.path).match(pattern))
    file = tree / mutant.path
    before = file.read_text(encoding="utf-8")
    file.write_text(mutant.apply(before), encoding="utf-8")
    nearest = f"tests/{mutant.path.partition('/')[0]}/test_{Path(mutant.path).stem}.py"
    there = [test for test in dict.fromkeys([nearest, *tests]) if (tree / test).exists()]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        "-n",
        "0",
        *there,
    ]
    command += [f"--ignore={path}" for path in SLOW]
    try:
        return (
            subprocess.run(
                command, cwd=tree, capture_output=True, timeout=TIMEOUT_S, check=False
            ).returncode
            != 0
        )
    except subprocess.TimeoutExpired:
        return True
    finally:
        file.write_text(before, encoding="utf-8")


def main(arguments: list[str] | None = None, kills: Callable[[Mutant, Path], bool] = killed) -> int:
    """Print each mutant as killed or survived; the exit code is 0 when none survives."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    given = parser.parse_args(arguments)
    survivors = 0
    with tempfile.TemporaryDirectory(prefix="breakeven-mutants-") as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".*", "__pycache__", "*.db"))
        for mutant in drawn(given.seed, given.count):
            dead = kills(mutant, tree)
            survivors += not dead
            print("killed  " if dead else "SURVIVED", mutant, flush=True)
    print(f"{given.count - survivors} killed, {survivors} survived")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
