"""Sections of the page that shows two sides of a store, and the history of one question."""

from collections.abc import Sequence
from html import escape
from itertools import combinations
from typing import Any, Literal, NoReturn

import pandas as pd
import streamlit as st

from store.read.evidence.compare_queries import BY, By, SideChoice
from store.read.evidence.side_by_side import SideBySide
from sweeps.model.metrics import INTERVAL, METRICS, SPEED_FLOOR
from sweeps.number_format import count
from sweeps.stats.side_by_side import FAMILY_ALPHA
from webapp.blocks.evidence_blocks import TABLE_STYLE, show_rows
from webapp.charts.side_by_side import history_chart, side_chart
from webapp.display import plain
from webapp.display.links import page_link, point_link
from webapp.queries import queries_compare
from webapp.widgets.chart_block import show_chart

BY_WORDS: dict[By, str] = {
    "sweep": "Sweeps",
    "environment": "Environments",
    "revision": "Revisions",
    "date": "Days",
}
BOTH_SIDES: tuple[Literal["a", "b"], ...] = ("a", "b")
MAX_TRIED = 4
"""Of the newest sides, in search of two with a question in common."""
LISTED = 60
"""Questions in the table; the file has all."""


def choose_sides() -> tuple[By, SideChoice, SideChoice] | None:
    """What is compared and its two sides, by the address, else the newest two; `None` where there
    are no two.
    """
    choices = {by: queries_compare.read_choices(by) for by in BY}
    possible = [by for by in BY if len(choices[by]) > 1]
    if not possible:
        plain.sentence(
            "There is one sweep in one revision, measured in one environment on one day: nothing to"
            " compare it with. A second sweep, machine or day makes two sides."
        )
        for sweep in choices["sweep"]:
            plain.command(f"breakeven run {sweep.value} --remeasure")
        return None
    named = st.query_params.get("by", "")
    by = next((each for each in possible if each == named), possible[0])
    if named and by != named:
        plain.sentence(
            f"The address compares by {named}, of which there are no two here; {by} is shown.",
            "muted",
        )
    word = st.segmented_control(
        "Compare",
        [BY_WORDS[each] for each in possible],
        default=BY_WORDS[by],
        required=True,
        key=f"by-{by}-{_switches()}",
    )
    shown = next(each for each in possible if BY_WORDS[each] == word)
    if shown != by:
        _switch({"by": shown})
    requested = {"a", "b"} <= set(st.query_params)
    first, second = _newest_two(by, choices[by]) if requested else _first_two(by, choices[by])
    left, right = st.columns(2)
    with left:
        a = _choose_side("First side", "a", by, choices[by], first)
    with right:
        b = _choose_side("Second side", "b", by, choices[by], second)
    if not st.session_state.get("compared"):
        st.session_state["compared"] = True  # only once, so that Back leads on from here
        st.query_params.update({"by": by, "a": a.value, "b": b.value})
    return by, a, b


def _switches() -> int:
    return int(st.session_state.get("switches", 0))


def _switch(query: dict[str, str]) -> NoReturn:
    """Goes to another address; widgets of former ones begin anew, so that Back finds none with a
    choice that led away.
    """
    st.session_state["switches"] = _switches() + 1
    st.query_params.from_dict(query)
    st.rerun()


def _first_two(by: By, choices: Sequence[SideChoice]) -> tuple[str, str]:
    """The newest two sides with a question in common, of those that are tried, else the newest two;
    the older one first.
    """
    newest = _newest_two(by, choices)
    pairs = [
        newest,
        *((older.value, newer.value) for newer, older in combinations(choices[:MAX_TRIED], 2)),
    ]
    return next(
        (pair for pair in dict.fromkeys(pairs) if queries_compare.two_sides(by, *pair).rows), newest
    )


def _newest_two(by: By, choices: Sequence[SideChoice]) -> tuple[str, str]:
    """The newest two sides, the older one first: of revisions two of one sweep, where one has
    two.
    """
    values = [choice.value for choice in choices]
    if by == "revision":
        names: dict[str, list[str]] = {}
        for value in values:
            names.setdefault(value.partition(":")[2], []).append(value)
        values = next((own for own in names.values() if len(own) > 1), values)
    return values[1], values[0]


def _choose_side(
    label: str, key: str, by: By, choices: Sequence[SideChoice], default: str
) -> SideChoice:
    known = {choice.value: choice for choice in choices}
    named = st.query_params.get(key)
    value = named if named in known else default
    if named is not None and named not in known:
        plain.sentence(
            f"The address has the {label.lower()} {named}, which is not in this store.", "muted"
        )
    labels = {choice.value: choice.label for choice in choices}
    drawn = st.selectbox(
        label,
        list(known),
        index=list(known).index(value),
        format_func=labels.__getitem__,
        key=f"{key}-{by}-{value}-{_switches()}",
    )
    if drawn != value:
        _switch({**st.query_params.to_dict(), key: drawn})
    return known[drawn]


def sides(by: By, a: SideChoice, b: SideChoice) -> None:
    """What differs first, then every question of both sides."""
    found = queries_compare.two_sides(by, a.value, b.value)
    if not found.rows:
        plain.sentence(f"They have no question in common: {a.label}; {b.label}.", "strong")
        plain.sentence(
            f"{count(found.only_a, 'answer')} of the first and {count(found.only_b, 'answer')} of"
            " the second have no counterpart. Sides are matched by all conditions in which they do"
            " not differ as a whole; choose two above that measured the same."
        )
        return
    frame = queries_compare.side_frame(found.rows)
    plain.sentence(_summary(frame), "strong")
    plain.sentence(_how(found), "muted")
    _changes(found, a, b)
    st.subheader("First against second", anchor=False)
    st.caption(
        f"A point is a question, with {INTERVAL} intervals; on the dashed line both sides agree."
        " Click for its evidence."
    )
    name = f"{by}-{a.value}-{b.value}"
    show_chart(side_chart(frame), name=name, data=frame, scope_or_sweep="compare")
    data = frame.drop(columns=["comparison_id", "environment", "host"]).to_csv(index=False)
    st.download_button(
        "All questions as CSV",
        data,
        f"compare-{by}.csv",
        "text/csv",
        on_click="ignore",
        icon=":material/download:",
    )
    st.subheader("Question by question", anchor=False)
    _table(frame, by, a, b)


