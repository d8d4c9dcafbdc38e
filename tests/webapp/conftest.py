"""Stores for the web app's tests."""

from pathlib import Path

import pytest

from store.connection import connect
from tests.webapp.simulated import SIZES, job, quickstart_answer, store_sweep


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with sweep `quickstart` (one condition, all measured) and sweep `batches` (batch 1 and 2, one job still at work)."""
    url = str(tmp_path_factory.mktemp("filled") / "filled.db")
    store_sweep(url, "quickstart", [job(size) for size in SIZES], quickstart_answer)
    batches = [job(size, "deit_small_patch16_224", batch) for batch in (1, 2) for size in SIZES]
    store_sweep(url, "batches", batches, quickstart_answer)
    return url


@pytest.fixture
def empty(tmp_path: Path) -> str:
    """A store without a sweep."""
    url = str(tmp_path / "empty.db")
    connect(url).dispose()
    return url
