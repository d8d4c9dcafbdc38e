"""What a chart of speed-ups shows, as values: the panels of points that belong together, which of
their arms stand out, published points beside them, and all of it in words.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from store.read.curves import label_hosts
from store.rows.frames import rows_of
from sweeps.analysis.rows import ClaimRow
from sweeps.geometry.vit_catalogue import timm_name
from sweeps.model.flags import split_flags, wrong
from sweeps.model.job import DENSE
from sweeps.model.kinds import KINDS, THREAD_FIELDS
from sweeps.model.metrics import INTERVAL, METRICS, MetricSpec
from sweeps.number_format import count
from sweeps.text.condition_text import values_text
from sweeps.text.curves import BREAK_EVEN_NOTE, NO_MERIT, axis_place, merit_of
from webapp.charts.points import around
from webapp.charts.scales import Extent, x_span
from webapp.display import texts
from webapp.display.arm_style import ArmStyle, arm_styles, label_arms
from webapp.display.axis_curves import SIZES, Axis, curves_along, size_of
from workers.methods import purpose
from workers.methods.arm_labels import params_label

X_COLUMN: Mapping[Axis, str] = {
    "tokens": "tokens",
    "gmacs": "gmacs_baseline",
    "gmacs_saved": "gmacs_saved",
}
PANEL = (
    *("model", "weights", "batch_size", "device_name", "environment", "host", *THREAD_FIELDS),
    *("seed", "data", "new_tokens", "decoding", "exclusive", "against", "fixed_values", "kind"),
)
"""Columns that stay fixed within one panel, and along the MACs saved the size too; every
combination found gets a panel."""
RUNTIME = ("runtime", "dtype", "attention", "kv_cache")
"""Columns that split the panels of a sweep with several runtimes."""
RUNTIME_GAIN = "the runtime itself"
MAX_NAMED = 12
"""Arms that are named and whose points are drawn, the best ones; of the others there are lines."""
ALL_COLOURED = 6
"""Arms that are all drawn in colour; of more the best of each method."""
MAX_COLOURED = 7


class Panel(NamedTuple):
    """What is drawn together: the points of one model and condition, and the break-evens that
    belong to them.
    """

    about: dict[str, Any]
    """The columns of `PANEL`."""
    points: pd.DataFrame
    break_evens: pd.DataFrame

    def single(self, axis: Axis) -> bool:
        """Whether all of its points lie at one place along the axis: no curve, and no
        break-even.
        """
        return bool(self.points[X_COLUMN[axis]].nunique() == 1)

    @property
    def metric(self) -> MetricSpec:
        return METRICS[self.points["metric"].iloc[0]]


@dataclass(frozen=True, kw_only=True)
class PanelInfo:
    """One panel ready to be drawn."""

    panel: Panel
    """Its points have `x`, `theory` and `distrusted`."""
    axis: Axis
    title: str
    condition: str
    notes: Sequence[str]
    """How to read the chart."""
    measure: str | None
    """Title of the axis of speed-ups; `None`: only its grid."""
    spans: tuple[Extent, Extent]
    """Of both axes."""
    styles: Mapping[str, ArmStyle]
    """Of the arms that have points and names, best first; others are grey lines."""
    coloured: Sequence[str]
    marked: pd.DataFrame
    """The points of these arms, with their words."""
    published: pd.DataFrame
    single: bool
    """Whether there is one size: the points are rows with words."""

    @property
    def selected(self) -> str | None:
        """The one arm whose theory and break-even are drawn through the whole height."""
        return self.coloured[0] if len(self.coloured) == 1 else None


def curve_panels(
    points: pd.DataFrame,
    break_evens: pd.DataFrame,
    axis: Axis = "tokens",
    by: Sequence[str] = (),
) -> Iterator[Panel]:
    """The panels of some points along an axis, as `curves_along` returns them, in reading order;
    columns in `by` split them further.
    """
    columns = (*PANEL, *SIZES) if axis == "gmacs_saved" else PANEL
    columns = (*columns, *(name for name in by if name not in columns))
    ordered = points.assign(against=pd.Categorical(points["against"], dense_first(points)))
    for fixed, grouped in ordered.groupby(list(columns), dropna=False, sort=True, observed=True):
        about = dict(zip(columns, fixed, strict=True))
        own = points.loc[grouped.index]
        here = _belongs(break_evens, about) & break_evens["arm"].isin(own["arm"])
        yield Panel(about, own, break_evens[here])


def under_each_runtime(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of a view with labels that are the same under every runtime: of each method against the
    unmodified model there, and of this model against the sweep's other baseline.
    """
    own, gain = rows["baseline"] == DENSE.method, rows["method"] == DENSE.method
    methods, gains = rows[own & ~gain], rows[gain & ~own]
    arms = [params_label(*each) for each in methods[["method", "params"]].to_numpy()]
    several = gains.groupby(list(RUNTIME), dropna=False)["baseline"].nunique().max() > 1
    found = [
        methods.assign(arm=arms),
        gains.assign(arm="over " + gains["baseline"] if several else RUNTIME_GAIN),
    ]
    return pd.concat([each for each in found if len(each)] or found).assign(against=DENSE.method)


