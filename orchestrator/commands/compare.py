"""The command `compare`: functions, commands or revisions side by side, with an interval and an
exit code.
"""

import itertools
import math
import random
import re
import select
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from orchestrator.commands.options import Database, parse_seconds
from sweeps.errors import SlowdownError, UserError
from sweeps.model.outcome import INTEGER

if TYPE_CHECKING:
    from orchestrator.api.commands import Arms
    from orchestrator.api.function_arms import Values
    from orchestrator.api.result import Result, Setup

Format = Literal["table", "json", "markdown"]
AXIS = re.compile(r"([A-Za-z_]\w*)=(.+)")
FRESH_SHARE = 1 / 12
"""Of the time of one comparison: functions that load within it do so anew for each visit."""


def compare(
    arms: Annotated[
        list[str],
        typer.Argument(
            metavar="ARM…",
            help="Functions (FILE:NAME), the first is the baseline; with --command commands, with"
            " --revision one function.",
        ),
    ],
    *,
    command: Annotated[
        bool, typer.Option("--command", help="Arms are commands, each in quotes.")
    ] = False,
    revision: Annotated[
        list[str] | None,
        typer.Option(
            metavar="REV", help="A git revision; twice or more, the first is the baseline."
        ),
    ] = None,
    axis: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=V,V", help="Numbers for inputs(NAME=…), or for {NAME} in a command."
        ),
    ] = None,
    inputs: Annotated[
        str | None, typer.Option(metavar="FILE:NAME", help="A function that makes the arguments.")
    ] = None,
    control: Annotated[
        str | None,
        typer.Option(
            help="An arm that cannot differ from the baseline (with --revision: a function that"
            " the change does not touch); if it does, nothing is concluded."
        ),
    ] = None,
    time: Annotated[str, typer.Option(help="For all of it, such as 30s or 2m.")] = "1m",
    margin: Annotated[str, typer.Option(help="A smaller loss of speed is none.")] = "2%",
    fail_on: Annotated[
        Literal["slower", "not-faster"], typer.Option(help="What exit code 1 means.")
    ] = "slower",
    prepare: Annotated[
        str | None, typer.Option(metavar="CMD", help="Runs before each command, not timed.")
    ] = None,
    setup: Annotated[
        str | None, typer.Option(metavar="CMD", help="Runs once in the tree of each revision.")
    ] = None,
    timeout: Annotated[
        str | None,
        typer.Option(help="One execution is ended after this.", show_default="--time"),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check/--no-check", help="Arms must give the same results.")
    ] = True,
    fresh_inputs: Annotated[
        bool, typer.Option("--fresh-inputs", help="Each call of a function has inputs of its own.")
    ] = False,
    form: Annotated[Format, typer.Option("--format")] = "table",
    comment: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write Markdown for a pull request.")
    ] = None,
    store: Annotated[
        bool, typer.Option("--store", help="Save it in the database, as a sweep.")
    ] = False,
    db: Database = None,
) -> None:
    """Compare functions, commands or revisions. Exit codes: 0 no arm is slower, 1 one is, 3 not
    decided.
    """
    from orchestrator.api.render import FAILED, ComparisonReport, Place
    from orchestrator.api.result import Setup

    if (
        (command and (revision or inputs))
        or (fresh_inputs and not inputs)
        or (setup and not revision)
        or (prepare and not command)
    ):
        raise UserError(
            "--command takes no --revision and no --inputs; --setup goes with --revision,"
            " --prepare with --command, and --fresh-inputs with --inputs"
        )
    time_s, share = parse_seconds(time), _share(margin)
    places = list(_places(axis or []))
    timeout_s = time_s if timeout is None else parse_seconds(timeout)
    limits: dict[str, Any] = {
        "fresh_inputs": fresh_inputs,
        "fresh_s": FRESH_SHARE * time_s / len(places),
        "timeout_s": timeout_s,
        "check": check,
    }
    with ExitStack() as stack:
        if command:
            source = _commands(arms, control, prepare, timeout_s, check=check)
        elif revision:
            found = _revisions(
                arms,
                revision,
                control=control,
                inputs=inputs,
                setup=setup,
                **limits,
            )
            source = stack.enter_context(found)
        else:
            source = _functions(arms, control, inputs, **limits)
        opened = [stack.enter_context(source.open(values)) for values in places]
        setups = [
            Setup(
                time_s=time_s / len(places),
                margin=share,
                controls=source.controls,
                own_s=arms_there.own_s,
                threads_s=arms_there.threads_s,
                sources=arms_there.sources(),
                values=values,
            )
            for arms_there, values in zip(opened, places, strict=True)
        ]
        _check_targets(comment, db, store=store)
        results = _measured(opened, setups)
        notes = dict.fromkeys(source.notes)
        for arms_there in opened:
            notes |= dict.fromkeys(arms_there.notes())
        measured = [
            Place(values, source.conclude(result), arms_there.usages())
            for values, result, arms_there in zip(places, results, opened, strict=True)
        ]
        report = ComparisonReport(tuple(measured), share, fail_on, tuple(notes))
        if form == "json":
            typer.echo(report.as_json())
        else:
            for line in report.markdown() if form == "markdown" else report.table():
                typer.echo(line)
    with ExitStack() as writes:  # what one of them raises comes after the other
        if comment is not None:
            text = "\n".join([*report.markdown(), ""])
            writes.callback(_write, comment, lambda file: file.write_text(text, encoding="utf-8"))
        if store:
            writes.callback(lambda: typer.echo(_stored(results, db), err=form != "table"))
    if report.exit_code() == FAILED:
        raise SlowdownError
    raise typer.Exit(report.exit_code())


