"""Command line of the web app, which `breakeven app` and `breakeven plot` start: `python -m webapp
app` opens it, `python -m webapp plot NAME -o FILE` draws a chart.
"""

import gc
import os
import secrets
import shlex
import sys
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer.models import OptionInfo

from sweeps.errors import UserError
from sweeps.number_format import count
from webapp.display.paper import Axes, Legend, Venue, paper_of

APP = Path(__file__).with_name("app.py")
STREAMLIT_OPTIONS = {
    "server.fileWatcherType": "none",
    "server.showEmailPrompt": False,
    "browser.gatherUsageStats": False,
    "runner.magicEnabled": False,
    "logger.hideWelcomeMessage": True,  # also hides an advertisement that covers the page
    "client.toolbarMode": "minimal",
    "client.showErrorLinks": False,
    "theme.light.primaryColor": "#1a70b8",
    "theme.dark.primaryColor": "#3f9bdc",
}
"""Given as options of the call, because Streamlit reads a configuration file only from the folder
it is started in."""

OPEN_TO_OTHERS = (
    "breakeven: the app listens on {host}: whoever reaches this address and has the token can"
    " read the whole store, and nothing is encrypted on the way; leave --host out to keep it to"
    " this machine (ssh -L 8501:localhost:8501 reaches it from elsewhere)"
)


FIRST_IMPORTED = (
    *("PIL.Image", "scipy.special", "narwhals.stable.v1", "pyarrow.pandas_compat"),
    *("workers.activation_sparsity", "workers.token_reduction"),
    *(f"webapp.screens.{path.stem}" for path in sorted(APP.with_name("screens").glob("[!_]*.py"))),
)
"""What pages need, imported while the server starts: the first visit need not wait for it."""


def _with_curves(db: str | None) -> str | None:
    # imports SQLAlchemy, which help does not need
    from store.write.queue import derive_before_reading

    return derive_before_reading(db)


Database = Annotated[
    str | None,
    typer.Option(
        "--db",
        envvar="BREAKEVEN_DB",
        help="Database: a file or an SQLAlchemy URL.",
        show_default="breakeven.db",
        callback=_with_curves,
    ),
]


def for_papers(text: str, *names: str) -> OptionInfo:
    """An option that makes a figure for a paper."""
    made: OptionInfo = typer.Option(
        *names, rich_help_panel="For papers (the figure alone)", help=text
    )
    return made


