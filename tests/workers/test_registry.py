"""The registry of methods: both modalities by name, without torch, and a message for a file that lacks a part."""

import subprocess
import sys
from pathlib import Path

import pytest

from sweeps.geometry.llm_geometry import languages
from sweeps.job import Arm, Step
from sweeps.method import LanguageMethod, modality_of
from workers import methods
from workers.methods import InvalidMethod

LANGUAGE_METHOD = '''"""Leaves nothing out."""
from sweeps import method
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


def test_modalities_are_apart() -> None:
    """Every method is of one modality, and each modality has some."""
    found = methods.every()
    assert set(found) == {*methods.of_modality("vision"), *methods.of_modality("language")}
    assert not {*methods.of_modality("vision")} & {*methods.of_modality("language")}
    assert {modality_of(method) for method in found.values()} == {"vision", "language"}
    assert all(isinstance(method, LanguageMethod) for method in methods.of_modality("language").values())


def test_a_language_method_is_one_file(folder: Path) -> None:
    """A file with MODALITY is found, counts MACs, refuses, and cannot be applied as a vision method."""
    (folder / "plain.py").write_text(LANGUAGE_METHOD)
    arm, network = Arm(stack=(Step(method="plain", version=2),)), languages()["llama-15m"]
    assert methods.of_modality("language")["plain"].VERSION == 2
    assert (methods.method_macs(arm, network, 5, 10), methods.skipped_macs(arm, network, 10)) == (35, 10)
    assert methods.stack_refusal(arm, network) is None
    assert methods.stack_refusal(arm, languages()["gpt2"]) == "plain: has no gate"
    with pytest.raises(InvalidMethod, match="there is no method 'plain'"):
        methods.resolve(arm, "vision")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (LANGUAGE_METHOD.replace('"language"', '"sound"'), "MODALITY is 'sound'"),
        (LANGUAGE_METHOD.replace("def skipped", "def skip"), "lacks the function skipped"),
        (LANGUAGE_METHOD.replace('MODALITY = "language"\n', ""), "lacks the function tokens"),
        (LANGUAGE_METHOD.replace("VERSION = 2", "VERSION = '2'"), r"lacks VERSION \(int\)"),
    ],
)
def test_a_file_that_lacks_a_part(folder: Path, wrong: str, message: str) -> None:
    """The message names the file and the part."""
    (folder / "broken.py").write_text(wrong)
    with pytest.raises(InvalidMethod, match=rf"broken\.py: .*{message}"):
        methods.every()


def test_no_method_imports_torch_or_transformers() -> None:
    """Planning reads all of them in a process that never loads either."""
    program = (
        "import sys\nfrom workers.methods import every\nevery()\nassert not {'torch', 'transformers', 'timm'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