def dense_first(rows: pd.DataFrame) -> list[str]:
    """The baselines of some rows, the unmodified model first."""
    ordered = rows.assign(modified=rows["baseline_method"] != DENSE.method)
    return list(ordered.sort_values(["modified", "against"])["against"].unique())


def flagged(points: pd.DataFrame) -> pd.Series:
    """Which rows have a flag that marks them as wrong; noisy ones have wider intervals."""
    return points["flags"].fillna("").map(lambda flags: wrong(split_flags(flags))).astype(bool)


def curve_axes(points: pd.DataFrame, break_evens: pd.DataFrame) -> list[Axis]:
    """The axes along which some points have curves, the first to be shown at the front."""
    saved: list[Axis] = ["gmacs_saved"] if (break_evens["axis"] == "gmacs_saved").any() else []
    along: tuple[Axis, ...] = ("tokens", "gmacs")
    sizes = [axis for axis in along if points[X_COLUMN[axis]].nunique() > 1]
    return [*sizes, *saved] if sizes else [*saved, "tokens"]


def panel_infos(
    points: pd.DataFrame,
    break_evens: pd.DataFrame,
    axis: Axis = "tokens",
    *,
    show_flagged: bool = False,
    styles: Mapping[str, ArmStyle] | None = None,
    references: pd.DataFrame | None = None,
    selected: str | None = None,
    by: Sequence[str] = (),
) -> Iterator[PanelInfo]:
    """What a chart of speed-ups draws, a value for each panel, one per model and condition; `by`
    are columns of arms that split panels further.

    `points` holds rows of the view `speedup` by one metric and `break_evens` rows of the view
    `break_even`, with all columns. `styles` are those of the arms (default: `arm_styles` of these
    points). `references` are rows of the view `reference`: those of a panel's model and batch are
    drawn as hollow marks, no more. `selected` is the label of the one arm in colour, with what its
    MACs promise; else a few arms are all in colour, and of many the best of each method. Raises
    `ValueError` at the first panel if there is no point to draw, or if there are several metrics.
    """
    if points["metric"].nunique() > 1:
        known = ", ".join(texts.metrics_in(points["metric"]))
        raise ValueError(f"a chart shows one metric, not several; choose one of {known}")
    points, break_evens = curves_along(*label_arms(points, break_evens), axis)
    if points.empty:
        why = "no parameter takes three values or more at one size"
        why = why if axis == "gmacs_saved" else "the MACs are not known"
        raise ValueError(f"no point to draw: {why}")
    styles = styles or arm_styles(points)
    distrusted = flagged(points)
    hidden = points[distrusted & (not show_flagged)]
    shown = points.drop(hidden.index)
    if shown.empty:
        raise ValueError(
            f"no point to draw: {len(points)} measured, {len(hidden)} of them flagged and hidden"
        )
    open_ends = texts.undecided(shown)  # no interval that anything follows from
    shown = shown.assign(
        x=shown[X_COLUMN[axis]].astype(float),
        theory=shown["gmacs_baseline"] / shown["gmacs_total"],
        distrusted=distrusted[shown.index],
        limit=shown.get("limit"),
        limit_x=shown.get(f"limit_{axis}", pd.Series(dtype=float)).astype(float),
        **{name: shown[name].mask(open_ends) for name in ("speedup_low", "speedup_high")},
    )
    published = published_points(references, shown, axis)
    judged = shown if open_ends.all() else shown[~open_ends]
    ratios = [judged[name].astype(float) for name in ("speedup", "speedup_low", "speedup_high")]
    ratios += [published["speedup"].astype(float), pd.Series([0.97, 1.03])]
    spans = (
        x_span(pd.concat([shown["x"], shown["limit_x"], published["x"].astype(float)]), axis),
        around(pd.concat(ratios).dropna()),
    )
    hosts = label_hosts(points)
    for panel in curve_panels(shown, break_evens, axis, by):
        beside = _of_panel(published, panel.about)
        ranked = ranked_arms(panel.points, panel.break_evens)
        measure, first = f"Speed-up: {panel.metric.label}", float(panel.points["x"].iloc[0])
        if panel.single(axis):
            place = axis_place(first, axis, size_of(panel.points).token_unit)
            measure, beside = f"{measure}, at {place}", beside[beside["x"] == first]
            coloured = named = ranked
        else:
            methods = dict(zip(panel.points["arm"], panel.points["method"], strict=True))
            coloured = emphasised_arms(ranked, methods, selected)
            best = list(dict.fromkeys([*coloured, *ranked]))[: max(MAX_NAMED, len(coloured))]
            named = [arm for arm in ranked if arm in best]
        left_out = int(_belongs(hidden, panel.about).sum())
        notes = _notes(panel, axis, left_out, len(beside), one=len(coloured) == 1)
        if more := len(ranked) - len(named):
            notes.append(
                f"The {len(named)} best of {len(ranked)} arms have points and names; {more} more"
                " are grey lines."
            )
        yield PanelInfo(
            panel=panel,
            axis=axis,
            title=f"{panel.about['model']}, against {panel.about['against']}",
            condition=condition_words(panel, axis, hosts),
            notes=notes,
            measure=measure,
            spans=spans,
            styles={arm: styles[arm] for arm in named},
            coloured=coloured,
            marked=texts.explained(texts.with_words(panel.points[panel.points["arm"].isin(named)])),
            published=beside,
            single=panel.single(axis),
        )


