"""`breakeven new`: a commented sweep file to begin with."""

import re
import shlex
from pathlib import Path
from string import Template
from typing import Annotated, Literal

import typer

from orchestrator.plan import planning
from sweeps.geometry.vit_catalogue import networks, timm_name
from sweeps.language.yaml_reader import FOLDER_OF_SWEEPS, SweepError

MODELS = {"vision": "deit_tiny_patch16_224", "language": "llama-220m"}
"""Where none is named."""
STEPS = (1 / 7, 2 / 7, 3 / 7, 4 / 7, 5 / 7, 1)
"""Sides of a vision model's inputs, as shares of the one that it was made for."""
PROMPTS = [16, 64, 256]


def new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What to write.")] = Path(
        "my_sweep.yaml"
    ),
    *,
    subject: Annotated[
        Literal["vision", "language"] | None,
        typer.Option("--for", help="What is measured; by default what the model is."),
    ] = None,
    model: Annotated[str | None, typer.Option(help="The model that it measures.")] = None,
) -> None:
    """Write a commented sweep file, which `breakeven plan` accepts as it is."""
    if subject is None:
        is_vision = model is None or timm_name(model).partition(".")[0] in networks()
        subject = "vision" if is_vision else "language"
    named = model or MODELS[subject]
    name = re.sub(r"[^A-Za-z0-9._-]", "_", file.stem)
    values: dict[str, object] = {
        "name": name,
        "model": named,
        "file": shlex.quote(str(file)),
        "sizes": PROMPTS,
    }
    if network := networks().get(timm_name(named)):
        patches = network.image_size // network.patch
        sides = [network.patch * max(1, round(patches * step)) for step in STEPS]
        sizes = list(dict.fromkeys(sides))
        quarters = sorted({max(1, network.depth * part // 4) for part in (1, 2, 3)})
        pruning = "topk" if network.class_token else "dpcknn"
        values |= {"patch": network.patch, "sizes": sizes, "bracket": [sizes[0], sizes[-1]]}
        values |= {"pruning": pruning, "layers": quarters}
    template = Template(
        (FOLDER_OF_SWEEPS / "templates" / f"{subject}.yaml").read_text(encoding="utf-8")
    )
    text = template.substitute(values, schema=FOLDER_OF_SWEEPS / "schema.json")
    planning.load_sweep(file, auto="cpu", text=text)
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(text)
    except OSError as problem:
        why = "exists already" if isinstance(problem, FileExistsError) else problem.strerror
        raise SweepError(str(file), None, "", f"{why}; name another file") from None
    typer.echo(f"{file} is written; next: breakeven plan {values['file']}")
