"""Interruption: signals that end a run, turned into a request that it checks between
transactions.
"""

import contextlib
import os
import signal
import stat
import threading
from collections.abc import Callable, Iterator
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, a request to end by a scheduler or `kill`, and a terminal that was closed."""


INTERRUPTED = 130
"""Exit code after one of them."""
_INTERRUPTED = threading.Event()
"""Set by `signals_interrupt`: a library may have caught what it raised."""


@contextlib.contextmanager
def stop_requested() -> Iterator[Callable[[], bool]]:
    """Turn the first of `_SIGNALS` into a request to stop, so that no transaction is torn; the
    second acts as it did before.

    A signal that was ignored stays so (`nohup`), and a terminal is closed once, whose signal may
    come twice. Outside the main thread, which alone receives signals, nothing is changed.
    """
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop.is_set
        return
    former = {number: signal.getsignal(number) for number in _SIGNALS}
    former = {
        number: handler for number, handler in former.items() if handler is not signal.SIG_IGN
    }

    def restore() -> None:
        for number, handler in former.items():
            signal.signal(number, handler)

    def request(number: int, _frame: object) -> None:
        stop.set()
        restore()
        if number == signal.SIGHUP:
            signal.signal(number, signal.SIG_IGN)
            leave_closed_terminal()

    for number in former:
        signal.signal(number, request)
    try:
        yield lambda: stop.is_set() or _INTERRUPTED.is_set()
    finally:
        restore()


@contextlib.contextmanager
def signals_interrupt() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise `KeyboardInterrupt` in the block, as Ctrl-C does; one that was
    ignored stays so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former: dict[int, Any] = {
        number: signal.getsignal(number) for number in _SIGNALS if number != signal.SIGINT
    }

    def interrupt(number: int, _frame: object) -> None:
        _INTERRUPTED.set()
        if number == signal.SIGHUP:  # it may come twice, and the command ends
            former[number] = signal.SIG_IGN
            signal.signal(number, signal.SIG_IGN)
            leave_closed_terminal()
        raise KeyboardInterrupt

    _INTERRUPTED.clear()
    for number, handler in former.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def leave_closed_terminal() -> None:
    """Write what would go to a terminal that was closed, which is an error, to nowhere."""
    for file in (1, 2):
        with contextlib.suppress(OSError):
            if stat.S_ISCHR(os.fstat(file).st_mode) and not os.isatty(file):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, file)
                os.close(nowhere)
