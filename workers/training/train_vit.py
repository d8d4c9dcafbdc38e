"""Two vision transformers for scikit-learn's handwritten digits, known to timm like its own (12
blocks on 64 and 256 patches), and their training on the digits that are not held out.
"""

import json
import logging
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import timm
import torch
from PIL import Image
from safetensors.torch import save_file
from timm.layers.pos_embed_sincos import build_sincos2d_pos_embed
from timm.models import build_model_with_cfg, generate_default_cfgs, register_model
from timm.models.vision_transformer import VisionTransformer, checkpoint_filter_fn
from torch import Tensor, nn

from sweeps.model.condition import Condition
from workers.data.images import digits
from workers.data.preprocessing import Preprocessing
from workers.training.optimisation import TrainingTargetMissed, decay_groups, minimise, training
from workers.training.recipes import Recipe

SIZE, WIDTH, HEADS, MLP_RATIO = 32, 64, 4, 2.0
"""Pixels, channels, heads, and channels of an MLP over those of a token."""
_GREY = {
    "input_size": (1, SIZE, SIZE),
    "num_classes": 10,
    "mean": (0.3,),
    "std": (0.35,),
    "crop_pct": 1.0,
    "interpolation": "bicubic",
}
default_cfgs = generate_default_cfgs({"digits_vit_64": _GREY, "digits_vit_256": _GREY})


@register_model
def digits_vit_64(pretrained: bool = False, **options: Any) -> VisionTransformer:
    """32 pixels in patches of 4; weights are trained on demand, see `workers.training`."""
    return _digits_vit("digits_vit_64", 4, pretrained, options)


@register_model
def digits_vit_256(pretrained: bool = False, **options: Any) -> VisionTransformer:
    """32 pixels in patches of 2."""
    return _digits_vit("digits_vit_256", 2, pretrained, options)


def _digits_vit(
    name: str, patch: int, pretrained: bool, options: dict[str, Any]
) -> VisionTransformer:
    geometry = {
        "img_size": SIZE,
        "patch_size": patch,
        "embed_dim": WIDTH,
        "depth": 12,
        "num_heads": HEADS,
        "mlp_ratio": MLP_RATIO,
    }
    model: Any = build_model_with_cfg(
        VisionTransformer, name, pretrained, **{**geometry, **options}
    )
    # Training in two minutes needs well-scaled signals and gradients through 12 blocks from the
    # first step on: Glorot weights in
    # place of timm's small ones, and positions initialised as sines and cosines.
    for part in model.blocks.modules():
        if isinstance(part, nn.Linear):
            nn.init.xavier_uniform_(part.weight)
    positions = build_sincos2d_pos_embed(list(model.patch_embed.grid_size), WIDTH)
    with torch.no_grad():
        model.pos_embed[:, : model.num_prefix_tokens].zero_()
        model.pos_embed[:, model.num_prefix_tokens :].copy_(positions)
    return cast(VisionTransformer, model)


_LOG = logging.getLogger(__name__)
EVALUATED_AT_ONCE = 128


class Split(NamedTuple):
    """Preprocessed images, [images, 1, size, size], with their classes, [images]."""

    x_BCHW: Tensor
    labels_B: Tensor


