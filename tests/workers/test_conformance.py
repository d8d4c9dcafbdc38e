"""The checks of method files on files of a user: what each finds, and with which line."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sweeps.geometry.vit_catalogue import networks
from sweeps.model.job import DENSE, Arm, Step
from tests.orchestrator.commands import breakeven
from tests.workers.tiny_vits import calm
from tests.workers.vision_jobs import MODEL, SIZE, job
from workers import methods
from workers.methods.conformance import check_folder
from workers.run import run

calm = pytest.fixture(autouse=True)(calm)
WRAPPING = '''"""Cuts half of the tokens before a block, which a module around it does."""
from sweeps.model.method import BlockTokens, Params as Parameters
PAPER = "none"
VERSION = 1
class Params(Parameters):
    layer: int = 1
def tokens(params, network, image_size):
    dense = network.dense_tokens(image_size)
    left = dense[0].mlp - dense[0].mlp // 2
    return dense[: params.layer] + (BlockTokens(left, left),) * (network.depth - params.layer)
def macs(params, network, image_size):
    return 0
def refuses(params, network):
    return None
def apply(model, params):
    from torch import nn
    from workers.models.share_weights import clone_shared
    class Before(nn.Module):
        def __init__(self, block):
            super().__init__()
            self.block = block
        def forward(self, x):
            return self.block(x[:, : x.shape[1] - x.shape[1] // 2])
    cut = clone_shared(model)
    cut.blocks[params.layer] = Before(cut.blocks[params.layer])
    return cut
'''
MACS = "    return 0\n"
BLOCK = "            return self.block("


@pytest.mark.parametrize(
    ("old", "new", "failing", "reason"),
    [
        (MACS, "    return 1 // 0\n", {"tokens", "macs"}, r"file.py:12: ZeroDivisionError: "),
        (MACS, "    return 300_000\n", {"macs"}, "MACs run, tokens() and macs() give"),
        ("dense[0].mlp // 2", "3", {"tokens"}, "and the blocks see [(26, 26), (13, 13), "),
        (BLOCK, BLOCK + "x.mean(0, keepdim=True) + ", {"images"}, "images of layer=1 on test_vit"),
        (BLOCK, "            x = x.flip(1)\n" + BLOCK, {"prefix"}, "do not stay first"),
        (
            BLOCK,
            "            x = x + (x[0, 0, 0] > 9 and 1)\n" + BLOCK,
            {"graph"},
            "graph of layer=1",
        ),
        ("cut.blocks[params.layer] =", "cut.blocks = cut.norm #", {"tokens"}, "has no `blocks`"),
    ],
)
def test_a_file_that_fails(
    tmp_path: Path, old: str, new: str, failing: set[str], reason: str
) -> None:
    """The checks that it fails are named, each with file and line or the reason."""
    assert old in WRAPPING
    (tmp_path / "file.py").write_text(WRAPPING.replace(old, new))
    results = check_folder(tmp_path)["file"]
    wrong = {check for check, problem in results.items() if problem}
    assert failing <= wrong
    assert reason in results[sorted(failing)[0]]


def test_a_folder(tmp_path: Path) -> None:
    """Each file has its checks; a file that cannot be imported has the reason."""
    (tmp_path / "wraps.py").write_text(WRAPPING)
    (tmp_path / "broken.py").write_text("def broken(:\n")
    results = check_folder(tmp_path)
    assert set(results) == {"wraps", "broken"}
    assert "SyntaxError" in results["broken"]["import"]
    checks = ("parts", "tokens", "images", "macs", "prefix", "graph")
    assert results["wraps"] == dict.fromkeys(checks, "")


@pytest.mark.parametrize(
    ("files", "code", "output", "error"),
    [
        ({"wraps.py": WRAPPING}, 0, "wraps.py  parts   ok", ""),
        ({"wraps.py": WRAPPING.replace("dense[0].mlp // 2", "3")}, 1, "and the blocks see [", ""),
        ({"file.py": WRAPPING.replace('PAPER = "none"\n', "")}, 1, "PAPER", ""),
        ({"broken.py": "def broken(:\n"}, 2, "broken.py: cannot be imported: SyntaxError: ", ""),
        ({"file.py": WRAPPING + "raise OSError('x: cannot be imported: y')\n"}, 2, "OSError", ""),
        ({"file.py": "import absent_module\n"}, 2, "No module named 'absent_module'", ""),
        ({}, 2, "", "holds no method file"),
        ({"notes.txt": "no Python"}, 2, "", "holds no method file"),
        (None, 2, "", "does not exist"),
    ],
)
def test_exit_codes_of_the_command(
    tmp_path: Path, files: Mapping[str, str] | None, code: int, output: str, error: str
) -> None:
    """0 where all files conform, 1 where a check fails, 2 where there is nothing to check: no
    folder, no method file, or a file that cannot be imported.
    """
    folder = tmp_path / "own"
    if files is not None:
        folder.mkdir()
    for name, text in (files or {}).items():
        (folder / name).write_text(text)
    done = breakeven("methods", "--check", "own", folder=tmp_path)
    assert done.returncode == code
    assert output in done.stdout
    assert error in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.stderr


def test_a_block_in_a_module_of_the_user_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tokens are counted in the block inside of it; one without a block names the rule."""
    (tmp_path / "wraps.py").write_text(WRAPPING)
    lacks = WRAPPING.replace("self.block = block", "self.block = block.mlp")
    (tmp_path / "lacks.py").write_text(lacks)
    monkeypatch.setenv(methods.VARIABLE, str(tmp_path))
    arms = [DENSE, *(Arm(stack=(Step(method=name, params={}),)) for name in ("wraps", "lacks"))]
    outcome = run(job(arms), pass_seconds=0.01)
    assert [(arm.arm, arm.flags) for arm in outcome.arms] == [(0, ()), (1, ())]
    dense = networks()[MODEL].dense_tokens(SIZE)
    assert [block.mlp for block in outcome.arms[1].trace] == [dense[0].mlp, *[3] * 5]
    (failure,) = outcome.failures
    assert failure.reason == "unsupported"
    assert "a block of Before: it holds no module with `attn.proj` and `mlp`" in failure.message


