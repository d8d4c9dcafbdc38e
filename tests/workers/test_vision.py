"""Models loaded and arms built from them: weights, sizes, types, attention, and ways of running."""

import time

import pytest
import torch
from safetensors.torch import save_file
from timm.models.vision_transformer import ParallelScalingBlock, VisionTransformer

from sweeps.model.condition import Condition, Overrides, Rectangle
from sweeps.model.job import DENSE, Arm, Step
from tests.workers.tiny_vits import MAKES, SIZE, calm, images, small, small_network
from workers.arms.vision import build_vision
from workers.errors import Unsupported
from workers.methods.vision import slowed, tome
from workers.models.share_weights import clone_shared
from workers.models.vision import VisionModel, example_input, load_vision
from workers.token_reduction.patch_vit import ReducingBlock, attend, fit

TINY = Condition(model="test_vit", image_size=64)
TOME = Step(method="tome", params={"r": 3})
CPU = torch.device("cpu")

calm = pytest.fixture(autouse=True)(calm)


def overriding(**fields):
    return Arm(overrides=Overrides(**fields))


def built(make, arm=DENSE, **condition):
    return build_vision(
        VisionModel(small(make), small_network(make)),
        Condition(model=make, image_size=SIZE, **condition),
        arm,
    )


def test_random_weights_are_seeded():
    """One seed, one model and image; torch's own generator is left alone."""
    state = torch.get_rng_state()
    one, again, other = (
        load_vision(TINY.model_copy(update={"seed": seed}), CPU) for seed in (0, 0, 1)
    )
    assert torch.equal(torch.get_rng_state(), state)
    x = example_input(TINY, one.network)
    assert x.shape == (1, 3, 64, 64)
    assert torch.equal(one.model(x), again.model(x))
    assert not torch.equal(one.model(x), other.model(x))
    assert torch.equal(x, example_input(TINY, one.network))
    assert not torch.equal(x, example_input(TINY.model_copy(update={"seed": 1}), one.network))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model": "resnet18"}, "resnet18 is not supported: convolutional network"),
        (
            {"image_size": 40},
            "image_size 40 is not a multiple of test_vit's patch size 16; near by: 32 or 48",
        ),
        ({"weights": "archive.npz"}, "NumPy archive"),
        ({"weights": "broken.pt"}, "does not hold the weights of this model"),
        ({"weights": "pickled.pt"}, "does not hold the weights of this model"),
        (
            {"model": "test_vit4", "weights": "pretrained"},
            "timm has no pretrained weights for test_vit4",
        ),
    ],
)
def test_what_cannot_be_loaded(tmp_path, monkeypatch, fields, message):
    """A model, size or file that cannot be loaded is unsupported, with the reason."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "archive.npz").write_bytes(b"")
    torch.save({"head.weight": torch.zeros(1)}, tmp_path / "broken.pt")
    torch.save({"state_dict": Condition}, tmp_path / "pickled.pt")  # a class: more than weights
    with pytest.raises(Unsupported, match=message):
        load_vision(TINY.model_copy(update=fields), CPU)


@pytest.mark.parametrize("file", ["weights.safetensors", "weights.pt"])
def test_checkpoints_are_read_at_any_size(tmp_path, file):
    """The very weights; at another size only position embeddings are resampled."""
    saved = load_vision(TINY.model_copy(update={"seed": 7}), CPU).model.state_dict()
    save_file(saved, tmp_path / file) if file.endswith("safetensors") else torch.save(
        saved, tmp_path / file
    )
    same = load_vision(
        TINY.model_copy(update={"weights": str(tmp_path / file)}), CPU
    ).model.state_dict()
    assert saved
    assert all(torch.equal(same[name], saved[name]) for name in saved)
    larger = load_vision(
        Condition(model="test_vit", image_size=96, weights=str(tmp_path / file)), CPU
    ).model.state_dict()
    assert {name for name in saved if not torch.equal(saved[name], larger[name])} == {"pos_embed"}
    assert larger["pos_embed"].shape == (1, 37, 64)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("make", MAKES)
def test_our_block_is_timms(make, attention):
    """With nothing to remove, and sizes of one, it computes what timm's block computes."""
    model = built(make, attention=attention)
    tokens = small_network(make).dense_tokens(SIZE)[0].attention
    x, ones = torch.randn(2, tokens, 48), torch.ones(2, tokens, 1)
    for block in model.blocks:
        expected = block(x)
        ours, sizes, _ = ReducingBlock(block, None, proportional=True)(x, ones)
        torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-5)
        assert sizes is ones
        torch.testing.assert_close(
            ReducingBlock(block, None, proportional=False)(x, None)[0],
            expected,
            rtol=1e-4,
            atol=1e-5,
        )


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_a_size_counts_like_copies(attention):
    """Attention to a token of size 3 is attention to three copies of it."""
    attn = built("plain", attention=attention).blocks[0].attn
    x, sizes = (
        torch.randn(2, 5, 48),
        torch.tensor([1.0, 3, 1, 2, 1]).view(1, 5, 1).expand(2, -1, -1),
    )
    copies = x.repeat_interleave(torch.tensor([1, 3, 1, 2, 1]), dim=1)
    torch.testing.assert_close(
        attend(attn, x, sizes)[0], attn(copies)[:, [0, 1, 4, 5, 7]], rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(
    "make", ["plain", "distilled", "registers", "average", "average_with_registers"]
)
def test_merging_equal_tokens_loses_nothing(make):
    """Where only copies are merged the answer is the dense model's."""
    model = clone_shared(small(make))
    model.pos_embed = torch.nn.Parameter(torch.zeros_like(model.pos_embed))
    shades = (
        torch.randn(3, 8, 8).repeat(1, 5, 5)
        + torch.randn(2, 1, 5, 5).bernoulli(0.3).kron(torch.ones(1, 1, 8, 8)) * 2
    )
    torch.testing.assert_close(
        tome.apply(model, tome.Params(r=(4, 2)))(shades), model(shades), rtol=1e-3, atol=1e-4
    )
    assert not torch.allclose(
        tome.apply(model, tome.Params(r=(8, 2), prop_attn=False))(shades),
        model(shades),
        rtol=1e-3,
        atol=1e-4,
    )


@pytest.mark.parametrize("size", [24, Rectangle(height=24, width=40)])
@pytest.mark.parametrize("make", ["plain", "average", "eva02", "dinov3", "perception"])
def test_an_arm_at_another_size(make, size):
    """It runs on the same weights, position embeddings resampled."""
    model = built(make, overriding(image_size=size))
    assert model(images(2, size)).shape == (2, 7)
    own = {
        name
        for name, value in model.named_parameters()
        if value.data_ptr() != small(make).get_parameter(name).data_ptr()
    }
    assert own == {"pos_embed"} & {name for name, _ in model.named_parameters()}
    with pytest.raises(Unsupported, match="not a multiple"):
        built(make, overriding(image_size=25))


@pytest.mark.parametrize(
    "stack", [(), (TOME,), (Step(method="topk", params={"keep_rate": 0.5, "layers": [1]}),)]
)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "autocast-float16"])
def test_other_types(dtype, stack):
    """Half precision has weights of its own, autocast shares them; inputs come in its type."""
    loaded, condition = load_vision(TINY, CPU), TINY.model_copy(update={"dtype": dtype})
    model = build_vision(loaded, condition, Arm(stack=stack))
    x = example_input(condition, loaded.network)
    kind = torch.float32 if dtype.startswith("autocast") else getattr(torch, dtype)
    assert x.dtype == kind
    assert {value.dtype for value in model.parameters()} == {kind}
    out = model(x)
    assert out.dtype == (torch.float16 if dtype.startswith("autocast") else kind)
    assert out.isfinite().all()
    assert {value.dtype for value in loaded.model.parameters()} == {torch.float32}


