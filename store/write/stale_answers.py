"""Stale answers: why the store's answer to a question does not count for a plan that asks it
again.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from sqlalchemy import Engine, select

from store.rows.transactions import reading
from store.schema.tables import COMPARISON, EFFECT, ENVIRONMENT
from store.write.submission import IDS_AT_ONCE
from sweeps.model.job import Comparison, Job
from sweeps.model.kinds import KINDS
from sweeps.model.outcome import Environment


class Change(NamedTuple):
    """What differs between the answer in the store and the question now."""

    what: str
    """A method, `protocol of latency`, `weights` or another content, or a fact of the environment
    such as `torch`."""
    before: str = ""
    now: str = ""
    """Both empty where only hashes are known."""


def stale_answers(
    engine: Engine, jobs: Collection[Job], environments: Collection[Environment]
) -> Counter[Change]:
    """How many of the jobs' comparisons were measured before each change; `environments` are those
    that count now.
    """
    asked = {
        comparison.question_id: (comparison, comparison_id, job.content_hashes)
        for job in jobs
        for comparison, comparison_id in zip(job.comparisons(), job.comparison_ids(), strict=True)
    }
    here = {environment.environment_id for environment in environments}
    found: dict[str, set[Change]] = {}
    for row in _measured(engine, sorted(asked)):
        comparison, comparison_id, contents = asked[row.question_id]
        if row.comparison_id != comparison_id:
            changes = set(_changed_question(row, comparison, contents))
        elif row.environment not in here:
            changes = set(_changed_facts(row, environments))
        else:
            continue
        found.setdefault(row.question_id, changes)  # by the newest answer
    return Counter(change for changes in found.values() for change in changes)


def _measured(engine: Engine, question_ids: list[str]) -> Iterator[Any]:
    """A row for each measured answer and metric, newest first."""
    columns = (
        COMPARISON.c.comparison_id,
        COMPARISON.c.question_id,
        COMPARISON.c.payload,
        COMPARISON.c.content_hashes,
    )
    answers = EFFECT.join(COMPARISON, COMPARISON.c.comparison_id == EFFECT.c.comparison_id).join(
        ENVIRONMENT, ENVIRONMENT.c.environment_id == EFFECT.c.environment
    )
    rows = select(
        *columns,
        EFFECT.c.environment,
        ENVIRONMENT.c.device,
        ENVIRONMENT.c.device_name,
        ENVIRONMENT.c.facts,
    )
    rows = (
        rows.select_from(answers)
        .where(EFFECT.c.effect.is_not(None))
        .order_by(EFFECT.c.measured_at.desc())
    )
    with reading(engine) as connection:
        for start in range(0, len(question_ids), IDS_AT_ONCE):
            yield from connection.execute(
                rows.where(COMPARISON.c.question_id.in_(question_ids[start : start + IDS_AT_ONCE]))
            )


def _changed_question(row: Any, now: Comparison, contents: Mapping[str, str]) -> Iterator[Change]:
    before = Comparison.model_validate_json(row.payload)
    versions, former = (
        dict((*each.baseline.versions, *each.arm.versions)) for each in (now, before)
    )
    changed = [method for method in versions if versions[method] != former.get(method)]
    for method in changed:
        yield Change(method, f"version {former.get(method, '?')}", f"version {versions[method]}")
    hashes = json.loads(row.content_hashes)
    different = sorted(
        name for name in {*hashes, *contents} if hashes.get(name) != contents.get(name)
    )
    yield from map(Change, different)
    if not changed and not different:
        yield Change(f"protocol of {now.kind}", now=f"version {KINDS[now.kind].protocol_version}")


def _changed_facts(row: Any, environments: Collection[Environment]) -> Iterator[Change]:
    now = next((each for each in environments if each.device == row.device), None)
    if now is None:
        return
    if now.device_name != row.device_name:
        yield Change("device", row.device_name, now.device_name)
    facts = json.loads(row.facts)
    for name in sorted({*facts, *now.facts}):
        if facts.get(name) != now.facts.get(name):
            yield Change(name, facts.get(name, "none"), now.facts.get(name, "none"))
