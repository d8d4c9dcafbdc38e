"""Vision transformers of timm: the model of a condition with its geometry."""

import copy
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import timm
import torch
from timm.models.deit import VisionTransformerDistilled
from timm.models.vision_transformer import checkpoint_filter_fn
from torch import Tensor, nn

import workers.training.train_vit  # noqa: F401 - makes the models known to timm
from sweeps.errors import WeightsError
from sweeps.geometry.vit_catalogue import classes, networks, not_known
from sweeps.model.condition import NAMED_WEIGHTS, Condition, ImageSize, image_shape
from sweeps.model.method import Network
from workers.data import head_outputs
from workers.errors import Unsupported
from workers.models.share_weights import DTYPES, load_shared
from workers.training import recipes, trained


@dataclass(frozen=True)
class VisionModel:
    """A condition's model in float32 and evaluation mode, on its device; run it under
    `torch.inference_mode()`.
    """

    model: Any
    """A `VisionTransformer` or `Eva` of timm, or another of its models, which runs dense."""
    network: Network


def shared_vision(condition: Condition, content_hashes: Mapping[str, str]) -> VisionModel:
    """The condition's model, kept in memory for later jobs. Raises what `load_vision` does."""
    return load_shared(load_vision, condition, content_hashes, image_size=condition.pixels)


def fresh_copy(loaded: VisionModel) -> VisionModel:
    """The model with weights of its own: memory just written is read up to 1 % faster than memory a
    minute old.
    """
    return replace(loaded, model=copy.deepcopy(loaded.model))


def load_vision(condition: Condition, device: torch.device | None = None) -> VisionModel:
    """The model that `condition` names, at its image size, with random (seeded), pretrained,
    trained or checkpoint weights.

    Raises `Unsupported` with the reason, and `FileNotFoundError` for a checkpoint that is not
    there.
    """
    network = networks().get(condition.model)
    if network is None:
        raise Unsupported(not_known(condition.model, list(networks())))
    check_image_size(network, condition.pixels)
    pretrained = condition.weights == "pretrained"
    if condition.weights == recipes.TRAINED and condition.model not in recipes.RECIPES:
        raise Unsupported(
            f"weights trained: there is a recipe for {' and '.join(recipes.RECIPES)} only"
        )
    known = timm.models.get_pretrained_cfg(condition.model)
    if pretrained and (known is None or not known.has_weights):
        raise Unsupported(f"timm has no pretrained weights for {condition.model}")
    # A model created in inference mode could not be used outside of it.
    checkpoint = None if condition.weights in NAMED_WEIGHTS else Path(condition.weights)
    outputs = None if checkpoint is None else _outputs(checkpoint)
    options: dict[str, Any] = {} if outputs is None else {"num_classes": outputs}
    if network.refusal is None:
        options["img_size"] = image_shape(condition.pixels)
    if device is not None and device.type == "meta":
        options["device"] = device
    with torch.random.fork_rng(devices=[]), torch.inference_mode(mode=False):
        torch.manual_seed(condition.seed)
        model: Any = timm.create_model(condition.model, pretrained=pretrained, **options)
    if condition.weights == recipes.TRAINED:
        _read_weights(model, trained(condition.model))
    elif checkpoint is not None:
        _read_weights(model, checkpoint)
    if outputs is not None and (made_for := classes(condition.model)) is not None:
        heads = 2 if isinstance(model, VisionTransformerDistilled) else 1
        more = (outputs - made_for) * (network.width or model.num_features) * heads
        network = network.model_copy(update={"fixed_macs": network.fixed_macs + more})
    return VisionModel(model.eval().to(device or torch.device(condition.device)), network)


def check_weights(condition: Condition) -> None:
    """Raise `WeightsError` unless the model can have the weights of the checkpoint file that the
    condition names.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of values that the meta device does not take
        try:
            load_vision(condition, torch.device("meta"))
        except Exception as error:
            first = " ".join(str(error).strip().splitlines()[:2])
            reason = " ".join(first.split()) or type(error).__name__
            named = (
                reason
                if condition.weights in reason
                else f"{condition.weights} does not hold the weights of this model: {reason}"
            )
            raise WeightsError(named) from error


def example_input(condition: Condition, network: Network) -> Tensor:
    """Images [B, channels, H, W], seeded random ones unless `inputs` requests zeros.

    They have the type and the device of `condition`, the arm's own.
    """
    shape = (condition.batch_size, network.channels, *image_shape(condition.pixels))
    images = torch.zeros(shape)
    if condition.inputs is None:
        images = torch.randn(shape, generator=torch.Generator().manual_seed(condition.seed))
    return images.to(condition.device, DTYPES[condition.dtype])


def check_image_size(network: Network, image_size: ImageSize) -> None:
    try:
        network.patch_tokens(image_size)
    except ValueError as error:
        raise Unsupported(str(error)) from error


def _outputs(file: Path) -> int | None:
    """How many outputs the head of a checkpoint has; `None` where it cannot be read (see
    `_read_weights`).
    """
    if not file.is_file() or file.suffix in (".npz", ".npy"):
        return None
    if file.suffix == ".safetensors":
        return head_outputs(file)
    try:
        weights = timm.models.load_state_dict(str(file), use_ema=False, device="cpu")
    except Exception:  # reading the weights raises it again and reports it
        return None
    head = weights.get("head.weight")
    return len(head) if isinstance(head, Tensor) and head.ndim == 2 else None


def _read_weights(model: nn.Module, file: Path) -> None:
    if not file.is_file():
        raise FileNotFoundError(
            f"weights: there is no checkpoint {file} on this machine; name a file, `random` or"
            " `pretrained`"
        )
    if file.suffix in (".npz", ".npy"):
        raise Unsupported(
            f"weights: {file} is a NumPy archive; a safetensors file or a torch state dict is"
            " needed"
        )
    # resamples position embeddings, reads published layouts
    converted = getattr(sys.modules[type(model).__module__], "checkpoint_filter_fn", None)
    if converted is checkpoint_filter_fn:
        converted = partial(checkpoint_filter_fn, adapt_layer_scale=True)
    try:
        timm.models.load_checkpoint(model, str(file), use_ema=False, filter_fn=converted)
    except RuntimeError as error:  # a pickle that is more than weights, or weights of another model
        raise Unsupported(
            f"weights: {file} does not hold the weights of this model: {error}"
        ) from error


class LinearPatches(nn.Module):
    """What a convolution whose stride is its size computes, as one matrix product on the same
    weights: [B, C, H, W] to [B, D, H / patch, W / patch].
    """

    def __init__(self, convolution: nn.Conv2d) -> None:
        super().__init__()
        self.weight, self.bias = convolution.weight, convolution.bias
        self.height, self.width = convolution.kernel_size

    def forward(self, x_BCHW: Tensor) -> Tensor:
        B, C, H, W = x_BCHW.shape
        rows, columns = H // self.height, W // self.width
        x_BCHW = x_BCHW[:, :, : rows * self.height, : columns * self.width]
        patches = x_BCHW.reshape(B, C, rows, self.height, columns, self.width)
        # Pixels in the order of the weights: channel, row, column.
        pixels = patches.permute(0, 2, 4, 1, 3, 5).reshape(B, rows, columns, -1)
        return nn.functional.linear(pixels, self.weight.flatten(1), self.bias).permute(0, 3, 1, 2)
