"""Triton kernels of attention and of token reduction, as operators of torch.

The other files need Triton; this one imports neither it nor torch, and has where they can run.
"""

import os
from importlib.util import find_spec

from sweeps.model.condition import Condition
from sweeps.model.method import Network

# The default of Triton's versions so far, which 3.9 warns of and 3.10 changes: one for all.
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")

MAX_TOKENS = 4096
"""Most tokens of an image that the kernels take."""
MAX_SEQUENCES = 16
"""Most sequences that decode together by a sparse product: the rows of a product of small
matrices."""
HEAD_DIMS = range(16, 129)
"""Channels of a head that they take."""
ROTARY = "its kernels do not pass on rotary embeddings"
KERNEL_DTYPES = ("float32", "float16", "bfloat16")
KERNEL_RUNTIMES = ("eager", "compile", "cudagraph", "compiled_graph")


def device_refusal(device: str) -> str | None:
    """Why no kernel can run on a device of this type, or `None`; on a CPU only Triton's interpreter
    runs them.
    """
    if find_spec("triton") is None:
        return "it needs the package triton, which is not installed"
    if device != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        return f"its kernels run on CUDA devices only, and the model is on {device}"
    return None


def refusal(condition: Condition, network: Network) -> str | None:
    """Why the kernels of token reduction cannot run under an arm's own condition, or `None`."""
    if (reason := device_refusal(condition.device)) is not None:
        return reason
    own = (condition.dtype, condition.runtime)
    if own[0] not in KERNEL_DTYPES or own[1] not in KERNEL_RUNTIMES:
        return (
            f"its kernels take {', '.join(KERNEL_DTYPES)} in {', '.join(KERNEL_RUNTIMES)}, not"
            f" {' in '.join(own)}"
        )
    if network.rotary:
        return ROTARY
    if network.head_dim not in HEAD_DIMS:
        return (
            f"its kernels take heads of {HEAD_DIMS.start} to {HEAD_DIMS.stop - 1} channels, not"
            f" {network.head_dim}"
        )
    tokens = network.patch_tokens(condition.pixels) + network.prefix_tokens
    if tokens > MAX_TOKENS:
        return f"its kernels take up to {MAX_TOKENS} tokens, not {tokens}"
    return None
