"""Page: what arms cost in accuracy, beside their speed and work, on clean and on corrupted
images.
"""

from typing import Any

import pandas as pd
import streamlit as st

from sweeps.analysis.labels import conclude_change
from sweeps.model.metrics import INTERVAL, METRICS
from sweeps.number_format import count
from sweeps.stats.pooling import ALPHA
from webapp import queries
from webapp.charts.corruption_map import corruption_chart
from webapp.charts.disagreements import disagreement_chart
from webapp.charts.encodings import with_links
from webapp.charts.interval_rows import interval_chart
from webapp.charts.pareto import Measure, pareto_chart
from webapp.display import plain
from webapp.display.arm_style import arm_styles
from webapp.display.scope import Scope
from webapp.queries import queries_quality
from webapp.queries.quality_frames import (
    FRONT_NOTE,
    beside_unmodified,
    evaluation_text,
    with_front,
    with_quality_words,
)
from webapp.widgets import filters
from webapp.widgets.chart_block import show_chart
from webapp.widgets.choices import choose_one
from webapp.widgets.tables import show_table, speed_and_quality

SPEEDS = (
    Measure(
        "speedup", f"Speed-up, {INTERVAL} interval", better="higher", scale="ratio", alpha=ALPHA
    ),
    Measure("arm_ms", "Time of a forward, ms", scale="log"),
    Measure("gmacs_total", "GMACs of a forward, the method's own included"),
)
TOP1_MEASURE = Measure("top1", "Top-1 accuracy, %, 95 % interval", better="higher")
FIGURES = {  # columns of the view `accuracy` with intervals, drawn for each arm
    "top1_drop": "Top-1 lost against the baseline, points",
    "kl": "KL divergence from the baseline, nat",
    "margin_change": "Change of the margin, logits (below 0: worse)",
}
TABLE = (
    "arm",
    "only_baseline_correct",
    "only_arm_correct",
    "mcnemar_p",
    "top1",
    "top5",
    "kl",
    "margin_change",
    "margin_change_p05",
)
ACCURACY_SECTION = """defaults: {pretrained: true, data: "imagefolder:/path/to/val"}

jobs:
  accuracy: {}"""
NO_ACCURACY = {
    "not requested": "This sweep requests no accuracy. These lines in the sweep file do:",
    "queued": "The accuracy of these arms is in the queue; its progress is on the page Runs.",
    "failed": (
        "No accuracy was measured: every comparison failed. The reasons are on the page Runs."
    ),
    "not measured": "The sweep requests accuracy, and none is measured yet: run it again.",
}


def stop_without(state: str) -> None:
    """Why there are no numbers, and what to do; ends the page."""
    plain.sentence(NO_ACCURACY[state])
    if state == "not requested":
        plain.text_block(ACCURACY_SECTION)
    st.stop()


def states_in_words(found: pd.DataFrame) -> str:
    """How many comparisons stand where, such as `12 measured, 2 failed (out_of_memory)`."""
    words = []
    for state, own in found.groupby("state", sort=False):
        reasons = ", ".join(sorted(set(own["reason"].dropna()))) if state == "failed" else ""
        words.append(
            f"{count(len(own), 'comparison')} {state}" + (f" ({reasons})" if reasons else "")
        )
    return ", ".join(words)


def accuracy_front(arms: pd.DataFrame, scope: Scope | str) -> None:
    """Accuracy against speed or work."""
    st.subheader("Accuracy against speed and work", anchor=False)
    known = [
        measure
        for measure in SPEEDS
        if measure.column in arms and arms[measure.column].notna().any()
    ]
    titles = {measure.title.partition(",")[0]: measure for measure in known}
    measure = titles[choose_one("Against", list(titles), "x")]
    first = arms.iloc[0]
    plainly = {
        "speedup": 1.0,
        "arm_ms": first.get("baseline_ms"),
        "gmacs_total": first.get("gmacs_baseline"),
        "top1": first["top1_baseline"],
    }
    points = with_front(beside_unmodified(arms, **plainly), (measure, TOP1_MEASURE))
    colors = {name: style.color for name, style in arm_styles(points).items()}
    chart = pareto_chart(with_links(points), measure, TOP1_MEASURE, colors=colors)
    show_chart(chart, name="accuracy-pareto", data=points, scope_or_sweep=scope)
    plain.sentence(FRONT_NOTE, "muted")


def figures(rows: pd.DataFrame, scope: Scope | str) -> None:
    """One figure of each arm with its interval."""
    st.subheader("What changes in the outputs", anchor=False)
    titles = {title: name for name, title in FIGURES.items() if rows[name].notna().any()}
    title = choose_one("Figure", list(titles), "figure")
    name = titles[title]
    ends = {
        "label": rows["arm"],
        "value": rows[name],
        "low": rows[f"{name}_low"],
        "high": rows[f"{name}_high"],
    }
    floor = METRICS["top1"].floor if name == "top1_drop" else 0.0
    colors = {arm: style.color for arm, style in arm_styles(rows).items()}
    chart = interval_chart(
        pd.DataFrame(ends), f"{title}, 95 % interval", none=0, floor=floor, colors=colors
    )
    show_chart(chart, name=f"accuracy-{name}", data=rows, scope_or_sweep=scope)


