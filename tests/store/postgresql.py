"""A PostgreSQL server of our own in a folder, where one is installed: no network, no password, gone
after the tests.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

START_S = 30.0


def programs() -> Path | None:
    """The folder with `initdb` and `postgres` of the newest version here; Debian keeps it out of
    the search path.
    """
    places = [
        *Path("/usr/lib/postgresql").glob("*/bin"),
        *(Path(found).resolve().parent for found in [shutil.which("initdb")] if found),
    ]
    whole = [
        place for place in places if (place / "initdb").exists() and (place / "postgres").exists()
    ]
    return max(
        whole, key=lambda place: [int(part) for part in place.parts if part.isdigit()], default=None
    )


@contextmanager
def serving(bin_folder: Path, kept: Path | None = None) -> Iterator[Path]:
    """The folder of the socket of a server that runs as long as the block; its databases stay in a
    folder that is `kept`.
    """
    folder = kept or Path(tempfile.mkdtemp(prefix="breakeven-pg-"))
    user: dict[str, Any] = {}
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        user = {"user": "nobody", "group": "nogroup", "extra_groups": []}
        shutil.chown(folder, "nobody")
    try:
        data = folder / "data"
        if not data.exists():
            made = subprocess.run(
                [
                    bin_folder / "initdb",
                    "-D",
                    data,
                    "-U",
                    "breakeven",
                    "--auth=trust",
                    "--no-sync",
                    "-E",
                    "UTF8",
                    "--locale=C",
                ],
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
                **user,
            )
            assert made.returncode == 0, made.stderr
        options = ["-c", "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=16MB"]
        log = (folder / "log").open("w")
        with (
            log,
            subprocess.Popen(
                [bin_folder / "postgres", "-D", data, "-k", folder, *options],
                cwd=folder,
                stdout=log,
                stderr=log,
                **user,
            ) as server,
        ):
            try:
                _wait(folder, server)
                yield folder
            finally:
                server.send_signal(signal.SIGINT)  # without waiting for clients
    finally:
        if kept is None:
            shutil.rmtree(folder)


def database(folder: Path, name: str) -> str:
    """The URL of a new database."""
    with psycopg.connect(_server(folder), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
    return f"postgresql://breakeven@/{name}?host={folder}"


def _server(folder: Path) -> str:
    return f"host={folder} user=breakeven dbname=postgres"


def _wait(folder: Path, server: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + START_S
    while True:
        try:
            psycopg.connect(_server(folder)).close()
        except psycopg.OperationalError:
            assert server.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < until, (folder / "log").read_text()
            time.sleep(0.05)
        else:
            return
