"""Page: which measured arm to use for a model, so many tokens and such a batch, or the unmodified
model, and what shows it. Every input is a query parameter, so that a link shows the same advice.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate
from math import inf
from typing import Any, NamedTuple, get_args

import pandas as pd
import streamlit as st

from store.errors import StoreError
from store.read.advice.advice import (
    AdviceRequest,
    ConditionArms,
    MethodFacts,
    RefusedError,
    answers_of,
    at_batch,
    checked,
    command_line,
    condition_arms,
)
from store.read.advice.policy_file import PolicyFile, policy_file
from store.read.advice.timed_arms import (
    TimedCondition,
    environment_facts,
    measured_conditions,
    timed_conditions,
    timed_sizes,
)
from sweeps.analysis.advice import RankedArm
from sweeps.errors import UserError
from sweeps.language.confirmation import comparison_at, sweep_of
from sweeps.model.condition import Device
from sweeps.model.job import Comparison
from sweeps.model.metrics import METRICS, timed_metrics
from sweeps.number_format import count
from sweeps.text.advice_text import (
    UNMODIFIED_LABEL,
    Advice,
    advice_headline,
    advice_notes,
    advice_sentence,
    advice_table,
    claim_sentence,
    doubt_sentence,
    environment_sentence,
    quality_sentence,
    runtime_sentence,
)
from webapp.charts.points import GREY, Measure
from webapp.charts.quality import ENDS, bar_chart
from webapp.display import links, plain, texts
from webapp.display.arm_style import method_colors
from webapp.queries import kept
from webapp.widgets import address, filters
from webapp.widgets.chart_block import show_chart
from webapp.widgets.tables import grid_html
from workers.methods import all_methods, purpose
from workers.methods.arm_labels import params_label

METHODS = MethodFacts(params_label, purpose)
# Of the conditions that are read at once, but for the fullest, which is always; all are where
# there is a request for them.
MAX_POINTS = 2000
ANY = "any"
# Tokens, or inputs of a batch.
MOST = 10_000_000
TOKENS_HELP = "Of the unmodified model: patch tokens of an image, or tokens of the prompt"
DROP_HELP = (
    "Quality that an arm may lose by the upper end of its interval: points of top-1, or bits per"
    " byte; empty: any"
)
# Columns of the table in the terminal that the evidence has.
IN_EVIDENCE = ("comparison", "measured at")
SPEED = Measure("value", "Speed-up", "higher", "ratio", ends=ENDS, none=1.0)
# Of figures without an interval, which differ by less in any two runs.
TOLERANCE = 0.005


class FullestAdvice(NamedTuple):
    """What the page shows on a request."""

    found: Sequence[Advice]
    hidden: int
    """Conditions that were not read, since they have fewer points than those that were."""


# See `store.read.advice.timed_arms.measured_conditions`.
known_conditions = kept(measured_conditions)


# See `store.read.advice.timed_arms.timed_sizes`.
model_sizes = kept(timed_sizes)


# See `store.read.advice.timed_arms.environment_facts`.
read_facts = kept(environment_facts)


@kept
def read_timed(engine: Any, request: AdviceRequest) -> Sequence[TimedCondition]:
    """The conditions that a request at any size may rest on, those with the most points first."""
    limits = {"device": request.device, "runtime": request.runtime, "metric": request.metric}
    return timed_conditions(engine, request.model, request.batch, **limits)


@kept
def read_arms(
    engine: Any, request: AdviceRequest, only: tuple[TimedCondition, ...] | None
) -> Sequence[ConditionArms]:
    """What a request at any size rests on. Raises as `advice` does."""
    return at_batch(engine, request, METHODS, only)


def advice(request: AdviceRequest, *, every: bool = False) -> FullestAdvice:
    """What `breakeven advise --pareto` prints, for the conditions with the most points, or for
    `every` condition.

    Others are read as well where none of these has an answer. Raises `StoreError`, and
    `RefusedError` where nothing measured answers it.
    """
    at_any_size, only = _at_any_size(request), _fullest(request)
    if only is not None and not every:
        with suppress(RefusedError):
            hidden = len(read_timed(at_any_size)) - len(only)
            return FullestAdvice(answers_of(read_arms(at_any_size, only), request), hidden)
    return FullestAdvice(answers_of(read_arms(at_any_size, None), request), 0)


def _at_any_size(request: AdviceRequest) -> AdviceRequest:
    return request._replace(tokens=0, max_drop=None, pareto=False)


def _fullest(request: AdviceRequest) -> tuple[TimedCondition, ...] | None:
    """The conditions with the most points where all together have too many."""
    known = read_timed(_at_any_size(request))
    sums = accumulate(each.points for each in known)
    few = max(1, sum(points <= MAX_POINTS for points in sums))
    return tuple(known[:few]) if few < len(known) else None


def checked_advice(advice: Advice) -> Advice:
    """See `store.read.advice.advice.checked`."""
    if advice.winner is None or advice.winner.interpolated:
        return advice

    @kept
    def checks(engine: Any, *_place: str) -> Any:
        return checked(engine, advice).checks

    (row,) = advice.winner.rows
    found = checks(row.comparison_id, row.environment, row.host, advice.metric)
    return replace(advice, checks=found)


def policy(request: AdviceRequest, created: float) -> PolicyFile:
    """What `breakeven export-policy` writes for the model of a request at all sizes and batches."""

    @kept
    def read(engine: Any, same: AdviceRequest) -> PolicyFile:
        found = condition_arms(
            engine,
            METHODS,
            model=same.model,
            device=same.device,
            runtime=same.runtime,
            data=same.data,
            metric=same.metric,
        )
        return policy_file(engine, found, max_drop=same.max_drop, created=created)

    return read(request._replace(tokens=0, batch=0, pareto=False))


def winner_sweep(advice: Advice) -> str:
    """The sweep file that measures the first arm again at this size; empty where the unmodified
    model comes first.

    Raises `UserError` where no input has the size, or a method is not installed.
    """
    winner = advice.winner
    if winner is None:
        return ""
    comparison = comparison_at(winner.comparison, int(winner.rows[-1].tokens), advice.tokens)
    question = f"Is {winner.label} as fast on fresh pairs as when it was chosen?"
    return _written([comparison], f"confirm-{comparison.question_id}", question)


def sweep_for_missing_points(
    request: AdviceRequest, chosen: Advice | None, batches: Sequence[int] = ()
) -> str:
    """The sweep file that measures at this size what is not known there; empty where nothing is
    missing.

    In the condition of the advice, or else in the first one of the model, at the nearest of the
    `batches` where its own is none. Raises `UserError` where no input has the size, or a method is
    not installed.
    """
    near = request._replace(batch=batches[0]) if batches else request
    same: list[ConditionArms] = []
    with suppress(RefusedError):
        for only in dict.fromkeys((_fullest(near), None)):
            same = same or [
                each
                for each in read_arms(_at_any_size(near), only)
                if chosen is None or each.parts(request.tokens) == chosen.parts
            ]
    missing = same[0].missing_at(request.tokens, request.batch) if same else []
    if not missing:
        return ""
    size = f"{request.tokens} token{'' if request.tokens == 1 else 's'}"
    question = f"What does {request.model} gain at {size} and batch {request.batch}?"
    return _written(missing, f"measure-{missing[0].question_id}", question)


def _written(comparisons: Sequence[Comparison], name: str, question: str) -> str:
    known = all_methods()
    for each in comparisons:
        for step in (*each.arm.stack, *each.baseline.stack):
            if step.code is None and step.method not in known:
                raise UserError(f"the method {step.method} is not installed here")
    return sweep_of(comparisons, name, question, known)


def _choose_request(known: pd.DataFrame) -> AdviceRequest:
    """The request that the widgets and the address hold; `known` are rows of `measured_conditions`,
    at least one.
    """
    newest = known.sort_values(["at", "points"]).iloc[-1]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        models = sorted(known["model"].unique())
        model = filters.choose_one("Model", models, "model", str(newest["model"]), width=280)
        own = known[known["model"] == model]
        values = {}
        for name in ("device", "runtime"):
            found = sorted(own[name].unique())
            options = [ANY, *found] if len(found) > 1 else [ANY]
            values[name] = filters.choose_one(name.capitalize(), options, name, ANY, width=190)
        metrics = {
            METRICS[name].label: name for name in timed_metrics() if name in set(own["metric"])
        }
        metric = metrics[filters.choose_one("Rank by", list(metrics), "metric", width=190)]
        points = own.groupby("batch_size")["points"].sum()
        batches = dict(zip(points.index.tolist(), points.tolist(), strict=True))
        batch = _number("Batch", "batch", _often(batches)[0])
        tokens = _number("Tokens", "tokens", _often(model_sizes(model, batch))[-1], TOKENS_HELP)
        drop = _loss()
        st.number_input(
            *("Loss at most", 0.0, None, None, 0.1),
            width=150,
            placeholder="any",
            help=DROP_HELP,
            **address.widget("max_drop", drop),
        )
    runtime = values["runtime"]
    return AdviceRequest(
        model=model,
        tokens=tokens,
        batch=batch,
        device=next((known for known in get_args(Device) if known == values["device"]), None),
        runtime=None if runtime == ANY else runtime,
        metric=None if metric == next(iter(metrics.values())) else metric,
        max_drop=drop,
        pareto=True,
    )


def _number(label: str, key: str, default: int, help_text: str | None = None) -> int:
    """The number of the address; `default` where that is none."""
    given = [text for text in address.asked(key) if text.isascii() and text.isdigit()]
    value = next((int(text) for text in given if 1 <= int(text) <= MOST), default)
    if not given or value != int(given[-1]):
        address.put(key)
    shown = address.widget(key, value)
    st.number_input(*(label, 1, MOST, "min", 1), width=130, help=help_text, **shown)
    return value


def _loss() -> float | None:
    """The loss that the address allows, at least 0."""
    for text in address.asked("max_drop"):
        with suppress(ValueError):
            if 0 <= (loss := float(text)) < inf:
                return loss
        address.put("max_drop")
    return None


def _often(counts: Mapping[int, int]) -> list[int]:
    """The values that were timed at least half as often as any, smallest first; 1 where there is
    none.
    """
    most = max(counts.values(), default=0)
    return sorted(value for value, number in counts.items() if 2 * number >= most) or [1]


def _show_ranking(advice: Advice) -> None:
    """The ranking as the terminal prints it, each row with links to its evidence."""
    headings, rows = advice_table(advice)
    shown = pd.DataFrame(rows, columns=headings).replace("", None)
    shown = shown.dropna(axis="columns", how="all").drop(columns=list(IN_EVIDENCE), errors="ignore")
    lines = []
    for cells, each in zip(shown.fillna("").to_numpy(), advice.ranking.arms, strict=True):
        found = [_link(advice, each.key, place) for place in (0, 1)]
        evidence = [plain.link("Evidence", address) for address in found if address]
        lines.append([*map(plain.escaped, cells), " · ".join(evidence)])
    st.html(grid_html("Ranking", [*shown, ""], lines))


def _link(advice: Advice, key: str, place: int) -> str | None:
    rows = advice.by_key[key].rows if key in advice.by_key else ()
    if place >= len(rows):
        return None
    return links.point_link(rows[place].comparison_id, rows[place].environment, rows[place].host)


def figures_of(advice: Advice) -> list[tuple[Measure, pd.DataFrame]]:
    """Figures in which the ranked arms differ, with rows for `bar_chart`: the speed-up, which is
    always among them, what they cost in quality, and what else they need less of.
    """
    figures: dict[Measure, dict[str, tuple[float | None, ...]]] = {
        SPEED: {each.key: (each.value, *_bounded(each)) for each in advice.ranking.arms}
    }
    for each in advice.found:
        for cost in each.arm.costs:
            title = f"{METRICS[cost.metric].label.capitalize()} lost on {cost.data}, {cost.unit}"
            measure = Measure("value", title, form="+.2~r", ends=ENDS, none=0.0)
            figures.setdefault(measure, {})[each.arm.key] = cost[3:6]
        for name, amount in each.amounts.items():
            title = f"{METRICS[name].label.capitalize()}, times less"
            measure = Measure("value", title, "higher", "ratio", ends=ENDS, none=1.0)
            figures.setdefault(measure, {})[each.arm.key] = (amount.ratio, None, None)
    colors = method_colors(each.rows[-1].method for each in advice.found)
    drawn = []
    for measure, values in figures.items():
        rows = []
        for ranked in advice.ranking.arms:
            found = advice.by_key.get(ranked.key)
            label = UNMODIFIED_LABEL if found is None else found.label
            color = GREY if found is None else colors[found.rows[-1].method]
            ends = values.get(ranked.key) or (None if found else measure.none, None, None)
            rows.append((label, color, _link(advice, ranked.key, 0), *ends))
        frame = pd.DataFrame(rows, columns=["label", "color", "href", "value", *ENDS])
        frame = frame.astype(dict.fromkeys(("value", *ENDS), float))
        if measure is SPEED or differ(frame):
            drawn.append((measure, frame.dropna(subset=["value"])))
    return drawn


def _bounded(arm: RankedArm) -> tuple[float | None, float | None]:
    """The ends of its interval; none where this is unbounded: too few pairs for so many arms."""
    return (arm.low, arm.high) if arm.high < inf else (None, None)


def differ(rows: pd.DataFrame) -> bool:
    """Whether two arms are apart: by their intervals, or by their values where one has none."""
    low, high = (rows[end].fillna(rows["value"]) for end in ENDS)
    return bool(low.max() > high.min() + TOLERANCE)


def _draw_figures(advice: Advice) -> None:
    """Each figure beside the others, all in the order of the ranking."""
    figures = figures_of(advice)
    for number, (place, (measure, rows)) in enumerate(
        zip(st.columns(len(figures)), figures, strict=True)
    ):
        fastest = measure is SPEED
        answer = advice_headline(advice) if fastest else texts.extremes(measure.title, rows)
        with place:
            chart = bar_chart(rows, measure)
            data = rows.drop(columns=["href", "color"])
            name = f"figure-{number}"
            show_chart(
                chart,
                name,
                data,
                f"choose-{advice.tokens}",
                answer,
            )


def _show_files(request: AdviceRequest, advice: Advice | None, batches: Sequence[int] = ()) -> None:
    """What to take along: commands, sweeps that measure more, and the policy; each is made when it
    is chosen.
    """
    st.subheader("Commands and files", anchor=False)
    offered = ["Commands", "Measure the first again", "Measure what is missing", "Policy"]
    offered = offered if advice is not None and advice.winner else [offered[0], *offered[2:]]
    chosen = st.segmented_control(
        "Files",
        offered,
        default=offered[0],
        required=True,
        label_visibility="collapsed",
        key="take",
    )
    try:
        if chosen == "Policy":
            _policy(request)
        elif chosen == "Measure the first again" and advice is not None:
            _sweep(winner_sweep(advice), "confirm.yaml")
        elif chosen == "Measure what is missing":
            _sweep(sweep_for_missing_points(request, advice, batches), "measure.yaml")
        else:
            commands = (("advise",), ("export-policy", "policy.json"))
            plain.command("\n".join(command_line(words, request) for words in commands))
    except (UserError, StoreError) as problem:
        plain.sentence(f"{problem}.")


def _sweep(text: str, file: str) -> None:
    if not text:
        plain.sentence(
            "Nothing is missing here: every arm is measured at this size, failed at it, or is a"
            " control."
        )
        return
    st.code(text, language="yaml", wrap_lines=True)
    plain.command(f"breakeven run {file}")
    plain.download("Download", text, file, "application/yaml")


def _policy(request: AdviceRequest) -> None:
    made = policy(request, time.time())
    plain.sentence(
        f"{count(made.rules, 'rule')} (a condition and a batch each) with {count(made.arms, 'arm')}"
        " to use."
    )
    plain.download("Download", made.text, "policy.json", "application/json")
    plain.text_block("\n".join(made.lines))


def short_titles(found: Sequence[Advice]) -> list[str]:
    """The values in which the conditions of several answers differ; with a number where two are
    equal.
    """
    common = set(found[0].parts).intersection(*(each.parts for each in found))
    own = [", ".join(part for part in each.parts if part not in common) for each in found]
    return [
        f"{text} ({own[:place].count(text) + 1})" if own.count(text) > 1 else text
        for place, text in enumerate(own)
    ]


def _show_refusal(request: AdviceRequest, problem: RefusedError) -> None:
    """Why there is no answer, and the nearest sizes that have one."""
    plain.sentence("No answer", "strong")
    plain.sentence(f"{texts.capitalised(str(problem))}.")
    nearest = [("tokens", value) for value in problem.tokens if value != request.tokens]
    nearest += [("batch", value) for value in problem.batches]
    with st.container(horizontal=True):
        for name, value in nearest:
            st.button(
                f"{value} token{'' if value == 1 else 's'}"
                if name == "tokens"
                else f"batch {value}",
                key=f"nearest-{name}-{value}",
                on_click=address.put,
                args=(name, str(value)),
            )
    _show_files(request, None, problem.batches)


def _show_advice(
    request: AdviceRequest, found: Sequence[Advice], hidden: int, *, every: bool
) -> None:
    titles, place = short_titles(found), 0
    if len(found) > 1:
        label = f"Condition, one of {len(found)}"
        place = titles.index(filters.choose_one(label, titles, "condition"))
    chosen = checked_advice(found[place])
    plain.headline(advice_headline(chosen))
    plain.sentence(f"For {chosen.title}.", "muted")
    _draw_figures(chosen)
    asked = request if chosen.leads else request._replace(runtime=chosen.time.runtime)
    again = command_line(("advise", "--confirm"), asked)
    lines = [
        *(advice_sentence(chosen), runtime_sentence(chosen)),
        *(environment_sentence(chosen, read_facts(chosen.environments)), claim_sentence(chosen)),
        *(doubt_sentence(chosen, again), quality_sentence(chosen)),
    ]
    plain.sentence("\n".join(filter(None, lines)))
    _show_ranking(chosen)
    plain.sentence("\n".join(advice_notes(chosen)), "muted")
    if hidden or every:
        more = f", {hidden:,} more with fewer points" if hidden else ""
        filters.choose_whether(f"Show all conditions{more}", "every")
    _show_files(request, chosen)


def _show() -> None:
    known = known_conditions()
    plain.heading("Which arm shall I use?")
    if known.empty:
        plain.sentence("No arm was timed against the unmodified model yet.")
        plain.command("breakeven run quickstart")
        return
    request = _choose_request(known)
    every = bool(address.asked("every"))
    try:
        found, hidden = advice(request, every=every)
    except RefusedError as refused:
        _show_refusal(request, refused)
        return
    except StoreError as wrong:
        plain.sentence("No answer", "strong")
        plain.sentence(f"{wrong}.")
        return
    _show_advice(request, found, hidden, every=every)


if __name__ == "__main__":
    _show()
