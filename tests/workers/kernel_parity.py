"""Triton kernels against torch's operators on small shapes: by Triton's interpreter on a CPU, or on
a GPU.

`TRITON_INTERPRET=1 python -m tests.workers.kernel_parity` prints, as JSON, the tracebacks of the
checks that failed, by name; a number after it is that of the processes.
"""

import copy
import itertools
import json
import multiprocessing
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from sweeps.model.condition import Condition
from tests.workers.tiny_vits import SIZE, small, small_network
from workers.activation_sparsity.sparse_linear import (
    InputRule,
    RowSkippingLinear,
    SharedInputMask,
    SparsityCounters,
)
from workers.activation_sparsity.sparse_matvec import mask_largest
from workers.kernels.attention import sized_attention, sized_attention_inflow
from workers.kernels.grouping import merge_farthest, select_farthest
from workers.kernels.reduction import merge_similar
from workers.kernels.selection import gather, keep_best
from workers.kernels.sparse import keep_largest, multiply_active
from workers.methods.vision import evit, hquota, tome, topk, truncate
from workers.methods.vision import random as random_tokens
from workers.models.share_weights import clone_shared
from workers.token_reduction.hquota_ops import Grouping
from workers.token_reduction.patch_vit import use_kernel
from workers.token_reduction.token_ops import Matching, bipartite_sets, merge_matched, unit_length

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TOLERANCE = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
"""Of values, as a share of the largest one."""
CHECKS: dict[str, Callable[[], None]] = {}


def check(function: Callable[[], None]) -> Callable[[], None]:
    """Register a check."""
    CHECKS[function.__name__] = function
    return function


