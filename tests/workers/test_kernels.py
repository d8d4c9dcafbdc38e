"""Triton's kernels: parity by Triton's interpreter, in one process for all; where they cannot run,
and what runs instead.
"""

import json
import os
import subprocess
import sys
from typing import Any

import pytest
import torch

from sweeps.model.condition import Condition
from tests.workers.kernel_parity import CHECKS
from tests.workers.tiny_vits import SIZE, images, small, small_network
from workers import kernels
from workers.errors import Unsupported
from workers.methods.vision import hquota, tome, topk, truncate
from workers.models.share_weights import clone_shared
from workers.token_reduction.patch_vit import use_kernel

ON_CUDA = Condition(model="tiny", image_size=SIZE, device="cuda", dtype="float16")


@pytest.fixture(scope="module")
def failures() -> dict[str, str]:
    """By name, the tracebacks of the checks that failed."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.workers.kernel_parity"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"TRITON_INTERPRET": "1"},
    )
    assert done.returncode == 0, done.stderr
    failed: dict[str, str] = json.loads(done.stdout)
    return failed


@pytest.mark.parametrize("check", CHECKS)
def test_kernels_agree_with_tensor_code(failures: dict[str, str], check: str) -> None:
    """The same tokens in the same order, whatever shape and type; ties; what is refused."""
    assert check not in failures, failures[check]


@pytest.mark.parametrize("method", [topk, tome, hquota, truncate])
def test_auto_takes_the_kernels_where_they_run(method: Any) -> None:
    """On CUDA in types and runtimes that they take; the outcome names what ran instead."""
    network = small_network("plain")
    params = method.EXAMPLES[0].model_copy(update={"implementation": "auto"})
    assert params.choose(ON_CUDA, network).implementation == "triton"
    for own in (
        {"device": "cpu"},
        {"dtype": "autocast-float16"},
        {"runtime": "openvino"},
        {"image_size": 8 * 64},
    ):
        chosen = params.choose(ON_CUDA.model_copy(update=own), network).implementation
        assert chosen != "triton", own
    assert params.choose(ON_CUDA, small_network("eva02")).implementation == "torch"


def test_what_the_kernels_of_hquota_do_not_compute() -> None:
    """Adjusted means are by torch's operators."""
    network = small_network("plain")
    assert hquota.Params(r=3, alpha=0.1).choose(ON_CUDA, network).implementation == "torch"
    with pytest.raises(Unsupported, match="triton cannot run here: its kernels compute plain"):
        hquota.Params(r=3, alpha=0.1, implementation="triton").choose(ON_CUDA, network)


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"device": "cpu"}, "run on CUDA devices only, and the model is on cpu"),
        ({"dtype": "autocast-float16"}, "take float32, float16, bfloat16 in eager"),
        ({"image_size": 8 * 64}, "take up to 4096 tokens, not 4097"),
    ],
)
def test_requested_kernels_are_refused_with_the_reason(own: dict[str, object], words: str) -> None:
    """By the condition, before a model is made."""
    params = topk.Params(keep_rate=0.5, layers=(1,), implementation="triton")
    with pytest.raises(Unsupported, match=f"implementation: triton cannot run here: .*{words}"):
        params.choose(ON_CUDA.model_copy(update=own), small_network("plain"))


def test_kernels_need_cuda() -> None:
    """A method that is applied by hand, to a model on a CPU."""
    for method in (topk, tome, truncate):
        params = method.EXAMPLES[0].model_copy(update={"implementation": "triton"})
        with pytest.raises(Unsupported, match="CUDA devices only, and the model is on cpu"):
            method.apply(small("plain"), params)


def test_heads_that_the_kernels_do_not_take() -> None:
    """Too wide and too narrow ones."""
    for head_dim in (8, 160):
        network = small_network("plain").model_copy(update={"head_dim": head_dim})
        assert "heads of 16 to 128" in (kernels.refusal(ON_CUDA, network) or "")


@pytest.mark.parametrize("method", [topk, tome, hquota, truncate])
def test_one_graph_has_the_operators(method: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch.compile traces a model with the kernels as one graph, from shapes alone; what it would
    make of the graph needs a device.
    """
    monkeypatch.setattr(kernels, "device_refusal", lambda _: None)
    network, params = small_network("plain"), method.EXAMPLES[0]
    fused = method.apply(
        clone_shared(small("plain")), params.model_copy(update={"implementation": "triton"})
    )
    use_kernel(fused, ON_CUDA.model_copy(update={"device": "cpu", "dtype": "float32"}), network)
    operators: set[str] = set()

    def backend(graph: Any, _inputs: object) -> Any:
        operators.update(str(node.target) for node in graph.graph.nodes)
        raise RuntimeError("traced")

    with torch.inference_mode(), pytest.raises(RuntimeError, match="traced"):
        torch.compile(fused, backend=backend, fullgraph=True, dynamic=False)(images())
    own = {name.split(".")[1] for name in operators if name.startswith("breakeven.")}
    assert (
        own
        == {
            topk: {"sized_attention", "keep_best"},
            tome: {"sized_attention", "merge_similar"},
            hquota: {"sized_attention_inflow", "merge_farthest"},
            truncate: {"sized_attention", "gather"},
        }[method]
    )
