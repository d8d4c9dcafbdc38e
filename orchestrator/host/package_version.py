"""Package version: which version of our code a process runs, so that all nodes measure with that of
the dispatcher.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from store.rows.source_version import version_of

IMPORT_S = 60.0


def source_version() -> str:
    """Version and hash of the source that this process imports: `0.1.0 (source 5f2c90ab)`."""
    return version_of(Path(__file__).resolve().parents[2])


def version_of_workers(variables: Mapping[str, str], folder: str | None) -> str:
    """The version that a process with these environment variables and this current folder imports.
    Raises `ImportError`.
    """
    command = [sys.executable, "-P", "-m", "orchestrator.host.package_version"]
    done = subprocess.run(
        command,
        env=dict(variables),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=IMPORT_S,
        check=False,
    )
    if done.returncode != 0:
        raise ImportError(
            (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        )
    return str(json.loads(done.stdout))


if __name__ == "__main__":
    sys.stdout.write(json.dumps(source_version()) + os.linesep)
