"""`breakeven import`: outcomes that were measured elsewhere, and what Nsight Systems and Nsight
Compute recorded of an arm; `breakeven merge`: what another store has.
"""

import dataclasses
import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal, NoReturn

import typer
from pydantic import ValidationError

from orchestrator.commands.options import Database, DeviceOption
from orchestrator.plan import planning
from orchestrator.plan.planning import find_source, make_plan
from orchestrator.plan.sites import Site
from store.errors import NoStoreError, StoreError, StoreOutageError
from store.open.engine import Engine, connect, connect_readonly, disposing
from store.read.nsys_export import read_nsys
from store.rows.location import location
from store.write.merge import merge_stores
from store.write.queue import progress
from store.write.record import record_imported
from store.write.references import import_references
from store.write.submission import store_arm_labels
from store.write.traces import RecordedTrace, StatedTie, TraceFile, record_traces
from sweeps.errors import UserError
from sweeps.importers.ncu import KERNEL, NAME, ncu_profiles, read_ncu
from sweeps.importers.nsys import nsys_profiles
from sweeps.importers.outcome_file import OutcomeFileError, read_outcome
from sweeps.importers.tables import load_reference, shipped_references
from sweeps.importers.traces import TraceError, summary_lines
from sweeps.language.expand import Expansion
from sweeps.model.condition import Device
from sweeps.model.flags import COUNTS_UNCHECKED
from sweeps.model.job import NAMED, Arm, Job
from sweeps.model.kinds import KINDS
from sweeps.model.method import modality_of
from sweeps.model.outcome import Outcome
from sweeps.number_format import count
from workers.arms.counts import unknown_names, wrong_counts
from workers.methods import InvalidMethod, all_methods, resolve

ImportFormat = Literal["outcomes", "nsys", "ncu"]

FOLDER_WATCH_S = 5.0
"""How often a folder is looked at."""
MAX_REFUSALS = 20
"""Outcomes of a file that are refused one by one."""
OTHER_CONTENTS = (
    "note: not the same here as where it was measured, so that answers with it are not linked: {}"
    " (the text docs is that of the Python, numpy and pandas that plan a sweep)"
)
SQLITE = b"SQLite format 3\0"
EXPORT_FIRST = {
    ".nsys-rep": "nsys export --type sqlite {}",
    ".qdrep": "nsys export --type sqlite {}",
    ".ncu-rep": "ncu --import {} --csv --page raw > report.csv",
}
"""Reports of the profilers themselves, which only they can read."""
_STATES = {
    "imported": "imported",
    "known": "in the store already, nothing changed",
    "replaced": "imported again, instead of what was stored of it",
}


def import_outcomes(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE...",
            help=(
                "Outcomes of `python -m workers.run`, or folders of them; SQLite files of `nsys"
                " export`; tables of `ncu --csv`; "
                "with --reference names or files."
            ),
        ),
    ] = None,
    *,
    db: Database = None,
    sweep: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Link the outcomes to this sweep file, so that report and plot show them.",
        ),
    ] = None,
    device: DeviceOption = None,
    reference: Annotated[
        bool,
        typer.Option(
            "--reference",
            help=(
                "Published tables, by name or file (default: all that ship), never mixed into what"
                " is measured."
            ),
        ),
    ] = False,
    forwards: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="K", help="Forwards in a profile whose ranges do not show them."
        ),
    ] = None,
    comparison: Annotated[
        str | None,
        typer.Option(metavar="ID", help="The comparison that a profile without marks belongs to."),
    ] = None,
    arm: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL",
            help="Which arm of it: baseline or arm; without --comparison any words.",
        ),
    ] = None,
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Import outcomes of one folder as they land, until Ctrl-C."),
    ] = False,
) -> None:
    """Store outcomes, profiles or, with `reference`, published tables."""
    if reference:
        import_published(files or (), db=db)
        return
    if not files:
        raise typer.BadParameter("name the files or folders to import", param_hint="FILE...")
    stated = StatedTie(comparison, arm, forwards)
    if watch:
        if len(files) != 1 or not files[0].is_dir():
            raise typer.BadParameter("takes one folder of outcomes", param_hint="--watch")
        watch_folder(files[0], db=db, sweep=sweep, device=device)
    import_files(files, db=db, sweep=sweep, device=device, request=stated)


