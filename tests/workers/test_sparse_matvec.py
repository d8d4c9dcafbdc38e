"""The row-skipping products and the choice of inputs against dense arithmetic."""

import copy
import itertools
import math
import re
from pathlib import Path

import pytest
import torch

from workers.activation_sparsity import sparse_matvec
from workers.errors import Unsupported
from workers.models import cpp_build

SIZES = (1, 3, 17, 255, 2560)
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 1e-2}


@pytest.fixture(autouse=True, scope="module")
def _cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BREAKEVEN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def available(dtype):
    return [
        route
        for route in ("cpp", "embedding_bag")
        if sparse_matvec.unfit(route, torch.empty(1, 1, dtype=dtype)) is None
    ]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("threads", [1, 2])
def test_products_agree_with_dense_ones(dtype, threads):
    """Every route gives the masked dense product, whatever shape, bias and threads."""
    generator, before = torch.Generator().manual_seed(0), torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for inputs, outputs in itertools.product(SIZES, SIZES):
            weight_IO = torch.randn(inputs, outputs, generator=generator).to(dtype)
            x_I = torch.randn(inputs, generator=generator).to(dtype)
            bias_O = torch.randn(outputs, generator=generator).to(dtype)
            for kept in {1, max(1, inputs // 2), inputs}:
                wanted_O = (
                    sparse_matvec.mask_largest(x_I[None], kept)[0].double() @ weight_IO.double()
                )
                for route, bias in itertools.product(available(dtype), (None, bias_O)):
                    y_O = sparse_matvec.product(
                        route, sparse_matvec.largest(x_I, kept), weight_IO, bias
                    )
                    assert y_O.dtype == dtype
                    error_O = y_O.double() - wanted_O - (0 if bias is None else bias.double())
                    assert error_O.abs().max() <= TOLERANCE[dtype] * (wanted_O.abs().max() + 3), (
                        route,
                        inputs,
                        outputs,
                        kept,
                    )
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_readers_of_one_vector_are_served_at_once(dtype):
    """One call gives every reader the product that it would get alone."""
    if "cpp" not in available(dtype):
        pytest.skip(
            f"no compiled kernel: {cpp_build.missing_reason(sparse_matvec.SPARSE_MATVEC_CPP)}"
        )
    generator = torch.Generator().manual_seed(0)
    for inputs in SIZES:
        weights = [
            torch.randn(inputs, outputs, generator=generator).to(dtype) for outputs in (1, 40, 17)
        ]
        biases = [None, torch.randn(40, generator=generator).to(dtype), None]
        readers = copy.deepcopy(sparse_matvec.Readers(weights, biases))
        x_I = torch.randn(inputs, generator=generator).to(dtype)
        for kept, threshold in (
            (1, None),
            (max(1, inputs // 2), None),
            (inputs, None),
            (1, 0.5),
            (1, 100.0),
        ):
            active = (
                sparse_matvec.largest(x_I, kept)
                if threshold is None
                else sparse_matvec.above(x_I, threshold)
            )
            products, read = readers.products(x_I, kept, threshold)
            assert read == active.read
            for y_O, weight_IO, bias_O in zip(products, weights, biases, strict=True):
                assert torch.equal(y_O, sparse_matvec.product("cpp", active, weight_IO, bias_O))


AWKWARD = (0.0, -0.0, 1.0, -1.0, 2.0, -2.0, torch.inf, -torch.inf, torch.nan)


def one_by_one(x_I, kept):
    """The reference: places by magnitude, of equal ones the lowest first; NaN as infinity."""
    magnitude = [float("inf") if math.isnan(value) else abs(value) for value in x_I.tolist()]
    return sorted(sorted(range(len(x_I)), key=lambda place: (-magnitude[place], place))[:kept])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_ties_are_cut_at_the_lowest_index_on_every_route(dtype):
    """Equal, infinite and NaN values: compiled code and torch keep what a reference keeps."""
    generator = torch.Generator().manual_seed(3)
    for inputs in (2, 9, 64, 1000):
        place_NI = torch.randint(len(AWKWARD), (4, inputs), generator=generator)
        x_NI = torch.tensor(AWKWARD)[place_NI].to(dtype)
        for kept in {1, inputs // 3 or 1, inputs // 2, inputs - 1}:
            masked_NI = sparse_matvec.mask_largest(x_NI, kept)
            for x_I, masked_I in zip(x_NI, masked_NI, strict=True):
                wanted = one_by_one(x_I, kept)
                assert sparse_matvec.largest(x_I, kept).index_K.tolist() == wanted
                left_out = torch.ones(inputs, dtype=torch.bool).scatter(
                    0, torch.tensor(wanted), value=False
                )
                assert torch.equal(
                    masked_I.masked_fill(left_out, 5).nan_to_num(7),
                    x_I.masked_fill(left_out, 5).nan_to_num(7),
                )
                assert not masked_I[left_out].any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_thresholds_keep_the_same_on_every_route(dtype):
    """NaN is above every threshold, everything above NaN or a negative one."""
    x_I = torch.tensor(AWKWARD, dtype=dtype)
    for threshold in (0.0, 1.0, torch.inf, torch.nan, -1.0):
        wanted = [place for place, value in enumerate(AWKWARD) if not abs(value) <= threshold]
        assert sparse_matvec.above(x_I, threshold).index_K.tolist() == wanted
        assert (sparse_matvec.mask_above(x_I, threshold) != 0).nonzero()[:, 0].tolist() == [
            place for place in wanted if AWKWARD[place] != 0
        ]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_nothing_kept_is_nothing_on_every_route(dtype):
    """The compiled code and torch (float16) choose no input and mask all."""
    x_NI = torch.tensor([AWKWARD, AWKWARD]).to(dtype)
    assert sparse_matvec.largest(x_NI[0], 0).index_K.tolist() == []
    assert not sparse_matvec.mask_largest(x_NI, 0).count_nonzero()


def test_choice_of_a_route():
    """`auto` gives a route that runs; others are refused; half has torch's own alone."""
    weight_IO = torch.randn(64, 48)
    assert sparse_matvec.select_route("auto", weight_IO, 32) in available(torch.float32)
    assert sparse_matvec.select_route("embedding_bag", weight_IO, 32) == "embedding_bag"
    with pytest.raises(
        Unsupported, match="kernel triton: it runs on cuda only, and the model is on cpu"
    ):
        sparse_matvec.select_route("triton", weight_IO, 32)
    assert sparse_matvec.select_route("auto", weight_IO.half(), 32) == "embedding_bag"
    with pytest.raises(Unsupported, match="kernel cpp: "):
        sparse_matvec.select_route("cpp", weight_IO.half(), 32)


def test_one_openmp_runtime():
    """The library runs on the OpenMP runtime that torch has loaded."""
    if cpp_build.missing_reason(sparse_matvec.SPARSE_MATVEC_CPP) is not None:
        pytest.skip(
            f"no compiled kernel: {cpp_build.missing_reason(sparse_matvec.SPARSE_MATVEC_CPP)}"
        )
    sparse_matvec.product(
        "cpp", sparse_matvec.everything(torch.ones(512)), torch.ones(512, 512), None
    )
    assert any(
        "sparse_matvec-" in line for line in Path("/proc/self/maps").read_text().splitlines()
    )
    loaded = set(
        re.findall(
            r"(/\S*/lib(?:gomp|iomp5|omp)[-.\w]*\.so[.\w]*)$",
            Path("/proc/self/maps").read_text(),
            re.MULTILINE,
        )
    )
    assert cpp_build._openmp() in loaded
    assert (
        len(
            {
                Path(path).resolve()
                for path in loaded
                if "/torch/" in path or path.startswith(("/usr", "/lib"))
            }
        )
        == 1
    )


def test_no_compiler_is_a_reason(monkeypatch, tmp_path):
    """Without a compiler, and with one that fails, building gives the reason."""
    monkeypatch.setenv("BREAKEVEN_CACHE", str(tmp_path))
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(
        cpp_build.NotBuilt, match="no C\\+\\+ compiler: none of no-such-compiler is on the path"
    ):
        cpp_build.build_library(sparse_matvec.SPARSE_MATVEC_CPP)
    monkeypatch.setenv("CXX", "false")
    with pytest.raises(cpp_build.NotBuilt, match="false failed: no message"):
        cpp_build.build_library(sparse_matvec.SPARSE_MATVEC_CPP)
