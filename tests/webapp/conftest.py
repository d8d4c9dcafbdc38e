"""Stores for the web app's tests, and the app opened on one."""

import fcntl
import functools
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from store.open.engine import close_watches, connect
from tests.fixtures import big_store
from tests.orchestrator.commands import ROOT, breakeven
from tests.webapp.publishing import published
from tests.webapp.served import served_app
from tests.webapp.simulated import SIZES, job, quickstart_answer, store_sweep

APP = str(Path(__file__).parents[2] / "webapp" / "app.py")
Open = Callable[..., AppTest]

# Every run of a page looks for components in all installed packages, whose metadata is parsed.
vars(manifest_scanner)["scan_component_manifests"] = functools.cache(
    manifest_scanner.scan_component_manifests
)


@pytest.fixture(scope="module", autouse=True)
def watches() -> Iterator[None]:
    """What marks of stores were read from is closed, as at the end of the app."""
    yield
    close_watches()


Made = Callable[[str, Callable[[Path], object]], Path]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Makes what tests only read, once for all workers of pytest-xdist."""
    own = tmp_path_factory.getbasetemp()
    root = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own

    def once(name: str, make: Callable[[Path], object]) -> Path:
        with (root / f"{name}.lock").open("a") as lock:
            fcntl.lockf(lock, fcntl.LOCK_EX)
            if not lock.seek(0, os.SEEK_END):
                make(root / name)
                lock.write("made")
        return root / name

    return once


@pytest.fixture(scope="session")
def filled(made: Made) -> str:
    """A store with sweep `quickstart` (one condition, all measured) and sweep `batches` (batch 1
    and 2, one job still at work).
    """
    batches = [job(size, "deit_small_patch16_224", batch) for batch in (1, 2) for size in SIZES]

    def fill(path: Path) -> None:
        store_sweep(str(path), "quickstart", [job(size) for size in SIZES], quickstart_answer)
        store_sweep(str(path), "batches", batches, quickstart_answer)

    return str(made("filled.db", fill))


@pytest.fixture(scope="session")
def large(made: Made) -> str:
    """A store of more than 1000 answers: sweeps `large`, `repeated`, `language` and `running`
    (see `big_store.fill`).
    """
    return str(made("large.db", lambda path: big_store.fill(path, 600)))


@pytest.fixture(scope="session")
def h100(made: Made) -> str:
    """A store with the measurements of an H100 that ship: sweeps `quickstart_gpu` and `llm_gpu`."""

    def fill(path: Path) -> None:
        for sweep in ("quickstart_gpu", "llm_gpu"):
            outcomes, file = (
                str(ROOT / "sweeps" / name)
                for name in (f"references/{sweep}_h100.jsonl", f"{sweep}.yaml")
            )
            options = ("--sweep", file, "--device", "cuda", "--db", str(path))
            done = breakeven("import", outcomes, *options, folder=path.parent)
            assert done.returncode == 0, done.stderr

    return str(made("h100.db", fill))


@pytest.fixture(scope="session")
def folder(made: Made, filled: str) -> Path:
    """The store `filled` as it is published."""
    return made("site", lambda root: published(root, filled, address="https://example.org/b/"))


@pytest.fixture
def empty(tmp_path: Path) -> str:
    """A store without a sweep."""
    url = str(tmp_path / "empty.db")
    connect(url).dispose()
    return url


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Open:
    """Opens the app on a store, at a page, with an address."""

    def run(url: str, page: str = "", **query: str | list[str]) -> AppTest:
        monkeypatch.setenv("BREAKEVEN_DB", url)
        app = AppTest.from_file(APP, default_timeout=30)
        for key, value in query.items():
            app.query_params[key] = value
        if page:
            app.switch_page(page)
        app.run()
        assert not app.exception
        return app

    return run


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """Serves the app on a store, once for each, until all tests end; returns the address."""
    addresses: dict[str, str] = {}
    with ExitStack() as stack:

        def serve(url: str) -> str:
            if url not in addresses:
                addresses[url] = stack.enter_context(
                    served_app(url, tmp_path_factory.mktemp("served"))
                )
            return addresses[url]

        yield serve


@pytest.fixture(scope="session")
def app(served: Callable[[str], str], filled: str) -> str:
    """The address of the app on the store `filled`."""
    return served(filled)
