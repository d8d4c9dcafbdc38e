"""Page: two sweeps, environments, revisions or days side by side, and the history of one
question.
"""

from collections.abc import Sequence
from html import escape
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pandas as pd
import streamlit as st

from store.errors import StoreError
from store.read.evidence import history, side_by_side
from store.read.evidence.history import QuestionHistory
from store.read.evidence.side_by_side import BY, By, ComparedAnswers, SideChoice
from sweeps.analysis.labels import conclude
from sweeps.model.metrics import INTERVAL, METRICS, SPEED_FLOOR
from sweeps.number_format import count, moment, seconds_at
from sweeps.stats.evidence import FAMILY_ALPHA, Contrasted
from sweeps.text.effects import effect_word
from webapp.charts.compare import history_info, side_info
from webapp.display import plain, texts
from webapp.display.links import POINT_KEY, page_link, point_link
from webapp.queries import kept
from webapp.widgets import address
from webapp.widgets.chart_block import show_chart
from webapp.widgets.filters import choose_metric
from webapp.widgets.tables import grid_html
from workers.methods.arm_labels import params_label

BY_WORDS: dict[By, str] = {
    "sweep": "Sweeps",
    "environment": "Environments",
    "revision": "Revisions",
    "date": "Days",
}
Side = Literal["a", "b"]
BOTH_SIDES: tuple[Side, ...] = ("a", "b")
# Of the newest sides, in search of two with a question in common.
MAX_TRIED = 4
# Questions in chart and table; the file has all.
LISTED = 60
# How findings are coloured, by what they are.
FINDING_GROUPS: dict[Contrasted, str] = {
    "different": "differs",
    "apart": "differs",
    "same": "the same",
    "unclear": "not clear",
    "overlap": "not clear",
    "one answer": "the same",
    "not comparable": "not clear",
}
# What distinguishes answers of one arm, where it does.
QUESTION_PARTS = {
    "model": "{}",
    "weights": "weights {}",
    "image_size": "{:.0f} px",
    "image_shape": "{} px",
    "prompt_tokens": "{:.0f} token{s}",
    "new_tokens": "{:.0f} new token{s}",
    "batch_size": "batch {:.0f}",
    "dtype": "{}",
    "attention": "{} attention",
    "runtime": "{}",
    "kv_cache": "{} cache",
    "requested_threads": "{:.0f} thread{s}",
    "device_name": "{}",
    "host": "host {}",
    "metric": "{}",
    "baseline": "against {}",
}


# See `store.read.evidence.side_by_side.side_choices`.
read_choices = kept(side_by_side.side_choices)


# See `store.read.evidence.side_by_side.side_by_side`.
two_sides = kept(side_by_side.side_by_side)


# See `store.read.evidence.history.question_history`.
read_history = kept(history.question_history)


def side_frame(rows: Sequence[ComparedAnswers]) -> pd.DataFrame:
    """Rows of `side_info`, those that differ first, by the size of the change, with the verdicts
    and flags of both answers.
    """
    varying = [name for name in QUESTION_PARTS if len({row.a[name] for row in rows}) > 1]
    found = []
    for row in rows:
        given = [
            QUESTION_PARTS[name].format(row.a[name], s="" if row.a[name] == 1 else "s")
            for name in varying
            if row.a[name] is not None
        ]
        difference = row.difference
        sides: dict[str, Any] = {}
        for name, side in (("a", row.a), ("b", row.b)):
            ends = (side["effect"], side["effect_low"], side["effect_high"])
            sides |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
            keys = (*POINT_KEY, "verdict", "floor", "flags")
            sides |= {f"{key}_{name}": side[key] for key in keys}
        found.append(
            {
                "label": ", ".join([params_label(row.a["method"], row.a["params"]), *given]),
                "question_id": row.b["question_id"],
                "finding": difference.found,
                "group": FINDING_GROUPS[difference.found],
                "ratio": difference.ratio,
                "ratio_low": difference.low,
                "ratio_high": difference.high,
                **sides,
            }
        )
    frame = pd.DataFrame(found)
    numbers = [name for name in frame.columns if name.endswith(("_low", "_high"))]
    frame = frame.astype(dict.fromkeys(numbers, float))
    alike, change = frame["group"] != "differs", -np.abs(np.log(frame["ratio"].astype(float)))
    order = frame.assign(alike=alike, change=change).sort_values(["alike", "change"], kind="stable")
    return frame.loc[order.index]


