"""Entry of the command `breakeven` and of `python -m orchestrator`: decides the exit code."""

import contextlib
import os
import sys
import traceback
from typing import NoReturn

from orchestrator.loop.interruption import INTERRUPTED
from sweeps.errors import SlowdownError

MEASURED_SLOWDOWN, ERROR = 1, 2
COMPARING = frozenset({"compare", "history"})
"""Commands whose exit code 1 is a measured slowdown and nothing else."""


def main() -> NoReturn:
    """Run the command line and end the process.

    One that was interrupted, failed or has loaded Ray skips the interpreter's own end, where
    threads of Ray may crash (3 of 8 runs whose terminal was closed ended with SIGSEGV on a busy
    machine), and output that cannot be written makes another exit code.
    """
    code = exit_code()
    if code in (ERROR, INTERRUPTED) or "ray" in sys.modules:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            with contextlib.suppress(OSError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


def exit_code() -> int:
    """Run the command line; the one place that decides how the process ends. For `COMPARING`
    commands an exit code 1 of anything but a measured slowdown is 2, as is any exception.
    """
    comparing = COMPARING & {*sys.argv[1:2]}
    try:
        from orchestrator.cli import run_command_line  # an import may fail too

        code = run_command_line()
    except SlowdownError:
        return MEASURED_SLOWDOWN
    except BaseException:
        if not comparing:
            raise
        with contextlib.suppress(Exception):
            traceback.print_exc()
        return ERROR
    return ERROR if comparing and code == MEASURED_SLOWDOWN else code


if __name__ == "__main__":
    main()