def train_vit(recipe: Recipe, file: Path, initial: Path | None = None) -> None:
    """Train and write `file` (safetensors); its metadata holds the recipe, the held-out accuracy,
    seconds and versions.

    `initial` are the trained weights of `recipe.begins_with`. Raises `TrainingTargetMissed`.
    """
    started = time.monotonic()
    with training(recipe.seed):
        model: Any = timm.create_model(recipe.model)
        if initial is not None:
            timm.models.load_checkpoint(
                model, str(initial), use_ema=False, filter_fn=checkpoint_filter_fn
            )
        seen, held_out = splits(model)
        fit_vit(model, Split(*(each[: recipe.images] for each in seen)), recipe)
        accuracy = evaluate_vit(model, held_out)
    seconds = time.monotonic() - started
    _LOG.info(
        "%s: %.2f %% of the held-out digits right after %.0f s",
        recipe.model,
        100 * accuracy,
        seconds,
    )
    if accuracy < recipe.accuracy:
        raise TrainingTargetMissed(
            f"{recipe.model} has {accuracy:.1%} of the held-out digits right; {recipe.accuracy:.1%}"
            " are required"
        )
    facts = {
        "recipe": recipe.model_dump(),
        "accuracy": accuracy,
        "seconds": seconds,
        "torch": torch.__version__,
        "timm": timm.__version__,
    }
    save_file(model.state_dict(), file, metadata={"breakeven": json.dumps(facts)})


def splits(model: Any) -> tuple[Split, Split]:
    """The images to train on and the held-out ones, preprocessed as in accuracy jobs."""
    size = model.patch_embed.img_size[0]
    prepare = Preprocessing(model, Condition(model="", image_size=size), {size})
    found = digits()
    x_BCHW = torch.stack([prepare(Image.fromarray(pixels), "")[size] for pixels in found.pixels])
    labels_B, held_out_B = torch.as_tensor(found.labels), torch.as_tensor(found.held_out)
    return Split(x_BCHW[~held_out_B], labels_B[~held_out_B]), Split(
        x_BCHW[held_out_B], labels_B[held_out_B]
    )


def fit_vit(model: nn.Module, part: Split, recipe: Recipe) -> None:
    """AdamW on one cycle of the learning rate; matrices decay, vectors and positions do not."""
    groups = decay_groups(model, recipe.weight_decay, exempt=("pos_embed", "cls_token"))
    optimiser = torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=(0.9, 0.98))
    steps = math.ceil(len(part.labels_B) / recipe.batch_size)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, recipe.learning_rate, recipe.epochs * steps, pct_start=0.25
    )
    loss_of = nn.CrossEntropyLoss(label_smoothing=recipe.label_smoothing)
    model.train()

    def losses() -> Iterator[Tensor]:
        for _ in range(recipe.epochs):
            for chosen_B in torch.randperm(len(part.labels_B)).chunk(steps):
                logits_BK = model(augmented(part.x_BCHW[chosen_B], recipe.augmentation))
                yield loss_of(logits_BK, part.labels_B[chosen_B])

    minimise(model, losses(), optimiser, schedule)
    model.eval()


def augmented(x_BCHW: Tensor, strength: float) -> Tensor:
    """The images rotated, shifted and scaled by random amounts (see `Recipe.augmentation`), padded
    with the background value.
    """
    B = len(x_BCHW)

    def random(*shape: int, limit: float) -> Tensor:
        return (2 * torch.rand(B, *shape) - 1) * limit * strength

    # 2 is the width
    angle_B, scale_B, shift_B21 = (
        random(limit=math.radians(10)),
        1 + random(limit=0.1),
        random(2, 1, limit=0.15),
    )
    cosine_B, sine_B = scale_B * angle_B.cos(), scale_B * angle_B.sin()
    rotation_B22 = torch.stack((cosine_B, -sine_B, sine_B, cosine_B), -1).view(B, 2, 2)
    grid_BHW2 = nn.functional.affine_grid(
        torch.cat((rotation_B22, shift_B21), -1), list(x_BCHW.shape), align_corners=False
    )
    background = x_BCHW.min()
    return (
        nn.functional.grid_sample(x_BCHW - background, grid_BHW2, align_corners=False) + background
    )


def evaluate_vit(model: nn.Module, part: Split) -> float:
    """Share of the images whose class has the highest logit."""
    with torch.inference_mode():
        predicted_B = torch.cat(
            [model(x_BCHW).argmax(-1) for x_BCHW in torch.split(part.x_BCHW, EVALUATED_AT_ONCE)]
        )
    return float((predicted_B == part.labels_B).float().mean())
