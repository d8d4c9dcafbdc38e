"""The row-skipping products and the choice of inputs against dense arithmetic."""

import copy
import functools
import itertools
import math
import re
import shutil
import subprocess
import sys
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


def test_library_is_built_here():
    """Where there is a compiler the library is built and loaded, for both dtypes; else the reason
    is given.
    """
    if cpp_build.missing_reason(sparse_matvec.SPARSE_MATVEC_CPP) is not None:
        pytest.skip(
            f"no compiled kernel: {cpp_build.missing_reason(sparse_matvec.SPARSE_MATVEC_CPP)}"
        )
    assert all(
        sparse_matvec.compiled(name, torch.empty(1, dtype=dtype))
        for name in sparse_matvec._SIGNATURES
        for dtype in TOLERANCE
    )


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("threads", [1, 2])
def test_products_agree_with_dense_ones(dtype, threads):
    """Odd shapes, one to all inputs, with and without a bias, one and two threads: every route
    gives the masked dense product.
    """
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
    """One call chooses the inputs as `largest` or `above` do and gives every reader the product
    that it would get alone.
    """
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


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_exactly_so_many_of_the_largest_are_chosen(dtype):
    """Every choice has the requested size, in order of place, and nothing left out is larger than
    what is kept.
    """
    for inputs in SIZES:
        x_I = torch.randn(inputs, generator=torch.Generator().manual_seed(inputs)).to(dtype)
        for kept in {1, max(1, inputs // 3), max(1, inputs - 1)}:
            index_K, value_K, read = sparse_matvec.largest(x_I, kept)
            index_K = torch.arange(inputs) if index_K is None else index_K.long()
            assert len(index_K) == read == kept
            assert torch.equal(index_K, index_K.unique())
            assert torch.equal(value_K.float(), x_I[index_K].float())
            left_out = x_I.abs().float().scatter(0, index_K, 0)
            assert left_out.max() <= value_K.abs().min()


def test_equal_magnitudes_go_by_place():
    """Ties never make the choice larger: the first of equal values are kept, whatever their
    sign.
    """
    x_I = torch.tensor([1.0, -2.0, 2.0, 0.5, -2.0, 1.0])
    if cpp_build.missing_reason(sparse_matvec.SPARSE_MATVEC_CPP) is None:
        assert sparse_matvec.largest(x_I, 2).index_K.tolist() == [1, 2]
        assert sparse_matvec.largest(x_I, 4).index_K.tolist() == [0, 1, 2, 4]
        assert sparse_matvec.mask_largest(x_I[None], 4)[0].tolist() == [
            1.0,
            -2.0,
            2.0,
            0.0,
            -2.0,
            0.0,
        ]
    assert sparse_matvec.largest(torch.zeros(9), 4).read == 4


AWKWARD = (0.0, -0.0, 1.0, -1.0, 2.0, -2.0, torch.inf, -torch.inf, torch.nan)


def one_by_one(x_I, kept):
    """The reference: places by magnitude, of equal ones the lowest first; NaN as infinity."""
    magnitude = [float("inf") if math.isnan(value) else abs(value) for value in x_I.tolist()]
    return sorted(sorted(range(len(x_I)), key=lambda place: (-magnitude[place], place))[:kept])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_ties_are_cut_at_the_lowest_index_on_every_route(dtype):
    """Of values many of which are equal, infinite or NaN, the compiled code and torch (float16)
    keep the same as a reference.
    """
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
    """NaN is above every threshold, and everything is above one that is NaN or negative, as in
    `mask_above`.
    """
    x_I = torch.tensor(AWKWARD, dtype=dtype)
    for threshold in (0.0, 1.0, torch.inf, torch.nan, -1.0):
        wanted = [place for place, value in enumerate(AWKWARD) if not abs(value) <= threshold]
        assert sparse_matvec.above(x_I, threshold).index_K.tolist() == wanted
        assert (sparse_matvec.mask_above(x_I, threshold) != 0).nonzero()[:, 0].tolist() == [
            place for place in wanted if AWKWARD[place] != 0
        ]


ALL_ONES = """
import torch
from workers.activation_sparsity import sparse_matvec as rows
for dtype, bits, largest in ((torch.float32, torch.int32, 0x7fffffff), (torch.bfloat16, torch.int16, 0x7fff)):
    x = torch.ones(64, dtype=dtype)
    x[5], x[9] = torch.tensor([-1, largest], dtype=bits).view(dtype)
    for kept in (1, 2, 3):
        assert rows.largest(x, kept).index_K.tolist() == sorted([5, 9, 0][:kept])
        assert (rows.mask_largest(x[None], kept)[0] != 0).sum() == kept
        if rows.compiled("multiply", x):
            products, read = rows.Readers([torch.ones(64, 8, dtype=dtype)], [None]).products(x, kept)
            assert read == kept and products[0].isnan().all()
print("works")
"""


def test_a_nan_of_all_ones_is_chosen_like_any_other():
    """The largest bit pattern there is overflows no count. In a process of its own, which a wrong
    count would kill.
    """
    done = subprocess.run(
        [sys.executable, "-c", ALL_ONES], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "works"), done.stderr


NOTHING_KEPT = """
#include "{source}"
int main() {{
    const float x[3] = {{1, -2, 3}}, weight[6] = {{1, 2, 3, 4, 5, 6}}, bias[2] = {{7, 8}};
    const float *weights[1] = {{weight}}, *biases[1] = {{bias}};
    const int64_t outputs[1] = {{2}};
    float y[3] = {{9, 9, 9}}, value[1];
    int32_t index[1] = {{5}};
    select_largest_f32(x, 3, 0, index, value);
    mask_largest_f32(x, 1, 3, 0, y, 1);
    if (index[0] != 5 || y[0] || y[1] || y[2]) return 1;
    if (multiply_all_f32(x, nullptr, 3, 0, 0, 1, weights, biases, outputs, y, 1)) return 2;
    return y[0] == 7 && y[1] == 8 ? 0 : 3;
}}
"""


def test_nothing_may_be_kept(tmp_path):
    """No input is chosen and the product is the bias, without an overflow: compiled so that one
    ends the program.
    """
    compiler = next((found for name in cpp_build.COMPILERS if (found := shutil.which(name))), None)
    if compiler is None:
        pytest.skip("no C++ compiler")
    file = tmp_path / "nothing.cpp"
    file.write_text(NOTHING_KEPT.format(source=sparse_matvec.SPARSE_MATVEC_CPP))
    checks = ("-fsanitize=signed-integer-overflow,bounds", "-fsanitize-undefined-trap-on-error")
    command = [
        compiler,
        "-std=c++17",
        "-O1",
        "-Wno-unknown-pragmas",
        *checks,
        str(file),
        "-o",
        str(tmp_path / "nothing"),
    ]
    subprocess.run(command, check=True)
    assert subprocess.run([str(tmp_path / "nothing")], check=False).returncode == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_nothing_kept_is_nothing_on_every_route(dtype):
    """The compiled code and torch (float16) choose no input and mask all."""
    x_NI = torch.tensor([AWKWARD, AWKWARD]).to(dtype)
    assert sparse_matvec.largest(x_NI[0], 0).index_K.tolist() == []
    assert not sparse_matvec.mask_largest(x_NI, 0).count_nonzero()


def test_what_is_not_a_number_is_never_hidden():
    """A NaN or an infinity among the inputs is always kept, so that it shows in the result."""
    x_I = torch.tensor([1.0, torch.nan, 3.0, -torch.inf])
    for kept in (2, 3):
        value_K = sparse_matvec.largest(x_I, kept).value_K
        assert value_K.isnan().any()
        assert value_K.isinf().any()
    assert sparse_matvec.above(x_I, 100.0).value_K.isnan().any()
    assert sparse_matvec.mask_above(x_I, 100.0).isnan().any()
    for route in available(torch.float32):
        assert (
            sparse_matvec.product(route, sparse_matvec.above(x_I, 100.0), torch.ones(4, 3), None)
            .isnan()
            .all()
        )


def test_threshold_keeps_what_is_above_it():
    """TEAL's rule: strictly above, none and all included; with none the product is the bias."""
    x_I, bias_O = torch.tensor([0.5, -1.5, 1.0, -0.25, 3.0]), torch.tensor([1.0, 2.0])
    for threshold in (0.0, 0.25, 1.0, 5.0):
        index_K, value_K, read = sparse_matvec.above(x_I, threshold)
        wanted = [place for place, value in enumerate(x_I.tolist()) if abs(value) > threshold]
        assert index_K.tolist() == wanted
        assert read == len(wanted)
        assert torch.equal(value_K, x_I[wanted])
        masked_I = sparse_matvec.mask_above(x_I, threshold)
        assert masked_I.nonzero()[:, 0].tolist() == wanted
    for route in available(torch.float32):
        assert torch.equal(
            sparse_matvec.product(route, sparse_matvec.above(x_I, 5.0), torch.ones(5, 2), bias_O),
            bias_O,
        )


def test_masks_are_choices_of_each_vector():
    """Many vectors at once are masked as each would be alone."""
    x_NI = torch.randn(7, 33, generator=torch.Generator().manual_seed(1))
    for kept in (1, 16, 32, 33):
        masked_NI = sparse_matvec.mask_largest(x_NI, kept)
        for x_I, masked_I in zip(x_NI, masked_NI, strict=True):
            active = sparse_matvec.largest(x_I, kept)
            wanted_I = (
                x_I
                if active.index_K is None
                else torch.zeros(33).scatter(0, active.index_K.long(), active.value_K)
            )
            assert torch.equal(masked_I, wanted_I)


def test_choice_of_a_route():
    """`auto` gives a route that runs; one that cannot is refused with the reason; half precision
    has only torch's own.
    """
    weight_IO = torch.randn(64, 48)
    assert sparse_matvec.select_route("auto", weight_IO, 32) in available(torch.float32)
    assert sparse_matvec.select_route("embedding_bag", weight_IO, 32) == "embedding_bag"
    with pytest.raises(
        Unsupported,
        match="kernel triton: it runs on cuda only, and the model is on cpu",
    ):
        sparse_matvec.select_route("triton", weight_IO, 32)
    assert sparse_matvec.select_route("auto", weight_IO.half(), 32) == "embedding_bag"
    with pytest.raises(Unsupported, match="kernel cpp: "):
        sparse_matvec.select_route("cpp", weight_IO.half(), 32)


def test_one_openmp_runtime():
    """The library runs on the OpenMP runtime that torch has loaded: two of them would fight over
    the cores.
    """
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


def test_torch_alone_is_enough(without_compiler):
    """On a machine without a compiler the same functions select and multiply with torch's
    operators.
    """
    reason = cpp_build.missing_reason(sparse_matvec.SPARSE_MATVEC_CPP)
    assert reason is not None
    assert "no C++ compiler" in reason
    x_I, weight_IO = torch.randn(33), torch.randn(33, 9)
    assert sparse_matvec.select_route("auto", weight_IO, 12) == "embedding_bag"
    active = sparse_matvec.largest(x_I, 12)
    masked_I = sparse_matvec.mask_largest(x_I[None], 12)[0]
    assert (masked_I != 0).sum() == 12 == active.read
    close = functools.partial(torch.testing.assert_close, rtol=1e-5, atol=1e-5)
    close(sparse_matvec.product("embedding_bag", active, weight_IO, None), masked_I @ weight_IO)
    close(
        sparse_matvec.product("embedding_bag", sparse_matvec.everything(x_I), weight_IO, None),
        x_I @ weight_IO,
    )
    assert torch.equal(sparse_matvec.above(x_I, 0.5).value_K, x_I[x_I.abs() > 0.5])