class Source(NamedTuple):
    """Where the arms of a comparison come from."""

    open: "Callable[[Values], Arms]"
    """Arms at a place of the axes."""
    controls: Mapping[str, str] = {}
    """Names of arms that cannot differ, each from another one."""
    conclude: "Callable[[Result], Result]" = lambda result: result
    """The result without what is no arm of the user's."""
    notes: Sequence[str] = ()


def _measured(arms: "Sequence[Arms]", setups: "Sequence[Setup]") -> "list[Result]":
    """The results of all places, whose visits alternate. Raises `UserError` where nothing can be
    compared.
    """
    from orchestrator.api.comparison import ArmFailedError, Comparison, progress_bar
    from sweeps.stats.pooling import quantile

    quantile(0.05, 1.0)  # loads SciPy before the time starts
    show = progress_bar()
    places = [
        Comparison(
            found.names, found.slots, setup, found.verify, cached=found.cached, fault=found.fault
        )
        for found, setup in zip(arms, setups, strict=True)
    ]
    try:
        while left := [place for place in places if not place.ended]:
            random.shuffle(left)
            for place in left:
                place.visit()
                show(mean(each.share_done for each in places))
    except ArmFailedError as error:
        raise UserError(str(error)) from None
    return [place.result() for place in places]


def _check_targets(comment: Path | None, db: str | None, *, store: bool) -> None:
    """Raises `UserError` for what could not be written after the measurement."""
    output = select.poll()
    output.register(1, 0)
    if output.poll(0):
        raise UserError("the output is closed: nothing reads the result")
    if comment is not None:
        _write(comment, _probe)
    if store:
        from orchestrator.api.result import check_store

        check_store(db)


def _probe(file: Path) -> None:
    """Open a file for writing and leave it as it is. Raises `OSError`."""
    existed = file.exists()
    file.open("ab").close()
    if not existed:
        file.unlink()


def _write(file: Path, write: Callable[[Path], object]) -> None:
    """Raises `UserError`."""
    try:
        write(file)
    except OSError as error:
        raise UserError(f"--comment {file} cannot be written: {error.strerror}") from None


def _stored(results: "Sequence[Result]", db: str | None) -> str:
    """A line on where results are from now on. Raises `StoreError`."""
    from orchestrator.api.result import save_results

    name = save_results(results, *(() if db is None else (db,)))
    return f"Stored as a sweep: breakeven report {shlex.quote(name)}"


def _commands(
    texts: Sequence[str],
    control: str | None,
    prepare: str | None,
    timeout_s: float,
    *,
    check: bool,
) -> Source:
    """Raises `UserError` for fewer than two commands."""
    from orchestrator.api.commands import Commands, parse_command

    named = _several("command", "'sort big.txt' 'sort --parallel=2 big.txt'", texts, control)

    def opened(values: "Values") -> Commands:
        for name in values:
            if f"{{{name}}}" not in f"{named}{prepare}":
                raise UserError(f"--axis {name}: no command contains {{{name}}}")
        return Commands(
            [parse_command(_filled(text, values))._replace(text=text) for text in named],
            None if prepare is None else parse_command(_filled(prepare, values)),
            timeout_s,
            check=check,
        )

    return Source(opened, _controls(control, texts[0]))


