"""For all tests: distribution over the workers of pytest-xdist, tests that run alone, short garbage collections."""

import fcntl
import gc
import sys
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from xdist.scheduler import LoadFileScheduling

ROOT = Path(__file__).parents[1]


def uses_ray(nodeid: str) -> bool:
    """Whether the module of a test is marked with `pytestmark = pytest.mark.ray`."""
    return "\npytestmark = pytest.mark.ray\n" in (ROOT / nodeid.partition("::")[0]).read_text(encoding="utf-8")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> "LoadFileScheduling":
    """Each module runs on one worker; all modules that start Ray or lock the host run on the same one."""
    from xdist.scheduler import LoadFileScheduling

    class ByModule(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "ray" if uses_ray(nodeid) else super()._split_scope(nodeid)

    return ByModule(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ray comes first: it takes longest, and the other worker runs the other modules meanwhile."""
    items.sort(key=lambda item: item.get_closest_marker("ray") is None)


def pytest_collection_finish() -> None:
    """Workers collect garbage around all that they measure: 0.2 s each time, with all of torch and transformers to look through."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Libraries that count what is left at the end find nothing."""
    gc.unfreeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Run a test marked `alone` while no other test runs, and with one thread of torch for each worker of pytest-xdist.

    A test locks the gate before the room, so that no test enters the room before one that waits to be alone in it.
    """
    if not hasattr(item.config, "workerinput"):
        return (yield)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
    folder = Path(item.config.option.basetemp).parent
    with ExitStack() as files:
        gate, room = (files.enter_context((folder / name).open("a+")) for name in ("gate.lock", "room.lock"))
        fcntl.lockf(gate, fcntl.LOCK_EX)  # not flock: a forked process would hold it as well
        fcntl.lockf(room, fcntl.LOCK_EX if item.get_closest_marker("alone") else fcntl.LOCK_SH)
        fcntl.lockf(gate, fcntl.LOCK_UN)
        return (yield)
