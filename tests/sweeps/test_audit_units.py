"""Units and statistics that a table does not state, or that the audit does not read: no rule that
needs them is applied, and none calls the numbers a contradiction.
"""

from pathlib import Path

import pytest

from sweeps.analysis.audit.frame import frame_of_csv
from sweeps.analysis.audit.report import AuditReport, audit_table
from sweeps.errors import UserError
from sweeps.importers.tables import CsvColumns, read_csv_rows


def columns_of(folder: Path, text: str, **mapping: str) -> CsvColumns:
    path = folder / "table.csv"
    path.write_text(text, encoding="utf-8")
    return read_csv_rows(path, mapping=mapping)


def audit_csv(folder: Path, text: str, **mapping: str) -> AuditReport:
    return audit_table(frame_of_csv("table.csv", columns_of(folder, text, **mapping)))


RATIO = "arm,batch,latency_ms,{header}\ndense,1,10.0,\ntopk,1,8.0,{cell}\n"


@pytest.mark.parametrize(
    ("header", "cell"),
    [
        ("Speedup", "25%"),
        ("Speedup", "25 % faster"),
        ("Speedup", "-20%"),
        ("Speedup", "20 percent"),
        ("Speedup", "1.25x faster"),
        ("Speedup (%)", "25"),
        ("speedup_pct", "25"),
        ("Speed-up %", "25"),
        ("Speedup (dB)", "0.97"),
        ("latency change", "-0.2"),
        ("latency change", "0.8x"),
    ],
)
def test_a_ratio_in_an_unclear_unit_is_not_compared(tmp_path: Path, header: str, cell: str) -> None:
    """A speed-up in per cent may be of the time or of the rate; a change without its unit may be a
    share.
    """
    report = audit_csv(tmp_path, RATIO.format(header=header, cell=cell))
    assert report.findings == ()
    assert report.not_applied["stated_ratio"] == "speedup or latency_change"
    columns = columns_of(tmp_path, RATIO.format(header=header, cell=cell))
    assert columns.unknown == (header,)
    assert any(header in note for note in columns.notes)


@pytest.mark.parametrize(
    ("header", "cell"),
    [
        ("Speedup", "1.45x"),
        ("Speedup", "1.45"),
        ("Speedup (x)", "1.45"),
        ("Speedup (vs dense)", "1.45 ×"),
        ("latency change", "-45%"),
        ("latency change (%)", "-45"),
    ],
)
def test_a_ratio_in_a_known_unit_is_still_compared(tmp_path: Path, header: str, cell: str) -> None:
    """10 ms against 8 ms are 1.25 times."""
    (found,) = audit_csv(tmp_path, RATIO.format(header=header, cell=cell)).findings
    assert (found.severity, found.rule) == ("contradiction", "stated_ratio")


@pytest.mark.parametrize(
    "header",
    [
        *("mean_latency_ms", "latency_mean (ms)", "Latency [ms] (avg)", "latency_ms", "time (ms)"),
        *("latency (mean, ms)", "average latency (ms)"),
    ],
)
def test_a_time_of_another_statistic_is_no_median(tmp_path: Path, header: str) -> None:
    """A mean may lie above the 95th percentile, and what does not name its statistic may be one."""
    table = f'arm,batch,"{header}",p95_ms\ndense,1,12.0,9.5\n'
    columns = columns_of(tmp_path, table)
    assert columns.columns[header] == "latency_ms"
    report = audit_csv(tmp_path, table)
    assert report.findings == ()
    assert "not called a median" in report.not_applied["percentiles_in_order"]


@pytest.mark.parametrize(
    "header",
    [
        *("latency (max) [ms]", "Latency [ms] (min)", "latency (std, ms)", "latency_max_ms"),
        *("latency (p90) (ms)", "p99.9 (ms)", "latency (stddev) [ms]", "time (min)", "min_ms"),
        *("latency (90th) [ms]", "latency_ms (99.9%)"),
    ],
)
def test_statistics_that_are_no_time_of_a_forward(tmp_path: Path, header: str) -> None:
    """Extremes, spreads and other percentiles are not read as the latency."""
    table = f'arm,batch,"{header}",p95_ms,throughput\ndense,8,12.0,9.5,100\n'
    assert header in columns_of(tmp_path, table).unknown
    assert audit_csv(tmp_path, table).findings == ()


