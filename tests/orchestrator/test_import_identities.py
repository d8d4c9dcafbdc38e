"""`breakeven import` refuses outcomes whose fields contradict each other, by the functions with
which a worker states them; what is not known here is flagged; a refusal stops the whole import.
`merge` refuses the same of the rows of another store, and brings the others.
"""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text

from orchestrator.commands.import_files import read_outcomes
from store.errors import StoreError
from store.open.engine import connect, disposing
from store.write.record import record_imported
from sweeps.model.outcome import Outcome
from tests.fixtures.sql_rows import rows
from tests.orchestrator.commands import ROOT, breakeven

FIXTURES = ROOT / "tests" / "fixtures"
REFERENCES = sorted((ROOT / "sweeps" / "references").glob("*.jsonl"))
EARLIER = {
    name: json.loads((FIXTURES / f"real_{name}.json").read_text())
    for name in ("latency", "profile")
}
"""Outcomes of an earlier protocol: dense and TopK on 32 pixels."""
H100 = (ROOT / "sweeps" / "references" / "quickstart_gpu_h100.jsonl").read_text().splitlines()
"""Dense, TopK, ToMe and EViT of DeiT-S; the first two visits are at 64 pixels, batch 1."""
PROMISED = "[[17, 17], [17, 17], [17, 17], [17, 9], [9, 9],"
IDENTITIES: tuple[tuple[tuple[str | int, ...], Any, str], ...] = (
    (
        ("job", "arms", 1, "stack", 0, "version"),
        99,
        "job.arms.1: version 99 of 'topk' is requested, and version 1 is installed",
    ),
    (
        ("job", "condition", "image_size"),
        65,
        "image_size 65 is not a multiple of deit_small_patch16_224's patch size 16; near by: 64",
    ),
    (("arms", 1, "batch"), 64, "arms.1.batch: 64, expected 1"),
    (("arms", 1, "tokens"), 999, "arms.1.tokens: 999, expected 16"),
    (("arms", 1, "trace"), [[1, 1]], f"arms.1.trace: [[1, 1]], expected {PROMISED}"),
    (("arms", 1, "gmacs"), 0.0, "arms.1.gmacs: 0.0, expected 0.194992128"),
    (("arms", 0, "gmacs"), 2e6, "arms.0.gmacs: 2000000.0, expected 0.368738304"),
    (("arms", 1, "gmacs_overhead"), 1.0, "arms.1.gmacs_overhead: 1.0, expected 1.1904e-05"),
    (("arms", 2, "flags"), [], 'arms.2.flags: [], expected ["no_effect"]'),
    (("job", "protocol_version"), 99, "job.protocol_version: 99, expected 2 at most"),
    (("started_at",), 4e7, "started_at: 40000000.0 is not between 1.73569e+09 and 3.25037e+10"),
    (("ended_at",), 3.247e10, "ended_at: 32470000000, expected "),
    (("system_metrics", "load_before"), -5.0, "system_metrics.load_before: -5.0 is not between 0"),
)


