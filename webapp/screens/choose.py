"""Page: which measured arm to use for a model, so many tokens and such a batch, or the unmodified
model, and what shows it.
"""

import time
from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from store.errors import StoreError
from store.read.advice.advice import AdviceRequest, RefusedError, command_line
from sweeps.errors import UserError
from sweeps.model.metrics import METRICS
from sweeps.number_format import count
from sweeps.text.advice_text import (
    UNMODIFIED_LABEL,
    Advice,
    advice_notes,
    advice_sentence,
    advice_table,
    claim_sentence,
    doubt_sentence,
    quality_sentence,
)
from webapp.blocks.advice_inputs import choose_request
from webapp.charts.pareto import Measure, pareto_chart
from webapp.display import links, plain, texts
from webapp.display.arm_style import method_colors
from webapp.queries import queries_choose
from webapp.widgets.chart_block import show_chart

WIDE = 48  # letters of the longest label beside which the other columns are still seen
MAX_SHOWN = 40_000  # letters of a policy; the file has all
TOOLTIPS = [
    alt.Tooltip("arm:N", title="Arm"),
    alt.Tooltip("numbers:N", title="Speed-up"),
    alt.Tooltip("ms:N", title="ms (unmodified)"),
    alt.Tooltip("cost:N", title="Loss of quality"),
    alt.Tooltip("amount:Q", title="Memory, times less", format=".2f"),
    alt.Tooltip("note:N", title="Note"),
]
SPEED = Measure("speedup", "Speed-up", "higher", "ratio")
# The table begins and ends with these: a narrow screen shows what matters most. Streamlit would
# print a bare string here.
FIRST_COLUMNS = ("rank", "arm", "evidence", "and")
LAST_COLUMNS = ("runtime", "pairs", "measured at")


def show_ranking(advice: Advice) -> None:
    """The ranking as the terminal prints it, each row with a link to its evidence."""
    headings, rows = advice_table(advice)
    shown = (
        pd.DataFrame([list(map(texts.typeset, row)) for row in rows], columns=headings)
        .replace("", None)
        .dropna(axis="columns", how="all")
    )
    config: dict[str, Any] = {"rank": st.column_config.TextColumn("rank", width=50)}
    if max(map(len, shown["arm"])) > WIDE:
        config["arm"] = st.column_config.TextColumn("arm", width=300)
    neighbours = max((len(each.rows) for each in advice.found), default=0)
    for place in range(neighbours):
        name = "evidence" if place == 0 else "and"
        shown.insert(
            len(shown.columns),
            name,
            [_link(advice, each.key, place) for each in advice.ranking.arms],
        )
        config[name] = st.column_config.LinkColumn(name, display_text="open", width=75)
    order = [name for name in FIRST_COLUMNS if name in shown]
    order += [
        name for name in map(str, shown) if name not in (*order, *LAST_COLUMNS, "comparison")
    ] + [name for name in LAST_COLUMNS if name in shown]
    st.dataframe(
        shown,
        column_config=config,
        column_order=order,
        hide_index=True,
        placeholder="",
        key="ranking",
    )


def _link(advice: Advice, key: str, place: int) -> str | None:
    rows = advice.by_key[key].rows if key in advice.by_key else ()
    if place >= len(rows):
        return None
    return links.point_link(rows[place].comparison_id, rows[place].environment, rows[place].host)


def chart_frame(advice: Advice) -> tuple[pd.DataFrame, Measure | None]:
    """The arms as points of the Pareto chart, and what is drawn against time: quality, or else
    memory, or nothing.
    """
    measured = [
        (cost.metric, cost.data, cost.unit) for each in advice.found for cost in each.arm.costs
    ]
    amounts = [
        name for each in advice.found for name in each.amounts if METRICS[name].unit == "MiB"
    ]
    rows, measure = [], None
    if measured:
        metric, data, unit = max(dict.fromkeys(measured), key=measured.count)
        label = METRICS[metric].label
        measure = Measure("worse", f"Loss of {label} on {data}, {unit or '1'}")
    elif amounts:
        chosen = max(dict.fromkeys(amounts), key=amounts.count)
        measure = Measure(
            "amount", f"{METRICS[chosen].label.capitalize()}, times less", "higher", "ratio"
        )
    headings, cells = advice_table(advice)
    words = {"numbers": headings[3], "ms": headings[4], "cost": "quality", "note": "note"}
    for ranked, printed in zip(advice.ranking.arms, cells, strict=True):
        found = advice.by_key.get(ranked.key)
        row = {
            "arm": UNMODIFIED_LABEL,
            "method": "dense",
            "speedup": ranked.value,
            "front": ranked.key in (advice.pareto or ()),
        }
        row |= {
            "speedup_low": ranked.low,
            "speedup_high": ranked.high,
            "href": None,
            "worse": 0.0,
            "amount": 1.0,
        }
        row |= {
            name: texts.typeset(printed[headings.index(heading)]) for name, heading in words.items()
        }
        if found is not None:
            cost = next(
                (
                    each
                    for each in found.arm.costs
                    if measured and (each.metric, each.data) == (metric, data)
                ),
                None,
            )
            row |= {
                "arm": found.label,
                "method": found.rows[-1].method,
                "href": _link(advice, ranked.key, 0),
            }
            row |= dict(
                zip(
                    ("worse", "worse_low", "worse_high"),
                    cost[3:6] if cost else (None,) * 3,
                    strict=True,
                )
            )
            row["amount"] = found.arm.amounts.get(chosen) if not measured and amounts else None
        rows.append(row)
    return pd.DataFrame(rows), measure


