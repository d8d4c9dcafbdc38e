"""The digits: their split, their pixels, and the networks made for them."""

import numpy as np
import pytest
import timm
import torch

from sweeps.geometry.vit_catalogue import networks
from sweeps.model.condition import Condition
from tests.catalogues import known_geometry
from workers.data.images import digits, held_out_digits
from workers.models.vision import load_vision
from workers.training.train_vit import splits

FIRST_HELD_OUT = [20, 21, 26, 27, 37, 63, 76, 79]


def test_a_fifth_of_each_class_is_held_out() -> None:
    """Of 1 797 digits a fifth of each class, chosen by what the images show."""
    found = digits()
    assert len(found.labels) == 1797
    shares = [found.held_out[found.labels == label].mean() for label in range(10)]
    assert shares == pytest.approx([0.2] * 10, abs=0.005)
    assert np.flatnonzero(found.held_out)[:8].tolist() == FIRST_HELD_OUT
    assert int(found.held_out.sum()) == 359


def test_training_and_held_out_images_never_mix() -> None:
    """No trained image, nor its like, is among those evaluated; together they are all."""
    model = timm.create_model("digits_vit_64")
    learnt, kept = (part.x_BCHW.flatten(1) for part in splits(model))
    assert len(learnt) + len(kept) == 1797
    assert torch.cdist(kept, learnt).min() > 0.5
    evaluated = held_out_digits()
    assert len(evaluated) == len(kept)
    pixels = {digits().pixels[place].tobytes() for place in np.flatnonzero(~digits().held_out)}
    assert not any(evaluated.read(index).tobytes() in pixels for index in range(len(evaluated)))


@pytest.mark.parametrize(("name", "patches"), [("digits_vit_64", 64), ("digits_vit_256", 256)])
def test_the_networks_are_known(name: str, patches: int) -> None:
    """The catalogue's line is what is built, and positions start as sines."""
    network = networks()[name]
    assert network == known_geometry(name)
    assert (network.patch_tokens(32), network.depth, network.class_token) == (patches, 12, True)
    model = load_vision(Condition(model=name, image_size=32), torch.device("cpu")).model
    assert model(torch.zeros(2, 1, 32, 32)).shape == (2, 10)
    lengths = model.pos_embed.detach()[0, 1:].norm(dim=-1)
    torch.testing.assert_close(lengths, lengths[:1].expand(patches), rtol=1e-4, atol=0)
    larger = load_vision(Condition(model=name, image_size=48), torch.device("cpu")).model
    assert larger.patch_embed.num_patches == network.patch_tokens(48)
