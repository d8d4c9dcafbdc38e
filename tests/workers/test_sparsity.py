"""Sparsity by arithmetic: the MACs that larosa, teal, topk_activation and wina add and leave out, and
what they refuse.
"""

import pytest

from sweeps.geometry.llm_geometry import languages
from sweeps.model.job import Arm, Step
from workers.activation_sparsity import skipped_by_token, spread
from workers.methods import stack_refusal
from workers.methods.language import larosa, teal, topk_activation, wina


def test_macs_by_hand():
    """phi-2 at 50 %: half of the inputs of each matrix in 32 layers; 31 adapters."""
    phi = languages()["phi-2"]
    params = larosa.Params(sparsity=0.5)
    layer = 1280 * 3 * 2560 + 1280 * 2560 + 1280 * 10240 + 5120 * 2560
    assert larosa.skipped(params, phi, 7) == 7 * 32 * layer
    assert larosa.macs(params, phi, 5, 7) == (5 + 7) * 31 * 2560**2
    online = larosa.Params(sparsity=0.5, form="online")
    assert (larosa.macs(online, phi, 5, 7), larosa.skipped(online, phi, 7)) == (
        7 * 32 * 2 * 2560**2,
        0,
    )
    assert (
        larosa.macs(online.model_copy(update={"prefill": 0.4}), phi, 5, 7)
        == (2 + 7) * 32 * 2 * 2560**2
    )
    llama = languages()["llama-220m"]
    assert larosa.macs(online, llama, 5, 1) == 4 * 4 * 2048**2
    for method in (teal, topk_activation, wina):
        assert method.macs(method.Params(sparsity=0.5), phi, 5, 7) == 0
        assert method.skipped(method.Params(sparsity=0.5), phi, 7) == 7 * 32 * layer


def test_allocation_keeps_the_macs():
    """As many MACs are left out however uneven; more than all of an input is refused."""
    network = languages()["llama-220m"]
    for coefficients in (None, (0.8, 1.2, 0.8, 1.2), (3.0, 1.0, 1.0, 2.0)):
        shares = spread(0.4, coefficients, network)
        left_out = skipped_by_token(network, shares) / network.layers
        assert left_out / network.layer_macs == pytest.approx(0.4, abs=1e-3)
    params = topk_activation.Params(sparsity=0.9, allocation=(0.8, 1.2, 0.8, 1.2)).model_dump(
        mode="json"
    )
    arm = Arm(
        stack=(Step(method="topk_activation", params=params, version=topk_activation.VERSION),)
    )
    assert (
        stack_refusal(arm, network)
        == "topk_activation: allocation requests a sparsity of 1.17 in h2, which must stay below 1;"
        " give h2 a smaller coefficient"
    )
