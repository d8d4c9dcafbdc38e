"""Stores and folders for the tests of what is published."""

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from platform import node
from threading import Thread

from store.open.engine import connect
from store.write.record import record
from store.write.submission import NewSweep, submit_sweep
from sweeps.model.job import Pair
from sweeps.model.outcome import Environment, Failure
from tests.webapp.simulated import RANDOM, SIZES, job, outcome
from webapp.publish.folder import Changes
from webapp.publish.publication import publish

USER_PATH = f"/home/{getpass.getuser()}/secret-place/weights.bin"
WINDOWS_PATH = r"C:\Users\somebody\data"
SERIAL = "GPU-12345678-1234-1234-1234-123456789abc"
LOAD = 0.123454321
"""A reading of a monitor."""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def file_server(folder: Path) -> Iterator[str]:
    """The address of the folder behind Python's own web server."""
    with ThreadingHTTPServer(("localhost", 0), partial(Quiet, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://localhost:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def published(root: Path, url: str, *sweeps: str, **options: str) -> Changes:
    """What publishing changed, without its output."""
    return publish(root, sweeps, url=url, say=lambda _: None, **options)


def revealing_store(path: Path, host: str = "") -> str:
    """A store in which host, paths, a serial number and readings stand wherever a worker or a user
    can put them.
    """
    host = host or node()
    told = f"{USER_PATH} on {host} ({SERIAL})\n{host}:{USER_PATH}:3\n{USER_PATH}, {WINDOWS_PATH}"
    failure = Failure(arm=5, reason="unsupported", message=told, detail=f"Traceback\n{told}")
    environment = Environment(
        device="cpu", device_name="Some CPU", facts={"cores": "2", "gpu_uuid": SERIAL, "at": told}
    )
    engine = connect(str(path))
    text = f"name: told # of {host}, imagefolder:{USER_PATH}\n"
    requested = [
        (job(size).comparison(Pair(*pair)), job(size).content_hashes)
        for size in SIZES
        for pair in job(size).pairs
    ]
    submit_sweep(engine, NewSweep("told", text, f"Does {USER_PATH} pay on {host}?"), requested, [])
    for size in SIZES:
        failing = {RANDOM: failure} if size == 32 else {}
        measured = outcome(job(size), failing=failing)
        more = {
            "host": host,
            "environment": environment,
            "notes": (told,),
            "system_metrics": {"load_before": LOAD},
            "process": f"{host}-17",
        }
        record(engine, None, None, measured.model_copy(update=more))
    engine.dispose()
    return str(path)
