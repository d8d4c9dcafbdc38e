"""Answers: which questions need not be measured again, what is missing for the others, and which answers may be doubted."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any, Literal, NamedTuple

from sqlalchemy import Engine, bindparam, text

from store.placement import Place
from store.transactions import reading
from sweeps.outcome import ANSWERS
from sweeps.protocol import Protocol

Doubt = Literal["flagged", "unclear", "failed"]
"""Why an answer may be measured again: its flags, its verdict, or because it is a failure such as out of memory."""

FIGURES = text(
    """SELECT comparison_id, environment, host, pairs, speedup, speedup_low, speedup_high FROM speedup_row
       WHERE environment IN :environments"""
).bindparams(bindparam("environments", expanding=True))

EXECUTIONS = text(
    """SELECT p.comparison_id, t.environment, t.host, t.round, t.protocol, f.reason, f.message, a.rounds AS pairs,
         e.images + e.unreadable AS seen, s.complete, b.route AS baseline_route, m.route
       FROM pairing AS p JOIN attempt AS t ON t.id = p.attempt LEFT JOIN failure AS f ON f.id = p.failure
         LEFT JOIN measured_arm AS b ON b.attempt = p.attempt AND b.arm = p.baseline
         LEFT JOIN measured_arm AS m ON m.attempt = p.attempt AND m.arm = p.arm
         LEFT JOIN sample AS a ON a.attempt = t.id LEFT JOIN evaluation AS e ON e.attempt = t.id
         LEFT JOIN scores AS s ON s.attempt = t.id
       WHERE t.environment IN :environments ORDER BY t.ended_at, t.id"""
).bindparams(bindparam("environments", expanding=True))

_DERIVED = ("speedup_row", "accuracy_row", "quality_row")
_DOUBTS: Mapping[Doubt, str] = {"flagged": "flags <> ''", "unclear": "verdict = 'unclear'", "failed": "failure IS NOT NULL"}
DOUBTED = {
    doubt: text(
        " UNION ".join(f"SELECT comparison_id FROM {table} WHERE environment IN :environments AND {test}" for table in _DERIVED)  # noqa: S608 - constants
    ).bindparams(bindparam("environments", expanding=True))
    for doubt, test in _DOUBTS.items()
}


SINCE = text(
    """SELECT DISTINCT t.environment FROM attempt AS t JOIN sweep_job AS l ON l.job = t.job JOIN sweep AS s ON s.id = l.sweep
       WHERE s.name = :sweep AND t.ended_at >= :began"""
)

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


class Spot(NamedTuple):
    """Where pairs add up: one round of a comparison at one place."""

    comparison_id: str
    place: Place
    round: int


def answers(engine: Engine, comparisons: Mapping[str, Protocol], environment_ids: Collection[str]) -> Answers:
    """What is known of the comparison ids in the environments; the protocol beside each id is the precision asked for now.

    A round is answered if one host of an environment measured it with at least the pairs asked for (`pairs_min`, over all
    attempts), and the interval of all rounds (by every metric) is as narrow as asked or the round was measured under a protocol
    that satisfies the one asked. A failure that is an answer (`sweeps.outcome.ANSWERS`) answers all rounds, a time-out only if
    it was allowed as long as it would be now, for no more images, characters or tasks. Accuracy and quality are answered by as
    many images or characters as are asked now, or by all there are, quality by the tasks that are asked now too. Flagged
    results count: they are shown, with their flags.
    """
    environments = {"environments": sorted(environment_ids)}
    known = _Known(comparisons)
    with reading(engine) as connection:
        for row in connection.execute(FIGURES, environments).all():
            known.narrow[row.comparison_id, Place(row.environment, row.host)].append(_narrow(row, comparisons))
        for row in connection.execute(EXECUTIONS, environments).all():
            if row.comparison_id in comparisons:
                known.add(row)
    return known.answers()


class _Known:
    """What the executions read so far say of the comparisons."""

    def __init__(self, comparisons: Mapping[str, Protocol]) -> None:
        self._asked = comparisons
        self._protocols: dict[str, Protocol] = {}
        self._answered: dict[Place, set[Round]] = defaultdict(set)
        self._pairs: dict[Spot, int] = defaultdict(int)
        self._routes: dict[Spot, tuple[str | None, str | None]] = {}
        self._satisfied: set[Spot] = set()
        self._errors: dict[str, str] = {}
        self.narrow: dict[tuple[str, Place], list[bool]] = defaultdict(list)
        """By comparison and place, for each metric: whether its interval is as narrow as asked."""

    def add(self, row: Any) -> None:
        """Take in a row of `EXECUTIONS`."""
        asked, made = self._asked[row.comparison_id], self._made(row)
        place = Place(row.environment, row.host)
        if row.reason is None and row.pairs is not None:
            spot = Spot(row.comparison_id, place, row.round)
            routes = (row.baseline_route, row.route)
            if self._routes.setdefault(spot, routes) != routes:  # never pooled: only those of the newest count
                self._routes[spot], self._pairs[spot] = routes, 0
            self._pairs[spot] += row.pairs
            if made.satisfies(asked):
                self._satisfied.add(spot)
        elif row.reason is None:
            if made.satisfies(asked):
                self._answered[place].add((row.comparison_id, row.round))
        elif row.reason not in ANSWERS:
            self._errors[row.comparison_id] = row.message
        elif row.reason != "timeout" or _no_easier(asked, made):
            self._answered[place] |= {(row.comparison_id, each) for each in range(asked.rounds)}

    def _made(self, row: Any) -> Protocol:
        """The protocol of an execution; what it asked for is what it got where there was no more."""
        made = self._protocols.get(row.protocol) or Protocol.model_validate_json(row.protocol)
        self._protocols[row.protocol] = made
        if made.images is not None and row.seen is not None and row.seen < made.images:
            made = made.model_copy(update={"images": None})
        return made.model_copy(update={"characters": None}) if row.complete else made

    def answers(self) -> Answers:
        short: dict[tuple[str, int], int] = {}
        for spot, pairs in self._pairs.items():
            key = (spot.comparison_id, spot.round)
            if pairs < self._asked[spot.comparison_id].pairs_min:
                short[key] = max(pairs, short.get(key, 0))
            elif spot in self._satisfied or all(self.narrow[spot.comparison_id, spot.place] or [False]):
                self._answered[spot.place].add(key)
        answered = set().union(*self._answered.values())
        measured = {comparison_id for comparison_id, _ in answered} | {spot.comparison_id for spot in self._pairs}
        return Answers(
            answered,
            {key: pairs for key, pairs in short.items() if key not in answered},
            {comparison_id: message for comparison_id, message in self._errors.items() if comparison_id not in measured},
            dict(self._answered),
        )


def doubted(engine: Engine, doubt: Doubt, environment_ids: Collection[str]) -> set[str]:
    """The comparison ids whose newest answer in one of the environments is flagged, unclear by some metric, or a failure."""
    with reading(engine) as connection:
        return set(connection.execute(DOUBTED[doubt], {"environments": sorted(environment_ids)}).scalars())


def environments_since(engine: Engine, sweep: str, began: float) -> set[str]:
    """The environments in which jobs of the sweep of that name were measured since `began` (seconds since the epoch)."""
    with reading(engine) as connection:
        return set(connection.execute(SINCE, {"sweep": sweep, "began": began}).scalars())


def _no_easier(asked: Protocol, made: Protocol) -> bool:
    """Whether what ran out of time under `made` would again under `asked`."""
    amounts = ((asked.images, made.images), (asked.characters, made.characters), (asked.documents, made.documents))
    fewer = any(now is not None and (then is None or now < then) for now, then in amounts)
    fewer = fewer or not set(made.tasks or ()) <= set(asked.tasks or ())
    longer = asked.timeout_s > made.timeout_s or asked.compile_timeout_s > made.compile_timeout_s
    return not (fewer or longer)


def _narrow(figure: Any, comparisons: Mapping[str, Protocol]) -> bool:
    asked = comparisons.get(figure.comparison_id)
    if (
        asked is None
        or figure.speedup is None
        or figure.speedup_low is None
        or figure.speedup_high is None
        or figure.pairs < asked.pairs_min
    ):
        return False
    width = max(figure.speedup_high - figure.speedup, figure.speedup - figure.speedup_low)
    return bool(width <= asked.half_width * figure.speedup)
