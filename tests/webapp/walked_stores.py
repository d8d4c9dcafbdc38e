"""The stores on which a browser walks through the pages, by a letter each."""

from pathlib import Path

from store.open.engine import connect
from sweeps.model.condition import Runtime
from sweeps.model.job import Protocol
from tests.fixtures import big_store
from tests.fixtures.nightly import chain
from tests.orchestrator.commands import breakeven
from tests.store.language_fixtures import a_generation, a_generation_job
from tests.webapp.explained_store import explained_store
from tests.webapp.quality_stores import LANGUAGE_ARMS, accuracy_store, language_store
from tests.webapp.simulated import SIZES, job, quickstart_answer, store_outcomes, store_sweep

ROOT = Path(__file__).parents[2]
RUNTIMES: tuple[Runtime, ...] = ("eager", "openvino")


def references_store(path: Path) -> None:
    """Outcomes measured on an H100: sweeps `quickstart_gpu` and `llm_gpu`, and profiles."""
    files = ROOT / "sweeps" / "references"
    for sweep in ("quickstart_gpu", "llm_gpu"):
        linked = ("--sweep", str(ROOT / "sweeps" / f"{sweep}.yaml"), "--device", "cuda")
        _imported(path, str(files / f"{sweep}_h100.jsonl"), *linked)
    _imported(path, str(files / "explain_gpu_h100.jsonl"))


def _imported(path: Path, *words: str) -> None:
    ended = breakeven("import", *words, "--db", str(path), folder=path.parent)
    assert ended.returncode == 0, ended.stderr


def several_kinds_store(path: Path) -> None:
    """Sweeps `accurate`, `lengths` of a language model, `noisy` of it with intervals that are
    hardly narrow enough to be stated, `explained` with profiles, and `runtimes` with two models, batches and
    runtimes.
    """
    for fill in (accuracy_store, language_store, explained_store):
        fill(path)
    noisy = a_generation_job(1024, LANGUAGE_ARMS)
    noisy = noisy.model_copy(update={"protocol": Protocol(pairs_min=2)})
    outcome = a_generation(noisy, (1.0, 1.4, 1.7, 1.2), pairs=2, noise=0.3)
    store_outcomes(path, "noisy", outcome)
    asked = [
        job(size, model, batch)
        for model in ("deit_tiny_patch16_224", "deit_small_patch16_224")
        for batch in (1, 2)
        for size in SIZES[::3]
    ]
    jobs = [
        each.model_copy(
            update={"condition": each.condition.model_copy(update={"runtime": runtime})}
        )
        for each in asked
        for runtime in RUNTIMES
    ]
    store_sweep(str(path), "runtimes", jobs, quickstart_answer)


def quickstart_store(path: Path) -> None:
    """Sweep `quickstart` alone."""
    store_sweep(str(path), "quickstart", [job(size) for size in SIZES], quickstart_answer)


def nightly_store(path: Path) -> None:
    """Sweep `nightly`: ten days, the first arm 5 % slower from the seventh on."""
    chain(path, 0, falls=6)


def large_store(path: Path) -> None:
    """Sweep `large` with 100 000 effects, and small ones."""
    big_store.fill(path, 1000)
    big_store.multiply(path, 49)


def empty_store(path: Path) -> None:
    """No sweep."""
    connect(str(path)).dispose()


STORES = {
    "H": references_store,
    "M": several_kinds_store,
    "Q": quickstart_store,
    "N": nightly_store,
    "B": large_store,
    "empty": empty_store,
}
