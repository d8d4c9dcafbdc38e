"""Page: the evidence of one point, so that every number can be doubted."""

from html import escape

import streamlit as st

from store.errors import StoreError
from sweeps.model.metrics import METRICS
from sweeps.number_format import image_text
from sweeps.text.evidence import noise_in_words
from webapp.blocks import evidence_blocks
from webapp.display import plain
from webapp.display.links import point_link
from webapp.queries import queries_point
from workers.methods.arm_labels import params_label


def search() -> None:
    """A field to find a comparison by words or by the beginning of its id."""
    words = st.text_input(
        "Find a comparison",
        key="find",
        bind="query-params",
        placeholder="model, method, parameter such as keep_rate=0.5, size in px, or id",
    )
    rows = queries_point.search_points(words)
    if rows.empty and not words:
        plain.sentence("No comparison of this store has an answer yet.")
        return
    if rows.empty:
        plain.sentence(
            "No answer whose id begins with these words, or whose model, method, parameters or"
            f" size hold each: {words}"
        )
        return
    listed = []
    for row in rows.astype(object).where(rows.notna(), None).to_dict("records"):
        size = (
            image_text(row["image_size"], row["image_shape"])
            if row["image_size"]
            else f"{row['prompt_tokens'] or 0:.0f} tokens"
        )
        label = (
            f"{params_label(row['method'], row['params'])}, {row['model']}, {size}, {row['kind']}"
        )
        where = f"{row['device_name']}, {str(row['measured_at'])[:16].replace('T', ' ')}"
        link = plain.link(label, point_link(row["comparison_id"], row["environment"], row["host"]))
        listed.append(f"<li>{link}<br><span style='opacity: 0.68'>{escape(where)}</span></li>")
    st.html(f"<ul style='overflow-wrap: anywhere'>{''.join(listed)}</ul>")


def show_evidence(comparison_id: str, environment: str | None, host: str | None) -> None:
    """All sections about one comparison."""
    found = queries_point.read_point(comparison_id, environment, host)
    evidence_blocks.title(found)
    names = [each.metric.name for each in found.timed]
    metric = names[0] if names else ""
    if len(names) > 1:
        labels = {METRICS[name].label: name for name in names}
        chosen = st.segmented_control(
            "Metric",
            list(labels),
            default=METRICS[metric].label,
            required=True,
            key="of",
            bind="query-params",
        )
        metric = labels[str(chosen)]
    evidence_blocks.answer_of(found, metric)
    if metric:
        plain.sentence(noise_in_words(queries_point.point_frames(found, metric).findings))
    evidence_blocks.elsewhere(found)
    evidence_blocks.failed_attempts(found)
    if metric:
        frames = queries_point.point_frames(found, metric)
        evidence_blocks.pairs(found, frames)
        evidence_blocks.rule(frames)
        evidence_blocks.noise(found, frames)
        evidence_blocks.times(found, frames)
        evidence_blocks.counts(frames)
    evidence_blocks.provenance(found)
    evidence_blocks.readings(found)
    evidence_blocks.again(found)


requested = st.query_params.get("id", "")
if not requested:
    plain.heading("Evidence")
    plain.sentence("Click on a point of any chart, or find a comparison here.")
    search()
else:
    try:
        show_evidence(requested, st.query_params.get("environment"), st.query_params.get("host"))
    except StoreError as problem:
        plain.heading("No evidence")
        plain.sentence(str(problem))
        search()