@pytest.mark.parametrize("place", ["apply", "forward"])
def test_an_error_of_a_users_file_in_a_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """The failure's message has the file and its line."""
    old = {"apply": "    cut = clone", "forward": BLOCK}[place]
    indent = old[: len(old) - len(old.lstrip())]
    text = WRAPPING.replace(old, f"{indent}{{}}['absent']\n{old}")
    (tmp_path / f"raises_{place}.py").write_text(text)
    monkeypatch.setenv(methods.VARIABLE, str(tmp_path))
    outcome = run(job([DENSE, Arm(stack=(Step(method=f"raises_{place}"),))]), pass_seconds=0.01)
    (failure,) = outcome.failures
    line = 1 + text.splitlines().index(f"{indent}{{}}['absent']")
    assert f"raises_{place}.py:{line}: KeyError: 'absent'" in failure.message


def test_an_error_of_a_users_file_in_planning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planning names the file and the line, for each function that it calls."""
    network: Any = networks()[MODEL]
    text = WRAPPING.replace(MACS, "    return 1 // 0\n").replace("return None", "return {}[2]")
    (tmp_path / "plans.py").write_text(text)
    monkeypatch.setenv(methods.VARIABLE, str(tmp_path))
    arm = Arm(stack=(Step(method="plans", params={}),))
    with pytest.raises(methods.InvalidMethod, match=r"plans\.py:12: ZeroDivisionError: "):
        methods.method_macs(arm, network, SIZE)
    with pytest.raises(methods.InvalidMethod, match=r"plans\.py:14: KeyError: 2$"):
        methods.stack_refusal(arm, network)
