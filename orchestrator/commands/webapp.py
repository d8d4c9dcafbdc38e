"""Commands of the web app, `plot` and `app`: `python -m webapp` has their options and help."""

import os
import sys
from collections.abc import Sequence
from typing import NoReturn


def become_webapp(arguments: Sequence[str]) -> NoReturn:
    """Run a command of the web app, which this package does not import, instead of this
    process.
    """
    os.execv(sys.executable, [sys.executable, "-P", "-m", "webapp", *arguments])  # noqa: S606 - no shell is wanted