def watch_folder(
    folder: Path, *, db: str | None, sweep: Path | None, device: Device | None
) -> NoReturn:
    """Import the outcomes in a folder as they land, until interrupted. A file that is not whole is
    named, and tried again when it has changed.
    """
    seen: dict[Path, float] = {}
    while True:
        for path in sorted(folder.glob("*.json")):
            at = path.stat().st_mtime
            if seen.get(path) != at:
                seen[path] = at
                try:
                    import_files([path], db=db, sweep=sweep, device=device)
                except StoreOutageError as outage:
                    del seen[path]
                    typer.echo(f"{outage}; trying again", err=True)
                except StoreError as error:
                    typer.echo(f"{error}; it is read again when it has changed", err=True)
        time.sleep(FOLDER_WATCH_S)


def import_files(
    paths: Iterable[Path],
    *,
    db: str | None,
    sweep: Path | None = None,
    device: Device | None = None,
    request: StatedTie | None = None,
) -> None:
    """Store outcomes of `python -m workers.run` and profiles of nsys and ncu, all of them or none.

    sweep: link the outcomes to it. request: what the user states of the profiles. Raises
    `UserError` for files that are neither, and for contradictions.
    """
    requested = request or StatedTie()
    files = [(path, file_format(path)) for path in paths]
    traces = [_trace(path, form, requested.forwards) for path, form in files if form != "outcomes"]
    outcomes = [
        outcome for path, form in files if form == "outcomes" for outcome in read_outcomes(path)
    ]
    _check_options(files, traces, outcomes, sweep, requested)
    source = find_source(sweep, db) if sweep else None
    expansion = source.load(auto=device or outcomes[0].environment.device) if source else None
    if expansion is not None:
        _check_sweep(expansion, outcomes)
    with disposing(connect(db)) as engine:
        recorded: list[RecordedTrace] = []
        fresh = record_imported(
            engine,
            outcomes,
            lambda connection: recorded.extend(record_traces(connection, traces, requested)),
        )
        unknown = sorted({name for outcome in outcomes for name in unknown_names(outcome.job)})
        if unknown:
            names = ", ".join(unknown)
            typer.echo(f"note: {names} not known here: counts are not checked", err=True)
        store_arm_labels(engine, planning.job_arm_labels(outcome.job for outcome in outcomes))
        if outcomes or not traces:
            known = len(outcomes) - fresh
            before = f", {known} in the store already" if known else ""
            typer.echo(f"{count(fresh, 'outcome')} imported{before}")
        for each in recorded:
            _show(each)
        if expansion is not None:
            _link(engine, expansion, outcomes)


def file_format(path: Path) -> ImportFormat:
    """What a file holds, by its content. Raises `StoreError` for what cannot be imported."""
    if path.is_dir() or path.suffix == ".json":
        return "outcomes"
    if path.suffix in EXPORT_FIRST:
        command = EXPORT_FIRST[path.suffix].format(path.name)
        raise StoreError(
            f"{path} is a report that only the profiler itself reads; export it first: {command}"
        )
    try:
        with path.open("rb") as file:
            head = file.read(len(SQLITE))
            if head == SQLITE:
                return "nsys"
        text = _decoded(path)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is neither text nor SQLite"
        raise StoreError(f"{path} cannot be read: {why}") from None
    if text.lstrip().startswith("{"):
        return "outcomes"
    if KERNEL in text or NAME in text or "==PROF==" in text:
        return "ncu"
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    found = f"a first line {first[:60]!r}" if first else "an empty file"
    raise StoreError(
        f"{path} is none of what can be imported: expected outcomes of `python -m workers.run`"
        " (JSON), the SQLite file of `nsys export --type sqlite`, or the table of `ncu --csv`;"
        f" found {found}"
    )


def _decoded(path: Path) -> str:
    """A text file in UTF-8 or, as PowerShell writes it, UTF-16. Raises `UnicodeDecodeError` for
    others.
    """
    data = path.read_bytes()
    return data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")