def side_words(row: dict[Any, Any], side: Side) -> str:
    """The answer of one side of a row of `side_frame`."""
    verdict, floor = row[f"verdict_{side}"], row[f"floor_{side}"]
    if verdict == "insufficient":
        return "too few pairs"
    ends = (row[side], row[f"{side}_low"], row[f"{side}_high"])
    words = conclude(texts.SHOWN, *ends, verdict=verdict, floor=floor)
    return f"{words.numbers}, {effect_word(words)}"


def ratio_words(row: dict[Any, Any]) -> str:
    """The ratio of both speed-ups with its interval, where it has one; a dash where one of both has
    too few pairs.
    """
    if "insufficient" in (row["verdict_a"], row["verdict_b"]):
        return "–"
    low, high = row["ratio_low"], row["ratio_high"]
    return f"{row['ratio']:.3f}×" + ("" if pd.isna(low) else f" [{low:.3f}, {high:.3f}]")


def history_frame(found: QuestionHistory) -> pd.DataFrame:
    """Rows of `history_info`, oldest first."""
    frame = pd.DataFrame(found.points).astype({"low": float, "high": float})
    series = frame["device_name"] + ", host " + frame["host"]
    if frame.groupby("host")["environment"].nunique().max() > 1:
        series += ", environment " + frame["environment"].str[:8]
    if len(found.versions) > 1:
        series += ": " + frame["comparison_id"].map(dict(found.versions))
    return frame.assign(series=series)


def _choose_sides() -> tuple[By, SideChoice, SideChoice] | None:
    """What is compared and its two sides, by the address, else the newest two; `None` where there
    are no two.
    """
    choices = {by: read_choices(by) for by in BY}
    possible = [by for by in BY if len(choices[by]) > 1]
    if not possible:
        plain.sentence(
            "There is one sweep in one revision, measured in one environment on one day: nothing to"
            " compare it with. A second sweep, machine or day makes two sides."
        )
        for sweep in choices["sweep"]:
            plain.command(f"breakeven run {sweep.value} --remeasure")
        return None
    by = next(each for each in possible if each == address.one_of("by", possible, possible[0]))
    address.put("by", by)
    with st.container(horizontal=True, vertical_alignment="bottom"):  # wraps where it is narrow
        shown = address.widget("by", by)
        st.segmented_control(
            "Compare", possible, format_func=BY_WORDS.__getitem__, required=True, **shown
        )
        requested = address.asked("a") and address.asked("b")
        defaults = _newest_two(by, choices[by]) if requested else _first_two(by, choices[by])
        a = _choose_side("First side", "a", choices[by], defaults[0])
        b = _choose_side("Second side", "b", choices[by], defaults[1])
    return by, a, b


def _first_two(by: By, choices: Sequence[SideChoice]) -> tuple[str, str]:
    """The newest two sides with a question in common, of those that are tried, else the newest two;
    the older one first.
    """
    newest = _newest_two(by, choices)
    tried = combinations(choices[:MAX_TRIED], 2)
    pairs = dict.fromkeys([newest, *((older.value, newer.value) for newer, older in tried)])
    return next((pair for pair in pairs if two_sides(by, *pair).rows), newest)


def _newest_two(by: By, choices: Sequence[SideChoice]) -> tuple[str, str]:
    """The newest two sides, the older one first: of revisions two of one sweep, where one has
    two.
    """
    of_sweep: dict[str, list[SideChoice]] = {}
    for choice in choices if by == "revision" else ():
        of_sweep.setdefault(choice.sweep, []).append(choice)
    newest = next((own for own in of_sweep.values() if len(own) > 1), choices)
    return newest[1].value, newest[0].value


def _choose_side(label: str, key: str, choices: Sequence[SideChoice], default: str) -> SideChoice:
    known = {choice.value: choice for choice in choices}
    value = address.one_of(key, known, default)
    address.put(key, value)
    shown = address.widget(key, value)
    st.selectbox(
        *(label, list(known)), format_func=lambda each: known[each].label, width=420, **shown
    )
    return known[value]


