"""What tests of several modules of the workers set up."""

from collections.abc import Iterator

import pytest

from workers.kinds import timed_job
from workers.measure import peaks
from workers.models import cpp_build


@pytest.fixture(autouse=True)
def _brief(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs do not wait until the other tests are idle, and read little for the peak of the memory,
    but where a test runs alone.
    """
    if not request.node.get_closest_marker("alone"):
        monkeypatch.setattr(timed_job, "WAIT_S", 0.0)
        monkeypatch.setitem(peaks.READ_BYTES, "cpu", 2**24)


@pytest.fixture
def without_compiler(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine without a C++ compiler, on which nothing has been compiled before."""
    caches = (cpp_build.missing_reason, cpp_build.library)
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setattr(cpp_build, "_LOADED", {})
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()