def test_strange_blocks_are_refused():
    """Tokens are removed from timm's plain blocks only; anything else is named."""
    strange = VisionTransformer(
        img_size=32, embed_dim=48, depth=2, num_heads=3, block_fn=ParallelScalingBlock
    )
    with pytest.raises(Unsupported, match="made of ParallelScalingBlock"):
        fit(strange, {})
    with pytest.raises(Unsupported, match="made of ReducingBlock"):
        tome.apply(tome.apply(small("plain"), tome.Params(r=1)), tome.Params(r=1))


@pytest.mark.alone
def test_slowed_takes_its_share():
    """Each forward takes the requested share longer and gives the same answer."""
    model = slowed.apply(small("plain"), slowed.Params(fraction=0.5))
    marks = []
    model.patch_embed.register_forward_pre_hook(lambda *_: marks.append(time.perf_counter()))
    model.head.register_forward_hook(lambda *_: marks.append(time.perf_counter()))
    for _ in range(20):
        assert torch.equal(model(images()), small("plain")(images()))
        assert time.perf_counter() - marks[-2] >= 1.5 * (marks[-1] - marks[-2])


def test_a_checkpoint_that_is_not_there(tmp_path):
    """A missing file is an error of this machine and no answer."""
    with pytest.raises(FileNotFoundError, match="there is no checkpoint"):
        load_vision(TINY.model_copy(update={"weights": str(tmp_path / "gone.safetensors")}), CPU)


def test_refusals_become_unsupported():
    """What the method refuses, the worker does not run."""
    with pytest.raises(Unsupported, match="no class token"):
        built("average", Arm(stack=(Step(method="topk", params={"keep_rate": 0.5}),)))