def agreement(rows: pd.DataFrame, scope: Scope | str, *, alone: bool) -> None:
    """Images that only one of the two classifies correctly, with the other figures if `alone`: if
    no table above has them.
    """
    st.subheader("Images that only one of the two classifies correctly", anchor=False)
    chart = disagreement_chart(rows.assign(label=rows["arm"]))
    show_chart(chart, name="accuracy-mcnemar", data=rows, scope_or_sweep=scope)
    listed = TABLE if alone else TABLE[:4]
    show_table(
        rows.assign(digits=0),
        [name for name in listed if name in rows and rows[name].notna().any()],
    )


def corruptions(rows: pd.DataFrame, scope: Scope | str) -> None:
    """The map of one arm."""
    st.subheader("Corrupted images", anchor=False)
    corrupted = rows[rows["corruption"].notna()]
    if corrupted.empty:
        plain.sentence("The sweep requests no corrupted images.", "muted")
        return
    worst = str(corrupted.groupby("arm")["top1_drop"].mean().idxmax())
    arm = choose_one("Arm", list(dict.fromkeys(corrupted["arm"])), "arm", worst)
    own = corrupted[corrupted["arm"] == arm]
    words = [conclusion(row).word for row in own.itertuples()]
    show_chart(
        corruption_chart(own.assign(word=words)),
        name="accuracy-corruptions",
        data=own,
        scope_or_sweep=scope,
    )


def conclusion(row: Any) -> Any:
    """What a row of the view `accuracy` allows to conclude about top-1."""
    change = (-row.top1_drop, -row.top1_drop_high, -row.top1_drop_low)
    return conclude_change(METRICS["top1"], *change, verdict=row.verdict, floor=row.floor)


def _show() -> None:
    """The page, from its answer down."""
    sweep = filters.chosen_sweep()
    requested = queries_quality.models(sweep, "vision")
    if requested.empty:
        stop_without("not requested")
    scope = filters.choose_scope(sweep) if len(queries.panels(sweep)) else None
    names, of_scope = list(dict.fromkeys(requested["model"])), {} if scope is None else scope.fixed
    model = (
        of_scope["model"]
        if of_scope.get("model") in names
        else choose_one("Accuracy of", names, "of")
    )
    of_model = requested[requested["model"] == model]
    trained = list(dict.fromkeys(of_model["weights"]))
    weights = (
        of_scope["weights"]
        if of_scope.get("weights") in trained
        else choose_one("Weights of it", trained, "trained")
    )
    found = queries_quality.accuracies(sweep, {"model": model, "weights": weights})
    if found.empty:
        stop_without(
            next(
                (state for state in ("queued", "failed") if (of_model["state"] == state).any()),
                "not measured",
            )
        )
    against = choose_one(
        "Against",
        sorted(found["against"].unique(), key=lambda name: (not name.startswith("dense"), name)),
        "beside",
    )
    found = found[found["against"] == against]
    evaluations = found.assign(text=[evaluation_text(row) for row in found.itertuples()])
    ordered = evaluations.sort_values(
        ["corruption", "image_size"], ascending=[True, False], na_position="first"
    )
    text = choose_one("Images", list(dict.fromkeys(ordered["text"])), "images")
    rows = evaluations[evaluations["text"] == text].sort_values("top1_drop")

    about: Scope | str = sweep if scope is None else scope
    words = pd.Series([conclusion(row).word for row in rows.itertuples()]).value_counts()
    plain.sentence(
        f"Top-1 accuracy of {count(len(rows), 'arm')}:"
        f" {', '.join(f'{number} {word}' for word, number in words.items())}.",
        "strong",
    )
    plain.sentence(
        f"{model} on {count(int(rows['images'].max()), 'image')} of {text}, against {against}",
        "muted",
    )
    if (of_model["state"] != "measured").any():
        plain.sentence(
            f"Of the accuracy that the sweep requests: {states_in_words(of_model)}.", "muted"
        )

    arms = rows
    if scope is not None:
        points, _ = queries.scope_points(scope)
        quality = queries_quality.quality_of(sweep, "vision", {"model": model, "weights": weights})
        chosen = quality.effects[quality.effects["comparison_id"].isin(rows["comparison_id"])]
        timed = with_quality_words(
            points[points["image_size"] == rows["image_size"].iloc[0]],
            quality._replace(effects=chosen),
        )
        if len(timed):
            st.subheader("Speed and accuracy", anchor=False)
            speed_and_quality(timed, quality)
            extra = [
                name
                for name in ("speedup", "speedup_low", "speedup_high", "arm_ms", "baseline_ms")
                if name in timed
            ]
            # a time without enough pairs surpasses nothing either
            few = timed["verdict"] == "insufficient"
            timed = timed.assign(arm_ms=timed["arm_ms"].mask(few))
            arms = rows.merge(
                timed[["quality_pair_id", *extra]].drop_duplicates("quality_pair_id"),
                how="left",
                on="quality_pair_id",
            )
    accuracy_front(arms, about)
    figures(rows, about)
    agreement(rows, about, alone=arms is rows)
    corruptions(found, about)


_show()
