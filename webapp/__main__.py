"""Command line of the web app: `python -m webapp app` opens it, `python -m webapp plot NAME -o
FILE` draws a chart.
"""

import argparse
import gc
import os
import sys
from importlib import import_module
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

APP = Path(__file__).with_name("app.py")
STREAMLIT_OPTIONS = {
    "server.fileWatcherType": "none",
    "server.showEmailPrompt": "false",
    "browser.gatherUsageStats": "false",
    "runner.magicEnabled": "false",
    "logger.hideWelcomeMessage": "true",  # also hides an advertisement that covers the page
    "client.toolbarMode": "minimal",
    "client.showErrorLinks": "false",
    "theme.light.primaryColor": "#1a70b8",
    "theme.dark.primaryColor": "#3f9bdc",
}
"""Given as command-line options, because Streamlit reads a configuration file only from the folder
it is started in."""

OPEN_TO_OTHERS = (
    "breakeven: the app listens on {host}: whoever reaches this address can read the whole store,"
    " without a password and without encryption; leave --host out to keep it to this machine (ssh"
    " -L 8501:localhost:8501 reaches it from elsewhere)"
)


FIRST_IMPORTED = (
    *("PIL.Image", "scipy.special", "narwhals.stable.v1", "pyarrow.pandas_compat"),
    *("workers.activation_sparsity", "workers.token_reduction"),
    *(f"webapp.screens.{path.stem}" for path in sorted(APP.with_name("screens").glob("[!_]*.py"))),
)
"""What pages need, imported while the server starts: the first visit need not wait for it."""


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; 0 when done, 2 for wrong usage or a store that cannot be read, 130 when
    interrupted.
    """
    given = _parser().parse_args(arguments)
    try:
        return {"app": _app, "plot": _plot, "publish": _publish}[given.command](given)
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m webapp",
        description="Charts of a Breakeven store, in the browser or as files.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    app = commands.add_parser(
        "app",
        help="open the app in the browser (this machine only, unless --host names an address)",
    )
    app.add_argument("--port", type=int, default=8501, help="port (default 8501)")
    app.add_argument(
        "--host",
        default="localhost",
        help="address to listen on (default localhost; others let other machines read)",
    )
    app.add_argument(
        "--no-browser", dest="browser", action="store_false", help="do not open a browser window"
    )
    plot = commands.add_parser("plot", help="draw a sweep's speed-ups into a file")
    plot.add_argument("name", help="name of the sweep")
    plot.add_argument(
        "-o", "--out", type=Path, required=True, help="file to write: .png, .svg, .pdf or .html"
    )
    axes = ["tokens", "gmacs", "gmacs_saved", "both"]
    plot.add_argument(
        "--axis",
        choices=axes,
        default="tokens",
        help="what to draw against (default tokens; both: tokens and gmacs)",
    )
    plot.add_argument(
        "--metric",
        help=(
            "latency; ttft, tpot or time_per_char for language models (default: the last of these)"
        ),
    )
    plot.add_argument("--flagged", action="store_true", help="draw flagged points too")
    plot.add_argument(
        "--references",
        action="store_true",
        help="draw published points of the same models too (breakeven import --reference)",
    )
    publish = commands.add_parser("publish", help="write a folder of pages that any server shows")
    publish.add_argument("folder", type=Path, help="folder to write")
    publish.add_argument("--sweep", action="append", default=[], help="sweep (default: all)")
    publish.add_argument("--samples", choices=["none", "summary", "all"], default="none")
    publish.add_argument("--address", default="", help="where the folder will be found")
    for command in (app, plot, publish):
        command.add_argument(
            "--db",
            help="database: a file or an SQLAlchemy URL (default $BREAKEVEN_DB, else breakeven.db)",
        )
    return parser


def _app(given: argparse.Namespace) -> int:
    from altair.utils.schemapi import disable_debug_mode

    # Streamlit takes a second to import, which `plot` need not wait for
    from streamlit.web import (
        cli,
    )

    if given.db:
        os.environ["BREAKEVEN_DB"] = given.db
    for name in FIRST_IMPORTED:
        import_module(name)
    gc.freeze()  # no later collection looks through what was imported
    disable_debug_mode()  # tests validate each part of a chart, which takes as long as making it
    if warning := warning_of(given.host):
        sys.stderr.write(f"{warning}\n")
    address = _address(given.host)
    shown = "localhost" if address and address.is_unspecified else given.host
    print(f"Breakeven is at http://{shown}:{given.port}; Ctrl-C stops it", flush=True)  # noqa: T201
    flags = {
        **STREAMLIT_OPTIONS,
        "server.address": given.host,
        "server.port": str(given.port),
        "server.headless": str(not given.browser).lower(),
    }
    cli.main(
        ["run", str(APP), *(f"--{key}={value}" for key, value in flags.items())],
        prog_name="streamlit",
        standalone_mode=False,
    )
    return 0


def warning_of(host: str) -> str:
    """What listening on this address means for others; empty for this machine alone."""
    address = _address(host)
    local = address.is_loopback if address else host == "localhost"
    return "" if local else OPEN_TO_OTHERS.format(host=host)


def _address(host: str) -> IPv4Address | IPv6Address | None:
    """The host as an address; `None` for a name."""
    try:
        return ip_address(host)
    except ValueError:
        return None


def _plot(given: argparse.Namespace) -> int:
    from store.errors import StoreError  # keeps `--help` quick
    from webapp.plot import PlotError, save_plot

    try:
        save_plot(
            *(given.name, given.out),
            axes=given.axis,
            metric=given.metric,
            url=given.db,
            show_flagged=given.flagged,
            references=given.references,
        )
    except (PlotError, StoreError) as problem:
        print(f"breakeven: {problem}", file=sys.stderr)  # noqa: T201 - this is the command line
        return 2
    print(given.out)  # noqa: T201
    return 0


def _publish(given: argparse.Namespace) -> int:
    from store.errors import StoreError
    from webapp.publish.folder import PublishError
    from webapp.publish.publication import publish

    try:
        changes = publish(
            *(given.folder, given.sweep),
            url=given.db,
            samples=given.samples,
            address=given.address,
            say=print,
        )
    except (PublishError, StoreError) as problem:
        print(f"breakeven: {problem}", file=sys.stderr)  # noqa: T201
        return 2
    changed, unchanged, removed = changes
    print(  # noqa: T201
        f"{given.folder}: {changed} files changed, {unchanged} unchanged, {removed} removed"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
