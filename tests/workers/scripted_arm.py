"""A method for vision models that counts its calls and does something besides, written into a
folder of methods.
"""

from pathlib import Path
from typing import Any

import pytest

from sweeps.model.job import Arm, Step

FAULTY = '''"""For tests."""

import torch

from sweeps.model.method import Params as _Params

PAPER = "none"
VERSION = 1


class Params(_Params):
    """None."""


def tokens(params, network, image_size):
    return network.dense_tokens(image_size){promise}


def macs(params, network, image_size):
    return 0


def refuses(params, network):
    return {refusal}


def apply(model, params):
    import time
    from workers.models.share_weights import clone_shared

    fitted = clone_shared(model)
    calls = []

    def change(module, inputs, output):
        calls.append(None)
        {body}
        return output

    fitted.register_forward_hook(change)
    return fitted
'''


def scripted_arm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write a method file that does something wrong, and give the arm that uses it."""

    def write(
        name: str, body: str = "pass", *, refusal: str | None = None, promise: str = ""
    ) -> Arm:
        (tmp_path / f"{name}.py").write_text(
            FAULTY.format(body=body, refusal=repr(refusal), promise=promise)
        )
        return Arm(stack=(Step(method=name),))

    monkeypatch.setenv("BREAKEVEN_METHODS", str(tmp_path))
    return write
