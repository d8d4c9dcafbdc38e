"""For all tests: distribution over the workers of pytest-xdist, tests that run alone, no garbage
collections of what is imported.
"""

import ast
import fcntl
import functools
import gc
import os
import re
import signal
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext
    from sqlalchemy import Engine
    from xdist.scheduler import LoadFileScheduling

pytest_plugins = ["tests.open_connections"]
ROOT = Path(__file__).parents[1]
GROUPS = ("alone", "ray")
"""Marks of tests of several modules that run on one worker, and first."""

# Some hundred processes of the tests import the same sources, which are compiled once.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Read when torch is loaded, and by timed jobs in place of a choice for which times are measured.
os.environ.pop("OMP_WAIT_POLICY", None)
os.environ["GOMP_SPINCOUNT"] = "1000"
# Imports leave no garbage worth the search; see `pytest_collection_finish`.
gc.disable()
# Nothing here is worth waiting until the other runs of this host, and other tests, have ended.
LOCKS = tempfile.TemporaryDirectory(prefix="breakeven-tests-")
os.environ["BREAKEVEN_HOST_LOCKS"] = LOCKS.name
# Ignored where a shell starts the tests in the background; what they start would ignore it too.
signal.signal(signal.SIGINT, signal.default_int_handler)
with suppress(ImportError):
    # How long an example takes depends on how busy the machine is.
    from hypothesis import settings

    settings.register_profile("any load", deadline=None)
    settings.load_profile("any load")


@functools.cache
def marked(module: str, mark: str) -> re.Pattern[str]:
    """The functions of a module that have a mark, by its source: where tests are distributed, they
    have only names.
    """
    source = (ROOT / module).read_text(encoding="utf-8")
    if re.search(rf"^pytestmark = .*pytest\.mark\.{mark}\b", source, re.M):
        return re.compile("")
    named = re.findall(rf"^@pytest\.mark\.{mark}\n(?:^(?!def ).*\n)*def (\w+)", source, re.M)
    return re.compile(rf"(?:{'|'.join(named) or '(?!)'})\b")


def group(nodeid: str) -> str:
    """What a test runs with on one worker: those that run alone, those that share one Ray, or its
    module.
    """
    module, _, name = nodeid.partition("::")
    mark = next((mark for mark in GROUPS if marked(module, mark).match(name)), module)
    return module if mark == "ray" and not shares_ray(module) else mark


@functools.cache
def shares_ray(module: str) -> bool:
    """Whether a module uses the Ray of `tests/orchestrator/conftest.py`; others start their own."""
    source = (ROOT / module).read_text(encoding="utf-8")
    return bool(re.search(r"\bcluster: Cluster\b|\bshared_ray\b", source))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: tests of other processes wait for them half of the time."""
    return len(os.sched_getaffinity(0)) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> "LoadFileScheduling":
    """Each group of tests runs on one worker."""
    from xdist.scheduler import LoadFileScheduling

    class ByGroup(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group(nodeid)

    return ByGroup(config, log)


def of_something(
    holds: Callable[[Iterable[object]], bool], module: Path
) -> Callable[[Iterable[object]], bool]:
    """`all` or `any` for a test module, where an assertion about an empty list fails: it would show
    nothing.
    """

    @functools.cache
    def asserted() -> set[int]:
        """Lines of assertions."""
        nodes = ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        asserts = [node for node in nodes if isinstance(node, ast.Assert)]
        return {
            line
            for node in asserts
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        }

    def check(values: Iterable[object]) -> bool:
        __tracebackhide__ = True
        found = list(values)
        if not found and sys._getframe(1).f_lineno in asserted():
            pytest.fail(f"{holds.__name__}() of an empty list shows nothing")
        return holds(found)

    return check


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that run alone come first, one after the other, so that the other workers wait for them
    once; then Ray, which takes longest: the shared one, then others by module. Modules get their
    `all` and `any`.
    """
    items.sort(
        key=lambda item: (
            (*GROUPS, group(item.nodeid)).index(group(item.nodeid)),
            item.get_closest_marker("ray") is None,
        )
    )
    for module in {item.getparent(pytest.Module) for item in items} - {None}:
        for holds in (all, any):
            vars(module.obj).setdefault(holds.__name__, of_something(holds, module.path))


def pytest_collection_finish() -> None:
    """Workers collect garbage around all that they measure: 0.2 s each time, with all of torch and
    transformers to look through.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
    copy_empty_stores()


def copy_empty_stores() -> None:
    """New stores in files of SQLite begin as copies of an empty one, which is made once: tables and
    views take a tenth of a second each time.
    """
    module = sys.modules.get("store.open.engine")
    if module is None:
        return
    migrate = module.migrate

    @functools.cache
    def empty(fingerprint: str) -> bytes:
        """An empty store of the metrics and kinds that are declared now."""
        engine = module._sqlite_engine(None, "rwc")
        migrate(engine)
        with closing(engine.raw_connection()) as connection:
            made: bytes = connection.driver_connection.serialize()
        engine.dispose()
        return made

    def copied(engine: "Engine") -> None:
        from store.views.fingerprint import views_fingerprint

        if engine.dialect.name == "sqlite":
            # where a file cannot be used, `migrate` finds the reason
            with suppress(sqlite3.Error, OSError), closing(engine.raw_connection()) as connection:
                store: Any = connection.driver_connection
                if not store.execute("SELECT 1 FROM sqlite_master").fetchone():
                    with closing(sqlite3.connect(":memory:")) as made:
                        made.deserialize(empty(views_fingerprint()))
                        made.backup(store)
        migrate(engine)

    module.__dict__["migrate"] = copied


def pytest_unconfigure() -> None:
    """Libraries that count what is left at the end find nothing."""
    gc.unfreeze()
    LOCKS.cleanup()


LOCKED: list[TextIO] = []
"""The gate and the room, which a worker keeps from one test that runs alone to the next."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, object, object]:
    """Run a test marked `alone` while no other test runs, and with one thread of torch for each
    worker of pytest-xdist.

    A test locks the gate before the room, so that no test enters the room before one that waits to
    be alone in it.
    """
    if not hasattr(item.config, "workerinput"):
        return (yield)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
    folder = Path(item.config.option.basetemp).parent
    alone = item.get_closest_marker("alone")
    if not LOCKED:
        gate, room = ((folder / name).open("a+") for name in ("gate.lock", "room.lock"))
        LOCKED.extend((gate, room))
        fcntl.lockf(gate, fcntl.LOCK_EX)  # not flock: a forked process would hold it as well
        fcntl.lockf(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.lockf(gate, fcntl.LOCK_UN)
    try:
        return (yield)
    finally:
        if not (alone and nextitem and nextitem.get_closest_marker("alone")):
            while LOCKED:
                LOCKED.pop().close()


@pytest.fixture(autouse=True)
def main_module() -> Iterator[None]:
    """Streamlit's harness leaves a page as `__main__`, which processes that are spawned would
    run.
    """
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    """Chromium: one for each process, since Playwright can be started only once in it."""
    from playwright.sync_api import sync_playwright

    from tests.webapp.served import CHROMIUM, FLAGS

    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is missing; install it with: apt-get install chromium")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def context(browser: "Browser") -> "BrowserContext":
    """What pages have in common: the scripts of an app are fetched and compiled once for all."""
    return browser.new_context()
