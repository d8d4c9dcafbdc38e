"""Entry of the command `breakeven` and of `python -m orchestrator`."""

import contextlib
import os
import sys
from typing import NoReturn

from orchestrator.cli import exit_code
from orchestrator.loop.interruption import INTERRUPTED


def main() -> NoReturn:
    """Run the command line and end the process.

    One that was interrupted or has loaded Ray skips the interpreter's own end, where threads of Ray
    may crash: 3 of 8 runs whose terminal was closed ended with SIGSEGV on a busy machine.
    """
    code = exit_code()
    if code == INTERRUPTED or "ray" in sys.modules:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    main()
