"""Signals that request a run to end."""

import signal

import pytest

from orchestrator.interruption import stop_requested


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_is_a_request(number: int) -> None:
    """Ctrl-C, SIGTERM and SIGHUP alike end nothing at once; the handlers from before are back afterwards."""
    inherited = signal.signal(number, before := signal.default_int_handler)  # under nohup SIGHUP is ignored
    try:
        with stop_requested() as stopped:
            assert not stopped()
            signal.raise_signal(number)
            assert stopped()
            assert signal.getsignal(number) == before
        assert signal.getsignal(number) == before
    finally:
        signal.signal(number, inherited)


def test_an_ignored_hangup_stays_ignored() -> None:
    """Under `nohup` a closed terminal ends nothing."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_requested() as stopped:
            signal.raise_signal(signal.SIGHUP)
            assert not stopped()
    finally:
        signal.signal(signal.SIGHUP, before)
