"""Two sides of a store and the history of a question as data frames, kept until the store
changes.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pandas as pd

from store.read.evidence import compare_queries, history, side_by_side
from store.read.evidence.compare_queries import By, SideChoice
from store.read.evidence.history import QuestionHistory
from store.read.evidence.side_by_side import ComparedAnswers, SideBySide
from sweeps.analysis.labels import conclude
from sweeps.number_format import is_missing
from sweeps.stats.side_by_side import Contrasted
from webapp import queries
from webapp.display import texts
from workers.methods.arm_labels import params_label

FINDING_GROUPS: dict[Contrasted, str] = {
    "different": "differs",
    "apart": "differs",
    "same": "the same",
    "unclear": "not clear",
    "overlap": "not clear",
    "one answer": "the same",
    "not comparable": "not clear",
}
"""How findings are coloured, by what they are."""
QUESTION_PARTS = {
    "model": "{}",
    "weights": "weights {}",
    "image_size": "{:.0f} px",
    "image_shape": "{} px",
    "prompt_tokens": "{:.0f} tokens",
    "new_tokens": "{:.0f} new tokens",
    "batch_size": "batch {:.0f}",
    "dtype": "{}",
    "attention": "{} attention",
    "runtime": "{}",
    "kv_cache": "{} cache",
    "requested_threads": "{:.0f} threads",
    "device_name": "{}",
    "host": "host {}",
    "metric": "{}",
    "baseline": "against {}",
}
"""What distinguishes answers of one arm, where it does."""


def read_choices(by: By, url: str | None = None) -> list[SideChoice]:
    """See `store.read.evidence.compare_queries.side_choices`."""
    return queries.kept(
        lambda engine: compare_queries.side_choices(engine, by), "side_choices", by, url=url
    )


def two_sides(by: By, a: str, b: str, url: str | None = None) -> SideBySide:
    """See `store.read.evidence.side_by_side.side_by_side`."""
    return queries.kept(
        lambda engine: side_by_side.side_by_side(engine, by, a, b), "two_sides", by, a, b, url=url
    )


def read_history(question_id: str, metric: str | None, url: str | None = None) -> QuestionHistory:
    """See `store.read.evidence.history.question_history`."""
    return queries.kept(
        lambda engine: history.question_history(engine, question_id, metric),
        "history",
        question_id,
        metric,
        url=url,
    )


def side_frame(rows: Sequence[ComparedAnswers]) -> pd.DataFrame:
    """Rows of `side_chart`, and the places of both answers, their verdicts and flags."""
    varying = [name for name in QUESTION_PARTS if len({row.a[name] for row in rows}) > 1]
    labels: dict[tuple[str, str], str] = {}
    found = []
    for row in rows:
        arm = row.a["method"], row.a["params"]
        if arm not in labels:
            labels[arm] = params_label(*arm)
        given = [
            QUESTION_PARTS[name].format(row.a[name]) for name in varying if row.a[name] is not None
        ]
        difference = row.difference
        sides: dict[str, Any] = {}
        for name, side in (("a", row.a), ("b", row.b)):
            sides |= {
                name: side["effect"],
                f"{name}_low": side["effect_low"],
                f"{name}_high": side["effect_high"],
            }
            sides |= {
                f"{key}_{name}": side[key]
                for key in ("comparison_id", "environment", "host", "verdict", "floor", "flags")
            }
        found.append(
            {
                "label": ", ".join([labels[arm], *given]),
                "question_id": row.b["question_id"],
                "finding": difference.found,
                "group": FINDING_GROUPS[difference.found],
                "ratio": difference.ratio,
                "ratio_low": difference.low,
                "ratio_high": difference.high,
                **sides,
                **{key: row.b[key] for key in ("comparison_id", "environment", "host")},
            }
        )
    frame = pd.DataFrame(found)
    numbers = [name for name in frame.columns if name.endswith(("_low", "_high"))]
    return frame.astype(dict.fromkeys(numbers, float))


def side_words(row: Mapping[str, Any], side: Literal["a", "b"]) -> str:
    """The answer of one side of a row of `side_frame`."""
    if row[f"verdict_{side}"] == "insufficient":
        return "too few pairs"
    ends = (row[side], row[f"{side}_low"], row[f"{side}_high"])
    words = conclude(texts.SHOWN, *ends, verdict=row[f"verdict_{side}"], floor=row[f"floor_{side}"])
    return f"{words.numbers}, {words.word}"


def ratio_words(row: Mapping[str, Any]) -> str:
    """The ratio of both speed-ups with its interval, where it has one; a dash where one of both has
    too few pairs.
    """
    if "insufficient" in (row["verdict_a"], row["verdict_b"]):
        return "–"
    ends = (
        ""
        if is_missing(row["ratio_low"])
        else f" [{row['ratio_low']:.3f}, {row['ratio_high']:.3f}]"
    )
    return f"{row['ratio']:.3f}×{ends}"


def history_frame(found: QuestionHistory) -> pd.DataFrame:
    """Rows of `history_chart`, oldest first."""
    frame = pd.DataFrame(found.points).astype({"low": float, "high": float})
    several = len(found.versions) > 1
    where = frame["device_name"] + ", host " + frame["host"]
    if frame.groupby("host")["environment"].nunique().max() > 1:
        where += ", environment " + frame["environment"].str[:8]
    series = where + (": " + frame["comparison_id"].map(dict(found.versions)) if several else "")
    return frame.assign(series=series)