def _trace(path: Path, form: ImportFormat, forwards: int | None) -> TraceFile:
    """The profiles in a file of nsys or ncu."""
    try:
        imported = (
            nsys_profiles(read_nsys(path), forwards)
            if form == "nsys"
            else ncu_profiles(read_ncu(_decoded(path)), forwards)
        )
    except TraceError as error:
        raise TraceError(f"{path}: {error}") from None
    with path.open("rb") as file:
        return TraceFile(path.name, hashlib.file_digest(file, "sha256").hexdigest(), imported)


def _check_options(
    paths: Sequence[tuple[Path, ImportFormat]],
    traces: Sequence[TraceFile],
    outcomes: Sequence[Outcome],
    sweep: Path | None,
    request: StatedTie,
) -> None:
    """Raise `StoreError` for options that belong to files of another kind."""
    if sweep is not None and not outcomes:
        profile = f"{paths[0][0]} is a profile, which belongs to a comparison: --comparison ID"
        raise StoreError(f"--sweep {sweep} links outcomes, and {profile}")
    stated = [
        f"--{name}"
        for name, value in zip(StatedTie._fields, request, strict=True)
        if value is not None
    ]
    if stated and not traces:
        raise StoreError(
            f"{' and '.join(stated)} belong to files of nsys and ncu; {paths[0][0]} holds outcomes"
        )


def _show(recorded: RecordedTrace) -> None:
    """What became of a file, and what it covers."""
    typer.echo(f"{recorded.trace.file}: {_STATES[recorded.state]}; {recorded.tie}")
    for imported, kernel_time_share in zip(
        recorded.trace.imported, recorded.kernel_time_share, strict=True
    ):
        for line in summary_lines(imported, kernel_time_share):
            typer.echo(f"  {line}")
    for note in recorded.tie.notes:
        typer.echo(f"  {note}")


def _link(engine: Engine, expansion: Expansion, outcomes: Sequence[Outcome]) -> None:
    """Let the sweep count the outcomes as its own."""
    if expansion.sweep.search is not None:  # of all feasible places those that were measured
        from orchestrator.loop.refinement import Refinement

        refinement = Refinement(expansion, engine)
        refinement.choose(
            {key for outcome in outcomes for key in outcome.job.comparison_ids()}
            & refinement.questions.keys()
        )
        expansion = refinement.requested()
    sites = [
        Site(outcome.host, {outcome.environment.device: outcome.environment})
        for outcome in outcomes
    ]
    plan = make_plan(expansion.without_demands(), engine, sites)
    state = progress(engine, planning.submit_plan(engine, dataclasses.replace(plan, wanted=())))
    are = "is" if state.comparisons == 1 else "are"
    measured = f"{state.measured} of {count(state.comparisons, 'comparison')} {are} measured"
    typer.echo(
        "\n  ".join(
            [
                f"linked to sweep {expansion.sweep.name}: {measured}, {plan.answered} answered",
                *planning.describe_unanswered(plan, {}),
            ]
        )
    )


def read_outcomes(path: Path) -> Iterator[Outcome]:
    """The outcomes in a file (one JSON object, or one on each line) or in the *.json files of a
    folder. Raises `StoreError` with a line for each outcome of a file that cannot be.
    """
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise StoreError(f"{path} holds no *.json files")
    for file in files:
        try:
            text = file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise StoreError(f"{file} cannot be read: {error}") from None
        documents = [text] if text.lstrip().startswith("{\n") else text.splitlines()
        found, refusals = list[Outcome](), list[str]()
        for line, document in enumerate(documents, 1):
            if document.strip():
                try:
                    found.append(_checked(document))
                except OutcomeFileError as error:
                    refusals.append(f"{file}, line {line}: not an outcome of workers.run: {error}")
        if refusals:
            outcomes = count(len(found) + len(refusals), "outcome")
            refused = f"{len(refusals)} of {outcomes} refused, nothing is imported"
            raise StoreError("\n".join(refusals[:MAX_REFUSALS]) + f" ({refused})")
        if not found:
            raise StoreError(f"{file} holds no outcome: it is empty")
        yield from found


def _checked(document: str) -> Outcome:
    """The outcome in a JSON text, with a flag where its counts are not known here. Raises
    `OutcomeFileError` for one that cannot be.
    """
    outcome = read_outcome(document)
    _check_methods(outcome.job)
    for problem in wrong_counts(outcome):
        raise OutcomeFileError(problem)
    flags = (COUNTS_UNCHECKED,) if unknown_names(outcome.job) else ()
    return outcome.model_copy(update={"flags": (*outcome.flags, *flags)})