@pytest.mark.parametrize(
    "header", ["p50 (ms)", "median_latency_ms", "latency (p50) [ms]", "Latency [ms] (median)"]
)
def test_a_median_above_the_95th_percentile_is_still_found(tmp_path: Path, header: str) -> None:
    report = audit_csv(tmp_path, f"arm,batch,{header},p95_ms\ndense,1,12.0,9.5\n")
    (found,) = report.findings
    assert "median 12 ms, p95 9.5 ms do not rise" in found.sentence


def test_percentiles_without_a_unit_are_still_compared_with_each_other(tmp_path: Path) -> None:
    """Their order does not depend on the unit that they share; one of them with a unit does."""
    (found,) = audit_csv(tmp_path, "arm,p95,p99\ndense,12.0,9.5\n").findings
    assert "p95 12, p99 9.5 do not rise" in found.sentence
    report = audit_csv(tmp_path, "arm,p95,p99 (s)\ndense,12.0,0.0095\n")
    assert report.findings == ()
    assert "percentiles_in_order" in report.not_applied


HYPERFINE = "command,mean,stddev,median,user,system,min,max,{rate},batch\n" + "".join(
    f"{arm},{seconds},0.01,{seconds},0.1,0.1,{seconds},{seconds},{rate},8\n"
    for arm, seconds, rate in (("dense", 0.5, 16), ("topk", 0.25, 32))
)
PYTEST_BENCHMARK = (
    "name,min,max,mean,stddev,rounds,median,iqr,ops,iterations,batch,throughput\n"
    "dense,0.4,0.6,0.5,0.01,5,0.5,0.01,2,1,8,16\n"
)
GOOGLE_BENCHMARK = (
    "name,iterations,real_time,cpu_time,time_unit,bytes_per_second,items_per_second,batch\n"
    "dense,100,1e7,1e7,ns,123456789,800,8\ntopk,100,8e6,8e6,ns,223456789,1000,8\n"
)


@pytest.mark.parametrize(
    "table",
    [
        HYPERFINE.format(rate="throughput"),
        HYPERFINE.format(rate="img/s"),
        PYTEST_BENCHMARK,
        "arm,batch,latency,throughput\ndense,8,10000,800\n",
        "arm,batch,step_time,img/s\ndense,8,10000,800\n",
        "arm,batch,latency (A100),img/s\ndense,8,10000,800\n",
        "arm,batch,inference time (lower is better),img/s\ndense,8,10000,800\n",
    ],
    ids=lambda table: table.split("\n")[0],
)
def test_a_time_without_a_unit(tmp_path: Path, table: str) -> None:
    """It is not compared with a rate, and the report names its column."""
    report = audit_csv(tmp_path, table)
    assert report.findings == ()
    assert report.not_applied["throughput_times_latency"] == "latency_ms in a known unit"
    name = next(
        name for name, field in columns_of(tmp_path, table).columns.items() if field == "latency_ms"
    )
    assert any(
        note.startswith(f"{name!r} has no known unit") for note in columns_of(tmp_path, table).notes
    )


@pytest.mark.parametrize(
    ("header", "cell", "rule"),
    [
        ("memory", "14.1", "weights_in_memory"),
        ("peak_memory", "14100000000", "weights_in_memory"),
        ("flops", "1.7e10", "catalogue_macs"),
        ("MACs", "17580", "catalogue_macs"),
        ("kernel_time", "12000", "device_within_wall"),
        ("params", "6.74e9", "weights_in_memory"),
        ("memory (bytes)", "14100000000", "weights_in_memory"),
    ],
)
def test_other_quantities_without_a_unit(tmp_path: Path, header: str, cell: str, rule: str) -> None:
    """Memory, operations, weights and kernel times without a unit are compared with nothing that
    has one.
    """
    more = "memory (GB)" if header == "params" else "iters"
    model = "vit_base_patch16_224" if rule == "catalogue_macs" else "somebody-7b"
    table = f"arm,model,{header},{more},latency_ms\ndense,{model},{cell},20,10\n"
    report = audit_csv(tmp_path, table)
    assert report.findings == ()
    if header != "params":
        assert report.not_applied[rule].endswith("in a known unit")


def test_ratios_do_not_need_the_unit(tmp_path: Path) -> None:
    """A speed-up is that of two times in one unit, whichever it is; a mapping states the unit."""
    table = "arm,batch,latency,speedup\ndense,1,10.0,\ntopk,1,8.0,1.8\n"
    (found,) = audit_csv(tmp_path, table).findings
    assert found.rule == "stated_ratio"
    rates = "arm,batch,latency,img/s\ndense,8,10000,800\n"
    (found,) = audit_csv(tmp_path, rates, latency="latency_ms").findings
    assert found.rule == "throughput_times_latency"