def random(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """From the normal distribution, rounded to the type."""
    return torch.randn(*shape).to(DEVICE, dtype)


def assert_close(ours: Tensor, expected: Tensor, what: object) -> None:
    """Within the tolerance of the type of `ours`."""
    assert ours.shape == expected.shape, (what, ours.shape, expected.shape)
    error = (ours.double() - expected.double()).abs().max() / expected.double().abs().max()
    assert error <= TOLERANCE[ours.dtype], (what, float(error))


def in_types(shapes: Sequence[Any]) -> Iterator[tuple[Any, torch.dtype]]:
    """Each of the shapes in float32, on a GPU and the first one in all types."""
    for index, shape in enumerate(shapes):
        for dtype in TOLERANCE:
            if dtype == torch.float32 or index == 0 or DEVICE == "cuda":
                yield shape, dtype


def norm_of(channels: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, float]:
    """Weight, bias and eps of a LayerNorm."""
    return random(channels, dtype=dtype), random(channels, dtype=dtype), 1e-6


def normed(x_BMD: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    return functional.layer_norm(x_BMD, x_BMD.shape[-1:], weight.float(), bias.float(), eps)


@check
def attention() -> None:
    """Whole and partial blocks, heads that are no power of two, with and without sizes."""
    shapes = ((1, 1, 1, 32), (2, 3, 37, 64), (1, 2, 64, 32), (2, 1, 130, 72), (1, 1, 96, 128))
    for (B, H, N, d), dtype in itertools.product(shapes, TOLERANCE):
        if DEVICE == "cpu" and dtype == torch.bfloat16:  # whose products the interpreter gets wrong
            continue
        qkv = random(B, N, 3, H, d, dtype=dtype)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        q = 2 * q
        for size in (None, torch.randint(1, 12, (B, N), device=DEVICE).float()):
            logits = q.double() @ k.double().mT * d**-0.5
            if size is not None:
                logits = logits + size.double().log()[:, None, None]
            expected = (logits.softmax(-1) @ v.double()).transpose(1, 2)
            ours = sized_attention(q, k, v, d**-0.5, size)
            assert_close(ours, expected, (B, H, N, d, dtype, size is not None))


@check
def attention_where_logits_are_large() -> None:
    """No overflow; one key takes all."""
    q, k, v = (random(1, 1, 40, 32) for _ in range(3))
    ours = sized_attention(1000 * q, 1000 * k, v, 32**-0.5)
    assert_close(
        ours, functional.scaled_dot_product_attention(1000 * q, 1000 * k, v).transpose(1, 2), ""
    )


@check
def attention_refuses_what_does_not_fit() -> None:
    q = random(1, 2, 5, 8)
    wide = random(1, 1, 5, 160)
    k = random(1, 1, 5, 64)
    for arguments, words in (
        ((q, q, q, 1.0), "heads of 16 to 128 channels"),
        ((wide, wide, wide, 1.0), "heads of 16 to 128 channels"),
        ((k, k[:, :, :4], k, 1.0), "three tensors of one shape"),
        ((k, k, k, 1.0, torch.ones(1, 4)), "sizes are float32"),
    ):
        with pytest.raises(ValueError, match=words):
            sized_attention(*arguments)


def matched(k_BHNd: Tensor, prefix: int, r: int) -> Matching:
    """`bipartite_match` in float32, with equal similarities in the order of their tokens."""
    metric_BNd = unit_length(k_BHNd.float().sum(1))
    sets = bipartite_sets(prefix, metric_BNd.shape[1], metric_BNd.device)
    a_A, b_C = sets.a_1A[0], sets.b_1C[0]
    best_BA, nearest_BA = (metric_BNd[:, a_A] @ metric_BNd[:, b_C].mT).max(-1)
    rank_BA = best_BA.sort(dim=-1, descending=True, stable=True).indices
    index_BA = a_A[rank_BA]
    B = len(metric_BNd)
    order = (
        sets.prefix_1P.expand(B, -1),
        index_BA[:, r:].sort(-1).values,
        sets.b_1C.expand(B, -1),
        index_BA[:, :r],
    )
    return Matching(torch.cat(order, 1), nearest_BA.gather(1, rank_BA[:, :r]), len(b_C))


def merges() -> Iterator[tuple[int, int, int, int, int, int, int]]:
    """Images, tokens, heads, channels of a head and of a token, prefix tokens, tokens merged: odd
    and even, at most half, one patch token left, many in one target.
    """
    yield 2, 26, 3, 16, 48, 1, 7
    yield 1, 25, 2, 64, 100, 0, 12
    yield 2, 26, 1, 32, 16, 2, 12
    yield 1, 30, 2, 24, 20, 5, 3
    yield 2, 3, 1, 16, 8, 1, 1
    yield 1, 2, 1, 16, 8, 0, 1
    yield 9, 41, 1, 16, 24, 1, 20


@check
def merging() -> None:
    """The same tokens in the same order, their norms and sizes."""
    for (B, N, H, d, D, prefix, r), dtype in in_types(tuple(merges())):
        x, added = random(B, N, D, dtype=dtype), random(B, N, D, dtype=dtype)
        qkv, norm = random(B, N, 3, H, d, dtype=dtype), norm_of(D, dtype)
        k = qkv.permute(2, 0, 3, 1, 4)[1]
        for size in (None, torch.randint(1, 12, (B, N), device=DEVICE).float()):
            ours, ours_normed, ours_size = merge_similar(x, added, k, size, *norm, prefix, r)
            total = x.float() + added.float()
            expected, sizes = merge_matched(
                total, None if size is None else size[..., None], matched(k, prefix, r)
            )
            what = (B, N, H, d, D, prefix, r, dtype, size is not None)
            assert_close(ours, expected, what)
            assert_close(ours_normed, normed(expected, *norm), what)
            assert torch.equal(ours_size, sizes[..., 0]), what


@check
def merging_equal_tokens() -> None:
    """Ties go by index, in the order of tokens and of targets."""
    x, norm = (
        torch.arange(13.0, device=DEVICE).view(1, 13, 1).expand(-1, -1, 4),
        norm_of(4, torch.float32),
    )
    k = torch.ones(1, 1, 13, 16, device=DEVICE)
    ours, _, size = merge_similar(x, torch.zeros_like(x), k, None, *norm, 1, 3)
    # 2, 4 and 6 join 1; 8, 10 and 12 stay.
    assert ours[0, :, 0].tolist() == [0, 8, 10, 12, 13 / 4, 3, 5, 7, 9, 11], ours[0, :, 0]
    assert size[0].tolist() == [1, 1, 1, 1, 4, 1, 1, 1, 1, 1]


@check
def merging_many_tokens() -> None:
    """Where the tokens merged are found by a search, with ties."""
    B, N, r = 2, 1030, 510
    x, k, norm = random(B, N, 8), random(B, 1, N, 16), norm_of(8, torch.float32)
    k[:, :, 100:400] = k[:, :, 100:101]
    ours, _, size = merge_similar(x, torch.zeros_like(x), k, None, *norm, 1, r)
    expected, sizes = merge_matched(x, None, matched(k, 1, r))
    assert_close(ours, expected, "many")
    assert torch.equal(size, sizes[..., 0])


@check
def keeping() -> None:
    """The best tokens in their order, alone and with the sum of the others."""
    shapes = ((2, 26, 3, 16, 48, 1, 7), (1, 5, 1, 16, 3, 0, 1), (2, 17, 2, 64, 300, 5, 11))
    many = ((1, 300, 1, 16, 20, 2, 257), (1, 2, 1, 32, 4, 1, 1))
    for (B, N, H, d, D, prefix, kept), dtype in in_types((*shapes, *many)):
        x, added = random(B, N, D, dtype=dtype), random(B, N, D, dtype=dtype)
        q, k, _ = random(B, N, 3, H, d, dtype=dtype).permute(2, 0, 3, 1, 4).unbind(0)
        norm, total = norm_of(D, dtype), x.float() + added.float()
        score = (q[:, :, :1].float() @ k.float().mT * d**-0.5).softmax(-1)[:, :, 0].mean(1)
        order = (
            score[:, prefix:].sort(dim=-1, descending=True, stable=True).indices[:, :kept] + prefix
        )
        first = torch.arange(prefix, device=DEVICE).expand(B, -1)
        index = torch.cat((first, order), 1)
        expected = total.gather(1, index[..., None].expand(-1, -1, D))
        what = (B, N, H, d, D, prefix, kept, dtype)
        ours, ours_normed = keep_best(x, added, q, k, d**-0.5, *norm, prefix, kept, False)
        assert_close(ours, expected, what)
        assert_close(ours_normed, normed(expected, *norm), what)
        if prefix + kept < N:
            rest = score.scatter(1, index, 0.0)[:, None] @ total
            expected = torch.cat((expected, rest), 1)
            ours, ours_normed = keep_best(x, added, q, k, d**-0.5, *norm, prefix, kept, True)
            assert_close(ours, expected, what)
            if dtype == torch.float32:
                assert_close(ours_normed, normed(expected, *norm), what)


@check
def keeping_equal_tokens() -> None:
    """Equal scores go by index; what is not a number comes first."""
    x = torch.arange(12.0, device=DEVICE).view(1, 12, 1).expand(-1, -1, 4)
    k, norm = torch.ones(1, 1, 12, 16, device=DEVICE), norm_of(4, torch.float32)
    ours, _ = keep_best(x, torch.zeros_like(x), k, k, 1.0, *norm, 1, 4, False)
    assert ours[0, :, 0].tolist() == [0, 1, 2, 3, 4]


@check
def attention_with_inflow() -> None:
    """The sums of the attention matrix's columns beside its product with the values."""
    for B, H, N, d in ((2, 3, 37, 64), (1, 2, 130, 24)):
        q, k, v = random(B, N, 3, H, d).permute(2, 0, 3, 1, 4).unbind(0)
        for size in (None, torch.randint(1, 12, (B, N), device=DEVICE).float()):
            logits = q.double() @ k.double().mT * d**-0.5
            if size is not None:
                logits = logits + size.double().log()[:, None, None]
            shares = logits.softmax(-1)
            ours, inflow = sized_attention_inflow(q, k, v, d**-0.5, size)
            assert_close(ours, (shares @ v.double()).transpose(1, 2), (B, N))
            assert_close(inflow, shares.sum(2), (B, N, "inflow"))


@check
def farthest_first() -> None:
    """The order of the steps on a CPU, with and without sizes."""
    shapes = ((1, 3, 1, 2, 1), (3, 25, 4, 17, 3), (2, 64, 1, 63, 2), (1, 197, 30, 100, 6))
    for B, n, hubs, kept, H in shapes:
        inflow = torch.rand(B, H, n + 2, device=DEVICE)
        for size in (None, torch.randint(1, 9, (B, n + 2, 1), device=DEVICE).float()):
            steps = Grouping(2, kept, hubs / kept)
            expected = steps.order(inflow.cpu(), None if size is None else size.cpu())
            given = None if size is None else size[..., 0]
            ours = select_farthest(inflow, given, 2, kept, steps.hubs)
            assert torch.equal(ours.cpu(), expected), (B, n, hubs, kept, H)


@check
def merging_around_the_farthest() -> None:
    """Groups, means and norms."""
    for (B, N, kept, hubs), dtype in itertools.product(((2, 41, 25, 8), (1, 12, 1, 1)), TOLERANCE):
        x, added, norm = (
            random(B, N, 24, dtype=dtype),
            random(B, N, 24, dtype=dtype),
            norm_of(24, dtype),
        )
        k, inflow = random(B, 3, N, 16, dtype=dtype), torch.rand(B, 3, N, device=DEVICE)
        size, grouping = (
            torch.randint(1, 9, (B, N, 1), device=DEVICE).float(),
            Grouping(1, kept, hubs / kept),
        )
        total = x.float() + added.float()
        groups = grouping.groups(inflow, size, k.float(), total)
        expected, sizes = grouping.merged(total, size, groups)
        given = (x, added, k, inflow, size[..., 0], *norm, 1, kept, grouping.hubs)
        ours, ours_normed, ours_size = merge_farthest(*given)
        assert_close(ours, expected, (B, N, dtype))
        assert_close(ours_normed, normed(expected, *norm), (B, N, dtype))
        assert torch.equal(ours_size, sizes[..., 0])


@check
def gathering() -> None:
    """At indices, and the first ones."""
    for dtype in TOLERANCE:
        x, added, norm = (
            random(2, 17, 300, dtype=dtype),
            random(2, 17, 300, dtype=dtype),
            norm_of(300, dtype),
        )
        total = x.float() + added.float()
        for index in (None, torch.tensor([0, 3, 2, 16, 9], device=DEVICE)):
            expected = total[:, :5] if index is None else total[:, index]
            ours, ours_normed = gather(x, added, index, 5, *norm)
            assert_close(ours, expected, (dtype, index))
            assert_close(ours_normed, normed(expected, *norm), (dtype, index))


@check
def reductions_refuse_what_does_not_fit() -> None:
    x, norm, k = random(1, 6, 8), norm_of(8, torch.float32), random(1, 1, 6, 16)
    for call, words in (
        (lambda: merge_similar(x, x, k, None, *norm, 1, 3), "at most half"),
        (lambda: merge_similar(x, x[:, 1:], k, None, *norm, 1, 1), "must be alike"),
        (lambda: merge_similar(x, x, k[:, :, 1:], None, *norm, 1, 1), "keys must be"),
        (lambda: gather(x, x, None, 7, *norm), "7 of 6 tokens are to be left"),
        (
            lambda: keep_best(x, x, k, k, 1.0, *norm, 1, 0, True) and gather(x, x, None, 0, *norm),
            "0 of",
        ),
    ):
        with pytest.raises(ValueError, match=words):
            call()


@check
def keeping_largest_inputs() -> None:
    """Ties by index; what is not a number counts as infinity; all, and one."""
    for inputs, kept in ((1, 1), (17, 5), (300, 300), (1000, 999)):
        x = random(inputs, dtype=torch.float16)
        both = torch.stack((x, x.flip(0)))
        expected = mask_largest(both.cpu(), kept)
        assert torch.equal(keep_largest(both, kept).cpu(), expected), (inputs, kept)
    x = torch.tensor([2.0, -2.0, float("nan"), 2.0, float("-inf"), 0.0], device=DEVICE)
    assert keep_largest(x[None], 3)[0].nan_to_num(nan=7.0, neginf=-9.0).tolist() == [
        2.0,
        0,
        7.0,
        0,
        -9.0,
        0,
    ]


@check
def sparse_products() -> None:
    """Sums of the active rows, the bias, and what was read, again and again in the same memory."""
    shapes = ((1, 1, 1), (1, 3, 17), (1, 255, 129), (1, 70, 1000), (3, 300, 300), (16, 33, 140))
    for sequences, inputs, outputs in shapes:
        for dtype in TOLERANCE:
            if DEVICE == "cpu" and dtype == torch.bfloat16 and sequences > 1:
                continue  # whose products the interpreter gets wrong
            weight, x = random(inputs, outputs, dtype=dtype), random(sequences, inputs, dtype=dtype)
            arrived = torch.zeros(8, dtype=torch.int32, device=DEVICE)
            totals, active = torch.zeros(3, dtype=torch.int64, device=DEVICE), 0
            for threshold, bias in ((0.0, None), (0.5, random(outputs, dtype=dtype)), (9.0, None)):
                above = x.float().abs() > threshold
                active += sequences * int(above.any(0).sum())
                expected = torch.where(above, x, 0).double() @ weight.double()
                expected = expected if bias is None else expected + bias.double()
                limit = torch.tensor([threshold], device=DEVICE)
                ours = multiply_active(x, weight, limit, bias, arrived, totals)
                assert ours.dtype == dtype
                error = (ours.double() - expected).abs().max()
                bound = {torch.float32: 1e-5}.get(dtype, 1e-2) * (1 + expected.abs().max())
                assert error <= bound, (inputs, outputs, dtype, threshold)
            assert not arrived.any()
            assert totals.tolist() == [active * outputs, 3 * sequences * inputs * outputs, 3]


@check
def sparse_products_read_active_rows_only() -> None:
    """Rows of inputs that are below are not read; what is not a number shows."""
    weight = torch.full((40, 8), torch.nan, device=DEVICE)
    weight[7] = 2.0
    x = torch.zeros(40, device=DEVICE)
    arrived = torch.zeros(1, dtype=torch.int32, device=DEVICE)
    totals, limit = torch.zeros(3, dtype=torch.int64, device=DEVICE), torch.zeros(1, device=DEVICE)
    x[7] = 3.0
    given = (limit, None, arrived, totals)
    assert multiply_active(x[None], weight, *given).tolist() == [[6.0] * 8]
    x[7] = torch.nan
    assert multiply_active(x[None], torch.ones_like(weight), *given).isnan().all()


@check
@torch.inference_mode()
def sparse_layers() -> None:
    """Matrices that share a selection: by a threshold, by number, and by norms of rows; counts."""
    rules = (InputRule(30, 0.7), InputRule(17), InputRule(60), InputRule(17, weighted=True))
    for sequences, rule in itertools.product((1, 4), rules):
        x = random(sequences, 60)
        counters, mask = SparsityCounters(0.0), SharedInputMask(rule)
        counters.sequences = sequences
        counters.totals_3 = torch.zeros(3, dtype=torch.int64, device=DEVICE)
        weights, bias = [random(60, outputs) for outputs in (5, 200)], random(200)
        layers = [
            RowSkippingLinear(weight, own, mask, counters, "triton")
            for weight, own in zip(weights, (None, bias), strict=True)
        ]
        norms = torch.stack([weight.square().sum(1) for weight in weights]).sum(0).sqrt()
        masked = rule.mask(x.cpu(), norms.cpu() if rule.weighted else None).to(DEVICE)
        given = x[:, None]
        for layer, weight, own in zip(layers, weights, (0, bias), strict=True):
            expected = (masked.double() @ weight.double() + own)[:, None]
            assert_close(layer(given), expected, rule)
        active = sequences * int(masked.any(0).sum())
        assert counters.counted() == (active * 205, sequences * 60 * 205, 2)
        assert counters.metrics()["kernel_calls_triton"] == 2
        counters.reset()
        assert counters.counted() == (0, 0, 0)


MAKES = ("plain", "distilled", "registers", "average", "average_with_registers", "map", "normed")
"""Tiny transformers without rotary embeddings."""
METHODS = (tome, topk, evit, random_tokens, truncate, hquota)


def on_device(make: str) -> Any:
    """A tiny transformer; a copy on a GPU."""
    shared = clone_shared(small(make))
    return shared if DEVICE == "cpu" else copy.deepcopy(shared).to(DEVICE)


@check
@torch.inference_mode()
def models() -> None:
    """Every method: the logits of torch's operators, with sdpa and with the kernel."""
    condition = Condition(model="tiny", image_size=SIZE, device=DEVICE, attention="triton")
    cases = [
        ("plain", method, params)
        for method in METHODS
        for params in method.EXAMPLES
        if params.uncompiled("triton") is None
    ]
    cases += [(make, tome, tome.Params(r=4)) for make in MAKES]
    cases += [("registers", topk, topk.Params(keep_rate=0.5, layers=(1,)))]
    for make, method, params in cases:
        model, network, images = on_device(make), small_network(make), random(2, 3, SIZE, SIZE)
        by_torch = params.model_copy(update={"implementation": "torch"})
        expected = method.apply(model, by_torch)(images)
        fused = method.apply(model, params.model_copy(update={"implementation": "triton"}))
        assert_close(fused(images), expected, (make, method.__name__, params))
        if make != "plain":
            use_kernel(fused, condition, network)
            assert_close(fused(images), expected, (make, method.__name__, params, "attention"))


@check
@torch.inference_mode()
def unmodified_models() -> None:
    """The kernel's attention in models that no method changes."""
    condition = Condition(model="tiny", image_size=SIZE, device=DEVICE, attention="triton")
    for make in MAKES:
        images, model = random(2, 3, SIZE, SIZE), on_device(make)
        use_kernel(model, condition, small_network(make))
        assert_close(model(images), on_device(make)(images), make)


def failure(name: str) -> str | None:
    """The traceback of a check, if it fails."""
    torch.manual_seed(0)
    start, found = time.monotonic(), None
    try:
        CHECKS[name]()
    except Exception:
        found = traceback.format_exc()
    print(f"{name}: {time.monotonic() - start:.1f} s", file=sys.stderr)
    return found


def failures(processes: int) -> dict[str, str | None]:
    """By name, the tracebacks of the checks that failed, in so many processes: most of the time on
    a GPU goes to compiling.
    """
    if processes == 1:
        return {name: found for name in CHECKS if (found := failure(name))}
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        return {
            name: found
            for name, found in zip(CHECKS, pool.map(failure, CHECKS), strict=True)
            if found
        }


if __name__ == "__main__":
    print(json.dumps(failures(int(sys.argv[1]) if sys.argv[1:] else 1)))
