"""`breakeven new` and what is shown without a command: the first things that users do."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.cli import FIRST
from orchestrator.plan import planning
from sweeps.geometry.vit_catalogue import networks
from sweeps.language.yaml_reader import shipped_sweeps
from tests.orchestrator.commands import breakeven, in_process
from tests.orchestrator.printed_commands import commands_in

PATCHES = {network.patch: name for name, network in networks().items() if not network.refusal}
NET = """\
def build(width, depth=2): ...
def inputs(height, width, batch_size): ...
"""
OPTION = re.compile(r"^( *)# (?=- \{|[a-z_]+: )", re.MULTILINE)
"""A line that is commented out."""


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--for", "own"),
        ("--model", "tiny_lm"),
        ("--model", "./net.py:build"),
        *(("--model", name) for name in (*PATCHES.values(),)[:1]),
    ],
)
def test_plan_accepts_it(tmp_path: Path, options: tuple[str, ...]) -> None:
    """As it is written; a second call keeps the first one's file."""
    (tmp_path / "net.py").write_text(NET)
    made = breakeven("new", "my sweep.yaml", *options, folder=tmp_path)
    assert (made.returncode, made.stderr) == (0, "")
    assert commands_in(made.stdout) == {"breakeven plan 'my sweep.yaml'"}
    planned = breakeven("plan", "my sweep.yaml", folder=tmp_path)
    assert (planned.returncode, planned.stderr) == (0, "")
    assert planned.stdout.startswith("my_sweep: ")
    text = (tmp_path / "my sweep.yaml").read_text()
    assert options[0:1] != ("--model",) or options[1] in text
    again = breakeven("new", "my sweep.yaml", *options, folder=tmp_path)
    assert (again.returncode, again.stderr) == (
        2,
        "breakeven: my sweep.yaml: exists already; name another file\n",
    )


@pytest.mark.parametrize("subject", ["vision", "language", "own"])
def test_what_is_commented_out_is_accepted(tmp_path: Path, subject: str) -> None:
    """Every line alone, and the schema is named where editors find it."""
    breakeven("new", "s.yaml", "--for", subject, folder=tmp_path)
    text = (tmp_path / "s.yaml").read_text()
    (schema,) = re.findall(r"\$schema=(.*)", text)
    assert Path(schema).is_file()
    found = list(OPTION.finditer(text))
    assert len(found) >= 2
    for option in found:
        other = text[: option.start()] + option[1] + text[option.end() :]
        line = other[option.start() :].partition("\n")[0]
        if "with weights" in line or line.startswith("  weights"):  # of a model that has them
            other = other.replace("deit_tiny_patch16_224", "digits_vit_64").replace(
                "llama-220m", "tiny_lm\n  weights: trained"
            )
            other = other.replace("weights: pretrained", "weights: trained").replace("224]", "64]")
        if line.startswith("search"):
            other = re.sub(r"^  image_size: .*\n", "", other, flags=re.MULTILINE)
        assert planning.load_sweep(tmp_path / "s.yaml", auto="cpu", text=other).jobs, line


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("x.yaml", "--model", "deit_tiny_patch16_22"), "did you mean 'deit_tiny_patch16_224'"),
        (("x.yaml", "--model", "./net.py:build"), "net.py: cannot be read"),
        (("no/x.yaml",), "No such file or directory"),
    ],
)
def test_bad_input(tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    """One line, and no file."""
    refused = breakeven("new", *options, folder=tmp_path)
    assert (refused.returncode, words in refused.stderr) == (2, True), refused.stderr
    assert list(tmp_path.iterdir()) == []


def test_without_a_command(tmp_path: Path) -> None:
    """The three things to do first, and the command is short."""
    shown = in_process(folder=tmp_path)
    assert shown.stdout == f"{FIRST}\n"
    assert "breakeven run quickstart " in FIRST
    assert "quickstart" in shipped_sweeps()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["breakeven", "run", "--tim"], "--time"),
        (["breakeven", "plot", "--f"], ""),
    ],
)
def test_completion(words: list[str], offered: str) -> None:
    """Of commands and of their options; those of the web app's commands are not offered."""
    asked = {
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    done = subprocess.run(
        [Path(sys.executable).with_name("breakeven")],
        env={**os.environ, **asked, "_BREAKEVEN_COMPLETE": "complete_bash"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == offered
