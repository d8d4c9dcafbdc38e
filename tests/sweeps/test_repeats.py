"""Repeats of kernels: forwards are counted in traces without ranges, and blocks of one forward are not taken for forwards."""

import random

import pytest

from sweeps.traces.device_trace import TraceError
from sweeps.traces.forward_count import decide_forwards
from sweeps.traces.repeats import KernelRepeats, find_repeats
from tests.fixtures.device_traces import KERNELS


def a_vit(gemm: str = "gemm_h", *, casts: bool = True, tuned: int = 0) -> list[str]:
    """A forward of a ViT of 12 blocks under autocast: 25 LayerNorms, 174 kernels; without casts as it counts its operations."""
    cast = ["cast"] if casts else []
    block = ["ln", *cast, gemm, *cast, "softmax", gemm, "add", "ln", *cast, gemm, "gelu", *cast, gemm, "add"]
    names = [*cast, "conv", "add", *block * 12, "ln", *cast, gemm]
    return [*names[:6], *["tune"] * tuned, *names[6:]]


def test_equal_forwards() -> None:
    """Five equal forwards are five passes, none of them left out."""
    assert find_repeats(KERNELS * 5) == KernelRepeats(period=18, equal=5, passes=5, first=0, rest=0, complete=True)


def test_warm_up_and_a_pass_that_counts_operations() -> None:
    """20 warm-up forwards of which the first tunes, a timed one and one that counts operations: 22 passes; equal ones count."""
    names = ["fill"] * 5 + a_vit(tuned=3) + a_vit() * 20 + a_vit("gemm_s", casts=False)
    found = find_repeats(names)
    assert names.count("ln") == 550
    assert found is not None
    assert (found.period, found.equal, found.passes, found.complete) == (174, 20, 22, True)


@pytest.mark.parametrize("forward", [list(KERNELS), a_vit(), a_vit(casts=False)], ids=["small", "vit", "vit without casts"])
def test_blocks_of_one_forward_are_no_forwards(forward: list[str]) -> None:
    """What repeats in one forward is not complete, even where its head runs the kernels with which a block begins."""
    found = find_repeats(forward)
    assert found is not None
    assert found.equal >= 3
    assert not found.complete


@pytest.mark.parametrize("names", [["cast"] * 3, ["cast"] * 40, ["a", "b"] * 20], ids=["three", "forty", "two names"])
def test_a_few_names_are_no_forward(names: list[str]) -> None:
    """One kernel that runs again and again is no forward, however often it runs."""
    found = find_repeats(names)
    assert found is not None
    assert not found.complete


def test_nothing_repeats() -> None:
    """A sequence without repeats, of one kernel or of none has no repeats."""
    assert find_repeats([str(number) for number in range(50)]) is None
    assert find_repeats(["gemm"]) is None
    assert find_repeats([]) is None


def test_random_forwards_between_other_kernels() -> None:
    """The number of forwards is found for random models, with other kernels in front and a cut-off forward at the end."""
    source = random.Random(0)
    for _ in range(50):
        block = source.sample([f"kernel {number}" for number in range(40)], source.randint(4, 12))
        forward = ["embed", *block * source.randint(4, 12), "norm", "head"]
        forwards, started = source.randint(2, 30), source.randint(0, len(forward) - 1)
        names = ["fill"] * source.randint(0, 9) + forward * forwards + forward[:started]
        found = find_repeats(names)
        assert found is not None
        assert (found.period, found.equal, found.complete) == (len(forward), forwards, True)


def test_disagreement_names_both() -> None:
    """A stated number that contradicts ranges or kernels is an error that names both; one between equal and all passes is right."""
    repeats = KernelRepeats(period=174, equal=20, passes=22, first=14, rest=300, complete=True)
    with pytest.raises(TraceError, match=r"--forwards 23 disagrees with its kernels: 174 of them repeat 20 times \(22 times"):
        decide_forwards(0, repeats, 23)
    with pytest.raises(TraceError, match="--forwards 20 disagrees with the 21 ranges breakeven:forward"):
        decide_forwards(21, repeats, 20)
    with pytest.raises(TraceError, match="3 ranges breakeven:forward in it disagree with the kernels inside them, which repeat 4"):
        decide_forwards(3, KernelRepeats(18, 4, 4, 0, 0, complete=True), None)
    assert decide_forwards(0, repeats, 22).forwards == 20
    assert decide_forwards(0, repeats, None).text == (
        "174 kernels that repeat 20 times (22 passes, of which 2 passes run other kernels too, and are left out)"
    )


def test_unknown_number_is_requested() -> None:
    """Where neither ranges nor kernels show the number, the error requests it; stated, it is taken."""
    blocks = KernelRepeats(period=14, equal=12, passes=12, first=3, rest=6, complete=False)
    with pytest.raises(TraceError, match="14 kernels repeat 12 times, which may be parts of one forward; state how many"):
        decide_forwards(0, blocks, None)
    with pytest.raises(TraceError, match="its kernels do not repeat; state how many forwards it holds with --forwards K"):
        decide_forwards(0, None, None)
    assert decide_forwards(0, blocks, 1).source == "given"
    assert decide_forwards(0, blocks, 12).source == "repeats"
