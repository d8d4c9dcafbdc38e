"""Former names: what was written before a rename keeps its identities and can be read, and nothing writes a former name."""

import json
from pathlib import Path
from typing import Any

import pytest

from store.placement import curve_group
from store.record import AttemptWriter
from store.row_mapping import curve_id
from sweeps import aliases
from sweeps.geometry.vit_catalogue import networks
from sweeps.job import Job
from sweeps.outcome import Outcome
from sweeps.parsing.expand import expand_file
from sweeps.parsing.yaml_reader import SweepError

BEFORE = [json.loads(line) for line in Path(__file__).with_name("outcomes_before_renames.jsonl").read_text().splitlines()]
"""An outcome of each kind with the identities that it had before the renames of `sweeps.aliases`."""
FORMER = {
    *aliases.FORMER_FIELDS.values(),
    *(old for names in aliases.VALUES.values() for old in names.values()),
}

ADDED: dict[str, Any] = {
    "process": None,
    "protocol_version": 1,
    "passes": 1,
    "bursts": None,
    "spare_cores": None,
    "wait_policy": None,
    "pinning": None,
    "system_series": None,
    "profiles": None,
    "peaks": [],
    "suspects": [],
    "inputs": None,
}
"""Fields that the stored outcomes lack, with the defaults that they are read with."""


def without_added(data: Any) -> Any:
    """Plain data without the fields of `ADDED`, each of which must be at its default."""
    if isinstance(data, list):
        return [without_added(value) for value in data]
    if not isinstance(data, dict):
        return data
    assert {key: data[key] for key in ADDED if key in data}.items() <= ADDED.items()
    return {key: without_added(value) for key, value in data.items() if key not in ADDED}


def words(data: Any) -> set[str]:
    """All keys and texts in plain data."""
    if isinstance(data, dict):
        return {word for key, value in data.items() for word in {key, *words(value)}}
    if isinstance(data, list):
        return {word for value in data for word in words(value)}
    return {data} if isinstance(data, str) else set()


@pytest.mark.parametrize("before", BEFORE, ids=lambda before: before["outcome"]["job"]["kind"])
def test_identities_outlive_renames(before: dict[str, Any]) -> None:
    """An outcome under former names has the digest, and its job the identities, that they had."""
    outcome = Outcome.model_validate_json(json.dumps(before["outcome"]))
    job, (question,) = outcome.job, outcome.job.comparisons()
    found = {
        "outcome": before["outcome"],
        "digest": AttemptWriter(outcome).digest,
        "job_id": job.job_id,
        "comparison_id": job.comparison_ids()[0],
        "question_id": question.question_id,
        "arm_id": question.arm.arm_id,
        "environment_id": outcome.environment.environment_id,
        "curve_id": curve_id(question),
        "curve_group": curve_group(job),
    }
    assert found == before


@pytest.mark.parametrize("before", BEFORE, ids=lambda before: before["outcome"]["job"]["kind"])
def test_former_names_are_read_and_never_written(before: dict[str, Any]) -> None:
    """An outcome or a stored job is written under the present names alone, from which the former follow again."""
    outcome = Outcome.model_validate(before["outcome"])
    written = json.loads(outcome.model_dump_json())
    assert words(before["outcome"]) & FORMER
    assert not words(written) & FORMER
    assert Outcome.model_validate(written) == outcome
    assert Job.model_validate(before["outcome"]["job"]) == outcome.job
    assert aliases.former(without_added(written)) == before["outcome"]
    assert aliases.current(before["outcome"]) == without_added(written)


def test_every_former_name_is_met() -> None:
    """The stored outcomes hold every name of the table."""
    assert set().union(*(words(before["outcome"]) for before in BEFORE)) >= FORMER


def test_names_of_others_stay() -> None:
    """Parameters of methods, facts and system metrics may be called as they like."""
    free = {"params": {"attention": "manual", "scores": 1}, "facts": {"evaluation": "x"}, "solved": {"readings": 1.0}}
    assert aliases.current(free) == aliases.former(free) == free


@pytest.mark.parametrize(
    ("entry", "right"),
    [
        ("defaults: {model: digits_vit_64, attention: manual}\nmethods: [dense]", "eager"),
        ("defaults: {model: digits_vit_64}\nmethods: [{method: dense, attention: manual}]", "eager"),
        ("defaults: {model: tiny_lm, prompt_tokens: 8, new_tokens: 8, decoding: replay}\nmethods: [dense]", "teacher_forcing"),
    ],
)
def test_a_former_value_in_a_sweep_file_is_an_error(entry: str, right: str) -> None:
    """The error names the present value."""
    with pytest.raises(SweepError, match=f"did you mean '{right}'"):
        expand_file("x.yaml", text=f"schema: 1\nname: x\n{entry}\n", methods={}, networks=networks(), auto="cpu")