def limit_words(points: pd.DataFrame) -> list[str]:
    """Each arm of a panel's points that ran out of memory, and where."""
    known = points.dropna(subset=["limit"]).drop_duplicates("arm")
    return [f"{arm} {limit}" for arm, limit in zip(known["arm"], known["limit"], strict=True)]


def ranked_arms(points: pd.DataFrame, break_evens: pd.DataFrame) -> list[str]:
    """The arms of some points, best first: by their curve along the axis of `break_evens`, then by
    the highest interval.

    Controls, which are not for use, come last.
    """
    control = {
        arm: purpose(method) != "optimisation"
        for arm, method in zip(points["arm"], points["method"], strict=True)
    }
    merits = {arm: merit_of(rows) for arm, rows in rows_by_arm(break_evens).items()}
    low = points["speedup_low"].fillna(points["speedup"]).mask(texts.undecided(points))
    gains: dict[Any, float] = (
        points.assign(low=low).groupby("arm", sort=True)["low"].max().fillna(0.0).to_dict()
    )

    def order(arm: str) -> tuple[bool, int, float, float, float, str]:
        rank, shown, likely = merits.get(arm, NO_MERIT)
        return control[arm], -rank, -shown, -likely, -gains[arm], arm

    return sorted(map(str, gains), key=order)


def rows_by_arm(break_evens: pd.DataFrame) -> dict[str, list[ClaimRow]]:
    """The break-evens of each arm."""
    found: dict[str, list[ClaimRow]] = {}
    for arm, row in zip(break_evens["arm"], rows_of(break_evens, ClaimRow), strict=True):
        found.setdefault(str(arm), []).append(row)
    return found


def emphasised_arms(
    ranked: Sequence[str], methods: Mapping[str, str], selected: str | None = None
) -> list[str]:
    """The arms in colour: the selected one, all of a few, or the best of each of the `methods` of
    the arms.
    """
    if selected in ranked:
        return [str(selected)]
    if len(ranked) <= ALL_COLOURED:
        return list(ranked)
    best: dict[str, str] = {}
    for arm in ranked:
        best.setdefault(methods[arm], arm)
    return list(best.values())[:MAX_COLOURED]


def published_points(
    references: pd.DataFrame | None, points: pd.DataFrame, axis: Axis
) -> pd.DataFrame:
    """Rows of the view `reference` of the models and batches of these points that have a place `x`
    along the axis.

    Models are compared without a tag of weights; a reference that states no batch goes with any.
    Their source is in `published`.
    """
    if references is None or references.empty:
        columns = ("x", "speedup", "published", "bare", "batch_size", "image_size")
        return pd.DataFrame({name: pd.Series(dtype=float) for name in columns})
    gmacs, baseline = references["gmacs"].astype(float), references["gmacs_baseline"].astype(float)
    places = {"tokens": references["tokens"].astype(float), "gmacs": baseline}
    found = references.assign(
        x=places.get(axis, 1 - gmacs / baseline),
        published=references["environment"],
        bare=references["model"],
    )
    known = found["bare"].isin({bare_model(model) for model in points["model"]})
    batches = found["batch_size"].isna() | found["batch_size"].isin(set(points["batch_size"]))
    return found[known & batches].dropna(subset=["x", "speedup"])


