"""Writes `sweeps/geometry/vit_catalogue.json`, the geometry of plain ViTs: `python -m workers.models.write_vit_catalogue`."""

import json
from pathlib import Path
from typing import Any

import timm
import torch
from timm.layers.attention import Attention
from timm.layers.patch_embed import PatchEmbed
from timm.models.deit import VisionTransformerDistilled
from timm.models.vision_transformer import Block, VisionTransformer
from torch import nn

import sweeps
from sweeps.method import Network
from workers.training import digits_vit

POOLINGS = ("token", "avg", "map")


def names() -> list[str]:
    """The models that may be in the catalogue: all of timm's two modules that define plain vision transformers, and our own."""
    return sorted({*timm.list_models(module="vision_transformer"), *timm.list_models(module="deit"), *digits_vit.names()})


def describe(name: str) -> Network | None:
    """The geometry of one timm model, read from the model itself on the meta device; `None` if it is not plain."""
    model = timm.create_model(name, device=torch.device("meta"))
    return network(name, model) if plain(model) else None


def plain(model: Any) -> bool:
    """Whether the model is a ViT of timm's own `Block` and `Attention` on square patches and a square image."""
    return (
        type(model) in (VisionTransformer, VisionTransformerDistilled)
        and type(model.patch_embed) is PatchEmbed
        and all(type(block) is Block and type(block.attn) is Attention for block in model.blocks)
        and model.patch_embed.patch_size[0] == model.patch_embed.patch_size[1]
        and model.patch_embed.img_size[0] == model.patch_embed.img_size[1]
        and model.global_pool in POOLINGS
    )


def network(name: str, model: Any) -> Network:
    """The facts that planning needs; MACs are the weights of the linear layers, counted where they stand."""
    block = model.blocks[0]
    width, pool = model.embed_dim, model.attn_pool
    head = weights(model.head) + (weights(model.head_dist) if isinstance(model, VisionTransformerDistilled) else 0)
    per_token = once = 0
    if pool is not None:  # a latent query attends to the tokens: keys, values, QK^T and AV for each token, the rest once
        per_token = weights(pool.kv) + 2 * width
        once = weights(pool.q) + weights(pool.proj) + weights(pool.mlp)
        once -= 0 if model.pool_include_prefix else model.num_prefix_tokens * per_token
    return Network(
        name=name,
        patch=model.patch_embed.patch_size[0],
        image_size=model.patch_embed.img_size[0],
        depth=len(model.blocks),
        width=width,
        heads=block.attn.num_heads,
        head_dim=block.attn.head_dim,
        class_token=model.has_class_token,
        prefix_tokens=model.num_prefix_tokens,
        channels=model.patch_embed.proj.in_channels,
        attention_macs_per_token=weights(block.attn),
        mlp_macs_per_token=weights(block.mlp),
        pool_macs_per_token=per_token,
        fixed_macs=head + once,
    )


def weights(module: nn.Module) -> int:
    """Weights of all linear layers inside, biases left out: one MAC each for every token."""
    return sum(layer.weight.numel() for layer in module.modules() if isinstance(layer, nn.Linear))


def text(found: list[Network]) -> str:
    """The catalogue as JSON, sorted, one model per line."""
    lines = [
        f"  {json.dumps(item.name)}: {json.dumps(item.model_dump(exclude={'name'}))}"
        for item in sorted(found, key=lambda item: item.name)
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def generate() -> str:
    """The catalogue of the installed timm as JSON text; takes about half a minute."""
    return text([item for name in names() if (item := describe(name)) is not None])


if __name__ == "__main__":
    (Path(sweeps.__path__[0]) / "geometry" / "vit_catalogue.json").write_text(generate(), encoding="utf-8")