def _check_methods(job: Job) -> None:
    """Raise `OutcomeFileError` for a method in a later version than that of this installation, and
    for parameters that it does not have or take.
    """
    known, modality = all_methods(), KINDS[job.kind].modality
    for place, arm in enumerate(job.arms):
        for step in arm.stack:
            method, where = known.get(step.method), f"job.arms.{place}: {step.method}"
            if method is None:
                continue
            if modality_of(method) != modality:
                raise OutcomeFileError(
                    f"{where} is for {modality_of(method)} models, the job is about {modality}"
                    " models"
                )
            if step.version < method.VERSION:
                continue  # its answers count as stale
            try:
                method.Params.model_validate_json(json.dumps(step.params), strict=True)
                resolve(Arm(stack=(step,)), modality)
            except ValidationError as error:
                first = error.errors()[0]
                raise OutcomeFileError(
                    f"{where}.{'.'.join(map(str, first['loc']))}: {first['msg']}"
                ) from None
            except InvalidMethod as error:
                raise OutcomeFileError(f"job.arms.{place}: {error}") from None


def _check_sweep(expansion: Expansion, outcomes: Sequence[Outcome]) -> None:
    """Raise `StoreError` for a sweep that asks nothing of what the outcomes answer."""
    asked = {comparison.question_id for comparison in expansion.comparisons}
    own = [
        outcome
        for outcome in outcomes
        if asked & {comparison.question_id for comparison in outcome.job.comparisons()}
    ]
    others = count(len(outcomes) - len(own), "outcome")
    if not own:
        raise StoreError(
            f"--sweep {expansion.sweep.name}: none of {others} is of one of its comparisons, and"
            " nothing is imported; name the sweep that they were measured for, or leave it out"
        )
    if len(own) < len(outcomes):
        typer.echo(f"note: {others} of other sweeps than {expansion.sweep.name}", err=True)
    contents = {
        comparison.question_id: job.content_hashes
        for job in expansion.jobs
        for comparison in job.comparisons()
    }
    differing = {
        name.removeprefix(NAMED)
        for outcome in own
        for comparison in outcome.job.comparisons()
        for name, value in contents.get(comparison.question_id, {}).items()
        if outcome.job.content_hashes.get(name) != value
    }
    if differing:
        typer.echo(OTHER_CONTENTS.format(", ".join(sorted(differing))), err=True)


def import_published(names: Sequence[Path], *, db: str | None) -> None:
    """Store references by name or path (default: all that ship) as environments `published: …`.
    Raises `UserError`.
    """
    for name in names:
        if name.suffix in {".json", ".jsonl"}:
            raise UserError(
                f"--reference {name}: a published table is YAML; outcomes of workers.run are"
                " imported without --reference"
            )
    sets = [load_reference(str(name)) for name in names] or [
        load_reference(name) for name in shipped_references()
    ]
    with disposing(connect(db)) as engine:
        changed = import_references(engine, sets)
    for each in sets:
        state = "imported" if changed[each.name] else "was in the store already"
        typer.echo(f"{each.name} ({count(len(each.rows), 'row')}) {state}: {each.environment}")


def merge(
    other: Annotated[
        str, typer.Argument(metavar="OTHER.db", help="The store to read; it is not changed.")
    ],
    *,
    db: Database = None,
) -> None:
    """Bring what another store measured into this one."""
    if location(other) == location(db):
        raise StoreError(f"{other} is the store itself; name another one to read")
    try:
        read_only = connect_readonly(other)
    except NoStoreError:
        raise StoreError(f"{other} does not exist; name the store to read") from None
    with disposing(read_only) as source, disposing(connect(db)) as engine:
        merged = merge_stores(
            engine, source, check=lambda outcome: _checked(outcome.model_dump_json())
        )
    for sweep in merged.sweeps:
        state = "came" if sweep.new else "was here already"
        if sweep.here != sweep.name:
            state += f" as {sweep.here}, since {sweep.name} is another sweep here"
        typer.echo(f"sweep {sweep.name} {state}")
    came = count(merged.attempts, "attempt")
    typer.echo(f"{came} came from {other}, {merged.known} already here")
