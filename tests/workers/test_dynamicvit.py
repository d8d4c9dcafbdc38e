"""DynamicViT against its authors' procedure, written for one image at a time; its predictors."""

import pytest
import torch
from safetensors.torch import save_file
from torch.nn.functional import gelu, layer_norm

from sweeps.geometry.vit_catalogue import networks
from tests.workers.tiny_vits import calm, images, small, small_network
from workers.methods.vision.dynamicvit import Params, apply, macs, tokens

calm = pytest.fixture(autouse=True)(calm)
DEIT_S = networks()["deit_small_patch16_224"]
LAYERS, LEFT = (1, 3), (17, 12)
"""0.7 and 0.49 of 25 patches, rounded down."""


@pytest.fixture
def weights():
    """Two predictors for 48 channels by the authors' names, larger than at the start of training."""
    shapes: dict[str, tuple[int, ...]]
    shapes = {"in_conv.0": (48,), "in_conv.1": (48, 48), "out_conv.0": (24, 48)}
    shapes |= {"out_conv.2": (12, 24), "out_conv.4": (2, 12)}
    made = {"head.bias": torch.zeros(7)}
    for stage in range(2):
        for name, shape in shapes.items():
            matrix = torch.randn(shape) / 4
            made[f"score_predictor.{stage}.{name}.weight"] = matrix
            made[f"score_predictor.{stage}.{name}.bias"] = torch.randn(len(matrix)) / 4
    return made


def scores(x, weights, stage):
    """Of the rows of one image, as the paper's equations 1 to 5 have them."""
    own = {name: value.double() for name, value in weights.items() if f"r.{stage}." in name}

    def apply_linear(rows, name):
        start = f"score_predictor.{stage}.{name}"
        return rows @ own[f"{start}.weight"].T + own[f"{start}.bias"]

    start = f"score_predictor.{stage}.in_conv.0"
    rows = layer_norm(x, (48,), own[f"{start}.weight"], own[f"{start}.bias"])
    rows = gelu(apply_linear(rows, "in_conv.1"))
    mean = rows[:, 24:].sum(0) / len(rows)
    rows = torch.stack([torch.cat((row[:24], mean)) for row in rows])
    rows = gelu(apply_linear(rows, "out_conv.0"))
    rows = apply_linear(gelu(apply_linear(rows, "out_conv.2")), "out_conv.4")
    return rows.softmax(-1)[:, 0].tolist()


def logits_of_one(model, picture, weights):
    """The logits of one image of a model with a class token."""
    x = model._pos_embed(model.patch_embed(picture[None]))[0]
    for index, block in enumerate(model.blocks):
        if index in LAYERS:
            stage = LAYERS.index(index)
            score = scores(x[1:], weights, stage)
            best = sorted(range(len(score)), key=lambda place: -score[place])[: LEFT[stage]]
            x = torch.cat((x[:1], x[1:][best]))
        x = block(x[None])[0]
    return model.head(model.norm(x)[0])


def test_the_authors_procedure(weights, tmp_path):
    """Logits with given predictors are equal to 1e-6 in double precision."""
    save_file(weights, tmp_path / "tuned.safetensors")
    params = Params(keep_rate=0.7, layers=LAYERS, predictor=str(tmp_path / "tuned.safetensors"))
    model = type(small("plain"))(
        img_size=40, patch_size=8, embed_dim=48, depth=4, num_heads=3, num_classes=7
    )
    model.load_state_dict(small("plain").state_dict())
    model = model.double().eval()
    x = images().double()
    expected = torch.stack([logits_of_one(model, picture, weights) for picture in x])
    assert float((expected - model(x)).abs().max()) > 1e-2
    torch.testing.assert_close(apply(model, params)(x), expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(
        apply(small("plain"), params)(images()).double(), expected, atol=1e-3, rtol=0
    )


def test_predictors_that_do_not_fit(weights, tmp_path):
    """A checkpoint that is absent or has no such predictors is an error that names it."""
    with pytest.raises(FileNotFoundError):
        apply(
            small("plain"),
            Params(keep_rate=0.5, predictor=str(tmp_path / "absent.pth"), layers=(1,)),
        )
    save_file({"head.bias": weights["head.bias"]}, tmp_path / "other.safetensors")
    with pytest.raises(RuntimeError, match="Missing key"):
        apply(
            small("plain"),
            Params(keep_rate=0.5, predictor=str(tmp_path / "other.safetensors"), layers=(1,)),
        )


def test_random_predictors_are_of_their_seed():
    """Equal seeds give equal models, other seeds other ones; torch's own state stays."""
    state = torch.random.get_rng_state()
    one, same, other = (
        apply(small("plain"), Params(keep_rate=0.5, layers=(1,), seed=seed))(images())
        for seed in (0, 0, 1)
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_published_counts():
    """0.7 of DeiT-S leaves 137, 96 and 67 patch tokens from the attention of blocks 3, 6 and 9 on,
    for the 2.9 GMACs of the authors' table.
    """
    params = Params(keep_rate=0.7)
    blocks = tokens(params, DEIT_S, 224)
    assert [tuple(block) for block in blocks[::3]] == [(n, n) for n in (197, 138, 97, 68)]
    own = macs(params, DEIT_S, 224)
    assert own == (196 + 137 + 96) * (384 * 384 + 384 * 192 + 192 * 96 + 96 * 2)
    assert (DEIT_S.macs(224, blocks) + own) / 1e9 == pytest.approx(2.95, abs=0.06)
    assert [block.mlp for block in tokens(params, DEIT_S, 448)][-1] == 1 + int(0.7**3 * 784)


def test_every_prefix_stays():
    """Distillation and register tokens are not scored."""
    for make in ("distilled", "registers", "average"):
        network = small_network(make)
        left = tokens(Params(keep_rate=0.1, layers=(0,)), network, 40)
        assert left[0] == (network.prefix_tokens + 2,) * 2
