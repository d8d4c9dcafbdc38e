"""The audit's rules: each finds what was planted, none finds anything where only noise and rounding
are at work; golden tables.
"""

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sweeps.analysis.audit.frame import (
    TYPICAL_NOISE,
    allowed,
    frame_of_csv,
    frame_of_table,
    quantile_of,
    rounding,
)
from sweeps.analysis.audit.report import AUDIT_RULES, AuditReport, audit_table, measured_table
from sweeps.importers.measurement import Measurement, MeasurementTable
from sweeps.importers.tables import load_reference, read_csv_rows, shipped_references
from tests.fixtures.audit_tables import Draft, built, draft
from tests.fixtures.corpus_tables import CLEAN, FAULTS, Entry
from tests.fixtures.planted_errors import PLANTED

TABLES, PLANTS = 70, 40


@pytest.mark.parametrize(
    ("rule", "plant"), PLANTED, ids=[f"{rule}-{plant.__name__}" for rule, plant in PLANTED]
)
def test_each_planted_error_is_found_in_every_table(
    rule: str, plant: Callable[[int], Draft], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error planted in a table of a random machine is found by its rule, in each of 40
    tables.
    """
    only = tuple(each for each in AUDIT_RULES if each.name == rule)
    monkeypatch.setattr(sys.modules[audit_table.__module__], "AUDIT_RULES", only)
    missed = [seed for seed in range(PLANTS) if not audit_table(built(plant(seed))).findings]
    assert missed == []


def test_clean_tables_are_silent() -> None:
    """Nothing is found in 70 tables with rounding and noise alone, whatever columns they have."""
    found = {
        seed: report.findings
        for seed in range(TABLES)
        if (report := audit_table(built(draft(seed)))).findings
    }
    assert found == {}


def test_clean_tables_with_all_columns_are_silent() -> None:
    """Nothing is found in 70 tables to which every rule can be applied."""
    reports = [
        audit_table(built(draft(1000 + seed, batches=4, whole=True))) for seed in range(TABLES)
    ]
    assert [report.findings for report in reports if report.findings] == []
    always = {"throughput_times_latency", "steady_state", "device_work", "stated_ratio"}
    assert all(always <= set(report.applied) for report in reports)


def test_every_rule_has_a_planted_error() -> None:
    """No rule is without a planted error that it must find."""
    corpus = {rule for entry in FAULTS for rule in entry["by"]}
    assert {rule.name for rule in AUDIT_RULES} == {rule for rule, _ in PLANTED} | corpus


def test_every_rule_states_its_source_and_limits() -> None:
    """The docstring of each check names where the rule is from and what it cannot decide."""
    for rule in AUDIT_RULES:
        text = " ".join((rule.check.__doc__ or "").split())
        assert rule.purpose.endswith(".")
        assert "Source:" in text, rule.name
        assert "Cannot decide:" in text, rule.name


NOTED = "note sampling_error"
GOLDEN = {
    "tr_batch_224": "contradiction throughput_times_latency, contradiction flat_throughput,"
    " contradiction flat_throughput",
    "tr_batch_sweeps": "contradiction steady_state, contradiction stage_tokens, contradiction"
    " stage_tokens, doubtful beyond_macs, doubtful break_even_without_data",
    "tr_nsys": "contradiction device_work, contradiction device_work, doubtful totals_per_forward",
    "tr_ncu": "doubtful same_counters",
    "tome_vs_ours_accuracy": NOTED,
    "tome": NOTED,
    "evit": NOTED,
    "llm_cpu_comparison": "contradiction weights_in_memory, contradiction weights_in_memory",
    **dict.fromkeys(("tr_edwin", "diffrate", "larosa", "adaptivocab"), ""),
}
"""What the audit finds in the tables of the background reports and of papers."""


def test_golden_findings() -> None:
    """Exactly these findings, in this order, in every table that ships; a note on accuracies stands
    once.
    """
    found = {}
    for name in shipped_references():
        words = [
            f"{each.severity} {each.rule}" for each in audit_table(load_reference(name)).findings
        ]
        found[name] = ", ".join(set(words) if name in ("tome", "evit") else words)
    assert found == GOLDEN


def sentences(name: str) -> str:
    return " ".join(found.sentence for found in audit_table(load_reference(name)).findings)


def test_golden_numbers() -> None:
    """The findings on the background tables work the numbers out."""
    sweep = sentences("tr_batch_224")
    assert (
        "throughput × latency is one image (0.999 to 1.001) at every one of the batch sizes 2, 4, 8"
        " and 16" in sweep
    )
    both = sentences("tr_batch_sweeps")
    assert (
        "7.6, 32.8, 71.4, 32.8/s at batch 1, 2, 4 and 8 cannot be one machine's steady state"
        in both
    )
    assert (
        "keep rate 0.1 in 3 stages ends with one patch token (196 → 20 → 2 → 1), not 20, which is"
        " what one stage leaves" in both
    )
    assert "the break-even at 400 tokens has no data between 196 and 784" in both
    assert "13.9 times as fast" in both
    nsys = sentences("tr_nsys")
    assert "kernels take 3.7 times as long" in nsys
    assert "where MACs state 35.8 times" in nsys
    assert "with one image in both MACs grow 4.5 times, which fits" in nsys
    assert "23.6 times the wall time of one forward" in nsys
    assert "0.45 points are 1.7 standard errors of 0.26" in sentences("tome_vs_ours_accuracy")


def audit_of(*rows: dict[str, Any], **table: Any) -> AuditReport:
    """The audit of rows of one arm."""
    made = tuple(Measurement(**{"label": "a", "batch": 1, **row}) for row in rows)
    return audit_table(MeasurementTable(name="t", rows=made, **table))


IN_TIME = [{"batch": batch, "throughput": batch / 0.01, "latency_ms": 10.0} for batch in (1, 4, 16)]
"""As many images in 10 ms as the batch has."""


def test_unit_of_the_latency_is_inferred() -> None:
    """Without a stated unit, products that are the batch show a latency of a batch; products of 1
    decide nothing.
    """
    notes = audit_of(*IN_TIME).notes
    assert any("the latency is of a whole batch" in note for note in notes)
    report = audit_of(*({**row, "throughput": 100.0 + row["batch"] / 10} for row in IN_TIME))
    assert any("neither stated nor clear" in note for note in report.notes)
    (found,) = report.findings
    assert (found.severity, found.rule) == ("doubtful", "flat_throughput")


def test_a_saturated_device_is_rightly_flat() -> None:
    """A flat throughput beside a latency that grows with the batch is silent; beside a flat latency
    of a batch it is not.
    """
    flat = [{"batch": batch, "throughput": 100.0, "latency_ms": 10.0} for batch in (1, 2, 4, 8, 16)]
    right = [{**row, "latency_ms": 10.0 * row["batch"]} for row in flat]
    assert audit_of(*right, latency="per_batch").findings == ()
    assert audit_of(*flat, latency="per_image").findings == ()
    wrong = audit_of(*flat, latency="per_batch")
    rules = {found.rule for found in wrong.findings}
    assert rules == {"throughput_times_latency", "flat_throughput"}
    assert wrong.contradictions == 2


def test_what_is_missing_is_named() -> None:
    """A rule that cannot be applied names the columns that it lacks."""
    rows = [{"throughput": 10.0, "batch": 2}, {"throughput": 10.1, "batch": 4}]
    report = audit_of(*rows)
    assert report.not_applied["throughput_times_latency"] == "latency_ms"
    assert report.not_applied["device_work"] == "kernel_ms, gmacs"
    assert dict(report.applied) == {"steady_state": 1, "duplicated_rows": 2}
    alone = audit_of(rows[0])
    assert (dict(alone.applied), len(alone.not_applied)) == ({}, len(AUDIT_RULES))
    assert not set(report.applied) & set(report.not_applied)


@pytest.mark.parametrize(
    ("value", "step"), [(7.6, 0.05 / 7.6), (137.0, 0.5 / 137), (0.0254, 0.00005 / 0.0254)]
)
def test_rounding(value: float, step: float) -> None:
    """Half a step of the last digit that is written."""
    assert rounding(value) == pytest.approx(step)


def test_tolerance_grows_with_comparisons_and_noise() -> None:
    """More comparisons and more noise allow more; the chance of a false finding in a whole table
    stays.
    """
    assert quantile_of(1) == pytest.approx(3.89, abs=0.01)
    assert quantile_of(100) > quantile_of(10) > quantile_of(1)
    assert allowed((1.0, 1.0), 0.03, 10) > allowed((1.0, 1.0), 0.01, 10)


def test_noise_is_that_of_the_rows_else_of_the_table_else_typical() -> None:
    """A group has the largest that its rows state."""
    groups = np.array([0, 0, 1])
    for stated, of_table, expected in (
        ((0.01, 0.03, None), 0.2, [0.03, 0.03, 0.2]),
        ((None, None, None), 0.2, [0.2, 0.2, 0.2]),
        ((0.01, 0.03, None), None, [0.03, 0.03, TYPICAL_NOISE]),
    ):
        rows = tuple(Measurement(label="a", latency_ms=1.0, noise=each) for each in stated)
        frame = frame_of_table(MeasurementTable(name="t", rows=rows, noise=of_table))
        assert frame.noise_of_groups(np.arange(3), groups).tolist() == expected
        assert frame.noise_at(np.arange(3)) == max(each for each in expected[:2])


def test_our_own_rows() -> None:
    """Rows of the view `arm` become a table: counted images, the device's time, stages, tokens
    without the class token.
    """
    row: dict[str, Any] = {
        "method": "dense",
        "params": "{}",
        "device_name": "GPU",
        "dtype": "float32",
    }
    row |= {"model": "deit_tiny_patch16_224", "image_size": 224, "tokens": 196, "tokens_final": 197}
    row |= {"batch_size": 4, "batch": 4, "latency_ms": 10.0, "device_latency_ms": 8.0}
    row |= {"throughput": 400.0, "gmacs_total": 1.25, "top1": math.nan}
    reduced = {**row, "method": "topk", "params": '{"keep_rate":0.5,"layers":[3,6,9]}'}
    reduced |= {"tokens_final": 26, "batch": 1, "device_latency_ms": 30.0}
    table = measured_table("mine", [row, reduced], lambda method, _: method)
    assert (table.rows[0].tokens_final, table.rows[1].tokens_final) == (196, 25)
    assert (table.rows[1].keep_rate, table.rows[1].stages) == (0.5, 3)
    assert table.rows[0].top1 is None
    assert {found.rule for found in audit_table(table).findings} == {
        "counted_items",
        "device_within_wall",
    }


def test_a_latency_that_is_called_that_of_an_image() -> None:
    """If the latency is stated per image and its product with the throughput is the batch, the
    statement is doubtful.
    """
    findings = audit_of(*IN_TIME, latency="per_image").findings
    (found,) = [found for found in findings if found.rule == "throughput_times_latency"]
    assert (found.severity, found.rows) == ("doubtful", (2, 3))
    stated = "at 4 and 16, so the latency is of a batch, though it is stated per image"
    assert stated in found.sentence


def test_stated_ratios_that_disagree() -> None:
    """A speed-up and a change of the time that are stated of one row and differ."""
    (found,) = audit_of({"speedup": 1.51, "latency_change": -50.3}).findings
    stated = "a speed-up of 1.51x is stated and a time that changes by -50.3 % is stated (2.01x)"
    assert f"{stated} are not the same" in found.sentence
    assert audit_of({"speedup": 1.51, "latency_change": -33.8}).findings == ()


def test_kernels_with_next_to_nothing_to_do() -> None:
    """Kernel time that is mostly the least that many kernels take need not grow with the MACs;
    uncounted it is doubtful.
    """
    few = {"tokens": 4, "gmacs": 0.02, "kernel_ms": 1.6, "kernels": 300, "forwards": 1}
    both = few, {**few, "tokens": 196, "gmacs": 1.25, "kernel_ms": 3.0}
    assert audit_of(*both).findings == ()
    (found,) = audit_of(*({**row, "kernels": None} for row in both)).findings
    assert (found.severity, found.rule) == ("doubtful", "device_work")


# ---- the audit on sixty tables as users bring them ----


def audited(folder: Path, entry: Entry) -> AuditReport:
    path = folder / "table.csv"
    path.write_text(entry["table"], encoding="utf-8")
    return audit_table(frame_of_csv(entry["name"], read_csv_rows(path)))


def is_found(report: AuditReport, entry: Entry) -> bool:
    """A rule that is to find the fault, and no mere note of it, names the row."""
    return any(
        each.rule in entry["by"] and each.severity != "note" and entry["row"] in each.rows
        for each in report.findings
    )


@pytest.mark.parametrize("entry", FAULTS, ids=[entry["name"] for entry in FAULTS])
def test_a_fault_is_found(tmp_path: Path, entry: Entry) -> None:
    report = audited(tmp_path, entry)
    assert is_found(report, entry), [
        (each.severity, each.rule, each.rows) for each in report.findings
    ]


@pytest.mark.parametrize("entry", CLEAN, ids=[entry["name"] for entry in CLEAN])
def test_a_clean_table_is_silent(tmp_path: Path, entry: Entry) -> None:
    found = [
        (each.severity, each.rule, each.rows, each.sentence)
        for each in audited(tmp_path, entry).findings
    ]
    assert [
        each for each in found if not (each[0] == "note" and each[1] in entry.get("notes", ()))
    ] == []