def bare_model(name: str) -> str:
    """A model of timm without the hub's prefix and the tag of its weights."""
    return timm_name(name).partition(".")[0]


def _of_panel(found: pd.DataFrame, about: Mapping[str, Any]) -> pd.DataFrame:
    """The published points of a panel's model and batch and, where all of its points are of one
    size, of that size.
    """
    batch, size = found["batch_size"], about.get("image_size")
    here = found["bare"] == bare_model(about["model"])
    here &= batch.isna() | (batch == about["batch_size"])
    if not pd.isna(size):
        here &= found["image_size"] == size
    kept: pd.DataFrame = found[here]
    return kept


PREFIXES = {"batch_size": "batch ", "against": "against "}
"""Before values that mean nothing alone, above a panel."""


def panel_value(panel: Panel, name: str) -> str:
    """What distinguishes a panel from others, such as `batch 32`."""
    return f"{PREFIXES.get(name, '')}{panel.about[name]}"


def condition_words(panel: Panel, axis: Axis, hosts: Mapping[tuple[str, str], str]) -> str:
    """What is fixed in a panel besides model and baseline; `hosts` are those of
    `store.read.curves.label_hosts`.
    """
    about, points = panel.about, panel.points
    hidden, fixed = KINDS[about["kind"]].independent_of, about["fixed_values"]
    settings = [name for name in ("dtype", "attention", "runtime") if name not in hidden]
    ran = [word for name in settings for word in sorted(set(points[name]))]
    sizes = {column: about.get(column) for column in SIZES}
    if panel.single(axis):
        sizes = {column: points[column].iloc[0] for column in SIZES}
    new, weights = about["new_tokens"], about["weights"]
    named = "random weights" if weights == "random" else f"weights: {weights}"
    words = [
        str(about["device_name"]),
        hosts[about["environment"], about["host"]],
        "one GPU of several" if about["exclusive"] == "device" else "",
        *ran,
        *(f"{word} cache" for word in sorted(set(points["kv_cache"].dropna()))),
        f"batch {' and '.join(map(str, sorted(set(points['batch_size']))))}",
        values_text(fixed) if isinstance(fixed, str) else "",
        "" if pd.isna(new) else f"{new:.0f} new tokens of {about['data']}, {about['decoding']}",
        *(f"{size:.0f} {SIZES[name].unit}" for name, size in sizes.items() if not pd.isna(size)),
        count(int(about["threads"]), "thread") if points["device"].iloc[0] == "cpu" else "",
        f"threads wait: {about['wait_policy']}" if isinstance(about["wait_policy"], str) else "",
        "threads pinned" if about["pinning"] == "cores" else "",
        "" if "weights" in hidden else named,
    ]
    return " · ".join(filter(None, words))


def _notes(panel: Panel, axis: Axis, hidden: int, published: int, *, one: bool) -> list[str]:
    """How to read the chart, in which `one` arm is in colour, and what it does not show."""
    points, single, limits = panel.points, panel.single(axis), limit_words(panel.points)
    mark = "Ticks" if single else "Dotted"
    parts = [
        f"{'Bars' if single else 'Shaded around a line'}: {INTERVAL} interval.",
        f"{mark}: if time followed the MACs of {panel.metric.work}."
        if (single or one) and points["theory"].notna().any()
        else "",
        f"Grey: the same, within ±{100 * points['floor'].max():.2g} %.",
        "Hollow: published, measured elsewhere." if published else "",
        f"{count(hidden, 'flagged point')} hidden." if hidden else "",
        f"Cross: {'; '.join(limits)}." if limits else "",
    ]
    note = " ".join(filter(None, parts))
    return [note] if single else [note, BREAK_EVEN_NOTE]


def _belongs(frame: pd.DataFrame, about: Mapping[str, Any]) -> pd.Series:
    """Which rows lie in the panel; missing values equal each other."""
    kept = pd.Series(data=True, index=frame.index)
    for column, value in about.items():
        kept &= frame[column].isna() if pd.isna(value) else frame[column] == value
    return kept
