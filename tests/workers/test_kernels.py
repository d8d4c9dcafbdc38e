"""The fused selection kernel where it cannot run."""

import pytest

from tests.workers.tiny_vits import small
from workers.errors import Unsupported
from workers.methods.vision import topk


def test_triton_needs_cuda():
    """Requested on the CPU, the fused implementation is refused with the reason."""
    with pytest.raises(
        Unsupported, match="triton runs on CUDA devices only, and the model is on cpu"
    ):
        topk.apply(small("plain"), topk.Params(keep_rate=0.5, layers=(1,), implementation="triton"))
