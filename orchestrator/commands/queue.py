"""Commands of a queue of sweeps that several people share: submit, serve, cancel, pause, resume,
retry, logs.
"""

import getpass
import shlex
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.commands.options import Database, DeviceOption, SweepFile, SweepName
from orchestrator.plan import planning
from orchestrator.plan.planning import command_options, find_source
from store.errors import StoreError
from store.open.engine import Engine, connect, connect_readonly, disposing
from store.read.queries import find_sweep
from store.write import submissions
from store.write.submissions import Submission
from sweeps.model.condition import Device
from sweeps.number_format import count

Submitted = Annotated[
    str,
    typer.Argument(
        metavar="ID|NAME", help="Number that `submit` printed, or the sweep's name: its newest one."
    ),
]
Priority = Annotated[int, typer.Option(help="The largest comes first, and stops what is smaller.")]


def submit(
    file: SweepFile,
    db: Database = None,
    priority: Priority = 0,
    device: DeviceOption = None,
    *,
    refine: Annotated[
        bool, typer.Option("--refine", help="Add pairs and sizes to what is unclear.")
    ] = False,
    slurm: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Instead write job files and an array script for Slurm, which needs no Ray.",
        ),
    ] = None,
) -> None:
    """Queue a sweep for `breakeven serve`; a wrong one is refused here."""
    if slurm is not None:
        _write_array(file, db, device, slurm)
        return
    options = [*(("--device", device) if device else ()), *(("--refine",) if refine else ())]
    _submit(file, db, priority, options)


ARRAY = """\
#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --array=0-{last}
#SBATCH --exclusive
#SBATCH --output=%a.log
job=$(ls jobs | sed -n "$((SLURM_ARRAY_TASK_ID + 1))p")
mkdir -p outcomes
python -m workers.run "jobs/$job" --out ".$job" && mv ".$job" "outcomes/$job"
"""
"""Run in its folder; an outcome appears whole."""


def _write_array(file: Path, db: str | None, device: Device | None, folder: Path) -> None:
    """Write the jobs of a sweep and the script of a Slurm array that runs each on a node of its
    own.
    """
    if (folder / "jobs").exists():
        raise StoreError(f"{folder}/jobs exists already; name another folder")
    source = find_source(file, db)
    expansion = source.load(auto=device or "cuda")
    jobs = planning.write_jobs(expansion.jobs, folder / "jobs")
    script = ARRAY.format(name=expansion.sweep.name, last=len(jobs) - 1)
    (folder / "array.sbatch").write_text(script, encoding="utf-8")
    options = f"--sweep {shlex.quote(str(file))}{command_options(db, device or 'cuda')}"
    typer.echo(
        f"{count(len(jobs), 'job')} in {folder}/jobs; next, where Slurm is: cd {folder} && sbatch"
        f" array.sbatch; then here: breakeven import --watch {folder}/outcomes {options}"
    )


def retry(
    name: SweepName,
    db: Database = None,
    priority: Priority = 0,
    *,
    failed: Annotated[bool, typer.Option("--failed", help="What ended with a failure.")] = False,
    flagged: Annotated[bool, typer.Option("--flagged", help="What a flag marks.")] = False,
) -> None:
    """Queue a stored sweep again, for its failed or flagged comparisons."""
    if failed == flagged:
        raise typer.BadParameter("choose one of them", param_hint="--failed, --flagged")
    with _store(db, new=False) as engine:
        find_sweep(engine, name)
    _submit(Path(name), db, priority, ["--remeasure", "--only", "failed" if failed else "flagged"])


def _submit(file: Path, db: str | None, priority: int, options: list[str]) -> None:
    source = find_source(file, db)
    name = source.load(auto="cpu").sweep.name
    text = source.text or source.path.read_text(encoding="utf-8")
    with _store(db) as engine:
        for there in submissions.submissions(engine):
            if (there.name, there.text, [*there.options]) == (name, text, options):
                typer.echo(f"{_state(there)}: it is in the queue already, and is not queued again")
                return
        number = submissions.submit_to_queue(
            engine, name, text, options, priority=priority, by=_me()
        )
    typer.echo(f"{number} {name}: queued with priority {priority}; its state: breakeven status")


def serve(
    db: Database = None,
    ray_address: Annotated[
        str | None, typer.Option(help="A running Ray cluster; default: Ray on this machine.")
    ] = None,
    notify: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Run when a sweep ends, with BREAKEVEN_SWEEP, _SUBMISSION, _STATE and _WHY set.",
        ),
    ] = None,
    *,
    until_empty: Annotated[
        bool, typer.Option("--until-empty", help="End when nothing is queued.")
    ] = False,
) -> None:
    """Run queued sweeps, the most urgent first, until interrupted."""
    from orchestrator.loop.server import Server

    given = {"--db": db, "--ray-address": ray_address}
    arguments = [each for name, value in given.items() if value for each in (name, value)]
    with _store(db) as engine:
        server = Server(engine, arguments, typer.echo, notify)
        code = server.serve(until_empty=until_empty)
    raise typer.Exit(code)


def cancel(submitted: Submitted, db: Database = None) -> None:
    """Take a sweep out of the queue; a server that runs it stops it. What is measured stays."""
    _change(db, submitted, "cancelled")


def pause(submitted: Submitted, db: Database = None) -> None:
    """Keep a sweep from being run until `resume`."""
    _change(db, submitted, "paused")


def resume(submitted: Submitted, db: Database = None) -> None:
    """Queue a paused sweep again, in its former place."""
    _change(db, submitted, "queued")


def logs(submitted: Submitted, db: Database = None) -> None:
    """Print what the run of a submitted sweep printed, its last part."""
    with _store(db, new=False) as engine:
        found = submissions.find_submitted(engine, submitted)
    typer.echo(found.log or _state(found), nl=not found.log.endswith("\n"))


def _change(db: str | None, submitted: str, state: str) -> None:
    with _store(db, new=False) as engine:
        number = submissions.find_submitted(engine, submitted).id
        typer.echo(_state(submissions.change_state(engine, number, state, f"by {_me()}")))


def _state(found: Submission) -> str:
    """The submission in one line."""
    why = f" ({found.why})" if found.why else ""
    return f"{found.id} {found.name}: {found.state}{why}, priority {found.priority}"


def _me() -> str:
    return f"{getpass.getuser()}@{socket.gethostname()}"


@contextmanager
def _store(db: str | None, *, new: bool = True) -> Iterator[Engine]:
    """Raises `NoStoreError` where there is none and no `new` one may be made."""
    if not new:
        connect_readonly(db).dispose()
    with disposing(connect(db)) as engine:
        yield engine
