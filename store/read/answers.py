"""Answers: which questions need not be measured again, what is missing for the others, which
answers may be doubted, and why an answer does not count any more.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from sqlalchemy import BindParameter, ColumnElement, Engine, Row, and_, bindparam, select

from store.rows.placement import Place
from store.rows.transactions import fetch_values, reading, retried, rows_in
from store.schema.tables import (
    ARM_RESULT,
    ATTEMPT,
    COMPARISON,
    EFFECT,
    ENVIRONMENT,
    FAILURE,
    PAIR,
    PREDICTIONS,
    SAMPLE,
    SWEEP,
    SWEEP_JOB,
    TEXT_SCORES,
    named,
    same_arm,
)
from sweeps.model.flags import quarantine_reasons, split_flags
from sweeps.model.job import NAMED, Comparison, Job, Protocol
from sweeps.model.kinds import KINDS
from sweeps.model.outcome import ANSWERING_FAILURES, Environment

Doubt = Literal["flagged", "unclear", "failed"]
"""Why an answer may be measured again: its flags, its verdict, or because it is a failure such as
out of memory."""

BASELINE, ARM = ARM_RESULT.alias("baseline"), ARM_RESULT.alias("arm")
_HERE: BindParameter[Any] = bindparam("environments", expanding=True)

_RATIO = "comparison_id environment host n effect effect_low effect_high"
RATIOS = select(*named(EFFECT, _RATIO)).where(
    EFFECT.c.environment.in_(_HERE), EFFECT.c.compared == "ratio"
)
EXECUTIONS = (
    select(
        PAIR.c.comparison_id,
        *named(ATTEMPT, "environment host round protocol flags"),
        *named(FAILURE, "reason message"),
        *(SAMPLE.c.rounds.label("pairs"), TEXT_SCORES.c.complete),
        (PREDICTIONS.c.images + PREDICTIONS.c.unreadable).label("seen"),
        *(BASELINE.c.implementation.label("baseline_implementation"), ARM.c.implementation),
    )
    .select_from(
        PAIR.join(ATTEMPT)
        .outerjoin(FAILURE, FAILURE.c.id == PAIR.c.failure)
        .outerjoin(BASELINE, same_arm(BASELINE, PAIR, "baseline"))
        .outerjoin(ARM, same_arm(ARM, PAIR))
        .outerjoin(SAMPLE)
        .outerjoin(PREDICTIONS)
        .outerjoin(TEXT_SCORES)
    )
    .where(ATTEMPT.c.environment.in_(_HERE))
    .order_by(ATTEMPT.c.ended_at, ATTEMPT.c.id)
)
_HAS_EFFECT = ~EFFECT.c.flags.contains("no_effect")
"""Whether the arm does anything: measured again, it would still do what its baseline does."""
_DOUBTS: Mapping[Doubt, ColumnElement[bool]] = {
    "flagged": and_(EFFECT.c.flags != "", _HAS_EFFECT),
    "unclear": and_(EFFECT.c.verdict == "unclear", _HAS_EFFECT),
    "failed": EFFECT.c.failure.is_not(None),
}


Round = tuple[str, int]
"""A comparison id and a round."""


class Answers(NamedTuple):
    """What the store knows of some comparisons in some environments."""

    answered: set[Round]
    """Rounds that need not be measured again, whichever host answered them."""
    pairs: dict[tuple[str, int], int]
    """Of rounds that are not answered because too few pairs were measured: how many there are."""
    errors: dict[str, str]
    """Of comparisons that only ever ended with a failure that is no answer: the newest message."""
    at: dict[Place, set[Round]]
    """`answered` for each place."""
    quarantined: dict[str, tuple[str, ...]]
    """Of comparisons that were only measured while the machine was slowed: the flags of the newest
    attempt."""


class RoundAtPlace(NamedTuple):
    """Where pairs add up: one round of a comparison at one place."""

    comparison_id: str
    place: Place
    round: int


@retried
def answers(
    engine: Engine, comparisons: Mapping[str, Protocol], environment_ids: Collection[str]
) -> Answers:
    """What is known of the comparison ids in the environments; the protocol beside each id is the
    precision requested now.

    A round is answered if one host of an environment measured it with at least the requested pairs
    (`pairs_min`, over all attempts), and the interval of all rounds (by every metric) is as narrow
    as requested or the round was measured under a protocol that satisfies the requested one. A
    failure that is an answer (see `ANSWERING_FAILURES`) answers all rounds, a time-out only if it
    was allowed as long as it would be now, for no more images, characters or tasks. Accuracy and
    quality are answered by as many images or characters as are requested now, or by all there are,
    quality by the requested tasks too. A quarantined attempt answers nothing
    (`sweeps.model.flags`). Other flags play no part: a result that one marks as wrong answers too,
    and is measured again by `--retry-flagged` alone.
    """
    environments = {"environments": sorted(environment_ids)}
    known = _Known(comparisons)
    with reading(engine) as connection:
        for row in connection.execute(RATIOS, environments).all():
            known.narrow[row.comparison_id, Place(row.environment, row.host)].append(
                _narrow(row, comparisons)
            )
        for row in connection.execute(EXECUTIONS, environments).all():
            if row.comparison_id in comparisons:
                known.add(row)
    return known.answers()


class _Known:
    """What is known of the comparisons from the executions read so far."""

    def __init__(self, comparisons: Mapping[str, Protocol]) -> None:
        self._requested = comparisons
        self._protocols: dict[str, Protocol] = {}
        self._answered: dict[Place, set[Round]] = defaultdict(set)
        self._pairs: dict[RoundAtPlace, int] = defaultdict(int)
        self._implementations: dict[RoundAtPlace, tuple[str | None, str | None]] = {}
        self._satisfied: set[RoundAtPlace] = set()
        self._errors: dict[str, str] = {}
        self._quarantined: dict[str, tuple[str, ...]] = {}
        self.narrow: dict[tuple[str, Place], list[bool]] = defaultdict(list)
        """By comparison and place, for each metric: whether its interval is as narrow as
        requested."""

    def add(self, row: Row[Any]) -> None:
        """Add a row of `EXECUTIONS`."""
        requested, made = self._requested[row.comparison_id], self._made(row)
        place = Place(row.environment, row.host)
        reasons = quarantine_reasons(split_flags(row.flags))
        if row.reason is None and row.pairs is not None and reasons:
            self._quarantined[row.comparison_id] = reasons
        elif row.reason is None and row.pairs is not None:
            spot = RoundAtPlace(row.comparison_id, place, row.round)
            implementations = (row.baseline_implementation, row.implementation)
            # never pooled: only those of the newest count
            if self._implementations.setdefault(spot, implementations) != implementations:
                self._implementations[spot], self._pairs[spot] = implementations, 0
            self._pairs[spot] += row.pairs
            if made.satisfies(requested):
                self._satisfied.add(spot)
        elif row.reason is None:
            if made.satisfies(requested):
                self._answered[place].add((row.comparison_id, row.round))
        elif row.reason not in ANSWERING_FAILURES:
            self._errors[row.comparison_id] = row.message
        elif row.reason != "timeout" or _no_easier(requested, made):
            self._answered[place] |= {(row.comparison_id, each) for each in range(requested.turns)}

    def _made(self, row: Row[Any]) -> Protocol:
        """The protocol of an execution; where there was no more, what it got is what it
        requested.
        """
        made = self._protocols.get(row.protocol) or Protocol.model_validate_json(row.protocol)
        self._protocols[row.protocol] = made
        if made.images is not None and row.seen is not None and row.seen < made.images:
            made = made.model_copy(update={"images": None})
        return made.model_copy(update={"characters": None}) if row.complete else made

    def answers(self) -> Answers:
        short: dict[tuple[str, int], int] = {}
        for spot, pairs in self._pairs.items():
            key = (spot.comparison_id, spot.round)
            if pairs < self._requested[spot.comparison_id].pairs_min:
                short[key] = max(pairs, short.get(key, 0))
            elif spot in self._satisfied or all(
                self.narrow[spot.comparison_id, spot.place] or [False]
            ):
                self._answered[spot.place].add(key)
        answered = set().union(*self._answered.values())
        measured = {comparison_id for comparison_id, _ in answered} | {
            spot.comparison_id for spot in self._pairs
        }
        return Answers(
            answered,
            {key: pairs for key, pairs in short.items() if key not in answered},
            {key: message for key, message in self._errors.items() if key not in measured},
            dict(self._answered),
            {key: reasons for key, reasons in self._quarantined.items() if key not in measured},
        )


def doubted(engine: Engine, doubt: Doubt, environment_ids: Collection[str]) -> set[str]:
    """The comparison ids whose newest answer in one of the environments is flagged, unclear by some
    metric, or a failure.
    """
    found = (
        select(EFFECT.c.comparison_id)
        .where(EFFECT.c.environment.in_(sorted(environment_ids)), _DOUBTS[doubt])
        .distinct()
    )
    return set(fetch_values(engine, found))


def environments_since(engine: Engine, sweep: str, began: float) -> set[str]:
    """The environments in which jobs of the sweep of that name were measured since `began` (seconds
    since the epoch).
    """
    measured = ATTEMPT.join(SWEEP_JOB, SWEEP_JOB.c.job == ATTEMPT.c.job).join(SWEEP)
    found = (
        select(ATTEMPT.c.environment)
        .select_from(measured)
        .where(SWEEP.c.name == sweep, ATTEMPT.c.ended_at >= began)
    )
    return set(fetch_values(engine, found.distinct()))


def _no_easier(requested: Protocol, made: Protocol) -> bool:
    """Whether what ran out of time under `made` would again under `requested`."""
    amounts = (
        (requested.images, made.images),
        (requested.characters, made.characters),
        (requested.documents, made.documents),
    )
    fewer = any(now is not None and (then is None or now < then) for now, then in amounts)
    fewer = fewer or not set(made.tasks or ()) <= set(requested.tasks or ())
    longer = (
        requested.timeout_s > made.timeout_s or requested.compile_timeout_s > made.compile_timeout_s
    )
    return not (fewer or longer)


def _narrow(ratio: Row[Any], comparisons: Mapping[str, Protocol]) -> bool:
    """Whether the interval of a ratio is as narrow as its protocol requests."""
    requested = comparisons.get(ratio.comparison_id)
    if (
        requested is None
        or None in {ratio.effect, ratio.effect_low, ratio.effect_high}
        or ratio.n < requested.pairs_min
    ):
        return False
    width = max(ratio.effect_high - ratio.effect, ratio.effect - ratio.effect_low)
    return bool(width <= requested.half_width * ratio.effect)


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
    rows = (
        select(
            *named(COMPARISON, "comparison_id question_id payload content_hashes"),
            EFFECT.c.environment,
            *named(ENVIRONMENT, "device device_name facts"),
        )
        .select_from(EFFECT.join(COMPARISON).join(ENVIRONMENT))
        .where(EFFECT.c.effect.is_not(None))
        .order_by(EFFECT.c.measured_at.desc())
    )
    with reading(engine) as connection:
        yield from rows_in(connection, rows, COMPARISON.c.question_id, question_ids)


def _changed_question(
    row: Row[Any], now: Comparison, contents: Mapping[str, str]
) -> Iterator[Change]:
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
    yield from (Change(name.removeprefix(NAMED)) for name in different)
    if not changed and not different:
        yield Change(f"protocol of {now.kind}", now=f"version {KINDS[now.kind].protocol_version}")


def _changed_facts(row: Row[Any], environments: Collection[Environment]) -> Iterator[Change]:
    now = next((each for each in environments if each.device == row.device), None)
    if now is None:
        return
    if now.device_name != row.device_name:
        yield Change("device", row.device_name, now.device_name)
    facts = json.loads(row.facts)
    for name in sorted({*facts, *now.facts}):
        if facts.get(name) != now.facts.get(name):
            yield Change(name, facts.get(name, "none"), now.facts.get(name, "none"))
