"""From which size on is torch.sort faster than numpy.sort? About 40 seconds:

uv run python examples/compare_sorts.py
"""

import numpy as np
import torch

import breakeven


def numpy_sort(values: np.ndarray) -> np.ndarray:
    return np.sort(values)


def torch_sort(values: np.ndarray) -> torch.Tensor:
    return torch.sort(torch.from_numpy(values)).values


def numbers(n: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(n)


if __name__ == "__main__":
    curve = breakeven.curve(
        {"numpy": numpy_sort, "torch": torch_sort},
        inputs=numbers,
        over={"n": [64, 1024, 16384, 262144]},
        time="40s",
    )
    print(curve)
