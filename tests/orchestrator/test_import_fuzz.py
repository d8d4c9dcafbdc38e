"""`breakeven import` of real outcomes with one field changed: each change is refused in one line,
flagged, or can be true, which a table states with the reason.
"""

import copy
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from orchestrator.commands.import_files import read_outcomes
from store.errors import StoreError
from store.open.engine import connect, disposing
from store.write.record import record_imported
from sweeps.model.flags import COUNTS_UNCHECKED
from sweeps.model.kinds import KINDS
from sweeps.model.outcome import Outcome
from tests.fixtures.sql_rows import rows
from tests.orchestrator.commands import ROOT

FIXTURES = Path(__file__).parents[1] / "fixtures"
REFERENCES = sorted((ROOT / "sweeps" / "references").glob("*.jsonl"))
REAL = [
    *(FIXTURES / "real_outcomes.jsonl").read_text().splitlines(),
    *(path.read_text().splitlines()[0] for path in REFERENCES),
    *((FIXTURES / f"real_{name}.json").read_text() for name in ("latency", "profile")),
]
"""Outcomes of `python -m workers.run`: of every kind on a CPU, of an H100, and two of an earlier
protocol."""
NAMED_FIELD = r"[^\n]*o\.json, line 1: [^\n]+"
DRAWN, SEED, MAX_UNEXPLAINED = 300, 35, 2

Change = Callable[[Any], Any]
CHANGES: Mapping[str, Change] = {
    "null": lambda _: None,
    "NaN": lambda _: float("nan"),
    "zero": lambda _: 0,
    "one": lambda _: 1,
    "minus": lambda value: -abs(value) - 1 if is_number(value) else -1,
    "half": lambda value: value / 2 if isinstance(value, float) else 0.5,
    "twice": lambda value: 2 * value if is_number(value) else 2,
    "more": lambda value: value + 1 if is_number(value) else 99,
    "little": lambda value: 1.01 * value if isinstance(value, float) else 3,
    "million": lambda _: 1_000_000,
    "huge": lambda _: 1.2e297,
    "64 bits": lambda _: 2**63,
    "true": lambda _: True,
    "text": lambda value: f"{value}x" if isinstance(value, str) else "x",
    "NUL": lambda _: "a\0b",
    "empty": lambda value: type(value)() if isinstance(value, str | list | dict) else "",
    "list": lambda _: [],
    "map": lambda _: {},
    "turned": lambda value: value[::-1] if isinstance(value, str | list) else [value],
    "shorter": lambda value: value[:-1] if isinstance(value, str | list) else {"a": value},
    "longer": lambda value: [*value, *value[-1:]] if isinstance(value, list) else [[1, 1]],
}