@pytest.mark.parametrize("cells", [("8.0 ms", "10"), ("8.0", "0.01 s")])
def test_units_in_some_cells_alone(tmp_path: Path, cells: tuple[str, str]) -> None:
    """Numbers without a unit below numbers with one are not compared with them."""
    table = "arm,batch,latency,speedup\ndense,1,{},\ntopk,1,{},1.25x\n".format(*cells)
    assert audit_csv(tmp_path, table).findings == ()
    assert columns_of(tmp_path, table).unknown == ("latency",)


RATES = "name,batch,latency (ms/batch),{}\ndense,8,10,100\ntopk,8,8,125\n"


@pytest.mark.parametrize(
    "header",
    [
        *("bytes_per_second", "items_per_second", "GB/s", "Throughput (GB/s)", "memory MB/s"),
        *("Throughput (qps)", "Throughput [QPS]", "throughput_qps", "qps", "queries/s"),
        *("it/s", "iter/s", "iterations_per_sec", "batches/s", "steps/s", "requests/s"),
        *("Throughput (it/s)", "Throughput (k img/s)", "kimg/s", "img/min", "images per minute"),
        *("Throughput (img/ms)", "img/s/GPU", "Throughput (img/hour)", "throughput (%)"),
        *("throughput_pct", "GFLOP/s", "Throughput (TFLOPS)", "throughput (K)"),
        *(
            "Throughput (req/s)",
            "inferences/s",
            "throughput_std",
            "throughput (max)",
            "throughput %",
        ),
    ],
)
def test_rates_of_something_else(tmp_path: Path, header: str) -> None:
    """Bytes, batches, queries and thousands per second, and anything per minute, are no images per
    second.
    """
    table = RATES.format(header)
    assert header in columns_of(tmp_path, table).unknown
    report = audit_csv(tmp_path, table)
    assert report.findings == ()
    assert report.not_applied["throughput_times_latency"] == "throughput"


@pytest.mark.parametrize(
    "cell", ["100 qps", "100 GB/s", "100 it/s", "0.1 k", "0.1M", "1.2x", "100 %", "100 tok/s"]
)
def test_rates_of_something_else_in_cells(tmp_path: Path, cell: str) -> None:
    """The column is left out with a note that names the cell; the others are still audited."""
    table = f"arm,batch,latency (ms/batch),throughput\ndense,8,10,{cell}\ntopk,8,8,\n"
    columns = columns_of(tmp_path, table)
    assert columns.unknown == ("throughput",)
    assert any(f":2: throughput: {cell!r} is no throughput" in note for note in columns.notes)
    report = audit_csv(tmp_path, table)
    assert report.findings == ()
    assert report.applied


@pytest.mark.parametrize(
    "header",
    [
        *("img/s", "im/sec", "images per second", "Throughput (img/s)", "#images/s", "fps", "tp"),
        *("infer_samples_per_sec", "sequences/s", "frames/s", "Throughput (fps)", "samples_s"),
        *("Throughput (↑)", "Real Throughput (img/s)", "TP (img/s)"),
    ],
)
def test_rates_of_images_are_still_compared(tmp_path: Path, header: str) -> None:
    """One image at a batch of 8 is found."""
    (found,) = audit_csv(tmp_path, RATES.format(header)).findings
    assert "throughput × latency is one image" in found.sentence


@pytest.mark.parametrize(
    ("table", "latencies"),
    [
        ("arm,batch,latency,unit,img/s\ndense,8,10000,us,800\ntopk,8,8000,us,1000\n", (10, 8)),
        ("arm,batch,latency,unit,img/s\ndense,8,10000,us,800\ntopk,8,8,ms,1000\n", (10, 8)),
        ("arm,batch,latency,Units,img/s\ndense,8,1e7,ns,800\ntopk,8,0.008,s,1000\n", (10, 8)),
        ("arm,batch,latency,latency unit,tp\ndense,8,≈10000,µs,800\ntopk,8,,µs,1000\n", (10, None)),
        (GOOGLE_BENCHMARK, (10, 8)),
    ],
)
def test_a_unit_in_its_own_column(
    tmp_path: Path, table: str, latencies: tuple[float | None, ...]
) -> None:
    """It holds for the numbers of its row that state none themselves."""
    columns = columns_of(tmp_path, table)
    assert [row.latency_ms for row in columns.rows] == list(latencies)
    assert audit_csv(tmp_path, table).findings == ()


