"""`breakeven import` of outcomes with one value changed: each is refused in one line, or holds
nothing that cannot be.
"""

import copy
import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from orchestrator.commands.import_files import read_outcomes
from store.errors import StoreError
from store.open.engine import connect, disposing
from store.write.record import record_imported
from sweeps.model.outcome import Outcome
from tests.fixtures.sql_rows import rows
from tests.orchestrator.commands import breakeven

FIXTURES = Path(__file__).parents[1] / "fixtures"
REAL = {
    name: json.loads((FIXTURES / f"real_{name}.json").read_text())
    for name in ("latency", "profile")
}
"""Outcomes of `python -m workers.run` on a shared CPU: dense and TopK on 32 pixels."""
HOSTILE = {
    "null": None,
    "text": "NaN",
    "NUL": "a\0b",
    "minus": -1,
    "zero": 0,
    "true": True,
    "half": 0.5,
    "million": 1_000_000,
    "huge": 1.2e297,
    "nan": float("nan"),
    "64 bits": 2**63,
    "list": [],
    "map": {},
}
AMOUNT = frozenset({"zero", "half", "million"})
NUMBER = AMOUNT | {"minus"}
POSSIBLE = (
    ("environment.facts.*", {"text"}),
    ("system_series.*", NUMBER | {"null"}),
    ("system_metrics.*", NUMBER),
    ("job.protocol.*_s", {"half", "million"}),
    ("job.protocol.half_width", {"half"}),
    ("job.protocol.*", {"million", "list"}),
    ("job.condition.seed", {"million", "minus"}),
    ("job.condition.threads", {"null"}),
    ("job.condition.*", {"million", "text"}),
    ("job.arms.overrides.image_size", {"million"}),
    ("job.arms.stack.params.layers", {"million", "zero"}),
    ("job.arms.stack.*", {"million", "text"}),
    ("job.*", {"million", "list", "map"}),
    ("arms.gmacs*", AMOUNT),
    ("arms.metrics.n", {"million", "zero", "null"}),
    ("arms.metrics.name", {"text"}),
    ("arms.metrics.value", AMOUNT),
    ("arms.metrics", {"list"}),
    ("arms.*_s", {"half", "zero", "null"}),
    ("arms.warmup_forwards", {"million", "zero", "null"}),
    ("arms.trace", {"million", "zero", "list"}),
    ("arms.trainable_parameters", {"million", "zero"}),
    ("arms.implementation", {"text"}),
    ("arms.*", {"million"}),
    ("samples.seconds", {"half"}),
    ("samples.bursts", {"half", "list", "null"}),
    ("profiles.activities.name", {"text"}),
    ("profiles.activities.seconds", {"half", "zero"}),
    ("profiles.activities.*", AMOUNT | {"null"}),
    ("profiles.activities", {"list"}),
    ("profiles.changes.*.value", {"zero"}),
    ("profiles.changes.*.low", {"zero", "minus"}),
    ("profiles.changes.*.high", AMOUNT),
    ("profiles.*speedup.low", {"half"}),
    ("profiles.*speedup.value", {"half"}),
    ("profiles.*speedup.high", {"million"}),
    ("profiles.alloca*", AMOUNT | {"null"}),
    ("profiles.launches", AMOUNT),
    ("profiles.kernel_time_share", {"zero", "half", "null"}),
    ("profiles.profiled_wall_s", {"zero", "half", "null"}),
    ("profiles.rounds", {"million", "null"}),
    ("profiles.forwards", {"million"}),
    ("profiles.*s", {"map", "null"}),
    ("profiles.*", {"null"}),
    ("peaks.g*", {"half", "million"}),
    ("peaks.*", {"text", "null"}),
    ("*", {"text", "null", "map", "list"}),
)
"""Values that a field may have, beside its own: what is not listed here is to be refused. The first
name that fits counts."""


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """All places in an outcome; of lists the last entry."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list) and value:
        yield from places(value[-1], (*path, len(value) - 1))


@cache
def changed_outcomes() -> tuple[tuple[str, str, str], ...]:
    """Name of the place, of the value, and the outcome as JSON, for each field once."""
    found, seen = [], set[tuple[str, int]]()
    for document in REAL.values():
        for path in places(document):
            name = ".".join(step for step in path if isinstance(step, str))
            if (name, len(path)) in seen:
                continue
            seen.add((name, len(path)))
            for word, value in HOSTILE.items():
                changed = copy.deepcopy(document)
                inner = changed
                for step in path[:-1]:
                    inner = inner[step]
                if (type(inner[path[-1]]), inner[path[-1]]) != (type(value), value):
                    inner[path[-1]] = value
                    found.append((name, word, json.dumps(changed)))
    return tuple(found)


@pytest.mark.parametrize("name", REAL)
def test_real_outcomes_are_read(name: str) -> None:
    """What the runner printed is read as it was."""
    path = FIXTURES / f"real_{name}.json"
    (found,) = read_outcomes(path)
    assert found == Outcome.model_validate_json(path.read_text())


def test_every_field_with_hostile_values(tmp_path: Path) -> None:
    """No traceback, one line for each that is refused, and what is accepted can be: it is stored,
    and the views hold it.
    """
    file, accepted, refusals, wrong = tmp_path / "outcome.json", list[Outcome](), list[str](), []
    for name, word, text in changed_outcomes():
        file.write_text(text)
        try:
            (found,) = read_outcomes(file)
        except StoreError as error:
            refusals.append(str(error))
            continue
        possible = next(values for pattern, values in POSSIBLE if fnmatchcase(name, pattern))
        wrong += [] if word in possible else [(name, word)]
        if found not in accepted:
            accepted.append(found)
    assert wrong == []
    assert len(refusals) > 2000
    assert {len(refusal.splitlines()) for refusal in refusals} == {1}
    assert 100 < len(accepted) < 400
    with disposing(connect(str(tmp_path / "s.db"))) as engine:
        assert record_imported(engine, accepted[::5]) == len(accepted[::5])
        for view in ("arm", "speedup", "effect", "profile", "kernel", "execution", "metric"):
            assert rows(engine, f"SELECT * FROM {view}")
        # whatever failed in one outcome was measured in another
        assert rows(engine, "SELECT * FROM failures") == []


NAMED = {
    "a budget of gmacs below zero": (
        "latency",
        ("job", "arms", 1, "stack", 0, "params"),
        {"budget": {"gmacs": -1e308}},
    ),
    "a parameter that is none": (
        "latency",
        ("job", "arms", 1, "stack", 0, "params"),
        {"keep_rate": 0.5, "colour": 1},
    ),
    "a method for other models": ("latency", ("job", "arms", 1, "stack", 0, "method"), "larosa"),
    "a forward that is longer than the job": ("latency", ("samples", "seconds", 0, 0), 1e5),
    "another device": ("latency", ("environment", "device"), "cuda"),
    "profiles of a latency job": ("latency", ("profiles",), REAL["profile"]["profiles"]),
    "a unit of another kind": ("latency", ("arms", 0, "metrics", 0, "unit"), "MiB"),
    "a flag of nobody": ("latency", ("flags",), ["contended,thermal_slowdown"]),
    "a baseline that is not there": ("profile", ("profiles", 1, "baseline"), 7),
    "classes beyond the wall": ("profile", ("profiles", 1, "times", "device"), 50.0),
}


@pytest.mark.parametrize(("document", "path", "value"), NAMED.values(), ids=NAMED)
def test_named_impossibilities(
    tmp_path: Path, document: str, path: tuple[str | int, ...], value: Any
) -> None:
    """Each is refused in one line that names the file."""
    changed = copy.deepcopy(REAL[document])
    inner = changed
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    file = tmp_path / "o.json"
    file.write_text(json.dumps(changed))
    with pytest.raises(StoreError, match=r"o\.json") as caught:
        list(read_outcomes(file))
    assert len(str(caught.value).splitlines()) == 1


def test_impossible_and_empty_files_exit_2(tmp_path: Path) -> None:
    """By the command: exit code 2, one line, no store."""
    wrong = copy.deepcopy(REAL["latency"])
    wrong["samples"]["seconds"][0][0] = "NaN"
    (tmp_path / "folder").mkdir()
    for name, text in {
        "nan.json": json.dumps(wrong),
        "empty.json": "",
        "blank.json": "\n \n",
        "folder/empty.json": "",
    }.items():
        (tmp_path / name).write_text(text)
    for given in ("nan.json", "empty.json", "blank.json", "folder"):
        done = breakeven("import", given, folder=tmp_path)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
        assert not (tmp_path / "breakeven.db").exists()
