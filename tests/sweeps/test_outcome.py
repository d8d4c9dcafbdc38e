"""Untrusted outcomes: what contradicts itself or fits no database is refused in a line that names
it.
"""

import json

import pytest
from pydantic import ValidationError

from sweeps.analysis.labels import effect_of
from sweeps.model.kinds import KINDS
from sweeps.model.metrics import METRICS, find_metric, metric, notes_on, worst
from sweeps.model.outcome import Outcome
from tests.fixtures.outcomes import HOSTILE, OUTCOME, changed


@pytest.mark.parametrize("which", HOSTILE)
def test_hostile_outcomes_are_refused(which: str) -> None:
    """Each contradiction is a validation error that names it."""
    change, message = HOSTILE[which]
    with pytest.raises(ValidationError, match=message):
        Outcome.model_validate_json(changed(change))


def test_an_arm_may_be_timed_twice_in_every_round() -> None:
    """Two columns of samples then name it; a row of bursts has one value for each arm, not for each
    column.
    """
    slots = {
        "arms": [0, 1, 0],
        "seconds": [[0.1, 0.2, 0.1]],
        "order": [[2, 0, 1]],
        "inner": [1, 1, 1],
        "series": {},
    }
    document = json.loads(OUTCOME.model_dump_json())
    document["samples"] |= {**slots, "bursts": [[0.09, 0.18], [0.08, 0.19]]}
    read = Outcome.model_validate(document)
    assert read.samples is not None
    assert (read.samples.arms, read.samples.bursts) == ((0, 1, 0), ((0.09, 0.18), (0.08, 0.19)))
    document["samples"]["bursts"] = [[0.09, 0.18, 0.09]]
    with pytest.raises(
        ValidationError, match="a row of bursts has not one value for each of 2 arms"
    ):
        Outcome.model_validate(document)


def test_an_honest_outcome_is_read_back() -> None:
    """What a worker writes is taken in."""
    assert Outcome.model_validate_json(OUTCOME.model_dump_json()) == OUTCOME


# ---- declarations of metrics ----


def test_kinds_compare_by_declared_metrics() -> None:
    """Kinds of samples compare ratios, of profiles nothing, the others differences, of metrics of
    their own modality.
    """
    for kind in KINDS.values():
        how = "ratio" if kind.sampled else None if kind.timed else "difference"
        assert {metric(name).compared for name in kind.metrics} == {how}
        assert {metric(name).modality for name in kind.metrics} <= {kind.modality, None}
    assert metric("zeroshot_piqa_acc").compared == "difference"
    assert metric("zeroshot_piqa_acc_norm").compared is None


def test_what_is_not_declared() -> None:
    """A method's own count has no declaration, and a lookup that needs one lists those there
    are.
    """
    assert find_metric("bananas") is None
    with pytest.raises(
        KeyError,
        match=r"'bananas' is not declared in sweeps/model/metrics\.py; declared are latency",
    ):
        metric("bananas")


def test_effects_take_words_from_declarations() -> None:
    """A time is faster or slower, everything else better or worse in its own unit, and what is not
    compared has no effect.
    """
    assert effect_of(METRICS["ttft"])[:2] == ("faster", "slower")
    found = effect_of(METRICS["top1"])
    assert (found.gain, found.loss, found.unit) == ("better", "worse", "points")
    assert (found.digits, found.floor) == (2, 0.2)
    assert effect_of(METRICS["bits_per_byte"]).unit == "bits per byte"
    with pytest.raises(ValueError, match="throughput is not compared"):
        effect_of(METRICS["throughput"])


# ---- notes on the machine beside a result ----


QUIET = {
    "seconds": 10.0, "load_before": 1.1, "load_after": 1.3, "process_cores": 1.9, "involuntary_switches": 12.0,
    "foreign_cores": 0.02, "stolen_cores": 0.01, "cpu_mhz_min": 2950.0, "cpu_mhz_max": 3000.0, "quota_throttled_s": 0.0,
    "thermal_throttles": 0.0, "gpu_sm_clock_min": 1965.0, "gpu_sm_clock_max": 1980.0, "gpu_temperature_max": 61.0,
    "gpu_reason_gpu_idle": 0.4, "gpu_reason_sw_power_cap": 0.05, "gpu_memory_foreign_max": 3.0,
}  # fmt: skip


def test_a_quiet_machine_needs_no_note() -> None:
    """Steady clocks, little foreign work, idle moments between rounds."""
    assert list(notes_on(QUIET)) == []
    assert list(notes_on({})) == []


@pytest.mark.parametrize(
    ("readings", "note"),
    [
        ({"foreign_cores": 0.45}, "others used 0.45 cores"),
        ({"stolen_cores": 0.2}, "0.20 cores stolen"),
        ({"quota_throttled_s": 0.3}, "quota withheld 0.3 s"),
        ({"thermal_throttles": 3.0}, "3 thermal throttles"),
        ({"cpu_mhz_min": 1200.0}, "CPU at 1200 to 3000 MHz"),
        ({"gpu_sm_clock_min": 1410.0}, "SMs at 1410 to 1980 MHz"),
        ({"gpu_reason_sw_power_cap": 0.8}, "sw power cap at 80% of readings"),
        ({"gpu_reason_hw_thermal_slowdown": 0.01}, "hw thermal slowdown at 1% of readings"),
        ({"gpu_memory_foreign_max": 2048.0}, "others had 2 GiB of the GPU"),
    ],
)
def test_what_stands_out_is_noted(readings: dict[str, float], note: str) -> None:
    """Each alone, in a few words."""
    assert list(notes_on(QUIET | readings)) == [note]


def test_the_worst_of_several_attempts() -> None:
    """The least of minima, the largest of the rest; what one attempt alone read counts."""
    found = worst(
        [
            {"cpu_mhz_min": 3000.0, "foreign_cores": 0.1},
            {"cpu_mhz_min": 1200.0, "foreign_cores": 0.0, "x": 1.0},
        ]
    )
    assert found == {"cpu_mhz_min": 1200.0, "foreign_cores": 0.1, "x": 1.0}
    assert worst([]) == {}
