"""Costs: what an arm costs in quality, beside what it brings in speed; which neither runtime nor KV cache changes."""

import json

import pandas as pd

SPEED_ONLY = ("runtime", "kv_cache")
"""Overrides that quality does not depend on."""
ALIKE = ("model", "weights", "method", "dtype", "attention", "asked", "judge")


def judged(speeds: pd.DataFrame, qualities: pd.DataFrame) -> pd.DataFrame:
    """Rows of the view `speedup`, each with the newest row of `quality` for the same arm and baseline, if there is one.

    Columns that both have are those of `speedup`; the others of `quality` are empty where the arm was not judged.
    """
    newest = _keyed(qualities.sort_values("measured_at")).drop_duplicates(list(ALIKE), keep="last")
    more = [name for name in newest.columns if name not in speeds.columns]
    found = _keyed(speeds).merge(newest[[*{*ALIKE, *more}]], how="left", on=list(ALIKE))
    return found.drop(columns=["asked", "judge"])


def _keyed(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(asked=frame["params"].map(without_speed), judge=frame["baseline"].map(plain_baseline))


def without_speed(params: str) -> str:
    """What was asked of an arm less what quality does not depend on."""
    asked = json.loads(params) if params else {}
    steps = asked if isinstance(asked, list) else [asked]
    kept = [{key: value for key, value in step.items() if key not in SPEED_ONLY} for step in steps]
    return json.dumps([step for step in kept if step], sort_keys=True)


def plain_baseline(text: str) -> str:
    """A baseline in words without the overrides that quality does not depend on."""
    name, bracket, inside = text.partition(" [")
    left = [part for part in inside.rstrip("]").split(", ") if part and not part.startswith(SPEED_ONLY)]
    return f"{name}{bracket}{', '.join(left)}]" if left else name
