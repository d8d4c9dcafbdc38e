"""Notes on the machine beside a result: only what stands out, and the worst of several attempts."""

import pytest

from sweeps.model.metrics import notes_on, worst

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
