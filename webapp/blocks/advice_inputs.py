"""Widgets of the page Choose: what advice is requested; every input is a query parameter, so that a
link shows the same advice.
"""

from collections.abc import Mapping, Sequence
from typing import get_args

import pandas as pd
import streamlit as st

from store.read.advice.advice import AdviceRequest
from sweeps.model.condition import Device
from sweeps.model.metrics import METRICS, timed_metrics
from webapp.display import plain
from webapp.queries import queries_choose
from webapp.widgets import filters

ANY = "any"
MOST = 10_000_000
"""Tokens, or inputs of a batch."""


def choose_request(known: pd.DataFrame) -> AdviceRequest:
    """The request that the widgets and the address hold; `known` are rows of `measured_conditions`,
    at least one.
    """
    unknown: list[str] = []
    newest = known.sort_values(["at", "points"]).iloc[-1]
    models = sorted(known["model"].unique())
    model = _held("model", models, str(newest["model"]), "Model", unknown)
    own = known[known["model"] == model]
    devices = [ANY, *sorted(own["device"].unique())]
    runtimes = [ANY, *sorted(own["runtime"].unique())]
    metrics = [name for name in timed_metrics() if name in set(own["metric"])]
    device = _held("device", devices, ANY, "Device", unknown)
    runtime = _held("runtime", runtimes, ANY, "Runtime", unknown)
    metric = _held("metric", metrics, metrics[0], "Metric", unknown)
    points = own.groupby("batch_size")["points"].sum()
    batches = _often(dict(zip(map(int, points.index.tolist()), points.tolist(), strict=True)))
    batch = _number("batch", batches[0], unknown)
    tokens = _number("tokens", _often(queries_choose.model_sizes(model, batch))[-1], unknown)
    filters.keep_notes("choose", unknown)
    options = {"device": devices, "runtime": runtimes, "metric": metrics}
    values = {"model": model, "device": device, "runtime": runtime, "metric": metric}
    drawn = {
        name: value
        for name, value in values.items()
        if name == "model" or len(options[name]) > (1 if name == "metric" else 2)
    }
    _seed_numbers({"tokens": tokens, "batch": batch})  # first: the next line may begin the run anew
    filters.seed_choices(
        {name: value for name, value in drawn.items() if st.session_state.get(name) != value}
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "Model", models, index=None, key="model", bind="query-params", required=True, width=280
        )
        at_tokens = st.number_input(
            "Tokens",
            1,
            MOST,
            None,
            1,
            key="tokens",
            bind="query-params",
            width=130,
            help=TOKENS_HELP,
        )
        at_batch = st.number_input(
            "Batch", 1, MOST, None, 1, key="batch", bind="query-params", width=130
        )
        for name in ("device", "runtime", "metric"):
            if name in drawn:
                label = {"metric": "Rank by"}.get(name, name.capitalize())
                st.selectbox(
                    label,
                    options[name],
                    index=None,
                    key=name,
                    bind="query-params",
                    required=True,
                    width=190,
                    format_func=_word,
                )
        drop = st.number_input(
            *("Loss at most", 0.0, None, None, 0.1),
            key="max_drop",
            bind="query-params",
            width=150,
            placeholder="any",
            help=DROP_HELP,
        )
    for line in filters.kept_notes("choose", str((model, tokens, batch, device, runtime, metric))):
        plain.sentence(line, "muted")
    return AdviceRequest(
        model=model,
        tokens=int(at_tokens or tokens),
        batch=int(at_batch or batch),
        device=next((known for known in get_args(Device) if known == device), None),
        runtime=None if runtime == ANY else runtime,
        metric=None if metric == metrics[0] else metric,
        max_drop=drop,
        pareto=True,
    )


TOKENS_HELP = "Of the unmodified model: patch tokens of an image, or tokens of the prompt"
DROP_HELP = (
    "Quality that an arm may lose by the upper end of its interval: points of top-1, or bits per"
    " byte; empty: any"
)


def _held(key: str, options: Sequence[str], default: str, label: str, unknown: list[str]) -> str:
    """What a widget holds, or else the address; `default` where that is no option, which is
    noted.
    """
    state = st.session_state.get(key)
    found = state if state is not None else st.query_params.get(key)
    if found is None or found in options:
        return default if found is None else str(found)
    if state is None:
        unknown.append(f"{label} {found} of the address was not timed here; {default} is shown.")
    return default


def _number(key: str, default: int, unknown: list[str]) -> int:
    state, given = st.session_state.get(key), st.query_params.get(key)
    # another page has a list of choices by this name
    if state is not None and str(state).isdigit():
        return int(state)
    if given is not None:
        if given.isascii() and given.isdigit() and 1 <= int(given) <= MOST:
            return int(given)
        unknown.append(
            f"{key.capitalize()} {given} of the address is no whole number from 1 on; {default} is"
            " shown."
        )
    return default


def _seed_numbers(values: dict[str, int]) -> None:
    """As `filters.seed_choices`, for numbers."""
    missing = {
        key: value
        for key, value in values.items()
        if not isinstance(st.session_state.get(key), int)
    }
    st.session_state.update(missing)
    wrong = {
        key: str(value) for key, value in missing.items() if st.query_params.get(key) != str(value)
    }
    st.query_params.update(wrong)


def _often(counts: Mapping[int, int]) -> list[int]:
    """The values that were timed at least half as often as any, smallest first; 1 where there is
    none.
    """
    return sorted(
        value for value, number in counts.items() if 2 * number >= max(counts.values())
    ) or [1]


def _word(name: str) -> str:
    """A metric by its label; other options are their own."""
    return METRICS[name].label if name in METRICS else name