def _summary(frame: pd.DataFrame) -> str:
    differing = int((frame["group"] == "differs").sum())
    same, one = (
        int((frame["finding"] == "same").sum()),
        int((frame["finding"] == "one answer").sum()),
    )
    parts = [
        f"{differing or 'None'} of {count(len(frame), 'common question')}"
        f" {'differs' if differing == 1 else 'differ'}"
    ]
    parts += [f"{same} are the same within {100 * SPEED_FLOOR:g} %"] if same else []
    parts += [f"{one} have one and the same answer on both sides"] if one else []
    unclear = int(frame["finding"].isin(["unclear", "overlap"]).sum())
    parts += [f"{unclear} are not clear"] if unclear else []
    without = int((frame["finding"] == "not comparable").sum())
    parts += [f"{without} cannot be compared"] if without else []
    return "; ".join(parts) + "."


def _how(found: SideBySide) -> str:
    shared = (
        f"{100 * FAMILY_ALPHA:g} %, which {count(found.tested, 'question')} share (Bonferroni),"
        " each over all of its attempts"
    )
    rule = (
        "Each speed-up is against the baseline of its own side. The probability that any question"
        f" is called different where none is stays below {shared}. Answers of one process are apart"
        " where their own intervals at that level do not touch, else they overlap."
    )
    alone = (
        f"{count(found.only_a, 'answer')} of the first side and {count(found.only_b, 'answer')} of"
        " the second have no counterpart."
    )
    capped = "More answers than these were not read."
    return " ".join(
        [
            rule,
            *([alone] if found.only_a or found.only_b else []),
            *([capped] if found.capped else []),
        ]
    )


def _changes(found: SideBySide, a: SideChoice, b: SideChoice) -> None:
    """What is different between the sides, before their numbers."""
    st.subheader("What is different", anchor=False)
    rows = [(name, str(one), str(other)) for name, (one, other) in found.differing.items()]
    rows += [row for row in found.facts if row[0] not in found.differing]
    rows += found.versions
    if rows:
        show_rows([("", a.label, b.label), *rows])
    else:
        plain.sentence(
            "Nothing that is stored: conditions, environments and versions of the common questions"
            " are equal."
        )


def _table(frame: pd.DataFrame, by: By, a: SideChoice, b: SideChoice) -> None:
    heads = (
        "Question",
        f"First: {a.label}",
        f"Second: {b.label}",
        "First over second",
        "Finding",
        "",
    )
    lines = [f"<tr>{''.join(f'<th>{escape(head)}</th>' for head in heads)}</tr>"]
    records: list[dict[Any, Any]] = frame.head(LISTED).to_dict("records")
    for row in records:
        cells = []
        for name in BOTH_SIDES:
            address = point_link(
                row[f"comparison_id_{name}"], row[f"environment_{name}"], row[f"host_{name}"]
            )
            flags = f" ({row[f'flags_{name}'].replace(',', ', ')})" if row[f"flags_{name}"] else ""
            cells.append(plain.link(queries_compare.side_words(row, name), address) + escape(flags))
        history_of = page_link("compare", by=by, a=a.value, b=b.value, question=row["question_id"])
        cells += [
            escape(queries_compare.ratio_words(row)),
            escape(row["finding"]),
            plain.link("history", history_of),
        ]
        values = "".join(f"<td>{cell}</td>" for cell in cells)
        lines.append(f"<tr><td>{escape(row['label'])}</td>{values}</tr>")
    st.html(f"{TABLE_STYLE}<table class=rows>{''.join(lines)}</table>")
    if len(frame) > LISTED:
        plain.sentence(
            f"{LISTED} of {len(frame):,}, the clearest first; the file has all.", "muted"
        )


def history(question_id: str) -> None:
    """Every answer and attempt of one question, by when it was measured."""
    found = queries_compare.read_history(question_id, None)
    st.subheader("History of one question", anchor=False)
    if len(found.metrics) > 1:
        labels = {METRICS[name].label: name for name in found.metrics}
        chosen = st.segmented_control(
            "Metric",
            list(labels),
            default=next(iter(labels)),
            required=True,
            key="of",
            bind="query-params",
        )
        found = queries_compare.read_history(question_id, labels[str(chosen)])
    frame = queries_compare.history_frame(found)
    answers = frame[frame["what"] == "answer"]
    plain.sentence(
        f"{count(len(answers), 'answer')} by"
        f" {count(int((frame['what'] == 'attempt').sum()), 'attempt')},"
        f" {str(frame['at'].min())[:10]} to {str(frame['at'].max())[:10]}: speed-ups from"
        f" {answers['speedup'].min():.3f}× to {answers['speedup'].max():.3f}×."
    )
    st.caption(
        "A diamond is an answer: all attempts of one version at one place pooled. A circle is one"
        " attempt alone."
    )
    chart = history_chart(frame, METRICS[found.metric].floor)
    show_chart(chart, name=question_id, data=frame, scope_or_sweep="history")
    if found.left_out:
        plain.sentence(f"{count(found.left_out, 'older attempt')} not drawn.", "muted")
    if len(found.versions) > 1:
        show_rows((comparison_id, version) for comparison_id, version in found.versions.items())