def is_number(value: Any) -> bool:
    """Whether it is a number, which truth is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


UP = "half, twice, more, little, million, one, zero"
POSSIBLE = (
    ("environment.facts*", "*", "another version or driver; a fact may be missing"),
    ("environment.device_name", "*", "another device of the same class"),
    ("host", "*", "another host"),
    ("commit", "*", "another revision of the project"),
    ("process", "*", "another process"),
    ("notes", "*", "notes are free text"),
    ("cores", "*", "pinned to other cores, or not pinned"),
    ("suspects", "list, empty", "no arm is suspected"),
    ("ended_at", UP, "it took a little longer or shorter"),
    ("started_at", UP, "it began a little earlier or later"),
    ("flags", "*", "something else disturbed it, or nothing"),
    ("arms.flags", "*", "something else disturbed the arm, or nothing"),
    ("failures", "list, empty", "no arm failed"),
    ("arms", "turned", "the order of the arms has no meaning"),
    ("arms.warmup_*", UP + ", null", "a longer or shorter warm-up, or none"),
    ("arms.first_call_s", UP + ", null", "a slower or quicker first call"),
    ("arms.threads", UP, "the job leaves the number of threads open"),
    ("arms.parameters", UP, "the catalogue has no number of parameters"),
    ("arms.trainable_parameters", UP, "weights in integers are not trainable"),
    ("arms.implementation", "*", "another implementation ran, or a method has one alone"),
    ("arms.solved*", "map, empty", "nothing had to be solved"),
    ("arms.gmacs*", UP + ", null", "a file of the user, whose MACs only its run counts"),
    ("arms.tokens", "null", "a function, whose size is not known"),
    ("arms.metrics", "list, empty, shorter, turned", "less was measured, in another order"),
    ("arms.metrics.name", "*", "a counter of a method of the user has any name"),
    ("arms.metrics.value", UP, "memory, energy, power and rates, whose readings are not in it"),
    ("arms.metrics.value", "minus", "a change of a margin, a drop or a counter of a method"),
    ("arms.metrics.n", UP + ", null", "of a figure whose readings are not in it"),
    ("arms.metrics.low", "minus, " + UP, "of a figure whose readings are not in it"),
    ("arms.metrics.high", UP, "of a figure whose readings are not in it"),
    ("samples", "null", "not measured: its comparisons are stored as failed"),
    ("samples.seconds", UP, "a slower or quicker forward that is not the median"),
    ("samples.series.*", UP, "a slower or quicker run that is not the median"),
    ("samples.event_seconds", UP, "a quicker forward of the device that is not the median"),
    (
        "samples.bursts",
        UP + ", list, null, empty, shorter, longer",
        "another burst, or none at this visit",
    ),
    ("samples.order", "turned", "another random order"),
    ("samples.inner", UP, "more or fewer forwards in a sample"),
    ("samples.series", "map, empty", "a job without parts that are timed"),
    ("predictions", "null", "not measured: its comparisons are stored as failed"),
    ("predictions.listing", "*", "other images"),
    ("predictions.classes", UP, "data of another number of classes"),
    ("predictions.unreadable", "*", "other images could not be read"),
    ("predictions.labels", "*", "other true classes"),
    ("predictions.*", "text, turned, list, empty, shorter", "other predictions, or of no pair"),
    ("text_scores", "null", "not measured: its comparisons are stored as failed"),
    ("text_scores.listing", "*", "another text"),
    ("text_scores.complete", "true", "the text is no longer"),
    ("text_scores.*", "text, turned, list, empty, shorter", "other scores, or of no pair"),
    (
        "profiles",
        "null, list, empty, shorter",
        "not measured: its comparisons are stored as failed",
    ),
    ("profiles.activities*", "*", "other kernels, of which a profiler sees what it sees"),
    ("profiles.changes*", "*", "the rounds under the profiler are not in it"),
    ("profiles.*speedup*", "*", "the rounds under the profiler are not in it"),
    ("profiles.times", "map, empty", "only kernels were recorded"),
    ("profiles.times.*", UP, "a class that is small beside the wall"),
    ("profiles.profiled_wall_s", UP + ", null", "a profiler that slows more or less"),
    ("profiles.*", UP + ", null", "more or fewer forwards, launches or allocations"),
    ("peaks*", UP + ", null, text, turned, shorter, list, empty", "another machine, or no peaks"),
    ("system_metrics*", "*", "another load, or a machine that offers less"),
    ("system_series*", "*", "another load, or a machine that offers less"),
    ("job.content_hashes*", "*", "the hash of another file"),
    ("job.files*", "*", "another file of the user, or one that stayed with the user"),
    ("job.round", UP, "another visit; a run that refines adds some"),
    ("job.warm", "true", "it ran warm"),
    ("job.pairs", "list, empty, turned, shorter, longer", "other questions, in another order"),
    ("job.protocol_version", UP, "an earlier protocol, whose answers count as stale"),
    ("job.protocol*", "*", "another precision was requested"),
    ("job.arms", "map, empty", "without a stack, as the baseline is"),
    ("job.arms", "longer", "an arm that no question is about"),
    ("job.arms.replicate", UP, "another replicate"),
    ("job.arms.overrides*", "*", "the same work in another number format or runtime"),
    ("job.arms.stack.version", UP, "a method without a version of its own: a file of the user"),
    ("job.arms.stack.params*", "*", "a parameter on which counts do not depend"),
    ("job.arms.stack*", "*", "a method in a file of the user"),
    ("job.condition.seed", "*", "another seed"),
    ("job.condition.model", "*", "a model in a file of the user"),
    ("job.condition.weights", "*", "other weights of the same model"),
    ("job.condition.threads", "null", "the number of threads was left open"),
    ("job.condition.data", "*", "another text or other images"),
    ("job.condition.x_axis*", "*", "a model in a file of the user, with other axes"),
    ("job.condition.values*", "*", "a value that is not the size of the work"),
    ("job.condition.spare_cores", UP, "as many threads are left"),
    ("job.condition.severity", UP, "of no corruption"),
    ("job.condition.*", "null", "as the default is"),
)
"""Fields (the first pattern that fits), changes (`*`: all), and why what is accepted can be true."""


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """All places in an outcome; of lists the first and the last entry."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for place in sorted({0, len(value) - 1}) if value else ():
            yield from places(value[place], (*path, place))