def _sides(by: By, a: SideChoice, b: SideChoice) -> None:
    """What differs first, then every question of both sides."""
    found = two_sides(by, a.value, b.value)
    alone = (
        f"{count(found.only_a, 'answer')} of the first{{}} and {count(found.only_b, 'answer')} of"
        " the second have no counterpart."
    )
    if not found.rows:
        plain.sentence(f"They have no question in common: {a.label}; {b.label}.", "strong")
        plain.sentence(
            f"{alone.format('')} Sides are matched by all conditions in which they do not differ as"
            " a whole; choose two above that measured the same."
        )
        return
    frame = side_frame(found.rows)
    first, *rest = _summary(frame)
    plain.headline(first)
    shown = frame.head(LISTED)
    words = [*rest, f"arrows from {a.label} to {b.label}, with {INTERVAL} intervals"]
    more = f", {LISTED} of {len(frame):,} shown" if len(frame) > LISTED else ""
    plain.sentence(texts.capitalised(f"{'; '.join(words)}{more}."), "muted")
    name = f"{by}-{a.value}-{b.value}"
    chart = side_info(shown)
    show_chart(chart, name, frame, "compare", first)
    _table(shown, by, a, b)
    notes = [
        "Each speed-up is against the baseline of its own side. The probability that any question"
        f" is called different where none is stays below {100 * FAMILY_ALPHA:g} %, which"
        f" {count(found.tested, 'question')} share (Bonferroni), each over all of its attempts."
        " Answers of one process are apart where their own intervals at that level do not touch,"
        " else they overlap.",
        alone.format(" side") if found.only_a or found.only_b else "",
        "More answers than these were not read." if found.capped else "",
    ]
    plain.sentence(" ".join(filter(None, notes)), "muted")
    st.subheader("What is different", anchor=False)
    rows = [(name, str(one), str(other)) for name, (one, other) in found.differing.items()]
    rows += [row for row in found.facts if row[0] not in found.differing]
    rows += found.versions
    if rows:
        plain.table([("", a.label, b.label), *rows])
    else:
        plain.sentence(
            "Nothing that is stored: conditions, environments and versions of the common questions"
            " are equal."
        )


def _summary(frame: pd.DataFrame) -> list[str]:
    """How many questions differ, then how many do not, and why."""
    counts = frame["finding"].value_counts().to_dict()
    differing = int((frame["group"] == "differs").sum())
    parts = {
        f"are the same within {100 * SPEED_FLOOR:g} %": counts.get("same", 0),
        "have one and the same answer on both sides": counts.get("one answer", 0),
        "are not clear": counts.get("unclear", 0) + counts.get("overlap", 0),
        "cannot be compared": counts.get("not comparable", 0),
    }
    verb = "differs" if differing == 1 else "differ"
    first = f"{differing or 'None'} of {count(len(frame), 'common question')} {verb}"
    return [first, *(f"{number} {text}" for text, number in parts.items() if number)]


def _table(frame: pd.DataFrame, by: By, a: SideChoice, b: SideChoice) -> None:
    first, second = f"First: {a.label}", f"Second: {b.label}"
    heads = ("Question", first, second, "First over second", "Finding", "")
    lines = []
    for row in frame.to_dict("records"):
        cells = []
        for name in BOTH_SIDES:
            address = point_link(*(row[f"{key}_{name}"] for key in POINT_KEY))
            flags = row[f"flags_{name}"].replace(",", ", ")
            note = escape(f" ({flags})") if flags else ""
            cells.append(plain.link(side_words(row, name), address) + note)
        history_of = page_link("compare", by=by, a=a.value, b=b.value, question=row["question_id"])
        cells += [
            escape(ratio_words(row)),
            escape(row["finding"]),
            plain.link("history", history_of),
        ]
        lines.append([f"<th scope=row>{escape(row['label'])}</th>", *cells])
    st.html(grid_html("Questions", heads, lines))


def _history(question_id: str) -> None:
    """Every answer and attempt of one question, by when it was measured."""
    found = read_history(question_id, None)
    st.subheader("History of one question", anchor=False)
    if len(found.metrics) > 1:
        found = read_history(question_id, choose_metric(found.metrics, found.metrics[0]))
    frame = history_frame(found)
    answers = frame[frame["what"] == "answer"]
    answer = (
        f"{count(len(answers), 'answer')} by"
        f" {count(len(frame) - len(answers), 'attempt')},"
        f" {moment(seconds_at(min(frame['at'])))} to {moment(seconds_at(max(frame['at'])))}:"
        " speed-ups from"
        f" {answers['speedup'].min():.3f}× to {answers['speedup'].max():.3f}×."
    )
    plain.sentence(answer)
    st.caption(
        "A diamond is an answer: all attempts of one version at one place pooled. A circle is one"
        " attempt alone."
    )
    chart = history_info(frame, METRICS[found.metric].floor)
    show_chart(chart, question_id, frame, "history", answer)
    if found.left_out:
        plain.sentence(f"{count(found.left_out, 'older attempt')} not drawn.", "muted")
    if len(found.versions) > 1:
        plain.table(found.versions.items())


def _show() -> None:
    plain.heading("What differs between two sides?")
    try:
        for question in address.asked("question"):
            _history(question)
            st.subheader("Two sides", anchor=False)
        chosen = _choose_sides()
        if chosen is not None:
            _sides(*chosen)
    except StoreError as problem:
        plain.sentence(str(problem))


if __name__ == "__main__":
    _show()