def _functions(
    texts: Sequence[str],
    control: str | None,
    inputs: str | None,
    **limits: Any,
) -> Source:
    """Raises `UserError` for fewer than two functions."""
    from orchestrator.api.function_arms import (
        FunctionArm,
        FunctionArms,
        default_python,
        parse_function,
    )

    named = _several("function", "a.py:f b.py:f", texts, control)
    made = None if inputs is None else parse_function(inputs)
    python = default_python()
    arms = [FunctionArm(text, parse_function(text), made, python) for text in named]
    return Source(FunctionArms(arms, **limits).at, _controls(control, texts[0]))


@contextmanager
def _revisions(
    texts: Sequence[str],
    revisions: Sequence[str],
    *,
    control: str | None,
    inputs: str | None,
    setup: str | None,
    **limits: Any,
) -> Iterator[Source]:
    """Raises `UserError` for fewer than two revisions, or other than one function."""
    from orchestrator.api.function_arms import FunctionArms, parse_function
    from orchestrator.api.revisions import Repository, without_controls

    if len(texts) != 1:
        raise UserError(
            "--revision compares one function: --revision main --revision HEAD -- b.py:f"
        )
    made = None if inputs is None else parse_function(inputs)
    repository = Repository(Path.cwd())
    named = _several("revision", "--revision main --revision HEAD", revisions)
    with repository.trees(named, setup) as trees:
        arms = [
            repository.arm(f"{prefix}{tree.label}", tree, parse_function(text), made)._replace(
                group=prefix
            )
            for prefix, text in (("", texts[0]), (f"{control} at ", control))
            if text is not None
            for tree in trees
        ]
        first, *others = [arm.label for arm in arms[len(trees) :]] or [""]
        yield Source(
            FunctionArms(arms, **limits).at,
            dict.fromkeys(others, first),
            conclude=partial(without_controls, count=len(trees)),
            notes=[f"Each revision runs {texts[0]} in a work tree", *repository.notes(trees)],
        )


def _controls(control: str | None, baseline: str) -> Mapping[str, str]:
    return {} if control is None else {control: baseline}


def _several(
    what: str, example: str, names: Sequence[str], control: str | None = None
) -> list[str]:
    """At least two names, and the control; all differ. Raises `UserError`."""
    every = [*names, *_controls(control, "")]
    if len(names) < 2 or len(set(every)) < len(every):
        raise UserError(f"write two different {what}s or more, the baseline first: {example}")
    return every


def _filled(text: str, values: "Values") -> str:
    """A command with `{name}` of each axis replaced by its value."""
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", f"{value}")
    return text


def _places(axes: Sequence[str]) -> "Iterator[Values]":
    """All combinations of the values of some axes, `n=64,256` each. Raises `UserError`."""
    names, lists = [], []
    for text in axes:
        if (match := AXIS.fullmatch(text)) is None:
            raise UserError(f"--axis {text!r}: write a name and numbers, such as n=64,256,1024")
        values = [_number(part, text) for part in match[2].split(",")]
        if match[1] in names or len({*values}) < len(values):
            raise UserError(f"--axis {text!r}: a name or a number stands twice")
        names.append(match[1])
        lists.append(values)
    for point in itertools.product(*lists):
        yield dict(zip(names, point, strict=True))


def _number(text: str, axis: str) -> float:
    try:
        number = int(text) if text.strip().lstrip("-").isdecimal() else float(text)
    except ValueError:
        number = math.nan
    if not abs(number) < INTEGER:
        raise UserError(
            f"--axis {axis:.40}: {text:.20} is no finite number below 2**63; write some, such"
            " as n=64,256,1024"
        )
    return number


def _share(text: str) -> float:
    """`2%` or `0.02` as a share. Raises `UserError`."""
    number = text.removesuffix("%").strip()
    try:
        share = float(number) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 < share < 1:
        raise UserError(f"--margin {text!r}: write a share between 0 and 100 %, such as 2%")
    return share
