"""Each rule of the audit by hand: the sentence that it works out, the rows that it names, and where
it stays silent.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from sweeps.analysis.audit.report import audit_table, measured_table
from sweeps.importers.measurement import Measurement, MeasurementTable, StatedBreakEven
from tests.fixtures.audit_findings import FOUND, SILENT, Finding, Row, of_batch


def found(*rows: Row, **table: Any) -> list[Finding]:
    """Rule, rows and sentence of each finding; the latency is of a batch unless stated
    otherwise.
    """
    made = MeasurementTable(
        name="t",
        rows=tuple(Measurement.model_validate(row) for row in rows),
        **{"latency": "per_batch", **table},
    )
    return [(each.rule, each.rows, each.sentence) for each in audit_table(made).findings]


@pytest.mark.parametrize("name", FOUND)
def test_a_finding_works_its_numbers_out(name: str) -> None:
    """Exactly this rule, these rows, this sentence."""
    rows, expected = FOUND[name]
    assert found(*rows) == [expected]


@pytest.mark.parametrize("name", SILENT)
def test_what_rounding_and_noise_allow_is_silent(name: str) -> None:
    """Nothing is found, but that equal rows stand there twice."""
    assert [
        each for each in found(*SILENT[name]) if not each[2].endswith("each time the same")
    ] == []


def test_one_image_at_every_batch() -> None:
    """Both rules on flat numbers, with the largest batch worked out, from a fourfold batch on."""
    times, flat = found(*(of_batch(batch, 100.5, 9.95) for batch in (4, 1, 2)))
    assert times == (
        "throughput_times_latency",
        (1, 3),
        (
            "throughput × latency is one image (1.000) at every one of the batch sizes 4 and 2:"
            " 100.5/s × 9.95 ms = 1.000 image at batch 4; 4 images in 9.95 ms would be 402/s. One"
            " image was timed at each of them"
        ),
    )
    assert flat[:2] == ("flat_throughput", (1, 2, 3))
    assert flat[2].startswith(
        "a: throughput is flat within 0.0 % (100.5 to 100.5/s, 0.0 % apart) over a batch that grows"
        " 4 times"
    )
    assert found(of_batch(1, 100.5, 9.95), of_batch(3, 100.5, 9.95), latency=None) == []


@pytest.mark.parametrize(("images", "pairs", "more"), [(2, 1, ""), (5, 3, "; and 1 more pair")])
def test_accuracies_below_their_sampling_error(images: int, pairs: int, more: str) -> None:
    """At most three pairs are worked out, the rest is counted."""
    rows = [
        {"label": f"m{place}", "top1": 82.0 + place / 10, "images": 5000, "keep_rate": 0.5}
        for place in range(images)
    ]
    ((rule, named, sentence),) = found(*rows)
    assert (rule, named) == ("sampling_error", tuple(range(1, images + 1)))
    first = (
        "m1 keep rate 0.5 82.1 % and m0 keep rate 0.5 82 %: 0.10 points are 0.1 standard errors of"
        " 0.77"
    )
    assert sentence.startswith(first)
    assert sentence.count("standard errors") == pairs
    assert sentence.endswith(f"{more}, for 5,000 images drawn apart")


def test_a_difference_beyond_its_sampling_error() -> None:
    """Two points on 5,000 images are 2.6 standard errors, 1.4 points are 1.9; equal accuracies are
    no pair.
    """
    rows = [
        {"label": name, "top1": top1, "images": 5000} for name, top1 in (("a", 82.0), ("b", 84.0))
    ]
    assert found(*rows) == []
    ((_, _, sentence),) = found(rows[0], {**rows[1], "top1": 83.4})
    assert "1.40 points are 1.9 standard errors of 0.76" in sentence
    assert found(rows[0], {**rows[1], "top1": 82.0}) == []


def claim(at: float, places: Sequence[int], speed: Mapping[int, Row]) -> list[Finding]:
    """Rows of dense and one arm at numbers of tokens, and a break-even that is claimed."""
    rows: list[Row] = []
    for tokens in places:
        rows += [
            {"label": "dense", "tokens": tokens, "throughput": 100.5},
            {"label": "a", "tokens": tokens, **speed[tokens]},
        ]
    return found(*rows, break_evens=(StatedBreakEven(at=at),))


SAME, SLOWER, FASTER = ({"throughput": value} for value in (100.5, 50.5, 200.5))


@pytest.mark.parametrize(
    ("at", "sentence"),
    [
        (400, "has no data between 196 and 784: any crossing in between fits the table"),
        (900, "lies above the largest measured, 784: it is extrapolated"),
        (100, "lies below the smallest measured, 196: it is extrapolated"),
        (150, "is no crossing: the arm is slower at 100 and at 200"),
    ],
)
def test_a_claim_that_is_not_borne_out(at: float, sentence: str) -> None:
    """The rows of the arm beside it are named."""
    expected = ("break_even_without_data", (2, 4), f"the break-even at {at:g} tokens {sentence}")
    if "slower" in sentence:
        for speed in (SLOWER, {"speedup": 0.505}):
            assert claim(at, (100, 200), {100: speed, 200: speed}) == [expected]
    else:
        assert claim(at, (196, 784), {196: SAME, 784: SAME}) == [expected]


@pytest.mark.parametrize(
    ("at", "places", "speeds"),
    [
        (150, (100, 200), (SLOWER, FASTER)),
        (150, (100, 200), (SLOWER, SAME)),
        (150, (100, 200), (SLOWER, {"top1": 80.5})),
        (196, (196, 784), (SAME, SAME)),
        (200, (100, 200), (SLOWER, SLOWER)),
    ],
)
def test_a_claim_that_may_hold(at: float, places: Sequence[int], speeds: Sequence[Row]) -> None:
    """Two places at a doubling bracket it, and a measured place is data."""
    assert claim(at, places, dict(zip(places, speeds, strict=True))) == []


def test_only_the_rows_beside_a_claim_are_named() -> None:
    """Of four sizes those between which it lies."""
    places = (50, 100, 400, 800)
    ((_, named, sentence),) = claim(200, places, dict.fromkeys(places, SAME))
    assert named == (4, 6)
    assert "no data between 100 and 400" in sentence


@pytest.mark.parametrize(
    ("rate", "stages"), [(1.0, 3), (0.5, 3), (0, None), (1.5, None), ("half", None)]
)
def test_keep_rates_of_our_own_rows(rate: object, stages: int | None) -> None:
    """Shares above 0 and up to 1 are keep rates of as many stages as there are layers; nothing else
    is.
    """
    written = f'"{rate}"' if isinstance(rate, str) else rate
    row: dict[str, Any] = {
        "params": f'{{"keep_rate":{written},"layers":[3,6,9]}}',
        "device_name": "D",
    }
    row |= {"method": "m", "model": "v", "image_size": 224, "tokens": 196, "tokens_final": 0}
    row |= {"batch_size": 1, "batch": 1, "gmacs_total": 0.0}
    (measured,) = measured_table("t", [row], lambda method, _: method).rows
    assert measured.stages == stages
    assert measured.gmacs is None
    assert measured.tokens_final == 0


def sizes(*times: tuple[int, float], **more: Any) -> list[Row]:
    """Rows of the unmodified model: tokens and ms."""
    return [
        {"label": "dense", "tokens": tokens, "batch": 1, "latency_ms": ms, **more}
        for tokens, ms in times
    ]


def test_a_small_size_that_takes_longer_than_a_larger_one() -> None:
    """Both sizes are named, each beside the one that shows most; 7 % is silent, and so is the
    arm.
    """
    times = ((9, 9.5), (16, 8.93), (36, 8.32), (144, 25.4), (196, 20.8))
    arm_rows = [{"label": "a", "tokens": 9, "batch": 1, "latency_ms": 80.0}]
    ((rule, rows, sentence),) = found(*sizes(*times), *arm_rows, job_noise=0.015)
    assert (rule, rows) == ("time_of_sizes", (1, 3, 4, 5))
    assert sentence.startswith(
        "batch 1: the unmodified model takes 25.4 ms at 144 tokens, 20.8 ms at 196 tokens (22 %"
        " longer with fewer tokens); 9.5 ms at 9 tokens, 8.32 ms at 36 tokens (14 % longer with"
        " fewer tokens): the machine was in another state"
    )
    assert (
        "Each speed-up is formed inside its job and stands, but break-evens and fits join these"
        " sizes" in sentence
    )


@pytest.mark.parametrize(
    "rows",
    [
        sizes((16, 8.9), (36, 8.3), (64, 10.1)),
        sizes((16, 5.0), (36, 8.3), (64, 10.1)),
        [*sizes((144, 25.4), batch=2), *sizes((196, 20.8), batch=1)],
        [*sizes((144, 25.4), model="a"), *sizes((196, 20.8), model="b")],
        [*sizes((144, 25.4), setting="eager"), *sizes((196, 20.8), setting="compile")],
        [*sizes((144, 25.4), (144, 18.0), (144, 18.1)), *sizes((196, 20.8))],
    ],
    ids=[
        "7 %",
        "in order",
        "another batch",
        "another model",
        "another runtime",
        "the median of three jobs",
    ],
)
def test_sizes_in_order_or_not_to_be_compared(rows: Sequence[Row]) -> None:
    """Chance between jobs, and curves of other conditions, are silent."""
    assert [each for each in found(*rows, job_noise=0.015) if each[0] == "time_of_sizes"] == []


def idle(size: int, low: float, high: float, **more: Any) -> Row:
    paired = {"value": (low + high) / 2, "low": low, "high": high}
    return {
        "label": "tome",
        "image_size": size,
        "tokens": (size // 16) ** 2,
        "batch": 1,
        "no_effect": True,
        "paired": paired,
        **more,
    }


def test_an_arm_that_removes_nothing_and_is_slower() -> None:
    """The clear size is named, the others beside it, and how many of them chance would give."""
    ((rule, rows, sentence),) = found(
        idle(32, 0.954, 0.988), idle(48, 0.954, 1.024), idle(64, 0.97, 1.03)
    )
    assert (rule, rows) == ("nothing_removed", (1,))
    assert (
        sentence
        == "tome removes nothing, and yet was measured at 0.971x [0.954, 0.988] at 32 px (4"
        " tokens): its own code costs this, or the measurement is biased (by chance alone 0.03"
        " of 3 such comparisons would stand out). Where it removes nothing too: 0.989x [0.954,"
        " 1.024] at 48 px (9 tokens), 1.000x [0.970, 1.030] at 64 px (16 tokens). This is no"
        " effect of fewer tokens"
    )


def test_an_arm_that_removes_nothing_and_is_faster() -> None:
    """Its own code cannot gain anything."""
    ((_, _, sentence),) = found(idle(32, 1.02, 1.08))
    assert (
        "1.050x [1.020, 1.080] at 32 px (4 tokens): the measurement is biased (by chance alone 0.01"
        " of 1 such" in sentence
    )


@pytest.mark.parametrize(
    "row",
    [
        idle(32, 0.95, 1.01),
        idle(32, 0.985, 0.999),
        idle(32, 0.9, 0.95, no_effect=False),
        {**idle(32, 0.9, 0.95), "paired": {"value": 0.9}},
    ],
    ids=["not clear", "within the floor", "it removes tokens", "no interval"],
)
def test_no_finding_on_what_removes_nothing(row: Row) -> None:
    """What its interval does not show is not claimed, and what removes tokens may be slower."""
    assert found(row) == []
