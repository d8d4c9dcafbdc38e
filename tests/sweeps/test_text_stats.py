"""Fidelity: bits per byte by hand, coverage of the paired interval on simulated text, and a case
whose answer is not known.
"""

from math import log
from typing import Any

import numpy as np
import pytest

from sweeps.model.outcome import ArmScores, PairScores, TextScores, pack
from sweeps.stats.quality import Fidelity, compare_texts, ratio, scored, scores_problem


def scores(
    nll: list[Any],
    sizes: Any,
    *,
    tokens: list[Any] | None = None,
    agree: Any = None,
    kl: Any = None,
    documents: Any = None,
) -> TextScores:
    """Two arms on some windows, by default each a document."""
    windows = len(sizes)
    each = tokens or [np.full(windows, 10)] * len(nll)
    pair = PairScores(
        baseline=0,
        arm=1,
        positions=pack(np.full(windows, 10), "i4"),
        agree=pack(np.full(windows, 9) if agree is None else agree, "i4"),
        kl=pack(np.full(windows, 0.1) if kl is None else kl, "f4"),
    )
    return TextScores(
        windows=windows,
        listing="ab",
        bytes=pack(sizes, "i4"),
        characters=pack(sizes, "i4"),
        documents=pack(np.arange(windows) if documents is None else documents, "i4"),
        arms=tuple(
            ArmScores(arm=arm, nll=pack(side, "f8"), tokens=pack(count, "i4"))
            for arm, (side, count) in enumerate(zip(nll, each, strict=True))
        ),
        pairs=(pair,),
    )


def test_bits_per_byte_by_hand() -> None:
    """Sums over windows, not means of their ratios: 30 bits in 10 bytes and 10 in 10 are 2 bits per
    byte.
    """
    nll = [log(2) * np.array([30.0, 10.0]), log(2) * np.array([35.0, 15.0])]
    found = compare_texts(scores(nll, np.array([10, 10])), 0, 1)
    assert (found.bits_per_byte_baseline, found.bits_per_byte) == pytest.approx((2.0, 2.5))
    assert found.change.value == pytest.approx(0.5)
    assert found.perplexity_baseline == pytest.approx(2 ** (40 / 20))
    assert (found.windows, found.bytes, found.tokens) == (2, 20, 20)
    assert found.agreement is not None
    assert found.agreement.value == pytest.approx(90)
    assert found.kl is not None
    assert found.kl.value == pytest.approx(0.1)


def test_windows_without_a_likelihood_are_left_out_and_counted() -> None:
    """A window counts only where both arms scored it; predictions of it do not count either."""
    nll = [np.array([30.0, 10.0, 5.0]), np.array([np.nan, 10.0, np.inf])]
    found = compare_texts(scores(nll, np.array([10, 20, 30]), agree=np.array([0, 10, 0])), 0, 1)
    assert (found.windows, found.skipped, found.bytes) == (1, 2, 20)
    assert found.agreement is not None
    assert found.agreement.value == 100
    assert found.verdict() == "unclear"
    with pytest.raises(ValueError, match="no window that both scored"):
        compare_texts(scores([np.array([np.nan]), np.array([1.0])], np.array([10])), 0, 1)
    assert not scored(scores([np.array([np.nan]), np.array([1.0])], np.array([10])), 0)


def test_another_pair_has_no_predictions() -> None:
    """What was not compared token by token is not known, and an arm that is not there is
    refused.
    """
    nll = [np.array([30.0, 10.0])] * 2
    found = compare_texts(scores(nll, np.array([10, 10])), 1, 0)
    assert (found.agreement, found.kl) == (None, None)
    with pytest.raises(ValueError, match=r"holds arms \[0, 1\], not 2"):
        compare_texts(scores(nll, np.array([10, 10])), 0, 2)


def simulated(random: np.random.Generator, windows: int, change: float, noise: float) -> Fidelity:
    """Text whose windows differ in size and hardness far more than the two arms do."""
    sizes = random.integers(50, 1000, windows)
    base = log(2) * sizes * np.exp(random.normal(0.7, 0.3, windows))
    arm = base + log(2) * sizes * (change + noise * (random.lognormal(0, 1, windows) - np.exp(0.5)))
    return compare_texts(scores([base, arm], sizes), 0, 1)


