"""The registry of methods: both modalities by name, without torch, and a message for a file that
lacks a part.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from sweeps.model.job import Arm, Step
from workers import methods
from workers.methods import InvalidMethod

LANGUAGE_METHOD = '''"""Leaves nothing out."""
from sweeps.model import method
MODALITY = "language"
PAPER = "none"
VERSION = 2
class Params(method.Params):
    """None."""
def macs(params, network, prompt, decoded): return prompt + 3 * decoded
def skipped(params, network, tokens): return tokens
def refuses(params, network): return None if network.gated else "has no gate"
def apply(lm, params): return lm
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose files are methods."""
    monkeypatch.setenv(methods.VARIABLE, str(tmp_path))
    return tmp_path


def test_a_module_beside_a_method_is_imported_last(folder: Path) -> None:
    """A method may use its neighbours, which hide none of our packages and no library."""
    (folder / "plain.py").write_text(
        LANGUAGE_METHOD.replace("VERSION = 2", "from neighbour_of_plain import VERSION")
    )
    (folder / "neighbour_of_plain.py").write_text('"""Not a method."""\nVERSION = 7\n')
    assert methods.all_methods()["plain"].VERSION == 7
    assert sys.path[-1] == str(folder.resolve())


def test_a_method_does_not_see_the_store(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in planning nor in a worker, whose environment lacks the variable."""
    monkeypatch.setenv("BREAKEVEN_DB", "postgresql://user:password@host/db")
    (folder / "plain.py").write_text(
        LANGUAGE_METHOD + "\nimport os\nSEEN = os.environ.get('BREAKEVEN_DB')\n"
    )
    assert cast(Any, methods.all_methods()["plain"]).SEEN is None
    assert os.environ["BREAKEVEN_DB"] == "postgresql://user:password@host/db"


def test_no_method_imports_torch_or_transformers() -> None:
    """Planning reads all of them in a process that never loads either."""
    program = (
        "import sys\nfrom workers.methods import all_methods\nall_methods()\nassert not {'torch',"
        " 'transformers', 'timm'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (LANGUAGE_METHOD.replace('"language"', '"sound"'), "MODALITY is 'sound'"),
        (LANGUAGE_METHOD.replace("def skipped", "def skip"), "lacks skipped"),
    ],
)
def test_a_file_that_lacks_a_part(folder: Path, wrong: str, message: str) -> None:
    """It is left out with a line of file and part; a job that needs it fails with that line."""
    (folder / "broken.py").write_text(wrong)
    assert "broken" not in methods.all_methods()
    assert re.search(rf"broken\.py: .*{message}", methods.left_out()["broken"])
    with pytest.raises(InvalidMethod, match=rf"broken\.py: .*{message}"):
        methods.resolve(Arm(stack=(Step(method="broken"),)), "language")
