"""Linear layers with integer weights on a CPU: inputs and outputs stay bfloat16, and decoding a
token reads fewer bytes.

The operators are torch's own: for one token int8 layers of torchao 0.18 take longer than bfloat16.

Shapes: I inputs, O outputs, G groups of inputs, N tokens.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, pad

from sweeps.model.condition import Dtype
from workers.errors import Unsupported
from workers.models.architectures import is_matrix, matrix_and_bias, replace

GROUP = 32
"""Inputs of an int4 matrix that share a scale and an offset, as many as in llama.cpp's Q4_0."""
OUTPUTS_AT_ONCE = 16
"""The int4 operator needs a multiple of it."""
MAX_PACKED_TOKENS = 32
"""For more tokens the int8 operator takes longer than a bfloat16 product of converted weights."""


class QuantisedLinear(nn.Module, ABC):
    """A linear layer for inputs [..., I] in bfloat16, with integer weights."""

    values: Tensor
    scales: Tensor
    bias_O: Tensor | None

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None) -> None:
        super().__init__()
        self.out_features, self.in_features = weight_OI.shape
        values, scales = self.quantised(weight_OI.float().contiguous())
        self.register_buffer("values", values)
        self.register_buffer("scales", scales)
        self.register_buffer("bias_O", bias_O)

    def forward(self, x: Tensor) -> Tensor:
        y_NO = self.product(x.reshape(-1, self.in_features).contiguous())
        return (y_NO if self.bias_O is None else y_NO + self.bias_O).view(*x.shape[:-1], -1)

    @abstractmethod
    def quantised(self, weight_OI: Tensor) -> tuple[Tensor, Tensor]:
        """Integers and scales of a float32 matrix, as the operator reads them."""

    @abstractmethod
    def product(self, x_NI: Tensor) -> Tensor:
        """[N, O] without the bias."""


class Int8Linear(QuantisedLinear):
    """One scale for each output; the integers lie in [-127, 127]."""

    def quantised(self, weight_OI: Tensor) -> tuple[Tensor, Tensor]:
        scale_O = (weight_OI.abs().amax(1) / 127).clamp(min=1e-12).bfloat16()
        value_OI = (weight_OI / scale_O[:, None]).round().clamp(-127, 127)
        return value_OI.to(torch.int8), scale_O

    def product(self, x_NI: Tensor) -> Tensor:
        if len(x_NI) > MAX_PACKED_TOKENS:
            return linear(x_NI, self.values.to(x_NI.dtype)) * self.scales
        y_NO: Tensor = torch.ops.aten._weight_int8pack_mm(x_NI, self.values, self.scales)
        return y_NO


class Int4Linear(QuantisedLinear):
    """A scale and an offset for each group of inputs: (integer - 8) x scale + offset, as gpt-fast
    has them (pytorch-labs/gpt-fast, quantize.py).
    """

    def quantised(self, weight_OI: Tensor) -> tuple[Tensor, Tensor]:
        if self.in_features % GROUP:
            raise Unsupported(f"dtype int4: {self.in_features} inputs are no multiple of {GROUP}")
        padded_OI = pad(weight_OI, (0, 0, 0, -self.out_features % OUTPUTS_AT_ONCE))
        group_OGI = padded_OI.view(len(padded_OI), -1, GROUP)
        least_OG, most_OG = group_OGI.aminmax(dim=-1)
        scale_OG = ((most_OG - least_OG) / 15).clamp(min=1e-6).bfloat16()
        offset_OG = (least_OG + 8 * scale_OG).bfloat16()
        value_OGI = ((group_OGI - offset_OG[..., None]) / scale_OG[..., None]).round() + 8
        packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(
            value_OGI.clamp(0, 15).int().flatten(1), 1
        )
        return packed, torch.stack((scale_OG, offset_OG), -1).transpose(0, 1).contiguous()

    def product(self, x_NI: Tensor) -> Tensor:
        y_NO: Tensor = torch.ops.aten._weight_int4pack_mm_for_cpu(
            x_NI, self.values, GROUP, self.scales
        )
        return y_NO[:, : self.out_features]


LAYERS: Mapping[Dtype, type[QuantisedLinear]] = {"int8": Int8Linear, "int4": Int4Linear}


def quantise(model: nn.Module, dtype: Dtype) -> None:
    """Exchange all linear layers of a bfloat16 model, the head included; a tied embedding stays.

    Raises `Unsupported` where further matrices would stay bfloat16, such as stacked experts.
    """
    for name, part in [*model.named_modules()]:
        if is_matrix(part):
            weight_IO, bias_O = matrix_and_bias(part)
            replace(model, name, LAYERS[dtype](weight_IO.t(), bias_O))
    others = [
        (weight.numel(), f"{name}.{own}")
        for name, part in model.named_modules()
        if not isinstance(part, nn.Embedding)
        for own, weight in part.named_parameters(recurse=False)
        if weight.dim() > 1
    ]
    if others:
        raise Unsupported(
            f"dtype {dtype}: {max(others)[1]} belongs to no linear layer, and would stay bfloat16"
        )


def quantised_layers(model: nn.Module) -> list[QuantisedLinear]:
    """The layers of a model whose weights are integers."""
    return [part for part in model.modules() if isinstance(part, QuantisedLinear)]


def integer_weights(model: nn.Module) -> int:
    """Weights that are integers, and so no parameters of the module."""
    return sum(part.in_features * part.out_features for part in quantised_layers(model))


def bytes_per_weight(model: nn.Module) -> float:
    """Of the matrices that a token is multiplied with, their scales included."""
    layers = quantised_layers(model)
    if not layers:
        return next(model.parameters()).element_size()
    read = sum(part.values.nbytes + part.scales.nbytes for part in layers)
    return read / sum(part.in_features * part.out_features for part in layers)


def product_flops(x_shape: Any, *_: Any, out_shape: Any, **__: Any) -> int:
    """Of either operator, for `torch.utils.flop_counter`."""
    return 2 * int(x_shape[0] * x_shape[1] * out_shape[1])


COUNTED = {
    torch.ops.aten._weight_int8pack_mm: product_flops,
    torch.ops.aten._weight_int4pack_mm_for_cpu: product_flops,
}
"""Operators that torch does not count by itself."""
