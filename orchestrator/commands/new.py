"""`breakeven new`: a commented sweep file to begin with."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Annotated, Literal

import typer

from orchestrator.plan import planning
from sweeps.geometry.model_families import OwnFiles, OwnModels, code_name
from sweeps.geometry.vit_catalogue import networks, timm_name
from sweeps.language.yaml_reader import FOLDER_OF_SWEEPS, SweepError

Subject = Literal["vision", "language", "own"]
MODELS: Mapping[Subject, str] = {"vision": "deit_tiny_patch16_224", "language": "llama-220m"}
"""Where none is named."""
STEPS = (1 / 7, 2 / 7, 3 / 7, 4 / 7, 5 / 7, 1)
"""Sides of a vision model's inputs, as shares of the one that it was made for."""
PROMPTS = [16, 64, 256]
VALUES = [64, 256, 1024]
"""Of each parameter of an own model."""


def new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What to write.")] = Path(
        "my_sweep.yaml"
    ),
    *,
    subject: Annotated[
        Subject | None,
        typer.Option("--for", help="What is measured; by default what the model is."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="The model that it measures; without one `--for own` writes a file with one, too."
        ),
    ] = None,
) -> None:
    """Write a commented sweep file, which `breakeven plan` accepts as it is."""
    subject = subject or _subject(model)
    values: dict[str, object] = {
        "name": re.sub(r"[^A-Za-z0-9._-]", "_", file.stem),
        "file": shlex.quote(str(file)),
        "schema": FOLDER_OF_SWEEPS / "schema.json",
        "model": model or MODELS.get(subject, f"./{file.stem}.py:build"),
        "sizes": PROMPTS,
    }
    code = file.with_suffix(".py") if subject == "own" and model is None else None
    if file.exists():
        raise SweepError(str(file), None, "", "exists already; name another file")
    if code is not None:
        _write(code, _filled("own.py.txt", values))
    try:
        values |= _own_values(file, f"{values['model']}", code) if subject == "own" else {}
        values |= _vision_values(f"{values['model']}")
        text = _filled(f"{subject}.yaml", values)
        planning.load_sweep(file, auto="cpu", text=text)
    except Exception:
        if code is not None:
            code.unlink()
        raise
    _write(file, text)
    written = f"{file} is" if code is None else f"{file} and {code} are"
    typer.echo(f"{written} written; next: breakeven plan {values['file']}")


def _subject(model: str | None) -> Subject:
    """What a model is for, by its name."""
    if code_name(model) is not None:
        return "own"
    is_vision = model is None or timm_name(model).partition(".")[0] in networks()
    return "vision" if is_vision else "language"


def _vision_values(model: str) -> dict[str, object]:
    """What suits a model of the catalogue; empty for others."""
    network = networks().get(timm_name(model))
    if network is None:
        return {}
    patches = network.image_size // network.patch
    sides = [network.patch * max(1, round(patches * step)) for step in STEPS]
    sizes = list(dict.fromkeys(sides))
    return {
        "patch": network.patch,
        "sizes": sizes,
        "bracket": [sizes[0], sizes[-1]],
        "scored": "" if network.class_token else "# ",
        "unscored": "# " if network.class_token else "",
        "blocks": sorted({max(1, network.depth * part // 4) for part in (1, 2, 3)}),
    }


def _own_values(file: Path, model: str, code: Path | None) -> dict[str, object]:
    """Axes by the parameters of the model's file. Raises `SweepError`."""
    if code_name(model) is None:
        problem = f"needs FILE.py:FUNCTION for own models, not {model!r}"
        raise SweepError(str(file), None, "defaults.model", problem)
    family = OwnModels(OwnFiles(file.parent))
    try:
        functions = reversed(list(family.functions(family.full_name(model))))
        asked = dict.fromkeys(name for each in functions for name in each.required)
    except ValueError as error:
        raise SweepError(str(file), None, "defaults.model", str(error)) from None
    names = [name for name in asked if name not in family.provided]
    arm = "  # - {callable: ./FILE.py:FUNCTION}   # FUNCTION(model, …) returns what is timed"
    if code is not None:
        arm = f"  - {{callable: ./{code.name}:chunked, chunks: [2, 4]}}"
    return {
        "axes": "\n".join(f"  {name}: {VALUES}" for name in names),
        "axis": names[0] if names else "batch_size",
        "methods": arm if code else f"{arm}\n  - {{runtime: compile}}",
    }


def _filled(template: str, values: Mapping[str, object]) -> str:
    text = (FOLDER_OF_SWEEPS / "templates" / template).read_text(encoding="utf-8")
    return Template(text).substitute(values)


def _write(file: Path, text: str) -> None:
    """Raises `SweepError`, also where the file exists."""
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(text)
    except OSError as problem:
        why = "exists already" if isinstance(problem, FileExistsError) else problem.strerror
        raise SweepError(str(file), None, "", f"{why}; name another file") from None
