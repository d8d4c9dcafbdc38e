"""What an arm's counts and metrics must be: all real outcomes state it; for a method, a model or a
version that is not known here nothing is stated.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from sweeps.model.kinds import KINDS
from sweeps.model.outcome import Outcome
from workers.arms.counts import unknown_names, wrong_counts

ROOT = Path(__file__).parents[2]
FILES = (
    *sorted((ROOT / "sweeps" / "references").glob("*.jsonl")),
    ROOT / "tests" / "fixtures" / "real_outcomes.jsonl",
)
REAL = [line for file in FILES for line in file.read_text().splitlines()]


def first(kind: str) -> Any:
    """The first real outcome of a kind, as JSON."""
    return next(found for found in map(json.loads, REAL) if found["job"]["kind"] == kind)


def test_real_outcomes_of_every_kind_hold() -> None:
    """Those of an H100 and of a CPU state what follows from them, and all names are known."""
    outcomes = [Outcome.model_validate_json(line) for line in REAL]
    assert {outcome.job.kind for outcome in outcomes} == set(KINDS)
    assert [problem for outcome in outcomes for problem in wrong_counts(outcome)] == []
    assert [name for outcome in outcomes for name in unknown_names(outcome.job)] == []


def test_unknown_names_are_listed_and_not_counted() -> None:
    """Another method, an older version and another model are listed; what they do is not known, and
    what does not depend on them is checked all the same.
    """
    document = first("latency")
    topk, tome, _ = (arm["stack"][0] for arm in document["job"]["arms"][1:])
    topk["method"], tome["version"] = "elsewhere", 0
    document["arms"][1]["gmacs"] = document["arms"][2]["gmacs"] = 7.0
    document["arms"][1]["batch"] = 64
    outcome = Outcome.model_validate(document)
    assert unknown_names(outcome.job) == ["method elsewhere 1", "method tome 0"]
    assert list(wrong_counts(outcome)) == ["arms.1.batch: 64, expected 1"]
    document = first("generation")
    document["job"]["condition"]["model"] = "llama-2b"
    document["arms"][0]["gmacs"] = 7.0
    outcome = Outcome.model_validate(document)
    assert (unknown_names(outcome.job), list(wrong_counts(outcome))) == (["model llama-2b"], [])


def test_weights_in_a_file_may_have_another_head() -> None:
    """Of a checkpoint the MACs of the head are not known, and the tokens are."""
    document = first("latency")
    document["job"]["condition"]["weights"] = "mine.pth"
    for arm in document["arms"]:
        arm["gmacs"] *= 1.001
    assert list(wrong_counts(Outcome.model_validate(document))) == []
    document["arms"][0]["tokens"] = 999
    assert list(wrong_counts(Outcome.model_validate(document))) == [
        "arms.0.tokens: 999, expected 16"
    ]


def test_counts_import_no_torch() -> None:
    """An import checks outcomes in a process that never loads torch."""
    code = "import sys, workers.arms.counts; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
