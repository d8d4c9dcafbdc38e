"""Speed of the row-skipping kernels and of the methods on them: `python -m
tests.benchmarks.sparse`, or with `--help`.

First single products, on matrices that take turns so that no cache holds them, against torch's
fastest dense layout; then decoding one token after another (batch 1, float32), all arms interleaved
in one process: on a random Llama of 220 M parameters, and on two layers of Llama 3 8B, where fewer
microseconds of each token go to Python and to adapters. Ratios are paired, with intervals; beside
them stands the least that is wanted on two quiet cores. Takes about ten minutes.
"""

import argparse
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any, NamedTuple

import torch
from transformers import DynamicCache

from sweeps.model.condition import Condition
from sweeps.model.job import Pair, Protocol
from sweeps.model.outcome import Samples
from tests.benchmarks.ratios import column, speedup
from workers.activation_sparsity import sparse_matvec
from workers.measure.interleaved import time_rounds, warm_up
from workers.measure.timer import TimedStep, stopwatch
from workers.methods import of_modality
from workers.models.cpp_build import missing_reason
from workers.models.language import LanguageModel, load_language

SHAPES = ((2560, 10240), (10240, 2560), (2048, 5632))
SPARSITIES = (0.0, 0.25, 0.4, 0.5, 0.6)
MATRICES = 4
WANTED_PRODUCT = 1.7
"""Over torch's fastest dense layout, for 2560 x 10240 at 50 %."""
MODELS = ("llama-220m", "llama-8b-2l")
PROMPT = 64
PROTOCOL = Protocol(pairs_min=40, pairs_max=120, half_width=0.01, budget_s=60, timeout_s=600)
LARGEST, LAROSA = "topk_activation", "larosa"


class Arm(NamedTuple):
    """One way to decode, and what is wanted of it: ratios to transformers' dense model and to our
    own dense kernel.
    """

    label: str
    method: str | None = None
    params: dict[str, Any] | None = None
    over_dense: float | None = None
    over_own: float | None = None


ARMS = (
    Arm("transformers, dense"),
    Arm("own dense kernel", LARGEST, {"sparsity": 0.0}),
    Arm("bfloat16, dense"),
    Arm("larosa 0 %, with adapters", LAROSA, {"sparsity": 0.0, "rotation": "random"}),
    Arm("larosa 25 %", LAROSA, {"sparsity": 0.25, "rotation": "random"}),
    Arm("larosa 40 %", LAROSA, {"sparsity": 0.4, "rotation": "random"}, 1.5, 1.2),
    Arm("larosa 50 %", LAROSA, {"sparsity": 0.5, "rotation": "random"}, 1.7, 1.4),
    Arm("larosa 50 %, online", LAROSA, {"sparsity": 0.5, "rotation": "random", "form": "online"}),
    Arm("topk_activation 50 %", LARGEST, {"sparsity": 0.5}),
    Arm("teal 50 %", "teal", {"sparsity": 0.5, "calibration_tokens": 512}),
)


def paired(steps: Sequence[TimedStep], protocol: Protocol) -> Samples:
    """Times of the steps in interleaved rounds after an equal warm-up."""
    watch, deadline = stopwatch("cpu"), time.monotonic() + protocol.timeout_s
    warm_up(steps, 1, seed="sparse", stopwatch=watch, deadline=deadline)
    pairs = [Pair(baseline, arm) for baseline in (0, 1) for arm in range(2, len(steps))]
    return time_rounds(
        steps,
        1,
        arms=range(len(steps)),
        pairs=pairs,
        protocol=protocol,
        seed="sparse",
        stopwatch=watch,
        deadline=deadline,
    )


def middle(samples: Samples, arm: int) -> float:
    """Median of an arm in milliseconds."""
    return median(column(samples, arm)) * 1e3


def products(threads: int) -> bool:
    """Print the table of single products; whether what is wanted is reached."""
    torch.set_num_threads(threads)
    reached = True
    print(
        f"\nproducts of one vector, float32, {threads} threads; ratios to torch's fastest dense"
        " layout"
    )
    for inputs, outputs in SHAPES:
        stored_IO = [torch.randn(inputs, outputs) for _ in range(MATRICES)]
        stored_OI = [weight_IO.t().contiguous() for weight_IO in stored_IO]
        x_I = torch.randn(inputs)
        steps = _steps(x_I, stored_IO, stored_OI)
        samples = paired(list(steps.values()), PROTOCOL)
        best = min((0, 1), key=lambda arm: middle(samples, arm))
        for arm, label in enumerate(steps):
            ratio = speedup(samples, best, arm)
            wanted = (
                WANTED_PRODUCT if (inputs, outputs) == SHAPES[0] and label == "cpp 50%" else None
            )
            short = wanted is not None and ratio.value < wanted
            reached &= not short
            shown = f"{ratio.value:>5.2f} [{ratio.low:.2f}, {ratio.high:.2f}]"
            notes = [
                *["the baseline"] * (arm == best),
                *[f"wanted {wanted}"] * bool(wanted),
                *["short of it"] * short,
            ]
            print(
                f"{inputs:>6} x {outputs:<6} {label:<20} {middle(samples, arm):>7.2f} ms  {shown} "
                f" {', '.join(notes)}",
                flush=True,
            )
    return reached


