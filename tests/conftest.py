"""For all tests: distribution over the workers of pytest-xdist, tests that run alone, short garbage
collections.
"""

import ast
import fcntl
import functools
import gc
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from xdist.scheduler import LoadFileScheduling

ROOT = Path(__file__).parents[1]

# Some hundred processes of the tests import the same sources, which are compiled once.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Read when torch is loaded; the default of timed jobs, which refuse to run in a process with
# another.
os.environ.pop("OMP_WAIT_POLICY", None)
os.environ["GOMP_SPINCOUNT"] = "1000"
# Nothing here is worth waiting until the runs of this host, of whatever user, have ended.
LOCKS = Path(tempfile.gettempdir()) / f"breakeven-tests-{os.getuid()}"
LOCKS.mkdir(exist_ok=True)
os.environ["BREAKEVEN_HOST_LOCKS"] = str(LOCKS)
# Ignored where a shell starts the tests in the background; what they start would ignore it too.
signal.signal(signal.SIGINT, signal.default_int_handler)


@functools.cache
def uses_ray(module: str) -> bool:
    """Whether a module of tests is marked with `pytestmark = pytest.mark.ray`."""
    return "\npytestmark = pytest.mark.ray\n" in (ROOT / module).read_text(encoding="utf-8")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> "LoadFileScheduling":
    """Each module runs on one worker; all modules that start Ray or lock the host run on the same
    one.
    """
    from xdist.scheduler import LoadFileScheduling

    class ByModule(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "ray" if uses_ray(nodeid.partition("::")[0]) else super()._split_scope(nodeid)

    return ByModule(config, log)


def of_something(
    holds: Callable[[Iterable[object]], bool], module: Path
) -> Callable[[Iterable[object]], bool]:
    """`all` or `any` for a test module, where an assertion about an empty list fails: it would show
    nothing.
    """
    asserts = [
        node
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.Assert)
    ]
    lines = {
        line
        for node in asserts
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }

    def check(values: Iterable[object]) -> bool:
        __tracebackhide__ = True
        found = list(values)
        if not found and sys._getframe(1).f_lineno in lines:
            pytest.fail(f"{holds.__name__}() of an empty list shows nothing")
        return holds(found)

    return check


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ray comes first: it takes longest, and the other workers run the rest meanwhile. Modules get
    their `all` and `any`.
    """
    items.sort(key=lambda item: item.get_closest_marker("ray") is None)
    for module in {item.getparent(pytest.Module) for item in items} - {None}:
        for holds in (all, any):
            vars(module.obj).setdefault(holds.__name__, of_something(holds, module.path))


def pytest_collection_finish() -> None:
    """Workers collect garbage around all that they measure: 0.2 s each time, with all of torch and
    transformers to look through.
    """
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Libraries that count what is left at the end find nothing."""
    gc.unfreeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
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
    with ExitStack() as files:
        gate, room = (
            files.enter_context((folder / name).open("a+")) for name in ("gate.lock", "room.lock")
        )
        fcntl.lockf(gate, fcntl.LOCK_EX)  # not flock: a forked process would hold it as well
        fcntl.lockf(room, fcntl.LOCK_EX if item.get_closest_marker("alone") else fcntl.LOCK_SH)
        fcntl.lockf(gate, fcntl.LOCK_UN)
        return (yield)


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
