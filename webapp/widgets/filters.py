"""Widgets that choose what pages show; every choice is a query parameter of the address, so that a
link shows the same view.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from store.read.queries import PANEL_COLUMNS
from sweeps.model.metrics import METRICS
from sweeps.number_format import AXIS_LABELS, count
from webapp import queries
from webapp.display import plain, texts
from webapp.display.axis_curves import Axis
from webapp.display.links import page_link
from webapp.queries import Scope

FILTERS = (
    *("model", "weights", "device_name", "host", "environment", "batch_size", "threads"),
    *("spare_cores", "wait_policy", "pinning", "data", "new_tokens", "decoding", "seed"),
    *("exclusive", "inputs", "baseline_id"),
)
"""Columns of a panel; chosen one after the other, in this order."""
ARMS: Mapping[str, str] = {
    "method": "Methods",
    "dtype": "Dtypes",
    "attention": "Attention",
    "runtime": "Runtimes",
    "kv_cache": "KV caches",
}
"""Columns of arms and their labels; any number of values may be chosen."""
FACETS = ("batch_size", "dtype", "runtime", "device_name")
"""What there may be a panel for each value of."""
KEYS = {"device_name": "device", "batch_size": "batch", "baseline_id": "against"}
"""Query parameters that have another name than their column."""
PARAMETERS = ("metric", "panels", *(KEYS.get(name, name) for name in FILTERS), *ARMS)
"""Of the address, by the common filters."""
TITLES = {
    "device_name": "Device",
    "batch_size": "Batch",
    "wait_policy": "Threads wait",
    "exclusive": "Holds",
    "baseline_id": "Against",
    "kv_cache": "KV cache",
}
"""Of columns whose title is not their name."""
OF_A_DEVICE = (
    *("device_name", "environment", "host", "threads", "spare_cores", "wait_policy", "pinning"),
)
"""What may differ between panels of several devices."""
NAMED_ALONE = ("model", "device_name")
"""Columns of a panel that are named where there is no choice."""
WIDTH = 190
NONE = "none"
"""The option for rows without a value."""


class FilterChoice(NamedTuple):
    """One widget: its query parameter, label, options, and the one that is chosen."""

    key: str
    label: str
    options: list[str]
    value: str
    default: str | None = None
    """What the address leaves out, if it is the same for every state of the store."""


class FilterPlan(NamedTuple):
    """What the filters of a sweep offer, given what was requested."""

    choices: list[FilterChoice]
    arms: list[FilterChoice]
    """Of several values each; `value` is unused."""
    scope: Scope


def choose_sweep(names: Sequence[str], default: str) -> str:
    """The sweep to show on all pages: the one in the address, else `default`; it is always in the
    address.
    """
    given = st.query_params.get("sweep")
    if st.session_state.get("sweep") not in names:
        seed_choices({"sweep": given if given and given in names else default})
    chosen = st.selectbox(
        "Sweep", names, index=None, key="sweep", bind="query-params", required=True, width=WIDTH
    )
    return str(chosen or default)


def chosen_sweep() -> str:
    """The sweep that was chosen with `choose_sweep`."""
    return str(st.session_state.get("sweep") or st.session_state["default_sweep"])


def choose_scope(sweep: str) -> Scope:
    """The choices of the common filters, which are drawn here, once for all pages, by `app.py`;
    ends the run without a point.
    """
    counts = queries.panels(sweep)
    if counts.empty:
        plain.sentence(f"Sweep {sweep} has no measurement of a speed-up yet.")
        pages = {"runs": "its progress and failures", "accuracy": "accuracy"}
        links = [plain.link(words, page_link(page, sweep=sweep)) for page, words in pages.items()]
        st.html(f"<p>{' · '.join(links)}</p>")
        st.stop()
    requested = _requested()
    plan = plan_choices(sweep, counts, requested)
    options = {one.key: one.options for one in plan.arms}
    states = {one.key: st.session_state.get(one.key) for one in plan.choices}
    seed_choices(
        {
            one.key: one.value
            for one in plan.choices
            if states[one.key] != one.value and (states[one.key] or not one.default)
        }
    )
    for column, value in plan.scope.fixed.items():  # without a choice: the only value there is
        key = KEYS.get(column, column)
        if key not in st.session_state and key in st.query_params:
            st.query_params[key] = value_text(value)
    drawn: list[Any] = [
        st.selectbox(
            *(one.label, one.options, one.options.index(one.default) if one.default else None),
            key=one.key,
            bind="query-params",
            required=one.default is None,
            width=WIDTH,
        )
        for one in plan.choices
    ]
    if plan.arms:
        with st.popover("Arms", help="Show some arms only"):
            drawn += [
                st.multiselect(
                    one.label, one.options, key=one.key, bind="query-params", placeholder="All"
                )
                for one in plan.arms
            ]
    given = [
        plan.scope.fixed.get(name) for name in NAMED_ALONE if KEYS.get(name, name) not in states
    ]
    plain.sentence(" · ".join(value_text(value) for value in given if value is not None), "muted")
    planned = [one.value for one in plan.choices]
    found = [one or value for one, value in zip(drawn, planned, strict=False)]
    arms = {
        one.key: tuple(value) for one, value in zip(plan.arms, drawn[len(planned) :], strict=True)
    }
    if found != planned or any(
        set(value) != set(requested.get(key, ())) & set(options[key]) for key, value in arms.items()
    ):
        st.rerun()  # the browser went back: the address differs from what the widgets had
    st.session_state["scope"] = plan.scope
    return plan.scope


def chosen_scope() -> Scope:
    """The scope that was chosen with `choose_scope`, for pages and their fragments."""
    scope: Scope = st.session_state["scope"]
    return scope


def plan_choices(
    sweep: str, counts: pd.DataFrame, requested: Mapping[str, Sequence[str]]
) -> FilterPlan:
    """The filters of a sweep whose panels are `counts` (`webapp.queries.panels`), by what was
    `requested` (query parameters).

    Each filter offers what is left by those before it; the default is the panel with the most
    points.
    """
    choices: list[FilterChoice] = []

    def take(
        key: str, label: str, options: list[str], default: str, *, constant: bool = False
    ) -> str:
        given = next(iter(requested.get(key, ())), None)
        value = given if given in options else default
        if len(options) > 1:
            choices.append(FilterChoice(key, label, options, value, default if constant else None))
        return value

    labels = {METRICS[name].label: name for name in texts.metrics_in(counts["metric"])}
    named = list(labels)
    metric = labels[take("metric", "Speed-up of the", named, named[0], constant=True)]
    rest = counts[counts["metric"] == metric]
    facets = {
        KEYS.get(column, column): column
        for column in FACETS
        if rest[column].map(value_text).nunique() > 1
    }
    words = ["one panel", *facets]
    chosen_facet = take("panels", "Panels", words, words[0], constant=True) if facets else ""
    facet = facets.get(chosen_facet)
    free = OF_A_DEVICE if facet == "device_name" else (facet,)
    names = _baselines(counts)
    labelled = {
        column: counts[column].map(value_text).map(names if column == "baseline_id" else str)
        for column in FILTERS
    }
    panel = rest.groupby(
        [name for name in PANEL_COLUMNS if name not in free], dropna=False, sort=False
    ).ngroup()
    fixed: dict[str, Any] = {}
    for column in FILTERS:
        if column in free:
            continue
        shown = labelled[column][rest.index]
        options = sorted(shown.unique(), key=_order)
        default = _fullest(rest, shown, panel) if len(options) > 1 else options[0]
        value = take(KEYS.get(column, column), column_title(column), options, default)
        rest = rest[shown == value]
        first = rest[column].iloc[0]
        fixed[column] = None if pd.isna(first) else first
    arms, chosen = [], {}
    for column, label in ARMS.items():
        options = sorted(rest[column].map(value_text).unique(), key=_order)
        given = requested.get(column, ())
        kept = tuple(name for name in given if name in options)
        chosen[column] = kept if set(kept) != set(options) else ()
        if len(options) > 1:
            arms.append(FilterChoice(column, label, options, ""))
    return FilterPlan(choices, arms, Scope(sweep, metric, fixed, facet, chosen))


def _fullest(rest: pd.DataFrame, shown: "pd.Series[Any]", panel: "pd.Series[int]") -> str:
    """The option whose best panel has the most points; of several the one measured last. `panel`
    numbers the panels.
    """
    sizes = (
        rest.assign(shown=shown)
        .groupby([panel[rest.index], "shown"], sort=False)
        .agg({"points": "sum", "measured_at": "max"})
    )
    best = sizes.sort_values(["points", "measured_at"], kind="stable").index[-1]
    return str(best[-1])


def _baselines(counts: pd.DataFrame) -> dict[str, str]:
    """The name of each baseline: the shortest of its texts, distinguished by the id where two are
    alike.
    """
    found = {
        str(key): min(own, key=len)
        for key, own in counts.groupby(counts["baseline_id"].map(value_text))["baseline"]
    }
    alike = Counter(found.values())
    return {key: name if alike[name] == 1 else f"{name} ({key[:8]})" for key, name in found.items()}


def column_title(column: str) -> str:
    """A column as choices and maps name it."""
    return TITLES.get(column, column.replace("_", " ").capitalize())


def value_text(value: Any) -> str:
    """A value of a column as choices and maps have it."""
    if pd.isna(value):
        return NONE
    return f"{value:g}" if isinstance(value, float) else str(value)


def _order(word: str) -> tuple[int, float, str]:
    try:
        return 0, float(word), word
    except ValueError:
        return 1, 0.0, word


def _requested() -> dict[str, list[str]]:
    """What was chosen: in widgets, or else in the address."""
    found = {}
    for key in PARAMETERS:
        state = st.session_state.get(key)
        given = st.query_params.get_all(key) if state is None else state
        found[key] = [str(each) for each in (given if isinstance(given, list | tuple) else [given])]
    return found


def seed_choices(values: Mapping[str, str]) -> None:
    """Choices made for the user, put into the state of widgets that are not drawn yet, and into the
    address.
    """
    if not values:
        return
    missing, wrong = {}, False
    for key, value in values.items():
        known = key in st.session_state
        st.session_state[key] = value
        if not known and (given := st.query_params.get(key)) != value:
            missing[key] = value
            wrong |= given is not None
    if missing:
        st.query_params.update(missing)
    if wrong:
        st.rerun()  # else the widget would read, and remove, what the address had


def choose_axis(axes: Sequence[Axis]) -> Axis:
    """One of several axes of a chart, the first by default; there is no widget for one."""
    names = {AXIS_LABELS[axis].title: axis for axis in axes}
    if len(names) == 1:
        return axes[0]
    chosen = st.segmented_control(
        "Along",
        list(names),
        default=next(iter(names)),
        required=True,
        key="axis",
        bind="query-params",
    )
    return names.get(str(chosen), axes[0])


def choose_highlight(arms: Sequence[str]) -> str | None:
    """The one arm to be drawn in colour, of arms with the best first; `None`: as many as can be
    distinguished.
    """
    if len(arms) < 2:
        return None
    chosen = st.selectbox(
        "Highlight",
        arms,
        index=None,
        key="arm",
        bind="query-params",
        placeholder="Best of each method",
        width=320,
    )
    return str(chosen) if chosen in arms else None


def choose_shown(number: int, what: str, key: str) -> bool:
    """Whether to show the `number` points of a kind; there is no widget if there are none."""
    return number > 0 and st.toggle(
        f"Show {count(number, f'{what} point')}", key=key, bind="query-params"
    )


def choose_one(
    label: str,
    options: Sequence[str],
    key: str,
    default: str | None = None,
    *,
    width: int = 360,
) -> str:
    """One of the options, for what a page adds to the common filters; there is no widget for one
    option.
    """
    if st.session_state.get(key) not in options:
        given = st.query_params.get(key)
        first = default if default in options else options[0]
        value = str(given) if given in options else str(first)
        st.session_state[key] = value
        if given != value and (given or len(options) > 1):
            st.query_params[key] = value
            if given:
                st.rerun()  # else the widget would read, and remove, what the address had
    if len(options) == 1:
        return options[0]
    return str(
        st.selectbox(
            label,
            options,
            index=None,
            key=key,
            bind="query-params",
            required=True,
            width=width,
        )
    )


def choose_metric(names: Sequence[str], default: str) -> str:
    """One of several metrics of a page about one comparison; there is no widget for one."""
    if len(names) < 2:
        return default
    labels = {METRICS[name].label: name for name in names}
    return labels[choose_one("Metric", list(labels), "of", METRICS[default].label)]
