"""Rotary embeddings of pruned and merged tokens: against timm's own path for dropped patches, and
where the rules put a merged token.
"""

from typing import Any

import pytest
import timm
import torch

from sweeps.model.job import Arm, Step
from tests.workers.tiny_vits import ROTARY, calm, images, small, small_network
from workers import methods
from workers.models.exported import Exported
from workers.models.share_weights import clone_shared
from workers.token_reduction.patch_vit import Rope, fit

calm = pytest.fixture(autouse=True)(calm)
FOUND = methods.of_modality("vision")
SMALL = {
    "eva02_tiny_patch14_224": 70,
    "vit_small_patch16_dinov3": 80,
    "vit_small_patch16_rope_mixed_ape_224": 80,
    "vit_pe_core_tiny_patch16_384": 80,
}


def real(name: str, size: int) -> Any:
    """The first three blocks of a model of timm, its weights large enough for a mistake to show."""
    torch.manual_seed(0)
    with torch.inference_mode(mode=False):
        model: Any = timm.create_model(name, img_size=size, num_classes=9)
    model.eval().requires_grad_(False)
    model.blocks = model.blocks[:3]
    for parameter in model.parameters():
        parameter.add_(torch.randn(parameter.shape), alpha=0.05)
    return model


@pytest.mark.parametrize(("name", "size"), SMALL.items())
@pytest.mark.parametrize("unequal", [False, True])
def test_pruned_before_the_first_block_as_timm_drops_patches(name, size, unequal, monkeypatch):
    """Logits are timm's after dropping the same patches, for each image its own."""
    model = real(name, size)
    prefix, patches = model.num_prefix_tokens, model.patch_embed.num_patches
    kept = torch.stack([torch.randperm(patches)[: patches // 2] for _ in range(2)])
    if not unequal:
        kept[1] = kept[0]
    x = torch.randn(2, 3, size, size)

    def drop(tokens):
        index = kept[..., None].expand(-1, -1, tokens.shape[-1])
        return torch.cat((tokens[:, :prefix], tokens[:, prefix:].gather(1, index)), 1), kept

    dropping = clone_shared(model)
    dropping.patch_drop = drop
    expected = dropping(x)
    assert (expected - model(x)).abs().max() > 1e-3  # which patches are dropped does matter

    def remove(tokens, sizes, attended):
        (cut, _), (places, _) = drop(tokens), drop(attended.place_BNP)
        return cut, sizes, places

    # a block in front that adds nothing, with an embedding of its own for models that have one each
    ours = clone_shared(model)
    front = clone_shared(model.blocks[0])
    for part in (front.attn.proj, front.mlp.fc2):
        part.weight, part.bias = (torch.nn.Parameter(w * 0) for w in (part.weight, part.bias))
    ours.blocks = torch.nn.ModuleList([front, *ours.blocks])
    if model.rope_mixed:
        mixed = clone_shared(model.rope)
        mixed.freqs = torch.nn.Parameter(torch.cat((mixed.freqs[:, :1], mixed.freqs), 1))
        ours.rope = mixed
    torch.testing.assert_close(fit(ours, {0: remove})(x), expected, rtol=0, atol=1e-5)


def test_places_of_merged_tokens():
    """Its own embedding at the destination, or that of the patch nearest to the mean."""
    table = torch.randn(16, 6)
    whole = Rope(table, 4, 1, mean=False)
    assert torch.equal(whole.of_block(0), table)
    placed = whole.placed(2).place_BNP
    assert placed is not None
    assert placed[:, 1:, 0].tolist() == [[*range(16)]] * 2
    corners = torch.tensor([0, 6, 8, 14, 16])
    left = whole._replace(place_BNP=placed[:, corners])
    assert torch.equal(left.of_block(0), table[corners[1:] - 1].expand(2, 1, -1, -1))
    mean = Rope(table, 4, 1, mean=True).placed(2)
    assert mean.place_BNP is not None
    rows_columns = mean.place_BNP[0, 1:].tolist()
    assert rows_columns == [[row, column] for row in range(4) for column in range(4)]
    between = torch.tensor([[9.0, 9.0], [0.4, 0.6], [2.6, 1.3]]).expand(2, -1, -1)
    found = mean._replace(place_BNP=between).of_block(0)
    assert torch.equal(found[0, 0], table[[1, 13]])


@pytest.mark.parametrize("rule", [None, "mean_position"])
@pytest.mark.parametrize("make", ROTARY)
@pytest.mark.parametrize("name", ["tome", "hquota"])
def test_compiled_code_passes_places_on(name, make, rule):
    """The compiled kernels leave the places that torch's operators leave."""
    logits = [
        FOUND[name].apply(
            small(make), FOUND[name].Params(r=4, rope=rule, implementation=implementation)
        )(images())
        for implementation in ("torch", "native")
    ]
    torch.testing.assert_close(*logits, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["openvino", "onnxruntime"])
@pytest.mark.parametrize(
    ("make", "rule"), [*((make, None) for make in ROTARY), ("eva02", "mean_position")]
)
def test_other_engines_look_embeddings_up(make, rule, runtime):
    """Exported, merged tokens have the embeddings that eager's have; the export compares logits."""
    pytest.importorskip(runtime, reason="the extra `runtimes` is not installed")
    model = FOUND["tome"].apply(small(make), FOUND["tome"].Params(r=4, rope=rule))
    exported = Exported(model, runtime)
    torch.testing.assert_close(exported(images(1)), model(images(1)), rtol=1e-3, atol=1e-3)
    assert exported.difference < 1e-4


def test_a_kernel_that_cannot_is_refused():
    """Triton's kernel of topk selects without handing on which: refused before anything runs."""
    arm = Arm(stack=(Step(method="topk", params={"keep_rate": 0.5, "implementation": "triton"}),))
    reason = methods.stack_refusal(arm, small_network("dinov3"))
    assert reason is not None
    assert "do not pass on rotary embeddings" in reason


@pytest.mark.parametrize(
    ("method", "params", "make"),
    [
        pytest.param(method, method.EXAMPLES[0], make, id=f"{name}-{make}")
        for name, method in FOUND.items()
        if "rope" in method.Params.model_fields
        for make in ROTARY
        if method.refuses(method.EXAMPLES[0], small_network(make)) is None
    ],
)
def test_both_rules_run(method, params, make):
    """The rule changes logits only, never token counts; `destination` is what no rule means."""
    network = small_network(make)
    params = method.Params.model_validate(params.model_dump() | {"rope": "destination"})
    assert params.rope is None
    mean = method.Params.model_validate(params.model_dump() | {"rope": "mean_position"})
    assert method.tokens(mean, network, 40) == method.tokens(params, network, 40)
    at_destination, at_mean = (
        method.apply(small(make), each)(images(6)) for each in (params, mean)
    )
    assert at_mean.isfinite().all()
    if any(block.attention < 20 for block in method.tokens(params, network, 40)):
        assert not torch.equal(at_destination, at_mean)
    reason = method.refuses(mean, small_network("plain"))
    assert reason == "rope is about rotary embeddings, which plain has not"
