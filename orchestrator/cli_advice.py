"""The commands `advise` and `export-policy`, which `orchestrator.cli` adds to the command line."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from orchestrator.cli_options import (
    Database,
    MaxDrop,
    MeasuredData,
    MeasuredDevice,
    MeasuredMetric,
    MeasuredRuntime,
)
from sweeps.model.metrics import timed_metrics


def advise(
    *,
    db: Database = None,
    model: Annotated[str, typer.Option(help="The model, as sweeps name it.")],
    tokens: Annotated[
        int,
        typer.Option(
            min=1, help="Tokens of the unmodified model: patch tokens, or those of the prompt."
        ),
    ],
    batch: Annotated[int, typer.Option(min=1, help="Batch size.")],
    device: MeasuredDevice = None,
    runtime: MeasuredRuntime = None,
    data: MeasuredData = None,
    metric: MeasuredMetric = None,
    max_drop: MaxDrop = None,
    pareto: Annotated[
        bool,
        typer.Option(
            "--pareto", help="Mark the arms that no other surpasses in all that was measured."
        ),
    ] = False,
    confirm: Annotated[
        bool,
        typer.Option(
            "--confirm",
            help=(
                "Measure the winner once more, on pairs that it was not chosen by, and print both."
            ),
        ),
    ] = False,
    form: Annotated[Literal["table", "json"], typer.Option("--format")] = "table",
) -> None:
    """Which method, parameters and runtime to use for a model, or the unmodified model; nothing is
    extrapolated.
    """
    from orchestrator.commands.advise import advise_model
    from store.read.advice.advice import AdviceRequest

    request = AdviceRequest(
        model, tokens, batch, device, runtime, data, known_metric(metric), max_drop, pareto
    )
    raise typer.Exit(advise_model(db, request, form, confirmed=confirm))


def known_metric(name: str | None) -> str | None:
    """A metric of the command line. Raises `typer.BadParameter` with the known ones."""
    if name is not None and name not in timed_metrics():
        raise typer.BadParameter(
            f"{name!r} is no time that arms are compared by; known are"
            f" {', '.join(timed_metrics())}",
            param_hint="--metric",
        )
    return name


def export_policy(
    out: Annotated[
        Path, typer.Argument(metavar="FILE", help="The policy to write, such as policy.json.")
    ],
    *,
    db: Database = None,
    model: Annotated[str | None, typer.Option(help="Only this model; default: all.")] = None,
    device: MeasuredDevice = None,
    runtime: MeasuredRuntime = None,
    data: MeasuredData = None,
    metric: MeasuredMetric = None,
    max_drop: MaxDrop = None,
) -> None:
    """Write which arm to use at which sizes, as measured, for sweeps/analysis/policy.py to apply at
    run time.
    """
    import time

    from orchestrator.commands.export_policy import write_policy

    code = write_policy(
        out,
        db=db,
        model=model,
        device=device,
        runtime=runtime,
        data=data,
        metric=known_metric(metric),
        max_drop=max_drop,
        now=time.time(),
    )
    raise typer.Exit(code)
