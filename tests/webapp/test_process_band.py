"""The band of what differs between processes alone: as wide as an interval of one process without errors, with its source."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from store.calibrations import freeze_calibrations
from store.engine import connect
from store.record import reanalyse, record_imported
from store.submission import NewSweep, submit_sweep
from sweeps.stats.pooling import PROCESS_SD, ProcessTerm, pool, process_half_width
from sweeps.stats.two_way import Contrast
from tests.fixtures.sql_rows import rows
from tests.store.conftest import CPU, a_job, an_outcome
from webapp import queries
from webapp.charts import curves
from webapp.charts.process_band import process_band

SIZES = (64, 96)


def test_the_width_is_that_of_one_process_without_errors_of_its_own() -> None:
    """2.8 times the stated term; wider where a term rests on few degrees of freedom."""
    assert process_half_width(ProcessTerm()) == pytest.approx(2.81 * PROCESS_SD, rel=0.01)
    for term in (ProcessTerm(), ProcessTerm(0.02, 7.0, "x")):
        alone = pool([[Contrast(0.3, 1e-12, 100)]], 40, [term])
        assert process_half_width(term) == pytest.approx(alone.half_width, rel=1e-6)
    assert process_half_width(ProcessTerm(PROCESS_SD, 3.0)) > 2 * process_half_width(ProcessTerm())


@pytest.fixture
def calibrated(tmp_path: Path) -> str:
    """A store with two sizes in eight processes each, calibrated afterwards."""
    path = str(tmp_path / "store.db")
    engine = connect(path)
    jobs = [a_job(size) for size in SIZES]
    submit_sweep(engine, NewSweep("calibration", "text", "?"), jobs, [])
    for n, bias in enumerate(np.random.default_rng(3).normal(0, 0.02, 8)):
        found = [an_outcome(job, speedups=(1.5 * np.exp(bias),), noise=0.005, seed=n) for job in jobs]
        record_imported(engine, [outcome.model_copy(update={"process": f"p{n}"}) for outcome in found])
    freeze_calibrations(engine, "calibration", [CPU.environment_id])
    engine.dispose()
    return path


def band(spec: dict[str, Any]) -> dict[str, float]:
    """The ends of the band that is drawn in the first panel's curves."""
    layers = spec["vconcat"][0]["vconcat"][0]["layer"]
    (layer,) = [each for each in layers if "process_low" in str(each["encoding"])]
    (row,) = spec["datasets"][layer["data"]["name"]]
    found: dict[str, float] = row
    return found


def subtitle(spec: dict[str, Any]) -> str:
    return " ".join(spec["vconcat"][0]["vconcat"][0]["title"]["subtitle"])


def test_the_stated_default_is_labelled_so(filled: str) -> None:
    """Around 1, by the same factor to both sides."""
    spec = curves.speedup_chart(*queries.labelled_speedups("quickstart", filled)).to_dict()
    ends = band(spec)
    assert ends["process_high"] == pytest.approx(np.exp(process_half_width(ProcessTerm(PROCESS_SD))))
    assert ends["process_low"] * ends["process_high"] == pytest.approx(1)
    assert "Blue: what differs between processes alone, ±4.3 % (stated default, not measured" in subtitle(spec)


def test_a_calibration_is_labelled_with_its_age(calibrated: str) -> None:
    """Points measured before it have the default until they are analysed again; then the band has its width and date."""
    before = curves.speedup_chart(*queries.labelled_speedups("calibration", calibrated)).to_dict()
    assert "(stated default, not measured" in subtitle(before)
    engine = connect(calibrated)
    reanalyse(engine)
    (stored,) = rows(engine, "SELECT * FROM calibration")
    engine.dispose()
    points, break_evens = queries.labelled_speedups("calibration", calibrated)
    newest = pd.to_datetime(points["measured_at"], utc=True).max().timestamp()
    spec = curves.speedup_chart(points.assign(calibrated_at=newest - 3 * 86400), break_evens).to_dict()
    half_width = process_half_width(ProcessTerm(stored["process_sd"], stored["freedom"]))
    assert band(spec)["process_high"] == pytest.approx(np.exp(half_width))
    assert ", 3 days before the newest point)." in subtitle(spec)
    assert set(points["calibrated_at"]) == {stored["created_at"]}
    after = curves.speedup_chart(points.assign(calibrated_at=newest + 120.0), break_evens).to_dict()
    assert ", 2 min after the newest point)." in subtitle(after)


def test_without_the_columns_of_a_calibration_its_id_stands_there(filled: str) -> None:
    """Rows of the view alone, as in a notebook, are enough; without a term there is no band."""
    points, _ = queries.labelled_speedups("quickstart", filled)
    plain = points.drop(columns=["process_freedom", "calibrated_at"])
    found = process_band(plain.assign(calibration_id="ab12"))
    assert found is not None
    assert found.note.endswith("(calibration ab12).")
    assert process_band(plain.assign(process_sd=np.nan)) is None


def test_a_panel_of_one_size_has_the_band_too(filled: str) -> None:
    """Along the axis of speed-ups of a forest plot."""
    points, break_evens = queries.labelled_speedups("quickstart", filled)
    spec = curves.speedup_chart(points[points["image_size"] == 224], break_evens).to_dict()
    layers = spec["vconcat"][0]["layer"]
    assert [each["encoding"]["x"]["field"] for each in layers if "process_low" in str(each["encoding"])] == ["process_low"]
