"""Registers, spilled bytes and shared memory of the Triton kernels on three architectures, compiled
without a device.

From the project's folder: `uv run python -m tests.workers.kernel_resources`
"""

import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import get_ptxas
from triton.compiler import ASTSource

from workers.kernels import attention, grouping, reduction, selection, sparse

SHARED_KIB = {80: 163, 89: 99, 90: 227}
"""Shared memory of a block, by compute capability (CUDA C++ Programming Guide, table of technical
specifications)."""
MODELS = {"DeiT-S": (6, 64, 384), "ViT-L": (16, 64, 1024)}
"""Heads, channels of a head and of a token."""
SIZES = ((1, 197), (32, 785))
"""Images and tokens."""
TYPES = {torch.float16: "fp16", torch.bfloat16: "bf16", torch.float32: "fp32"}


class Launch(NamedTuple):
    """One call of a kernel."""

    kernel: Any
    arguments: tuple[Any, ...]
    constants: dict[str, Any]


class Resources(NamedTuple):
    """What a compiled kernel takes."""

    capability: int
    name: str
    registers: int
    spilled: int
    """Bytes that a thread stores and loads because it has too few registers."""
    shared: int
    """Bytes of a block."""


def launches(call: Callable[[], object]) -> list[Launch]:
    """What an operator launches, without launching it."""
    seen: list[Launch] = []

    class Recorded:
        def __init__(self, kernel: Any) -> None:
            self.kernel = kernel

        def __getitem__(self, _grid: object) -> Callable[..., None]:
            return lambda *given, **named: seen.append(Launch(self.kernel, given, named))

    with (
        mock.patch.object(attention, "wrap_triton", Recorded),
        mock.patch.object(reduction, "wrap_triton", Recorded),
        mock.patch.object(grouping, "wrap_triton", Recorded),
        mock.patch.object(selection, "wrap_triton", Recorded),
        mock.patch.object(sparse, "wrap_triton", Recorded),
    ):
        call()
    return seen


def calls(dtype: torch.dtype) -> Iterator[tuple[str, Callable[[], object]]]:
    """The operators at the sizes of models, for one and for many images."""
    for (model, (H, d, D)), (B, N) in [(model, size) for model in MODELS.items() for size in SIZES]:
        x, size = torch.empty(B, N, D, dtype=dtype), torch.empty(B, N)
        qkv = torch.empty(B, N, 3, H, d, dtype=dtype)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        norm = (torch.empty(D, dtype=dtype), torch.empty(D, dtype=dtype), 1e-6)
        name = f"{model} {B} x {N} {TYPES[dtype]}"
        kernels = {
            "attention": lambda q=q, k=k, v=v: attention.sized_attention(q, k, v, 0.125),
            "attention, sizes": lambda q=q, k=k, v=v, s=size: attention.sized_attention(
                q, k, v, 0.125, s
            ),
            "merge": lambda x=x, k=k, s=size, n=norm: reduction.merge_similar(
                x, x, k, s, *n, 1, 13
            ),
            "keep": lambda x=x, q=q, k=k, n=norm: selection.keep_best(
                x, x, q, k, 0.125, *n, 1, 98, True
            ),
            "group": lambda x=x, q=q, k=k, s=size, n=norm: grouping.merge_farthest(
                x, x, k, attention.sized_attention_inflow(q, k, k, 0.125, s)[1], s, *n, 1, 183, 55
            ),
            "gather": lambda x=x, n=norm: selection.gather(x, x, None, 99, *n),
        }
        yield from ((f"{name} {kernel}", call) for kernel, call in kernels.items())
    for inputs, outputs in ((4096, 14336), (14336, 4096)):
        weight = torch.empty(inputs, outputs, dtype=dtype)
        limit, arrived = torch.empty(1), torch.empty(200, dtype=torch.int32)
        totals = torch.empty(3, dtype=torch.int64)
        for sequences in (1, 4):
            name = f"{sequences} x {inputs} x {outputs} {TYPES[dtype]}"
            x = torch.empty(sequences, inputs, dtype=dtype)
            given = (x, weight, limit, None, arrived, totals)
            yield f"{name} product", lambda given=given: sparse.multiply_active(*given)
            yield f"{name} largest", lambda x=x: sparse.keep_largest(x, 2048)
    for d in (32, 72, 128):
        q = torch.empty(8, 8, 197, d, dtype=dtype)
        yield (
            f"heads of {d} {TYPES[dtype]}",
            lambda q=q: attention.sized_attention(q, q, q, 0.1, q[:, 0, :, 0].float()),
        )


def resources(launch: Launch, capability: int) -> Resources:
    """Of one kernel, compiled as Triton does at its first launch: it uses that 16 divides pointers
    and whole numbers.
    """
    kernel, given, named = launch
    options = {name: named[name] for name in ("num_warps", "num_stages") if name in named}
    values = dict(zip(kernel.arg_names, given, strict=False)) | {
        name: value for name, value in named.items() if name not in options
    }
    fixed = (
        {kernel.params[index].name for index in kernel.do_not_specialize}
        if kernel.do_not_specialize and isinstance(next(iter(kernel.do_not_specialize)), int)
        else set(kernel.do_not_specialize or ())
    )
    signature, constants, divisible = {}, {}, {}
    for position, name in enumerate(kernel.arg_names):
        value = values[name]
        if name in named or (type(value) is int and value == 1 and name not in fixed):
            signature[name], constants[name] = "constexpr", value
        elif isinstance(value, torch.Tensor):
            signature[name] = f"*{ {**TYPES, torch.int32: 'i32', torch.int64: 'i64'}[value.dtype] }"
            divisible[position,] = [["tt.divisibility", 16]]
        elif isinstance(value, float):
            signature[name] = "fp32"
        else:
            signature[name] = "i32"
            if value % 16 == 0 and name not in fixed:
                divisible[position,] = [["tt.divisibility", 16]]
    compiled = triton.compile(
        ASTSource(kernel, signature, constants, divisible),
        target=GPUTarget("cuda", capability, 32),
        options=options,
    )
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.ptx"
        source.write_text(compiled.asm["ptx"])
        (target,) = re.findall(r"\.target (\w+)", compiled.asm["ptx"])
        usage = subprocess.run(
            [
                get_ptxas(capability).path,
                "-v",
                f"-arch={target}",
                source,
                "-o",
                f"{folder}/kernel.cubin",
            ],
            capture_output=True,
            text=True,
            check=True,
        ).stderr
    registers = int(re.findall(r"Used (\d+) registers", usage)[0])
    spilled = sum(map(int, re.findall(r"(\d+) bytes spill", usage)))
    return Resources(capability, kernel.__name__, registers, spilled, compiled.metadata.shared)


def table(dtypes: tuple[torch.dtype, ...] = tuple(TYPES)) -> Iterator[tuple[str, Resources]]:
    """Each kernel once for each set of its constants."""
    known = set()
    for dtype in dtypes:
        for name, call in calls(dtype):
            for launch in launches(call):
                key = (launch.kernel.__name__, str(dtype), str(sorted(launch.constants.items())))
                if key in known:
                    continue
                known.add(key)
                for capability in SHARED_KIB:
                    yield name, resources(launch, capability)


def main() -> None:
    print("| sizes | kernel | sm | registers | spilled, bytes | shared, KiB |")
    print("|---|---|---|---|---|---|")
    for name, row in table():
        shared = f"{row.shared / 1024:.0f} of {SHARED_KIB[row.capability]}"
        cells = (name, row.name, row.capability, row.registers, row.spilled, shared)
        print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
