"""Whether a store of an older schema shows the same figures after it is migrated, and again after it is analysed anew.

Speed-ups and break-evens are computed anew by today's statistics and are not compared; what they rest on is.

python -m tests.store.same_figures OLD.db
"""

import math
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from store.engine import connect
from store.record import reanalyse
from sweeps.metrics import METRICS

RENAMED: Mapping[str, Mapping[str, str]] = {
    "speedup": {"gmacs_method": "gmacs_overhead", "method_ms": "arm_ms"},
    "accuracy": {
        "gmacs_method": "gmacs_overhead",
        "lost": "only_baseline_correct",
        "gained": "only_arm_correct",
        "margin_change_tail": "margin_change_p05",
    },
    "quality": {"unscored": "windows_skipped"},
    "language": {
        "gmacs_method": "gmacs_overhead",
        "effective_gb_per_s": "achieved_gb_per_s",
        "machine_gb_per_s": "peak_gb_per_s",
        "rss_fresh_bytes": "rss_isolated_bytes",
        "peak_rss_fresh_bytes": "peak_rss_isolated_bytes",
        "setting_id": "arm_condition_id",
    },
    "break_even": {"varies": "varied_parameter"},
    "failures": {},
    "metric": {},
    "sweep_comparison": {},
}
"""By view of schema 0005 its columns that have another name now; schema 0006 has the names of today."""
YOUNGER = ("effect", "arm", "generation")
"""Views that schema 0005 lacks."""
RATIO = ("verdict", "floor")
RECOMPUTED = {
    "speedup": {"speedup", "speedup_low", "speedup_high", "process_sd", *RATIO},
    "break_even": {
        *("crossing", "x", "x_low", "x_high", "direction", "grid_limited", "points", "why", *RATIO),
        *("fitted", "worst_loss", "largest_gain", "pairs_factor", "more_seconds"),
    },
}
"""By view the columns that follow from the statistics of today."""
EFFECT = {"effect", "effect_low", "effect_high", "analysis_version", "process_sd", *RATIO}
"""Those of the view `effect`, where it compares by ratio."""
VIEWS = {"language": "generation"}
"""Views that have another name now."""
WORDS = {
    "attention": {"manual": "eager"},
    "decoding": {"replay": "teacher_forcing"},
    "metric": {
        "margin_change_tail": "margin_change_p05",
        "gmacs_method_ttft": "gmacs_overhead_ttft",
        "gmacs_method_tpot": "gmacs_overhead_tpot",
        "effective_gb_per_s": "achieved_gb_per_s",
        "machine_gb_per_s": "peak_gb_per_s",
        "rss_fresh": "rss_isolated",
        "peak_rss_fresh": "peak_rss_isolated",
        "cuda_peak_allocated_fresh": "cuda_peak_allocated_isolated",
        "cuda_peak_reserved_fresh": "cuda_peak_reserved_isolated",
    },
}
"""By column the values that have another name now."""
FLAGS = {
    "unsteady": "warmup_not_converged",
    "tokens_differ": "token_trace_mismatch",
    "identity_violated": "consistency_check_failed",
    "fresh_skipped": "isolated_run_skipped",
}
TEXTS = {'"attention":"manual"': '"attention":"eager"', "attention=manual": "attention=eager"}
"""Parts of `params` and `baseline` that have another name now."""

ADDED = {"break_even": ("axis", {"image_size", "batch_size", "threads", "parameter"})}
"""By view a column, and its values in rows that older versions did not derive."""
DERIVED = frozenset({"effect", "break_even"})
"""Views that have rows for amounts, which older versions did not derive."""
ROUNDING = 1e-13
"""Relative difference that another order of floating-point operations makes: SciPy's Wilson interval in place of our own."""

Rows = list[dict[str, Any]]


class Difference(NamedTuple):
    """A row that has no equal."""

    view: str
    row: tuple[Any, ...]
    side: str

    def __str__(self) -> str:
        return f"{self.view}: {self.side} alone: {self.row}"


def rows(path: Path, view: str) -> Rows:
    """The rows of a view, read without the store's code."""
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute(f"SELECT * FROM {view}")
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found]


def present(view: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of an older schema under the names of today."""
    found = {}
    for name, value in row.items():
        new = WORDS.get(name, {}).get(value, value)
        if name.endswith("flags"):
            for old, flag in FLAGS.items():
                new = new.replace(old, flag)
            new = ",".join(sorted(new.split(",")))
        if name in {"params", "baseline"} and isinstance(value, str):
            for old, text in TEXTS.items():
                new = new.replace(old, text)
        found[RENAMED.get(view, {}).get(name, name)] = new
    return found


def compared(old: Mapping[str, Rows], path: Path) -> Iterator[Difference]:
    """The rows of the old views that today's do not have, and the other way round."""
    for view, expected in old.items():
        if not expected:
            continue
        names = list(expected[0])
        mine = _figures(view, expected, names)
        found = [present(view, row) if view not in VIEWS else row for row in rows(path, VIEWS.get(view, view))]
        theirs = _figures(view, found, names)
        for one, other in zip(mine, theirs, strict=False):
            if not all(map(_equal, one, other)):
                yield Difference(view, one, "before")
                yield Difference(view, other, "after")
        for row in mine[len(theirs) :]:
            yield Difference(view, row, "before")
        for row in theirs[len(mine) :]:
            yield Difference(view, row, "after")


def _figures(view: str, found: Rows, names: Sequence[str]) -> list[tuple[Any, ...]]:
    """What must stay of the rows of a view, in order; of a curve the row once, however many crossings it has."""
    kept = []
    column, added = ADDED.get(view, ("", set()))
    old = (row for row in found if row.get(column) not in added and not (view in DERIVED and _is_amount(row)))
    for row in old:
        recomputed = EFFECT if row.get("compared") == "ratio" else RECOMPUTED.get(view, set())
        kept.append(tuple(_sorted_flags(name, row[name]) for name in names if name not in recomputed))
    return sorted(dict.fromkeys(kept) if view == "break_even" else kept, key=str)


def _is_amount(row: Mapping[str, Any]) -> bool:
    return METRICS[row["metric"]].compared == "amount"


def _sorted_flags(name: str, value: Any) -> Any:
    return ",".join(sorted(value.split(","))) if name.endswith("flags") else value


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=ROUNDING, abs_tol=ROUNDING) or (math.isnan(one) and math.isnan(other))
    return bool(one == other)


def check(old: Path) -> tuple[dict[str, int], list[Difference], list[Difference]]:
    """The number of rows of each view, and what differs after migrating a copy of a store, and after analysing it anew."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "copy.db"
        shutil.copy(old, path)
        before = {view: [present(view, row) for row in rows(path, view)] for view in _views(path)}
        engine = connect(str(path))
        migrated = list(compared(before, path))
        reanalyse(engine)
        engine.dispose()
        return {view: len(found) for view, found in before.items()}, migrated, list(compared(before, path))


def _views(path: Path) -> list[str]:
    """The views that are compared, of those that a store has."""
    with closing(sqlite3.connect(path)) as connection:
        there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'view'")}
    return [view for view in (*RENAMED, *YOUNGER) if view in there]


def main(old: Path) -> int:
    counts, migrated, analysed = check(old)
    print(", ".join(f"{view} {count}" for view, count in counts.items()))
    for step, differences in (("migrated", migrated), ("analysed anew", analysed)):
        print(f"{step}: {len(differences)} differences")
        if differences:
            print("\n".join(map(str, differences[:2])))
    return 1 if migrated or analysed else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