def draw_pareto(advice: Advice) -> None:
    points, measure = chart_frame(advice)
    if measure is None:
        plain.sentence(
            "Neither quality nor memory was measured for these arms, so there is nothing to weigh"
            " time against.",
            "muted",
        )
        return
    colors = method_colors(points["method"])
    try:
        named = {row["arm"]: colors[row["method"]] for row in points.to_dict("records")}
        chart = pareto_chart(
            points, SPEED, measure, colors=named, tooltip=TOOLTIPS, named=(UNMODIFIED_LABEL,)
        )
    except ValueError as problem:
        plain.sentence(f"{problem}", "muted")
        return
    plain.sentence(
        "Filled: in the Pareto set. Bars: intervals, of speed-ups together, of quality each by"
        " itself.",
        "muted",
    )
    show_chart(
        chart,
        name="pareto",
        data=points.drop(columns="href"),
        scope_or_sweep=f"choose-{advice.tokens}",
    )


def show_files(request: AdviceRequest, advice: Advice | None, batches: Sequence[int] = ()) -> None:
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
            _sweep(queries_choose.winner_sweep(advice), "confirm.yaml")
        elif chosen == "Measure what is missing":
            _sweep(
                queries_choose.sweep_for_missing_points(request, advice, batches), "measure.yaml"
            )
        else:
            commands = [
                command_line(("advise",), request),
                command_line(("export-policy", "policy.json"), request),
            ]
            plain.command("\n".join(commands))
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
    st.code(f"breakeven run {file}", language="bash")
    st.download_button(
        "Download",
        text,
        file,
        "application/yaml",
        icon=":material/download:",
        on_click="ignore",
        key=f"file-{file}",
    )


def _policy(request: AdviceRequest) -> None:
    made = queries_choose.policy(request, time.time())
    plain.sentence(
        f"{count(made.rules, 'rule')} (a condition and a batch each) with {count(made.arms, 'arm')}"
        " to use."
    )
    st.download_button(
        "Download",
        made.text,
        "policy.json",
        "application/json",
        icon=":material/download:",
        on_click="ignore",
    )
    plain.text_block("\n".join(made.lines))
    if len(made.text) <= MAX_SHOWN:
        st.code(made.text, language="json", wrap_lines=True)
    else:
        plain.sentence(f"The file has {len(made.text):,} letters, too many to show.", "muted")


def short_titles(found: Sequence[Advice]) -> list[str]:
    """What distinguishes the conditions of several answers; the number first, so that no two are
    equal.
    """
    parts = [each.title.split(", ") for each in found]
    common = set(parts[0]).intersection(*parts[1:])
    own = [", ".join(part for part in each if part not in common) for each in parts]
    return [
        f"{number}: {text or each.title}"
        for number, (text, each) in enumerate(zip(own, found, strict=True), 1)
    ]


def show_refusal(request: AdviceRequest, problem: RefusedError) -> None:
    """Why there is no answer, and the nearest sizes that have one."""
    plain.sentence("No answer", "strong")
    plain.sentence(texts.typeset(f"{problem}"[:1].upper() + f"{problem}"[1:] + "."))
    nearest = [("tokens", value) for value in problem.tokens if value != request.tokens] + [
        ("batch", value) for value in problem.batches
    ]
    with st.container(horizontal=True):
        for name, value in nearest:
            label = f"{value} tokens" if name == "tokens" else f"batch {value}"
            st.button(
                label,
                key=f"nearest-{name}-{value}",
                on_click=st.session_state.update,
                args=({name: value},),
            )
    show_files(request, None, problem.batches)


_known = queries_choose.known_conditions()
plain.heading("Which arm to use")
if _known.empty:
    plain.sentence("No arm was timed against the unmodified model yet.")
    st.code("breakeven run quickstart", language="bash")
    st.stop()
_request = choose_request(_known)
try:
    _found, _hidden = queries_choose.advice(
        _request, every=st.session_state.get("every", "every" in st.query_params)
    )
except RefusedError as refused:
    show_refusal(_request, refused)
    st.stop()
except StoreError as wrong:
    plain.sentence("No answer", "strong")
    plain.sentence(f"{wrong}.")
    st.stop()
_place = 0
if len(_found) > 1:
    titles = short_titles(_found)
    _place = titles.index(
        st.selectbox(
            f"Condition, one of {len(_found)}", titles, key="condition", bind="query-params"
        )
    )
_advice = queries_choose.checked_advice(_found[_place])
plain.sentence(texts.typeset(advice_sentence(_advice)), "strong")
plain.sentence(f"For {_advice.title}.", "muted")
_again = command_line(("advise", "--confirm"), _request)
for _line in (claim_sentence(_advice), doubt_sentence(_advice, _again), quality_sentence(_advice)):
    if _line:
        plain.sentence(texts.typeset(_line))
show_ranking(_advice)
draw_pareto(_advice)
plain.sentence("\n".join(map(texts.typeset, advice_notes(_advice))), "muted")
if len(_found) > 1:
    st.subheader(f"{len(_found)} conditions", anchor=False)
    _answers = [texts.typeset(advice_sentence(each)) for each in _found]
    _rows = [
        {"Condition": title, "Answer": answer}
        for title, answer in zip(titles, _answers, strict=True)
    ]
    st.dataframe(pd.DataFrame(_rows), hide_index=True, key="conditions")
if _hidden or st.session_state.get("every") or "every" in st.query_params:
    if _hidden:
        plain.sentence(f"{count(_hidden, 'more condition')} with fewer points.", "muted")
    st.toggle("Show all conditions", key="every", bind="query-params")
show_files(_request, _advice)