def with_value(outcome: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """A copy of an outcome as JSON with another value at `path`."""
    changed = copy.deepcopy(outcome)
    inner = changed
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return changed


@pytest.mark.parametrize(("path", "value", "message"), IDENTITIES, ids=[m for *_, m in IDENTITIES])
def test_identities_of_an_h100_outcome(
    tmp_path: Path, path: tuple[str | int, ...], value: Any, message: str
) -> None:
    """A field that contradicts the others is refused by its name, its value and what would be
    right, with the line of the outcome; the right outcome beside it is not imported.
    """
    changed = with_value(json.loads(H100[1]), path, value)
    file = tmp_path / "o.jsonl"
    file.write_text(f"{H100[0]}\n{json.dumps(changed)}\n")
    with pytest.raises(StoreError) as caught:
        list(read_outcomes(file))
    text = str(caught.value)
    assert text.startswith(f"{file}, line 2: not an outcome of workers.run: ")
    assert message in text
    assert text.endswith(" (1 of 2 outcomes refused, nothing is imported)")


@pytest.mark.parametrize("factor", [-1.0, 2.0])
def test_figures_that_do_not_follow_from_their_samples(tmp_path: Path, factor: float) -> None:
    """A throughput below zero or twice that of the bursts, and a latency that is not the median."""
    file = tmp_path / "o.json"
    for name in ("throughput", "latency"):
        changed = json.loads(H100[0])
        (metric,) = (each for each in changed["arms"][1]["metrics"] if each["name"] == name)
        right, metric["value"] = metric["value"], factor * metric["value"]
        file.write_text(json.dumps(changed))
        with pytest.raises(StoreError, match=rf"arms\.1\.metrics.*{name}.*, expected ") as caught:
            list(read_outcomes(file))
        assert factor < 0 or str(right) in str(caught.value)


def test_rows_of_another_store_that_were_edited(tmp_path: Path) -> None:
    """Each is refused by `merge` in the line of `import`, the right attempts come, and the counts
    of an unknown method are flagged. `import --reference` takes no outcome at all.
    """
    unknown = with_value(json.loads(H100[0]), ("job", "arms", 1, "stack", 0, "method"), "elsewhere")
    right = [json.loads(H100[0]), json.loads(H100[2]), unknown]
    # of one outcome, apart by the host
    edited = [json.loads(H100[1]) | {"host": f"host{place}"} for place in range(len(IDENTITIES))]
    throughput = with_value(json.loads(H100[0]), ("host",), "other")
    (metric,) = (each for each in throughput["arms"][1]["metrics"] if each["name"] == "throughput")
    stored = [*right, *edited, throughput]
    with disposing(connect(str(tmp_path / "other.db"))) as engine:
        assert record_imported(engine, map(Outcome.model_validate, stored)) == len(stored)
        with engine.begin() as connection:
            for number, (path, value, _) in enumerate(IDENTITIES, len(right) + 1):
                edit(connection, number, path, value)
            place = throughput["arms"][1]["metrics"].index(metric)
            edit(connection, len(stored), ("arms", 1, "metrics", place, "value"), -5.0)
    done = breakeven("merge", "other.db", folder=tmp_path)
    lines = done.stderr.splitlines()
    assert (done.returncode, len(lines)) == (2, len(IDENTITIES) + 1), done.stderr
    messages = [
        *(message for *_, message in IDENTITIES),
        "arms.1.metrics: throughput of -5 images/s",
    ]
    for number, (line, message) in enumerate(zip(lines, messages, strict=True), len(right) + 1):
        assert f"attempt {number} of the other store is damaged: " in line
        assert message in line
    assert lines[-1].endswith(f"({len(lines)} of {len(stored)} attempts refused, the others came)")
    with disposing(connect(str(tmp_path / "breakeven.db"))) as engine:
        assert rows(engine, "SELECT DISTINCT flags FROM attempt ORDER BY flags") == [
            {"flags": ""},
            {"flags": "counts_unchecked"},
        ]
        assert rows(engine, "SELECT count(*) AS n FROM attempt") == [{"n": len(right)}]
    (tmp_path / "o.jsonl").write_text(H100[1])
    done = breakeven("import", "--reference", "o.jsonl", folder=tmp_path)
    assert (done.returncode, done.stderr) == (
        2,
        "breakeven: --reference o.jsonl: a published table is YAML; outcomes of workers.run are"
        " imported without --reference\n",
    )


def edit(connection: Connection, attempt: int, path: tuple[str | int, ...], value: Any) -> None:
    """Change one value of an attempt of a store by hand."""
    chosen = {"attempt": attempt}
    found = connection.execute(text("SELECT payload FROM attempt WHERE id = :attempt"), chosen)
    payload = json.dumps(with_value(json.loads(found.scalar_one()), path, value))
    update = text("UPDATE attempt SET payload = :payload WHERE id = :attempt")
    connection.execute(update, {**chosen, "payload": payload})


def test_unknown_methods_and_models_are_flagged(tmp_path: Path) -> None:
    """They are stored with a flag, which a line names; the same outcome that was measured here is
    no second attempt.
    """
    changed = json.loads(H100[0])
    changed["job"]["arms"][1]["stack"][0]["method"] = "elsewhere"
    (tmp_path / "o.json").write_text(json.dumps(changed))
    done = breakeven("import", "o.json", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "1 outcome imported\n")
    assert done.stderr == "note: method elsewhere 1 not known here: counts are not checked\n"
    with disposing(connect(str(tmp_path / "breakeven.db"))) as engine:
        flags = rows(engine, "SELECT DISTINCT job_flags FROM arm")
        assert flags == [{"job_flags": "counts_unchecked"}]
        assert record_imported(engine, [Outcome.model_validate(changed)]) == 0


def test_every_shipped_reference_is_imported(tmp_path: Path) -> None:
    """Twice changes nothing; an older protocol is imported too, and answers nothing of a sweep."""
    first = breakeven("import", *map(str, REFERENCES), folder=tmp_path)
    assert (first.returncode, first.stderr, first.stdout) == (0, "", "19 outcomes imported\n")
    again = breakeven("import", *map(str, REFERENCES), folder=tmp_path)
    assert again.stdout == "0 outcomes imported, 19 in the store already\n"


def test_each_refused_outcome_has_a_line(tmp_path: Path) -> None:
    """Of a file in which several outcomes cannot be, each is named, and the store is not made."""
    wrong = json.loads(H100[0])
    wrong["arms"][0]["tokens"] = 999
    (tmp_path / "o.jsonl").write_text("\n".join([json.dumps(wrong), H100[1], "{}", ""]))
    done = breakeven("import", "o.jsonl", folder=tmp_path)
    lines = done.stderr.splitlines()
    assert (done.returncode, len(lines)) == (2, 2), done.stderr
    assert "o.jsonl, line 1: not an outcome of workers.run: arms.0.tokens: 999, exp" in lines[0]
    assert lines[1].startswith("o.jsonl, line 3: not an outcome of workers.run: job: ")
    assert lines[1].endswith(" (2 of 3 outcomes refused, nothing is imported)")
    assert not (tmp_path / "breakeven.db").exists()


SWEEP = """\
schema: 1
name: other
question: What does TopK save here?
defaults: {model: deit_tiny_patch16_224, image_size: 32, device: cuda}
methods: [{method: topk, keep_rate: 0.5}]
jobs: {latency: {}}
"""


def test_outcomes_of_another_sweep(tmp_path: Path) -> None:
    """A sweep that compares nothing of them is refused before anything is stored; the right one is
    linked, on the device of the outcomes.
    """
    (tmp_path / "other.yaml").write_text(SWEEP)
    (tmp_path / "o.jsonl").write_text("\n".join(H100[:2]))
    done = breakeven("import", "o.jsonl", "--sweep", "other.yaml", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "breakeven: --sweep other: none of 2 outcomes is of one of its comparisons, and nothing is"
        " imported; name the sweep that they were measured for, or leave it out\n"
    )
    assert not (tmp_path / "breakeven.db").exists()
    done = breakeven("import", "o.jsonl", "--sweep", "quickstart_gpu", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "linked to sweep quickstart_gpu: 6 of 48 comparisons are measured" in done.stdout
    assert "not linked" not in done.stderr


def test_answers_with_another_text(tmp_path: Path) -> None:
    """The text of other versions of Python and packages is named as the reason why nothing is
    linked.
    """
    (line,) = (ROOT / "sweeps/references/llm_gpu_h100.jsonl").read_text().splitlines()
    outcome = json.loads(line)
    outcome["job"]["content_hashes"] = dict.fromkeys(outcome["job"]["content_hashes"], "0" * 16)
    (tmp_path / "o.jsonl").write_text(json.dumps(outcome))
    done = breakeven("import", "o.jsonl", "--sweep", "llm_gpu", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "linked to sweep llm_gpu: 0 of 112 comparisons are measured" in done.stdout
    assert "answers with it are not linked: data, docs (the text docs is that" in done.stderr


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
    "profiles of a latency job": ("latency", ("profiles",), EARLIER["profile"]["profiles"]),
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
    changed = with_value(EARLIER[document], path, value)
    file = tmp_path / "o.json"
    file.write_text(json.dumps(changed))
    with pytest.raises(StoreError, match=r"o\.json") as caught:
        list(read_outcomes(file))
    assert len(str(caught.value).splitlines()) == 1


def test_impossible_and_empty_files_exit_2(tmp_path: Path) -> None:
    """By the command: exit code 2, one line, no store."""
    wrong = copy.deepcopy(EARLIER["latency"])
    wrong["samples"]["seconds"][0][0] = "NaN"
    (tmp_path / "folder").mkdir()
    for name, content in {
        "nan.json": json.dumps(wrong),
        "empty.json": "",
        "blank.json": "\n \n",
        "folder/empty.json": "",
    }.items():
        (tmp_path / name).write_text(content)
    for given in ("nan.json", "empty.json", "blank.json", "folder"):
        done = breakeven("import", given, folder=tmp_path)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
        assert not (tmp_path / "breakeven.db").exists()
