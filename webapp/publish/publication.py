"""`breakeven publish`: a store as a folder of pages, tables and a database, in which no name of a
host, user or path is left.
"""

import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import vl_convert

from store.open.engine import connect_readonly, disposing
from store.read.advice.timed_arms import provenance_rows
from store.read.evidence.evidence import point_evidence
from store.write.public_store import (
    SampleDetail,
    host_aliases,
    public_frames,
    write_public_store,
)
from webapp import queries
from webapp.display.links import POINT_KEY
from webapp.publish import html, pages
from webapp.publish.folder import Changes, Folder, PublishError, Redaction
from webapp.publish.pages import PublishedSweep

Files = Iterator[tuple[str, str | bytes]]
"""Addresses and contents."""


def publish(
    root: Path,
    names: Iterable[str] = (),
    *,
    url: str | None = None,
    samples: SampleDetail = "none",
    address: str = "",
    say: Callable[[str], None],
) -> Changes:
    """Publish the newest revisions of these sweeps (default: all that were measured) in the folder
    `root`; `say` shows what is redacted before anything is written.

    `samples`: what the database has of raw times. `address`: where the folder will be found, for
    the feed. Raises `PublishError` for a folder that cannot take it, and `StoreError` for an
    unknown sweep or a store that cannot be read.
    """
    folder = Folder(root)
    with disposing(connect_readonly(url)) as engine, queries.reading(url):
        listed = {row["name"]: row for row in queries.sweeps()}
        measured = [name for name, row in listed.items() if row["measured"]]
        chosen = list(dict.fromkeys(names)) or measured
        for name in chosen or ["quickstart"]:
            if queries.find_sweep(name) and name not in measured:
                hint = f"run it first: breakeven run {name}"
                raise PublishError(f"sweep {name} has no measurement yet; {hint}")
        before = folder.known["sweeps"]
        if before and not set(before) & set(measured):
            raise PublishError(
                f"{root} has sweep {before[0]}, which this store lacks; bring both stores together"
                " (breakeven merge OTHER.db), or name another folder"
            )
        redaction = Redaction(host_aliases(engine))
        for line in redaction.lines:
            say(line)
        sweeps = []
        for name in chosen:
            rows = provenance_rows(engine, name).astype(object).to_dict("records")
            environments = [{**row, "facts": json.loads(row["facts"])} for row in rows]
            row = {**listed[name], "text": queries.find_sweep(name)["text"]}
            panels = list(pages.published_panels(name, redaction))
            cleaned = redaction.clean(row), panels, redaction.clean(environments)
            sweeps.append(PublishedSweep(name, *cleaned))
        sweeps.sort(key=lambda sweep: -sweep.measured_at)
        tables = _tables(engine, sweeps, samples, redaction)
        for files in (tables, _pages(engine, sweeps, redaction, address)):
            for path, content in files:
                folder.add(path, redaction.clean(content))
    for asset in sorted(html.ASSETS.rglob("*.*")):
        if asset.name not in html.TEMPLATES:
            folder.add(f"assets/{asset.relative_to(html.ASSETS).as_posix()}", asset.read_bytes())
    # its stub demands the argument that it has a default for
    folder.add("assets/vega.js", vl_convert.javascript_bundle())  # type: ignore[call-arg]
    return folder.write(sweeps=sorted(chosen))


def _tables(
    engine: Any, sweeps: list[PublishedSweep], samples: SampleDetail, redaction: Redaction
) -> Files:
    """The database, the Parquet files (a hub refuses one without rows) and their card."""
    given = public_frames(engine, [sweep.name for sweep in sweeps], samples)
    frames = {name: redaction.clean(frame) for name, frame in given.items()}
    known = {name: frame for name, frame in frames.items() if len(frame)}
    for name, frame in known.items():
        packed = BytesIO()
        frame.to_parquet(packed, index=False, compression="zstd")
        yield f"data/{name}.parquet", packed.getvalue()
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "store.sqlite"
        write_public_store(path, frames)
        yield "store.sqlite", path.read_bytes()
    yield "README.md", pages.dataset_card(list(known), sweeps)


def _pages(engine: Any, sweeps: list[PublishedSweep], redaction: Redaction, address: str) -> Files:
    yield "index.html", pages.home_page(sweeps)
    yield "query.html", html.page("Query", [html.fill_template("query.html")])
    yield "feed.json", pages.feed(sweeps, address)
    points = defaultdict[tuple[Any, ...], list[str]](list)
    for sweep in sweeps:
        yield sweep.address, pages.sweep_page(sweep, queries.view_rows(sweep.name, "failures"))
        own = {path: html.badge(arm, claim) for path, arm, claim in sweep.badges}
        own["sweep.yaml"] = sweep.row["text"]
        own["environment.json"] = json.dumps(sweep.environments, indent=1)
        for file, content in own.items():
            yield html.sweep_address(sweep.name, file), content
        keys = queries.view_rows(sweep.name, "effect")[list(POINT_KEY)].drop_duplicates()
        for point in keys.itertuples(index=False, name=None):
            points[point].append(sweep.name)
    for point, names in points.items():
        found = point_evidence(engine, *point)
        place = found.place._replace(host=redaction.hosts.get(found.place.host, ""))
        path = html.point_address(found.comparison_id, *place)
        yield path, pages.point_page(found._replace(place=place), names)