def field(path: tuple[str | int, ...]) -> str:
    """A place without indices."""
    return ".".join(step for step in path if isinstance(step, str))


def drawn_changes(number: int, seed: int) -> Iterator[tuple[str, str, str]]:
    """The field, the change, and the outcome as JSON; each field of each outcome is as likely."""
    draw = random.Random(seed)
    documents = [json.loads(text) for text in REAL]
    fields = [
        (document, sorted({field(path) for path in places(document)})) for document in documents
    ]
    while number:
        document, names = draw.choice(fields)
        name = draw.choice(names)
        path = draw.choice([each for each in places(document) if field(each) == name])
        word = draw.choice(sorted(CHANGES))
        changed = copy.deepcopy(document)
        inner = changed
        for step in path[:-1]:
            inner = inner[step]
        value = CHANGES[word](inner[path[-1]])
        if json.dumps(value) != json.dumps(inner[path[-1]]):
            inner[path[-1]] = value
            number -= 1
            yield name, word, json.dumps(changed)


def why_possible(name: str, word: str, kind: str) -> str | None:
    """The reason that the table has for a change of a field."""
    own = name.removeprefix("job.condition.")
    if own in KINDS[kind].independent_of:
        return "no answer of this kind depends on it"
    fitting = (
        reason
        for pattern, words, reason in POSSIBLE
        if fnmatchcase(name, pattern) and (words == "*" or word in words.split(", "))
    )
    return next(fitting, None)


@pytest.mark.parametrize("text", REAL, ids=[str(number) for number in range(len(REAL))])
def test_real_outcomes_are_read(text: str, tmp_path: Path) -> None:
    """What the runner printed is read as it was, without a flag."""
    file = tmp_path / "outcome.json"
    file.write_text(text)
    assert list(read_outcomes(file)) == [Outcome.model_validate_json(text)]


def test_drawn_changes_are_refused_flagged_or_possible(tmp_path: Path) -> None:
    """Of 300 changes none is a traceback, each refusal is one line with the field, and at most two
    are accepted without a reason; what is accepted is stored, and the views hold it.
    """
    file, accepted, refused, unexplained = tmp_path / "o.json", list[Outcome](), 0, list[str]()
    for name, word, text in drawn_changes(DRAWN, SEED):
        file.write_text(text)
        try:
            (outcome,) = read_outcomes(file)
        except StoreError as error:
            refused += 1
            unexplained += [] if re.fullmatch(NAMED_FIELD, str(error)) else [str(error)]
            continue
        if COUNTS_UNCHECKED not in outcome.flags and not why_possible(name, word, outcome.job.kind):
            unexplained.append(f"{name}: {word}")
        if outcome not in accepted:
            accepted.append(outcome)
    assert len(unexplained) <= MAX_UNEXPLAINED, unexplained
    assert refused > DRAWN // 2
    with disposing(connect(str(tmp_path / "s.db"))) as engine:
        assert record_imported(engine, accepted) == len(accepted)
        for view in ("arm", "effect", "execution", "metric"):
            assert rows(engine, f"SELECT * FROM {view}")
