"""Published tables as data: strict files with their source, what ships, and what is derived of a
row.
"""

from pathlib import Path

import pytest

from sweeps.errors import UserError
from sweeps.importers.measurement import Measurement, ReferenceSet
from sweeps.importers.tables import SHIPPED, load_reference, read_reference, shipped_references

WHOLE = """\
reference: 1
title: A table
owner: A. Author
where: table 2
latency: per_batch
baseline: dense
common: {model: deit_tiny_patch16_224, image_size: 224, tokens: 196}
by_label:
  topk: {method: topk, keep_rate: 0.5, stages: 3}
rows:
  - {label: dense, batch: 1, throughput: 100.0, gmacs: 1.25}
  - {label: topk, batch: 1, throughput: 80.0, gmacs: 0.7, keep_rate: 0.7}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.yaml"
    path.write_text(text)
    return path


def test_every_file_ships_and_names_its_source() -> None:
    """Each shipped file is read, has rows, and states title, owner and where its numbers stand."""
    names = shipped_references()
    for name in names:
        found = load_reference(name)
        assert found.name == name
        assert found.rows
        assert found.environment == f"published: {found.title}"
        assert found.owner
        assert found.where


def test_the_csv_of_the_background_report_is_kept_as_it_is() -> None:
    """The numbers of the batch sweep are those of the file, which stands beside its description."""
    lines = (SHIPPED / "batch_size_sweep_results.csv").read_text().splitlines()
    assert lines[0] == "batch_size,model,tp,latency_ms,flops"
    rows = load_reference("tr_batch_224").rows
    assert len(rows) == len(lines) - 1 == 10
    assert [(row.batch, row.label, row.throughput) for row in rows[:2]] == [
        (1, "baseline", 152.6756),
        (1, "with_tr", 137.2527),
    ]
    assert {row.gmacs for row in rows} == {17.5687, 5.5531}
    assert (rows[1].keep_rate, rows[1].stages, rows[1].image_size) == (0.1, 3, 224)
    assert rows[0].keep_rate is None


def test_common_fields_stand_once(tmp_path: Path) -> None:
    """A row has the fields of all rows, those of its label, and its own, which win."""
    found = read_reference(written(tmp_path, WHOLE))
    dense, topk = found.rows
    assert (dense.model, dense.keep_rate) == ("deit_tiny_patch16_224", None)
    assert (topk.keep_rate, topk.stages) == (0.7, 3)
    assert found.derived_speedup(topk) == pytest.approx(0.8)
    assert found.derived_speedup(dense) is None
    assert found.beside(topk) == dense


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "throughput: 80.0",
            "troughput: 80.0",
            (
                r"mine\.yaml:12: rows\[1\]\.troughput: unknown key 'troughput'; did you mean"
                r" 'throughput'\?"
            ),
        ),
        ("where: table 2\n", "", r"where: is missing"),
        ("where: table 2", "where: table 2\nyear: 2999", r"year: .*less than 2100, not 2999"),
        ("where: table 2", "where: table 2\nyear: 1971", r"year: .*greater than 1990, not 1971"),
        ("throughput: 80.0", "throughput: -80.0", r"mine\.yaml:12: rows\[1\]\.throughput: "),
        (
            "latency: per_batch",
            "latency: per_pair",
            r"mine\.yaml:5: latency: \"per_pair\" is not one of per_batch, per_image",
        ),
        ("  topk: {", "  tokp: {", r"no row has the label 'tokp'"),
        ("label: topk, ", "", r"rows\[1\]\.label: is missing"),
        ("gmacs: 0.7", "counters: {sm: 3.0}", r"unknown counter 'sm'"),
    ],
)
def test_wrong_files(tmp_path: Path, old: str, new: str, message: str) -> None:
    """A wrong key or value is an error with file, line and key, and the nearest word where there is
    one.
    """
    assert old in WHOLE
    with pytest.raises(UserError, match=message):
        read_reference(written(tmp_path, WHOLE.replace(old, new)))


def test_a_file_without_rows(tmp_path: Path) -> None:
    """A source without numbers is an error that names the keys that hold them."""
    with pytest.raises(UserError, match="holds no measurement; list them under `rows`"):
        read_reference(written(tmp_path, WHOLE.partition("by_label")[0]))
    for text in ("", "- 1\n"):
        with pytest.raises(
            UserError, match=r"mine\.yaml:1: .*must be a mapping that starts with `reference: 1`"
        ):
            read_reference(written(tmp_path, text))


def test_speedups_come_from_the_times_of_the_table() -> None:
    """Throughputs first, then latencies, then what is stated; none where two rows could be the
    baseline.
    """
    rows = [
        Measurement(label="dense", batch=2, latency_ms=20.0),
        Measurement(label="a", batch=2, latency_ms=10.0, speedup=1.9),
        Measurement(label="a", batch=4, speedup=1.5),
        Measurement(label="dense", batch=8, latency_ms=1.0),
        Measurement(label="dense", batch=8, latency_ms=2.0),
        Measurement(label="a", batch=8, latency_ms=1.0),
    ]
    found = ReferenceSet(
        name="s", title="t", owner="o", where="w", latency="per_batch", rows=tuple(rows)
    )
    assert [found.derived_speedup(row) for row in rows] == [None, 2.0, 1.5, None, None, None]


def test_unknown_names() -> None:
    """A name that does not ship gets the nearest one; a missing file is named."""
    with pytest.raises(UserError, match="unknown reference 'tom'; did you mean 'tome'"):
        load_reference("tom")
    with pytest.raises(UserError, match="there is no such file"):
        load_reference("missing.yaml")