commands = typer.Typer(
    help="Charts of a Breakeven store, in the browser or as files.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; 0 when done, 2 for wrong usage or a store that cannot be read, 130 when
    interrupted.
    """
    try:
        commands(arguments, prog_name="breakeven")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    except KeyboardInterrupt:
        return 130
    except UserError as problem:
        typer.echo(f"breakeven: {problem}", err=True)
        return 2
    finally:
        if opened := sys.modules.get("store.open.engine"):  # help needs no SQLAlchemy
            opened.close_watches()
    return 0


@commands.command("app")
def open_app(
    *,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8501,
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on; others than localhost let others read, with a token."
        ),
    ] = "localhost",
    token: Annotated[
        str,
        typer.Option(
            envvar="BREAKEVEN_TOKEN",
            help=(
                "What a first visit must have in its address; random where --host or"
                " --allow-submit needs one."
            ),
            show_default=False,
        ),
    ] = "",
    allow_submit: Annotated[
        bool,
        typer.Option(
            "--allow-submit",
            help="Let the page queue sweeps for `breakeven serve`, and cancel them; with a token.",
        ),
    ] = False,
    base_path: Annotated[
        str,
        typer.Option(
            metavar="/PATH",
            help="Path under which a proxy passes this app on; the proxy keeps path and Host.",
            show_default=False,
        ),
    ] = "",
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Do not open a browser window.")
    ] = False,
    db: Database = None,
) -> None:
    """Open the web app on this machine."""
    from altair.utils.schemapi import disable_debug_mode

    # Streamlit takes a second to import, which `plot` need not wait for
    from starlette.middleware import Middleware
    from streamlit.starlette import App
    from uvicorn.config import LOGGING_CONFIG

    from webapp.guard import Guard, is_local
    from webapp.widgets.queueing import allow_submissions

    if db:
        os.environ["BREAKEVEN_DB"] = db
    for name in FIRST_IMPORTED:
        import_module(name)
    gc.freeze()  # no later collection looks through what was imported
    disable_debug_mode()  # tests validate each part of a chart, which takes as long as making it
    local = is_local(host)
    if not local:
        typer.echo(OPEN_TO_OTHERS.format(host=host), err=True)
    if allow_submit:
        allow_submissions()
    token = token or ("" if local and not allow_submit else secrets.token_urlsafe(24))
    shown = "localhost" if host in {"0.0.0.0", "::"} else host  # noqa: S104 - compared
    address = f"http://{f'[{shown}]' if ':' in shown else shown}:{port}"
    base = base_path.strip("/")
    address += f"/{base}/" if base else "/"
    address += f"?token={token}" if token else ""

    @asynccontextmanager
    async def announced(_: App) -> AsyncIterator[None]:
        typer.echo(f"Breakeven is at {address} ; Ctrl-C stops it")
        if not no_browser:
            webbrowser.open(address)
        yield

    LOGGING_CONFIG["loggers"]["uvicorn"]["level"] = "WARNING"
    say = partial(typer.echo, err=True)
    command = shlex.join(("breakeven", *sys.argv[1:]))
    words = {"token": token, "cookie": f"breakeven-{port}", "command": command, "base": base}
    guard = Middleware(Guard, say=say, **words)
    given = {"server.address": host, "server.port": port, "server.baseUrlPath": base}
    App(APP, middleware=[guard], lifespan=announced).run(config={**STREAMLIT_OPTIONS, **given})


@commands.command("plot")
def draw_plot(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of a sweep in the store.")],
    *,
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FILE", help="The file to write: .png, .svg, .pdf or .html."
        ),
    ],
    axis: Annotated[
        Axes,
        typer.Option(help="What to draw against; both: tokens and gmacs."),
    ] = "tokens",
    metric: Annotated[
        str | None,
        typer.Option(
            help=(
                "latency; ttft, tpot or time_per_char for language models. Default: latency or"
                " time_per_char."
            )
        ),
    ] = None,
    flagged: Annotated[bool, typer.Option("--flagged", help="Draw flagged points too.")] = False,
    references: Annotated[
        bool,
        typer.Option(
            "--references",
            help="Draw published points of the same models too (import --reference).",
        ),
    ] = False,
    venue: Annotated[
        Venue | None,
        for_papers("Width, size and font of a template's column, or of its text (-wide).", "--for"),
    ] = None,
    width: Annotated[str, for_papers("Width, such as 3.3in, 8.4cm or 241pt.")] = "",
    height: Annotated[str, for_papers("Height. Default: by the width of the panels.")] = "",
    font_size: Annotated[float | None, for_papers("Size of all texts in points.")] = None,
    font: Annotated[str, for_papers("A font, or several: the first that is installed.")] = "",
    rows: Annotated[
        str, for_papers("A row of panels for each model, batch_size, runtime, device, method …")
    ] = "",
    columns: Annotated[str, for_papers("The same for columns of panels.")] = "",
    xlim: Annotated[str, for_papers("Limits of the axis of sizes: 16,256.")] = "",
    ylim: Annotated[str, for_papers("Limits of the speed-ups: 0.5,2.")] = "",
    legend: Annotated[
        Legend | None,
        for_papers("Where arms are named; labels: at the ends of lines, as where there is room."),
    ] = None,
    title: Annotated[str, for_papers("A title inside the figure. Default: none.")] = "",
    db: Database = None,
) -> None:
    """Draw the speed-ups of a sweep into a file; with an option for papers the figure alone, and
    what its caption needs in a text file beside it.
    """
    from webapp.plot import save_plot

    written = save_plot(
        *(name, out),
        axes=axis,
        metric=metric,
        url=db,
        show_flagged=flagged,
        references=references,
        paper=paper_of(
            *(venue, (width, height), (font_size, font)),
            legend=legend,
            split=(rows, columns),
            limits=(xlim, ylim),
            title=title,
        ),
    )
    for path in written:
        typer.echo(path)


@commands.command("publish")
def publish_folder(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder to write; made where it is missing.")
    ],
    *,
    sweep: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this sweep; may be given several times."),
    ] = None,
    samples: Annotated[
        Literal["none", "summary", "all"],
        typer.Option(help="Raw times in the database: none, quantiles of each arm, or all."),
    ] = "none",
    address: Annotated[
        str,
        typer.Option(metavar="URL", help="Where the folder will be found, for feed.json."),
    ] = "",
    db: Database = None,
) -> None:
    """Write results as a folder of pages that any web server shows, without names of hosts, users
    or paths.
    """
    from webapp.publish.publication import publish

    if address and not address.startswith(("http://", "https://")):
        right = "is no URL; write where the folder will be found, such as https://example.org/runs/"
        raise typer.BadParameter(f"{address!r} {right}", param_hint="--address")
    made = publish(*(folder, sweep or ()), url=db, samples=samples, address=address, say=typer.echo)
    changed, unchanged, removed = made
    typer.echo(
        f"{folder}: {count(changed, 'file')} changed, {unchanged} unchanged, {removed} removed"
    )


if __name__ == "__main__":
    sys.exit(main())
