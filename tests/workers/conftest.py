"""What tests of several modules of the workers set up."""

from collections.abc import Iterator

import pytest

from workers.models import cpp_build


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
