"""`app --host`: a warning where other machines can read the store, none for this machine."""

import pytest

from webapp.__main__ import warning_of


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.0.0.2", "::1"])
def test_this_machine(host: str) -> None:
    """Nothing is open to others."""
    assert warning_of(host) == ""


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "lab.example"])
def test_others(host: str) -> None:
    """Whoever opens it reads what that means, and how to avoid it."""
    assert f"listens on {host}" in warning_of(host)
    assert "can read the whole store, without a password" in warning_of(host)