def _steps(
    x_I: torch.Tensor, stored_IO: Sequence[torch.Tensor], stored_OI: Sequence[torch.Tensor]
) -> dict[str, TimedStep]:
    """Torch's two layouts, and every route at every sparsity, the choice of inputs included."""
    steps: dict[str, TimedStep] = {
        "linear [out, in]": _turns(
            stored_OI, lambda weight_OI: torch.nn.functional.linear(x_I, weight_OI)
        ),
        "mv [in, out]": _turns(stored_IO, lambda weight_IO: torch.mv(weight_IO.t(), x_I)),
    }
    for route in ("cpp", "embedding_bag"):
        if sparse_matvec.unfit(route, stored_IO[0]) is None:
            for sparsity in SPARSITIES:
                steps[f"{route} {sparsity:.0%}"] = _turns(
                    stored_IO, _product(x_I, route, len(x_I) - round(sparsity * len(x_I)))
                )
    return steps


def _product(
    x_I: torch.Tensor, route: sparse_matvec.Route, kept: int
) -> Callable[[torch.Tensor], object]:
    return lambda weight_IO: sparse_matvec.product(
        route, sparse_matvec.largest(x_I, kept), weight_IO, None
    )


def _turns(matrices: Sequence[torch.Tensor], step: Callable[[torch.Tensor], object]) -> TimedStep:
    turn: Iterator[torch.Tensor] = itertools.cycle(matrices)
    return lambda: step(next(turn))


def decoding(model: str, threads: int) -> bool:
    """Print the table of decoded tokens; whether what is wanted is reached."""
    torch.set_num_threads(threads)
    print(f"\n{model}, random weights, one token after a prompt of {PROMPT}, {threads} threads")
    dense = load_language(Condition(model=model))
    half = load_language(Condition(model=model, dtype="bfloat16"))
    speakers = []
    for arm in ARMS:
        began = time.monotonic()
        if arm.method is None:
            speakers.append(half if arm.label.startswith("bfloat16") else dense)
        else:
            method = of_modality("language")[arm.method]
            speakers.append(method.apply(dense, method.Params.model_validate(arm.params)))
        print(f"{arm.label}: ready after {time.monotonic() - began:.1f} s", flush=True)
    with torch.inference_mode():
        samples = paired([_decode(lm) for lm in speakers], PROTOCOL)
    reached = True
    print(
        f"{'arm':<28}{'ms/token':>9} "
        f" {'over transformers':<22}{'over own dense':<22}{'left out':>9}{'kernel calls':>14}"
    )
    for place, (arm, lm) in enumerate(zip(ARMS, speakers, strict=True)):
        ratios = [speedup(samples, baseline, place) for baseline in (0, 1)]
        short = [
            wanted is not None and ratio.value < wanted
            for ratio, wanted in zip(ratios, (arm.over_dense, arm.over_own), strict=True)
        ]
        reached &= not any(short)
        counted = lm.counters[-1].metrics() if lm.counters else {}
        shown = "".join(
            f"{ratio.value:.2f} [{ratio.low:.2f},"
            f" {ratio.high:.2f}]{f' >={wanted}' if wanted else '':<5}{'!' if low else ' '}"
            for ratio, wanted, low in zip(
                ratios, (arm.over_dense, arm.over_own), short, strict=True
            )
        )
        left_out = f"{counted['achieved_sparsity']:.3f}" if counted else "-"
        print(
            f"{arm.label:<28}{middle(samples, place):>9.2f} "
            f" {shown}{left_out:>9}{counted.get('kernel_calls', 0):>14.0f}",
            flush=True,
        )
    return reached


def _decode(lm: LanguageModel) -> TimedStep:
    """One token, after which the cache is as it was."""
    network, cache = lm.network, DynamicCache()
    ids_1T = torch.arange(PROMPT)[None] % network.vocabulary
    lm.model(ids_1T, cache=cache, logits_to_keep=1)
    lm.reset_counters()

    def step() -> object:
        logits_11V = lm.model(ids_1T[:, :1], cache=cache).logits
        cache.crop(-1)
        return logits_11V

    return step


def main() -> int:
    """Exit code 0 when everything that is wanted is reached."""
    requested = argparse.ArgumentParser(description=__doc__)
    requested.add_argument("--kernels", action="store_true")
    requested.add_argument("--decode", action="store_true")
    requested.add_argument("--models", nargs="+", default=MODELS)
    requested.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    given = requested.parse_args()
    both = given.kernels == given.decode
    compiled = missing_reason(sparse_matvec.SPARSE_MATVEC_CPP) or "yes"
    print(
        f"load average {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores; compiled kernel:"
        f" {compiled}"
    )
    reached = products(given.threads) if both or given.kernels else True
    if both or given.decode:
        for model in given.models:
            reached &= decoding(model, given.threads)
    print(f"load average {os.getloadavg()[0]:.2f}")
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