@pytest.mark.parametrize(
    "table",
    [
        "arm,batch,latency,unit,img/s\ndense,8,10000,cycles,800\n",
        "arm,batch,latency,unit,img/s\ndense,8,10000,us,800\ntopk,8,8000,,1000\n",
        "arm,batch,latency_ms,unit,img/s\ndense,8,10000,us,800\n",
        "arm,batch,latency_ms,unit,throughput\ndense,8,10,GB/s,900\n",
        "arm,batch,latency_ms,unit,throughput\ndense,8,10,qps,900\n",
    ],
)
def test_a_unit_in_its_own_column_that_is_not_clear(tmp_path: Path, table: str) -> None:
    """An unknown unit, one that some rows lack, or one that is not that of the header."""
    report = audit_csv(tmp_path, table)
    assert report.findings == ()
    assert "throughput_times_latency" in report.not_applied


@pytest.mark.parametrize(
    ("header", "field"),
    [
        *(("Latency (%)", "latency_ms"), ("GPU memory (%)", "memory_mb"), ("MACs (%)", "gmacs")),
        *(("params (%)", "parameters_m"), ("p95 (%)", "latency_p95_ms")),
        *(("Latency (MB)", "latency_ms"), ("memory (ms)", "memory_mb")),
    ],
)
def test_a_unit_of_another_quantity(tmp_path: Path, header: str, field: str) -> None:
    """A column relative to the baseline, or with a unit of something else, is left out."""
    columns = columns_of(tmp_path, f"arm,model,{header},tp\ndense,vit_base_patch16_224,55,100\n")
    assert field not in columns.values
    assert columns.unknown == (header,)
    assert any(repr(header) in note for note in columns.notes)


@pytest.mark.parametrize(
    "cell",
    [
        *(
            "OOM",
            "oom",
            "out of memory",
            "CUDA out of memory",
            "CUDA OOM",
            "error",
            "ERR",
            "failed",
        ),
        *("timeout", "timed out", "crashed"),
    ],
)
def test_what_failed_is_a_missing_value(tmp_path: Path, cell: str) -> None:
    """It is noted, and the rest of the table is audited."""
    table = f"arm,batch,latency (ms/batch),img/s\ndense,8,10,100\ntopk,8,{cell},{cell}\n"
    columns = columns_of(tmp_path, table)
    assert [row.throughput for row in columns.rows] == [100, None]
    assert f"'img/s': {cell} is a missing value" in columns.notes
    (found,) = audit_csv(tmp_path, table).findings
    assert found.rows == (1,)


@pytest.mark.parametrize("cell", ["", "-", "—", "n/a", "N/A", "n.a.", "nan", "NaN", "None", "--"])
def test_empty_cells_are_missing_values(tmp_path: Path, cell: str) -> None:
    columns = columns_of(tmp_path, f"arm,batch,latency_ms,unit\ndense,8,10,ms\ntopk,8,{cell},ms\n")
    assert [row.latency_ms for row in columns.rows] == [10, None]


@pytest.mark.parametrize("cell", ["fast", "8 or 9", "1-2"])
def test_what_is_no_number_is_still_refused(tmp_path: Path, cell: str) -> None:
    with pytest.raises(UserError, match="is no number"):
        columns_of(tmp_path, f"arm,batch,latency_ms\ndense,8,10\ntopk,8,{cell}\n")


@pytest.mark.parametrize(("header", "cell"), [("batch", "8 MB"), ("images", "50 M")])
def test_a_unit_behind_a_count_is_refused(tmp_path: Path, header: str, cell: str) -> None:
    """Without the column, rows of several conditions would be compared."""
    with pytest.raises(UserError, match=rf":2: {header}: '{cell}' is no {header}"):
        columns_of(tmp_path, f"arm,{header},top1\ndense,{cell},81.2\n")


def test_the_step_time_of_timm(tmp_path: Path) -> None:
    """The unit of a column that one tool alone writes is known."""
    table = (
        "model,infer_samples_per_sec,infer_step_time,infer_batch_size\n"
        "vit_base_patch16_224,250,10,8\n"
    )
    (found,) = audit_csv(tmp_path, table).findings
    assert found.rule == "throughput_times_latency"


def test_a_count_in_thousands_is_no_count(tmp_path: Path) -> None:
    """81.23 % of 50 images cannot be; of 50,000 they can."""
    columns = columns_of(tmp_path, "arm,top1,images (k)\ndense,81.23,50\n")
    assert columns.unknown == ("images (k)",)
