"""Plot: a sweep's chart as a PNG, SVG or self-contained HTML file, drawn without a browser and without the network."""

from difflib import get_close_matches
from pathlib import Path
from typing import Literal, get_args

import altair as alt

from webapp import arms, charts, frames

Axes = Literal["tokens", "gmacs", "both"]
FORMATS = ("png", "svg", "html")


class PlotError(ValueError):
    """Says in one line why there is no plot, and what would be right."""


def plot(name: str, out: Path, *, axes: Axes = "both", url: str | None = None, show_flagged: bool = False) -> None:
    """Draws the newest revision of sweep `name` into `out`; the format follows from the extension (PNG at twice the size in pixels).

    Raises `PlotError` for another extension, an unknown sweep, a sweep without a measurement or a path that cannot be written,
    and `store.connection.StoreError` for a store that cannot be read.
    """
    form = out.suffix.removeprefix(".").lower()
    if form not in FORMATS:
        raise PlotError(f"{out}: the extension tells the format; use .png, .svg or .html")
    chart = figure(name, axes=axes, url=url, show_flagged=show_flagged)
    with alt.data_transformers.enable("default", max_rows=None):
        try:
            chart.save(str(out), format=form, scale_factor=2, inline=True)
        except OSError as problem:
            raise PlotError(
                f"{out}: cannot be written: {problem.strerror}; give a path in a folder that exists and is yours"
            ) from problem


def figure(name: str, *, axes: Axes = "both", url: str | None = None, show_flagged: bool = False) -> alt.VConcatChart:
    """The chart that `plot` saves, for notebooks; raises as `plot` does."""
    engine = frames.open_store(url)
    sweeps = list(frames.sweeps(engine)["sweep"])
    if name not in sweeps:
        near = get_close_matches(name, sweeps, cutoff=0.4)
        hint = (
            f"did you mean {' or '.join(near)}?"
            if near
            else f"there are: {', '.join(sweeps) or 'none; run one first: breakeven run FILE'}"
        )
        raise PlotError(f"no sweep is called '{name}'; {hint}")
    points, break_evens = arms.named(frames.points(engine, name), frames.break_evens(engine, name))
    if points.empty:
        raise PlotError(f"sweep '{name}' has no measurement yet; see how far it is: breakeven status")
    wanted: tuple[charts.Axis, ...] = get_args(charts.Axis) if axes == "both" else (axes,)
    views = [charts.speedup_chart(points, break_evens, axis, show_flagged=show_flagged) for axis in wanted]
    return charts.stacked(views, title=name).properties(background="white")
