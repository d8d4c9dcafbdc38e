"""Interruption: signals that end a run, turned into a request that it checks between transactions."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, a request to end by a scheduler or `kill`, and a terminal that was closed."""


@contextlib.contextmanager
def stop_requested() -> Iterator[Callable[[], bool]]:
    """Turn the first of `_SIGNALS` into a request to stop, so that no transaction is torn; the second acts as it did before.

    A signal that was ignored stays so (`nohup`). Outside the main thread, which alone receives signals, nothing is changed.
    """
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop.is_set
        return
    former = {number: signal.getsignal(number) for number in _SIGNALS}
    former = {number: handler for number, handler in former.items() if handler is not signal.SIG_IGN}

    def restore() -> None:
        for number, handler in former.items():
            signal.signal(number, handler)

    def request(_number: int, _frame: object) -> None:
        stop.set()
        restore()

    for number in former:
        signal.signal(number, request)
    try:
        yield stop.is_set
    finally:
        restore()
