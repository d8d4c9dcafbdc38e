"""A method for language models that counts its calls and does something besides, written into a
folder of methods.
"""

from pathlib import Path
from typing import Any

import pytest

from sweeps.model.job import Arm, Step

LANGUAGE_METHOD = '''"""For tests."""

from sweeps.model.method import Params as _Params

MODALITY = "language"
PAPER = "none"
VERSION = 1


class Params(_Params):
    """None."""


def macs(params, network, prompt, decoded):
    return 1000 * (prompt + decoded)


def skipped(params, network, tokens):
    return 3000 * tokens


def refuses(params, network):
    return {refusal}


def apply(lm, params):
    import time
    from dataclasses import replace
    from workers.models.share_weights import clone_shared

    model, calls = clone_shared(lm.model), []

    def hook(module, inputs, output):
        calls.append(None)
        {body}
        return output

    model.lm_head.register_forward_hook(hook)

    class Calls:
        def metrics(self):
            return {{"kernel_calls": float(len(calls))}}

        def reset(self):
            {reset}

    return replace(lm, model=model, counters=(Calls(),))
'''


def scripted_language_arm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write a language method that counts its calls and does something besides, and give the arm
    that uses it.
    """
    folder = tmp_path / "methods"
    folder.mkdir()
    monkeypatch.setenv("BREAKEVEN_METHODS", str(folder))

    def write(
        name: str, body: str = "pass", refusal: str | None = None, reset: str = "calls.clear()"
    ) -> Arm:
        (folder / f"{name}.py").write_text(
            LANGUAGE_METHOD.format(body=body, refusal=repr(refusal), reset=reset)
        )
        return Arm(stack=(Step(method=name),))

    return write
