"""The parent's side of `measured_process.py`: starts it, sends requests, and ends it."""

import contextlib
import json
import os
import select
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from orchestrator.api.measured_process import failure
from sweeps.number_format import duration
from workers.measure.threads import BRIEF_SPINS, SPIN_VARIABLE

PROGRAM = Path(__file__).with_name("measured_process.py")
CLOSE_S = 10.0
"""Within which it ends after its pipe is closed; then it is killed."""


class FailedError(Exception):
    """What was asked for cannot be done; the message is why, for people."""


class MeasuredProcess:
    """A process of its own that runs commands or functions."""

    def __init__(
        self,
        role: Literal["commands", "functions"],
        python: Sequence[str] = (sys.executable,),
        folder: Path | None = None,
    ) -> None:
        """`python`: the interpreter and its options."""
        self._process = subprocess.Popen(
            [*python, str(PROGRAM), role],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=folder,
            # threads of one that waits do not spin while another is timed
            env={SPIN_VARIABLE: BRIEF_SPINS} | os.environ,
            start_new_session=True,  # Ctrl-C is for the parent, which closes the pipe
        )
        self._received = b""
        self.cpu_s = 0.0
        """CPU time of the process and those that ended below it, in seconds."""

    def request(self, timeout_s: float | None = None, **request: object) -> object:
        """The reply. Raises `FailedError`, also after `timeout_s` and where the process ended."""
        self.send(**request)
        return self.receive(timeout_s)

    def send(self, **request: object) -> None:
        """Send a request; replies come in the order of requests."""
        assert self._process.stdin is not None
        # if it has ended, `receive` raises the reason
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()

    def receive(self, timeout_s: float | None = None) -> object:
        """The next reply. Raises `FailedError`, see `request`."""
        assert self._process.stdout is not None
        file = self._process.stdout.fileno()
        while b"\n" not in self._received:
            if timeout_s is not None and not select.select([file], [], [], timeout_s)[0]:
                raise FailedError(timeout_text(timeout_s))
            if not (data := os.read(file, 2**20)):
                raise FailedError(f"its process ended with {failure(self._process.wait())}")
            self._received += data
        line, _, self._received = self._received.partition(b"\n")
        answer = json.loads(line)
        self.cpu_s = answer["cpu_s"]
        reply: object = answer["reply"]
        if isinstance(reply, Mapping) and "failed" in reply:
            raise FailedError(str(reply["failed"]))
        return reply

    def close(self) -> None:
        """End it with everything that was started in it."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        try:
            self._process.wait(CLOSE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def timeout_text(seconds: float) -> str:
    return f"did not end within {duration(seconds)} (--timeout)"
