"""Options and arguments that several commands of the command line have."""

from pathlib import Path
from typing import Annotated, Literal

import typer

Database = Annotated[
    str | None,
    typer.Option(
        "--db",
        envvar="BREAKEVEN_DB",
        help="Database: a file or an SQLAlchemy URL.",
        show_default="breakeven.db",
    ),
]
SweepFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="A sweep in YAML; or the name of one in the store or that ships."
    ),
]
SweepName = Annotated[str, typer.Argument(metavar="NAME", help="Name of a sweep in the store.")]
DeviceOption = Annotated[
    Literal["cpu", "cuda"] | None, typer.Option("--device", help="What `device: auto` stands for.")
]
MeasuredDevice = Annotated[
    Literal["cpu", "cuda"] | None,
    typer.Option("--device", help="Only what was measured on this class of device."),
]
MeasuredRuntime = Annotated[
    Literal["eager", "compile", "cudagraph"] | None,
    typer.Option("--runtime", help="Only arms that ran with it."),
]
MeasuredData = Annotated[
    str | None,
    typer.Option(
        "--data", help="Only quality on this data set; default: on each that was measured."
    ),
]
MeasuredMetric = Annotated[
    str | None,
    typer.Option(
        "--metric",
        help="The time to rank by, such as ttft or tpot; default: the first of the kind.",
    ),
]
MaxDrop = Annotated[
    float | None,
    typer.Option(
        min=0,
        help=(
            "Only arms that lose at most this much, by the upper end of the interval: points of"
            " top-1, or bits per byte. An arm whose quality was not measured is then not advised."
        ),
    ),
]