@pytest.mark.parametrize(("windows", "least"), [(30, 0.88), (200, 0.92)])
def test_the_paired_interval_covers(windows: int, least: float) -> None:
    """Of 600 simulated texts with lognormal differences so many intervals hold the true change,
    whatever the windows' sizes.
    """
    random = np.random.default_rng(3)
    found = [simulated(random, windows, 0.02, 0.05).change for _ in range(600)]
    share = np.mean([interval.low <= 0.02 <= interval.high for interval in found])
    assert least <= share <= 0.985


@pytest.mark.parametrize(
    ("windows", "correlation"),
    [(np.full(10, 20), 0.3), (np.array([3, 5, 8, 10, 14, 20, 30, 40, 60, 80, 80, 120]), 0.5)],
)
def test_windows_of_one_document_are_alike(windows: Any, correlation: float) -> None:
    """Intervals rest on documents: of 1500 texts whose windows are correlated 93 % hold the true
    change; by windows it is half.
    """
    random = np.random.default_rng(7)
    documents = np.repeat(np.arange(len(windows)), windows)
    sizes = random.integers(200, 400, len(documents))
    covered = []
    for _ in range(1500):
        alike = random.normal(0, correlation**0.5, len(windows))[documents]
        own = random.normal(0, (1 - correlation) ** 0.5, len(documents))
        found = ratio(sizes * (0.02 + 0.05 * (alike + own)), sizes, documents)
        covered.append(found.low <= 0.02 <= found.high)
    assert 0.93 <= np.mean(covered) <= 0.98


def test_a_text_of_few_documents_has_no_interval() -> None:
    """Below five documents nothing is known of how they differ; one document alone counts as five
    contiguous parts, whose windows may be alike.
    """
    random = np.random.default_rng(8)
    sizes, base = np.full(200, 300), random.normal(400, 50, 200)
    nll = [base, base + random.normal(10, 1, 200)]
    few, one, many = (
        compare_texts(scores(nll, sizes, documents=documents), 0, 1)
        for documents in (np.arange(200) // 50, np.zeros(200), np.arange(200) // 40)
    )
    assert (few.change.low, few.change.high, few.verdict()) == (-np.inf, np.inf, "unclear")
    assert one.change.value == many.change.value
    assert one.change.low <= many.change.low < many.change.high <= one.change.high
    assert one.verdict() == "worse"


def test_pairing_is_what_makes_it_narrow() -> None:
    """The paired interval is a small part of the one that two separate texts of this kind would
    give.
    """
    found = simulated(np.random.default_rng(4), 200, 0.02, 0.02)
    alone = ratio(
        np.random.default_rng(5).normal(2, 0.6, 200) * 500, np.full(200, 500), np.arange(200)
    )
    assert found.change.high - found.change.low < 0.2 * (alone.high - alone.low)


def test_verdicts() -> None:
    """Worse, better, no different, and unclear for so few and so different windows."""
    random = np.random.default_rng(6)
    assert simulated(random, 400, 0.05, 0.02).verdict() == "worse"
    assert simulated(random, 400, -0.05, 0.02).verdict() == "better"
    assert simulated(random, 400, 0.0, 0.005).verdict() == "same"
    assert simulated(random, 12, 0.01, 0.1).verdict() == "unclear"


def test_contradictions() -> None:
    """Arrays of another length, of another kind, or of nothing are named."""
    fine = scores([np.ones(2)] * 2, np.array([10, 10]))
    assert scores_problem(fine) is None
    odd = fine.arms[1].model_copy(update={"nll": pack(np.ones(3), "i2")})
    for update, problem in (
        ({"windows": 3}, "bytes has 2 values for 3 windows"),
        ({"arms": (fine.arms[0], odd)}, "nll of arm 1 is no packed array of f8"),
    ):
        assert problem in str(scores_problem(fine.model_copy(update=update)))
    empty = TextScores(windows=0, listing="", bytes="", characters="", documents="")
    assert "no windows" in str(scores_problem(empty))
    with pytest.raises(ValueError, match="a ratio needs windows"):
        ratio([], [], [])
