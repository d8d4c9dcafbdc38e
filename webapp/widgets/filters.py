"""Widgets that choose what pages show; every choice is a query parameter of the address, so that a
link shows the same view.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
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
from webapp.widgets import address

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
    chosen = address.one_of("sweep", names, default)
    address.put("sweep", chosen)
    st.session_state["chosen_sweep"] = chosen
    st.selectbox("Sweep", names, width=_width("Sweep", names), **address.widget("sweep", chosen))
    return chosen


def _width(label: str, options: Sequence[str]) -> int:
    """Pixels of a list with its label beside it, in which the longest option is whole."""
    return min(85 + 7 * (len(label) + max(map(len, options))), 480)


def chosen_sweep() -> str:
    """The sweep that was chosen with `choose_sweep`."""
    return str(st.session_state["chosen_sweep"])


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
        address.write_address()
        st.stop()
    requested = {key: address.asked(key) for key in PARAMETERS}
    plan = plan_choices(sweep, counts, requested)
    keys = {one.key for one in plan.choices}
    for column, value in plan.scope.fixed.items():  # without a choice: the only value there is
        key = KEYS.get(column, column)
        if key not in keys and requested[key]:
            address.put(key, value_text(value))
    for one in plan.choices:
        address.put(one.key, *([] if one.value == one.default else [one.value]))
        shown = address.widget(one.key, one.value, one.default)
        width = _width(one.label, one.options)
        st.selectbox(one.label, one.options, width=width, **shown)
    arms = [one for one in plan.arms if len(one.options) > 1]
    with st.popover("Arms", help="Show some arms only") if arms else nullcontext():
        for one in plan.arms:
            chosen = [value for value in requested[one.key] if value in one.options]
            address.put(one.key, *chosen)
            if one in arms:
                shown = address.widget(one.key, chosen)
                st.multiselect(one.label, one.options, placeholder="All", **shown)
    given = [plan.scope.fixed.get(name) for name in NAMED_ALONE if KEYS.get(name, name) not in keys]
    plain.sentence(" · ".join(value_text(value) for value in given if value is not None), "muted")
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


def choose_axis(axes: Sequence[Axis]) -> Axis:
    """One of several axes of a chart, the first by default; there is no widget for one."""
    names = {AXIS_LABELS[axis].title: axis for axis in axes}
    first, *others = names
    chosen = address.one_of("axis", names, first)
    if others:
        shown = address.widget("axis", chosen, first)
        st.segmented_control("Along", list(names), required=True, **shown)
    return names[chosen]


def choose_highlight(arms: Sequence[str]) -> str | None:
    """The one arm to be drawn in colour, of arms with the best first; `None`: as many as can be
    distinguished.
    """
    if len(arms) < 2:
        return None
    chosen = address.one_of("arm", arms, None)
    st.selectbox(
        *("Highlight", arms, None),
        placeholder="Best of each method",
        width=320,
        **address.widget("arm", chosen),
    )
    return chosen


def choose_shown(number: int, what: str, key: str) -> bool:
    """Whether to show the `number` points of a kind; there is no widget if there are none."""
    return number > 0 and choose_whether(f"Show {count(number, f'{what} point')}", key)


def choose_whether(label: str, key: str) -> bool:
    """A switch, off at first."""
    shown = address.one_of(key, ("true",), None) is not None
    st.toggle(label, **address.widget(key, shown))
    return shown


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
    first = default if default is not None and default in options else options[0]
    chosen = address.one_of(key, options, first)
    if len(options) > 1:
        st.selectbox(label, options, width=width, **address.widget(key, chosen))
    return chosen


def choose_metric(names: Sequence[str], default: str) -> str:
    """One of several metrics of a page about one comparison; there is no widget for one."""
    if len(names) < 2:
        return default
    labels = {METRICS[name].label: name for name in names}
    return labels[choose_one("Metric", list(labels), "of", METRICS[default].label)]
