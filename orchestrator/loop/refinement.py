"""Refinement: what to measure next after the first pass, by what the store holds of each curve, in
a grid or in a search.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf, prod
from typing import NamedTuple

from orchestrator.plan.time_budget import comparison_ids, shortened
from store.open.engine import Engine
from store.read.current_effects import CurrentEffect, linked, load_effects
from store.rows.placement import Place
from sweeps.geometry.vit_catalogue import networks
from sweeps.language.expand import Expansion
from sweeps.language.file_schema import Stop
from sweeps.model.condition import Condition, Rectangle, square_side
from sweeps.model.identity import canonical
from sweeps.model.job import Comparison
from sweeps.model.kinds import KINDS
from sweeps.number_format import WHOLE, count, duration
from sweeps.stats.curve import Curve, Point, break_even, next_request, point_alpha, scan
from sweeps.text.curves import claim_text
from workers.methods.arm_labels import arm_label

MAX_CURVES_SHOWN = 40
"""Curves that are followed while a run measures."""
_SIZES = ("image_size", "prompt_tokens")
"""Axes of a grid along which a curve is looked for."""


class Question(NamedTuple):
    """A comparison that may be measured again, as a point of a curve."""

    comparison_id: str
    comparison: Comparison
    group: str
    """Equal for the curves that are measured by the same jobs."""
    curve: str
    x: float
    half_width: float
    """Precision that the sweep requests."""

    @property
    def square(self) -> bool:
        """Whether it is measured on square images, or on none."""
        return not isinstance(self.comparison.condition.image_size, Rectangle)


class Selection(NamedTuple):
    """Comparisons to be measured by one job."""

    comparison_ids: frozenset[str]
    width: float
    """Of the interval that they narrow; 0 where no curve depends on them."""
    pairs: int
    """That the place has already."""


@dataclass
class Refinement:
    """What a run measures beyond one pass of a grid, or beyond the scan of a search.

    Its state is what the store holds: the same choices are made again after an interruption.
    """

    expansion: Expansion
    """All that may be requested; of a search all feasible places."""
    engine: Engine | None
    """`None` where nothing was stored yet."""
    finer: Expansion | None = None
    """A grid with further sizes between its own, which may be added."""
    exhausted_ids: set[str] = field(default_factory=set)
    """Comparisons that this run tried in vain."""

    def __post_init__(self) -> None:
        self.search = self.expansion.sweep.search
        self.questions = {each.comparison_id: each for each in self._questions()}
        known = set() if self.engine is None else linked(self.engine, self.expansion.sweep.name)
        self.chosen = known & self.questions.keys()
        if self.search is None:
            self.chosen |= comparison_ids(self.expansion.jobs)
            return
        places: dict[str, set[float]] = defaultdict(set)
        for each in self.questions.values():
            places[each.group].add(each.x)
        first = {
            group: set(scan(sorted(found), self.search.max_points))
            for group, found in places.items()
        }
        self.chosen.update(
            key for key, each in self.questions.items() if each.x in first[each.group]
        )

    def requested(self, limit_s: float = inf) -> Expansion:
        """What is measured in one pass: the grid and sizes that were added, or the chosen places of
        a search.

        Each has less `budget` if time is limited.
        """
        expansion = restricted(self.finer or self.expansion, self.chosen)
        return replace(
            expansion,
            jobs=shortened(expansion.jobs, limit_s),
            excluded=self.expansion.excluded,
            duplicates=self.expansion.duplicates,
        )

    def next(self, places: Collection[Place], most: int) -> frozenset[str]:
        """The comparisons to measure next at one of the places, by at most `most` jobs; empty where
        nothing is left to do.
        """
        found = [
            choice for group in self._groups(places) if (choice := self._choice(group)) is not None
        ]
        best = sorted(found, key=lambda choice: (-choice.width, choice.pairs))[:most]
        return frozenset[str]().union(*(choice.comparison_ids for choice in best))

    def added(self, places: Collection[Place]) -> str:
        """The sizes that are added to a grid next, in a line; empty where there are none."""
        new = sorted(self.next(places, len(self.questions)) - self.chosen)
        comparisons = [self.questions[key].comparison for key in new]
        sizes = {tokens_of(each.condition): size_text(each.condition) for each in comparisons}
        listed = ", ".join(text for _, text in sorted(sizes.items()))
        return f"`--refine` adds inside a bracket first: {listed}" if listed else ""

    def choose(self, comparison_ids: Collection[str]) -> set[str]:
        """Request these from now on. Returns those that were requested before."""
        known = self.chosen & set(comparison_ids)
        self.chosen |= set(comparison_ids)
        return known

    def lines(self, places: Collection[Place]) -> Iterator[str]:
        """Each curve in a line: what can be claimed so far; none of more than `MAX_CURVES_SHOWN`
        curves.
        """
        if len({each.curve for each in self.questions.values()}) > MAX_CURVES_SHOWN:
            return
        several = len({each.group for each in self.questions.values()}) > 1
        axis = None if self.search is None else self.search.axis
        for group in self._groups(places):
            for name, curve in group.curves().items():
                first = group.by_curve[name][0].comparison
                where = f"{condition_text(first.condition)}, " if several else ""
                if curve.points:
                    yield f"{where}{arm_label(first.arm)}: {claim_text(curve, axis)}"

    def described(self) -> str:
        """The search in a line, for the plan; empty for a grid."""
        if (search := self.search) is None:
            return ""
        feasible = {value_of(each.comparison, search.axis) for each in self.questions.values()}
        chosen = [self.questions[key].comparison for key in self.chosen]
        first = sorted(
            {(value_of(each, search.axis), place_text(each, search.axis)) for each in chosen}
        )
        return (
            f"search along {search.axis}: {count(len(feasible), 'feasible place')} from"
            f" {min(feasible):g} to {max(feasible):g}; places so far:"
            f" {', '.join(text for _, text in first)}; at most {count(search.max_points, 'point')},"
            f" until each interval is within a factor of {search.stop.factor:g}, for"
            f" {duration(search.budget)} at most"
        )

    def _questions(self) -> Iterator[Question]:
        axis = None if self.search is None else self.search.axis
        for job in (self.finer or self.expansion).jobs:
            if not KINDS[job.kind].sampled or job.round:
                continue
            half_width = job.protocol.half_width
            for key, comparison in zip(job.comparison_ids(), job.comparisons(), strict=True):
                yield Question(key, comparison, *place_of(comparison, axis), half_width)

    def _groups(self, places: Collection[Place]) -> list["CurveGroup"]:
        """The measured curves, each group at the place that has most of it."""
        environments = {place.environment for place in places}
        rows = (
            [] if self.engine is None else load_effects(self.engine, self.questions, environments)
        )
        found: dict[str, dict[Place, list[CurrentEffect]]] = defaultdict(lambda: defaultdict(list))
        for row in rows:
            if row.comparison_id in self.chosen and row.place in places:
                found[self.questions[row.comparison_id].group][row.place].append(row)
        by_group: dict[str, list[Question]] = defaultdict(list)
        for each in self.questions.values():
            by_group[each.group].append(each)
        alpha = None if self.search is None else point_alpha(self.search.max_points)
        axis = None if self.search is None else self.search.axis
        return [
            CurveGroup(questions, max(found[name].values(), key=len, default=[]), axis, alpha)
            for name, questions in by_group.items()
        ]

    def _choice(self, group: "CurveGroup") -> Selection | None:
        search, curves = self.search, group.curves()
        failed = {
            key for key, rows in group.rows.items() if all(row.failed for row in rows)
        } | self.exhausted_ids
        refused = {(each.curve, each.x) for each in group.questions if each.comparison_id in failed}
        feasible = sorted({each.x for each in group.questions})
        refused |= {(name, x) for name in curves for x in feasible} - {
            (each.curve, each.x) for each in group.questions
        }
        factor = (Stop() if search is None else search.stop).factor
        gaps = {point.comparison_id for curve in curves.values() for point in curve.gaps()}
        open_ids = group.open_ids | gaps
        if search is None:  # only what is not decided, and sizes inside a bracket
            closed = {
                (each.curve, each.x)
                for each in group.questions
                if each.comparison_id not in open_ids
            }
            refused |= closed.difference(group.addable(curves, factor, failed))
        request = next_request(
            curves,
            feasible,
            factor=factor,
            max_points=len(feasible) if search is None else search.max_points,
            enough=lambda point: (
                search is not None
                and point.comparison_id not in gaps
                and group.is_precise_enough(point)
            ),
            refused=refused,
            first=() if search is None else None,
        )
        if request is not None:
            ids = (
                each.comparison_id
                for each in group.questions
                if each.x == request.x and each.curve in request.arms
            )
            return self._chosen(group, ids, request.width)
        if search is not None:
            return None
        by_x: dict[float, list[str]] = defaultdict(list)
        for key in open_ids - self.exhausted_ids:
            by_x[self.questions[key].x].append(key)
        choices = [self._chosen(group, ids, 0.0) for ids in by_x.values()]
        return min(choices, key=lambda choice: choice.pairs, default=None)

    def _chosen(self, group: "CurveGroup", ids: Iterable[str], width: float) -> Selection:
        wanted = frozenset(ids)
        pairs = (row.effect.n or 0 for key in wanted for row in group.rows.get(key, ()))
        return Selection(wanted, width, min(pairs, default=0))


class CurveGroup:
    """Curves that are measured by the same jobs, with what one place measured of them."""

    def __init__(
        self,
        questions: list[Question],
        rows: list[CurrentEffect],
        axis: str | None,
        alpha: float | None,
    ) -> None:
        self.questions, self._axis, self._alpha = questions, axis, alpha
        self.rows: dict[str, list[CurrentEffect]] = defaultdict(list)
        for row in rows:
            self.rows[row.comparison_id].append(row)
        self.by_curve: dict[str, list[Question]] = defaultdict(list)
        for each in questions:
            self.by_curve[each.curve].append(each)
        self._half_width = questions[0].half_width

    def curves(self) -> dict[str, Curve]:
        """The curves by the first metric of their kind."""
        axis = "parameter"
        of_files = self.questions[0].comparison.condition.x_axis or ()
        if self._axis in (None, *_SIZES, *of_files):
            axis = "tokens"
        elif self._axis in WHOLE:
            axis = self._axis
        return {
            name: Curve(axis=axis, points=tuple(self._points(questions)))
            for name, questions in self.by_curve.items()
        }

    def addable(
        self, curves: Mapping[str, Curve], factor: float, failed: Collection[str]
    ) -> Iterator[tuple[str, float]]:
        """Curves, each with the sizes inside a bracket of its claim that is wider than `factor`:
        squares where one is left.
        """
        for name, curve in curves.items():
            for at in break_even(curve).crossings:
                if at.low and at.high and at.high > factor * at.low:
                    inside = [each for each in self.by_curve[name] if at.low < each.x < at.high]
                    left = [
                        each for each in inside if each.comparison_id not in {*self.rows, *failed}
                    ]
                    yield from (
                        (name, each.x) for each in [each for each in left if each.square] or left
                    )

    def _points(self, questions: Iterable[Question]) -> Iterator[Point]:
        work = self._axis not in ("batch_size", "threads")  # MACs are those of one input
        for each in questions:
            main = KINDS[each.comparison.kind].metrics[0]
            for row in self.rows.get(each.comparison_id, ()):
                if row.metric == main and not row.failed:
                    yield row.point(each.x, self._alpha, work=work)

    @property
    def open_ids(self) -> set[str]:
        """Comparisons that some metric leaves unclear or with too few pairs, and wider than
        requested.
        """
        return {
            key
            for key, rows in self.rows.items()
            if any(
                row.undecided
                and (row.effect.verdict == "insufficient" or row.half_width > self._half_width)
                for row in rows
            )
        }

    def is_precise_enough(self, point: Point) -> bool:
        """Whether more pairs at a point could not narrow the interval of its curve by much."""
        rows = self.rows[point.comparison_id]
        return point.verdict == "same" or all(row.half_width <= self._half_width for row in rows)


def restricted(expansion: Expansion, comparison_ids: Collection[str]) -> Expansion:
    """The expansion with the jobs, or the parts of them, that answer these comparisons."""
    jobs = []
    for job in expansion.jobs:
        pairs = [
            pair
            for pair, key in zip(job.pairs, job.comparison_ids(), strict=True)
            if key in comparison_ids
        ]
        jobs += [job if len(pairs) == len(job.pairs) else job.only(pairs)] if pairs else []
    comparisons = (each for job in jobs if not job.round for each in job.comparisons())
    return replace(
        expansion,
        jobs=tuple(jobs),
        comparisons=tuple(comparisons),
        points=len({job.condition for job in jobs if job.kind == jobs[0].kind}),
    )


def place_of(comparison: Comparison, axis: str | None) -> tuple[str, str, float]:
    """Identities of the group and the curve of a comparison along `axis` (default: the size of the
    input), and its x on it.
    """
    condition, arm = comparison.condition, comparison.arm.request()
    left_out: set[str] = set()
    if axis is None or axis in (*_SIZES, *(condition.x_axis or ())):
        x, left_out = float(condition.prompt_tokens or tokens_of(condition)), set(_SIZES)
        condition = condition.without_size()
    elif axis in Condition.model_fields:
        x, left_out = value_of(comparison, axis), {axis}
    else:
        x = value_of(comparison, axis)
        arm["stack"] = [{**step, "params": {**step["params"], axis: None}} for step in arm["stack"]]
    group = canonical(
        {"kind": comparison.kind, "condition": condition.model_dump(mode="json", exclude=left_out)}
    )
    return (
        group,
        canonical({"group": group, "arm": arm, "baseline": comparison.baseline.request()}),
        x,
    )


def value_of(comparison: Comparison, axis: str) -> float:
    """The value of a comparison on the axis of a search, as the sweep has it."""
    if axis in Condition.model_fields:
        value = getattr(comparison.condition, axis)
        return square_side(value) if axis == "image_size" else float(value)
    params = [
        dict(comparison.condition.values or ()),
        *(step.params for step in comparison.arm.stack),
    ]
    return next(float(each[axis]) for each in params if axis in each)


def place_text(comparison: Comparison, axis: str) -> str:
    """That value as it is printed: `64x80` for a rectangle."""
    return (
        str(comparison.condition.image_size)
        if axis == "image_size"
        else f"{value_of(comparison, axis):g}"
    )


def tokens_of(condition: Condition) -> float:
    """Tokens of an image, or its pixels where the patch of the model is not known; of a model in a
    file the value of its x axis, or the product of those that its tokens are counted by.
    """
    if condition.x_axis is not None:
        values = dict(condition.values or ())
        return float(
            values.get(condition.x_axis[0]) or prod(values[n] for n in condition.x_axis[1:])
        )
    network, size = networks().get(condition.model), condition.image_size
    if network is None or size is None:
        return square_side(size or 0) ** 2
    return float(network.patch_tokens(size))


def size_text(condition: Condition) -> str:
    """A size between those of a grid: `96 px (36 tokens)`, `length 384`."""
    tokens = tokens_of(condition)
    if condition.x_axis is not None:
        return f"{condition.x_axis[-1]} {tokens:.0f}"
    return f"{condition.image_size} px ({tokens:.0f} tokens)"


def condition_text(condition: Condition) -> str:
    return f"{condition.model}, batch {condition.batch_size}, {condition.device}"
