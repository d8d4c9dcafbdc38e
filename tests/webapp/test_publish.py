"""The published folder: what it holds, what it does not tell, and what a second publication does."""

import json
import re
import resource
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from platform import node

import pandas as pd
import pytest
import yaml

from store.errors import StoreError
from store.open.engine import connect, disposing
from store.views.public import TABLES
from store.write.merge import merge_stores
from store.write.public_store import NOT_GIVEN
from tests.webapp.publishing import (
    LOAD,
    SERIAL,
    USER_PATH,
    WINDOWS_PATH,
    published,
    revealing_store,
)
from tests.webapp.simulated import SIZES, job, outcome, store_outcomes
from webapp.__main__ import main
from webapp.publish.folder import MANIFEST, PublishError, Redaction
from webapp.publish.html import badge
from webapp.publish.publication import publish

LIMIT = 4_500_000
"""Bytes of a folder with two sweeps such as the quickstart."""
VENDORED = {"sqlite3/index.mjs", "sqlite3/sqlite3.wasm", "vega.js"}
"""Files below `assets/` that are of others; the README beside SQLite's says which."""


def files(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def unpacked_parquet(path: Path) -> str:
    return str(pd.read_parquet(path).to_csv())


def unpacked_database(path: Path) -> str:
    with closing(sqlite3.connect(path)) as database:
        return "\n".join(database.iterdump())


def test_what_is_published(folder: Path, filled: str) -> None:
    """Each thing that docs/publish.md promises; every link and script of a page leads to a file of
    the folder. The answer is the first heading of a sweep, and the feed has it, newest first.
    """
    found = files(folder)
    assert {
        *("index.html", "query.html", "store.sqlite", "feed.json", "README.md", MANIFEST),
        *("sweeps/quickstart/index.html", "sweeps/quickstart/sweep.yaml"),
        *("sweeps/quickstart/environment.json", "sweeps/quickstart/badges/0-0.svg"),
        *(f"assets/{name}" for name in VENDORED),
    } <= found.keys()
    distinct = "SELECT DISTINCT comparison_id, environment, host FROM effect"
    with closing(sqlite3.connect(filled)) as source:
        effects = source.execute(distinct).fetchall()
    assert len([name for name in found if name.startswith("points/")]) == len(effects)
    for name, content in found.items():
        if name.endswith(".html"):
            links = re.findall(r'(?:(?:href|src)="?|"href":")([^"> ]+)', content.decode())
            for address in (target.partition("#")[0] for target in links):
                if address and not address.startswith(("data:", "http://localhost:8000")):
                    assert (folder / name).parent.joinpath(address).resolve().is_file(), address
    assert yaml.safe_load(found["sweeps/quickstart/sweep.yaml"]) == {"name": "quickstart"}
    page = found["sweeps/quickstart/index.html"].decode()
    (first, *_) = re.findall(r"<h2>([^<]+)</h2>", page)
    assert first.startswith("topk keep_rate=0.5 pays at 36 to 196 tokens")
    assert page.count("<figure class=chart") == 2
    batches = found["sweeps/batches/index.html"].decode()
    assert "pays in at least a part of 2 of 2 conditions" in batches
    assert batches.count("<section id=panel-") == 2
    items = json.loads(found["feed.json"])["items"]
    assert {item["url"] for item in items} == {
        f"https://example.org/b/sweeps/{name}/index.html" for name in ("quickstart", "batches")
    }
    dates = [item["date_modified"] for item in items]
    assert dates == sorted(dates, reverse=True)
    assert all("pays" in item["title"] for item in items)
    assert "&lt;b&gt; &quot;x&quot;" in badge('<b> "x"', "from 36 tokens & more")


def test_tables_are_the_views(folder: Path, filled: str) -> None:
    """In the database with an index on each key, in Parquet with equal rows, and in the card."""
    with (
        closing(sqlite3.connect(folder / "store.sqlite")) as database,
        closing(sqlite3.connect(filled)) as source,
    ):
        check_tables(folder, database, source)
    _, front, _ = (folder / "README.md").read_text().split("---\n", 2)
    listed = {each["config_name"]: each["data_files"] for each in yaml.safe_load(front)["configs"]}
    assert listed == {path.stem: f"data/{path.name}" for path in (folder / "data").iterdir()}


def check_tables(folder: Path, database: sqlite3.Connection, source: sqlite3.Connection) -> None:
    names = {
        name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type='table'")
    }
    assert names == set(TABLES)
    for name, view in TABLES.items():
        rows = database.execute(f"SELECT count(*) FROM {name}").fetchone()
        assert rows == source.execute(f"SELECT count(*) FROM {name}").fetchone(), name
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({name})")]
        assert columns == [each.name for each in view.c if each.name not in NOT_GIVEN]
        path = folder / "data" / f"{name}.parquet"
        assert path.exists() == bool(rows[0])
        if path.exists():
            assert list(pd.read_parquet(path)) == columns
    plan = database.execute("EXPLAIN QUERY PLAN SELECT * FROM speedup WHERE comparison_id = 'x'")
    assert "ix_speedup_comparison_id" in str(plan.fetchall())
    speedups = database.execute("SELECT tokens, speedup FROM speedup ORDER BY 1, 2").fetchall()
    assert (
        speedups == source.execute("SELECT tokens, speedup FROM speedup ORDER BY 1, 2").fetchall()
    )


def test_raw_times_on_request(tmp_path: Path, filled: str, folder: Path) -> None:
    """None by default, in a folder of limited size; a summary has a row for each arm of an attempt;
    all are those of the store.
    """
    assert sum(map(len, files(folder).values())) < LIMIT
    with closing(sqlite3.connect(folder / "store.sqlite")) as database:
        assert not database.execute("SELECT 1 FROM sqlite_schema WHERE name = 'sample'").fetchone()
    url = store_outcomes(tmp_path / "few.db", "few", *(outcome(job(size)) for size in (96, 224)))
    published(tmp_path / "summary", url, samples="summary")
    published(tmp_path / "all", url, samples="all")
    median = 'SELECT count(*), sum("ms_count"), min("ms_50%") > 0 FROM sample'
    with closing(sqlite3.connect(tmp_path / "summary/store.sqlite")) as database:
        assert database.execute(median).fetchone() == (12, 12 * 40, 1)
    own = outcome(job(224)).samples
    newest = "attempt = (SELECT max(attempt) FROM sample)"
    with closing(sqlite3.connect(tmp_path / "all/store.sqlite")) as database:
        rows = database.execute(
            f"SELECT arm, ms FROM sample WHERE {newest} ORDER BY round, arm"
        ).fetchall()
    expected = [
        (arm, pytest.approx(1e3 * seconds))
        for row in own.seconds
        for arm, seconds in zip(own.arms, row, strict=True)
    ]
    assert rows == expected


def test_nothing_tells_host_user_or_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Searched in every byte, Parquet unpacked: the host, the user, paths, a serial number and a
    reading that the store has in every field that can hold them.
    """
    monkeypatch.setenv("LOGNAME", "grace")
    url = revealing_store(tmp_path / "told.db")
    secrets = [USER_PATH, WINDOWS_PATH, SERIAL, "secret-place", "somebody", str(LOAD)]
    secrets.append(str(tmp_path))
    assert Path(url).read_bytes().count(b"secret-place") > 10
    lines: list[str] = []
    publish(tmp_path / "site", url=url, samples="all", say=lines.append)
    assert lines[0].startswith(f"host {node()} → machine-")
    word = re.compile(rf"(?<![\w]){re.escape(node())}(?![\w])")
    for name, content in files(tmp_path / "site").items():
        if name.removeprefix("assets/") in VENDORED:
            continue
        raw, path = content.decode("utf-8", "replace"), tmp_path / "site" / name
        unpacked = {".parquet": unpacked_parquet, ".sqlite": unpacked_database}.get(path.suffix)
        for text in (raw, unpacked(path) if unpacked else raw):
            assert [secret for secret in secrets if secret in text] == [], name
        for text in [unpacked(path) if unpacked else raw]:  # two letters may stand in any bytes
            assert not word.search(text), name
            assert not re.search(r"(?<!\w)grace(?!\w)", text), name
            assert f"{Path.home()}/" not in text
            assert "/home/" not in text
    page = (tmp_path / "site" / "sweeps/told/index.html").read_text()
    assert "Does [path] pay on machine-" in page


def test_redaction() -> None:
    """Absolute paths alone; addresses, units and tags stay. A short name is not replaced inside
    other words, and no number for a host with an address.
    """
    redaction = Redaction({"vm": "machine-1", "vm.lan": "machine-2", "10.0.0.5": "machine-3"})
    for text, kept in (
        ("at /home/me/x.py, line 3", "at [path], line 3"),
        ("imagefolder:/data/in", "imagefolder:[path]"),
        ('"line\\n/home/me"', '"line\\n[path]"'),
        ('{"a": "~/x"}', '{"a": "[path]"}'),
        (r"D:\a b\c", "[path] b\\c"),
        *[("https://example.org/a/b",) * 2, ("Standard 7/8",) * 2],
        *[("../../points/x.html </td></tr> 3 GB/s and/or tokens/s 1/2/3",) * 2],
        ("kvm vm, vm.lan", "kvm machine-1, machine-2"),
        ("10 of 10.0.0.5", "10 of machine-3"),
    ):
        assert redaction.clean({"a": [text, 3]}) == {"a": [kept, 3]}


def test_hosts(tmp_path: Path) -> None:
    """Columns of a host with the name of a device have its alias, those of the device their word,
    and links lead to points; of two stores merged each machine has a panel and an alias.
    """
    urls = [tmp_path / f"{name}.db" for name in ("cpu", "b")]
    for url in urls:
        measured = [outcome(job(size)).model_copy(update={"host": url.stem}) for size in SIZES[2:4]]
        store_outcomes(url, "one", *measured)
    with disposing(connect(str(urls[0]))) as here, disposing(connect(str(urls[1]))) as there:
        merge_stores(here, there)
    published(tmp_path / "site", str(urls[0]))
    distinct = "SELECT DISTINCT device, host FROM speedup ORDER BY host"
    with closing(sqlite3.connect(tmp_path / "site/store.sqlite")) as database:
        found = database.execute(distinct).fetchall()
    assert [(device, host[:8]) for device, host in found] == [("cpu", "machine-")] * 2
    environments = json.loads((tmp_path / "site/sweeps/one/environment.json").read_text())
    assert sorted(each["host"] for each in environments) == [host for _, host in found]
    page = (tmp_path / "site/sweeps/one/index.html").read_text()
    assert page.count("<section id=panel-") == 2
    assert len(set(re.findall(r"machine-\w+", page))) == 2
    for target in re.findall(r'"href":"([^"]+)"', page):
        assert (tmp_path / "site/sweeps/one" / target).resolve().is_file()


def test_again_writes_only_what_changed(tmp_path: Path) -> None:
    """Nothing the second time; a sweep that is left out goes; own files stay, whatever a manifest
    names.
    """
    root, url = tmp_path / "site", tmp_path / "a.db"
    store_outcomes(url, "one", outcome(job(64)))
    store_outcomes(url, "two", outcome(job(224, "deit_small_patch16_224")))
    first = published(root, str(url))
    times = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    assert published(root, str(url)) == (0, first.changed, 0)
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == times
    own = [tmp_path / "mine.txt", root / "mine.txt"]
    for path in own:
        path.write_text("kept")
    (root / "points" / "own").mkdir()
    manifest = json.loads((root / MANIFEST).read_text())
    manifest["files"] |= {"../mine.txt": "0", str(own[0]): "0"}
    (root / MANIFEST).write_text(json.dumps(manifest))
    changed, unchanged, removed = published(root, str(url), "one")
    assert not (root / "sweeps/two").exists()
    assert (changed > 0, unchanged > 0, removed) == (True, True, 5 + 5 + 3)
    assert [path.read_text() for path in own] == ["kept", "kept"]
    assert (root / "points" / "own").is_dir()
    assert published(root, str(url)).removed == 0
    again = {path.relative_to(root).as_posix() for path in times if path.is_file()}
    assert set(files(root)) == again | {"mine.txt"}


def test_refusals(tmp_path: Path, filled: str, folder: Path, empty: str) -> None:
    """In one line that names what would be right; nothing is written."""
    (tmp_path / "file").write_text("")
    with pytest.raises(PublishError, match="is a file; name a folder"):
        published(tmp_path / "file", filled)
    with pytest.raises(StoreError, match="did you mean quickstart"):
        published(tmp_path / "site", filled, "quickstarts")
    with pytest.raises(StoreError, match="breakeven run quickstart"):
        published(tmp_path / "site", empty)
    with pytest.raises(StoreError, match=r"missing\.db"):
        published(tmp_path / "site", str(tmp_path / "missing.db"))
    assert not (tmp_path / "site").exists()
    other = store_outcomes(tmp_path / "other.db", "other", outcome(job(64)))
    (tmp_path / "own").mkdir()
    (tmp_path / "own/README.md").write_text("mine")
    with pytest.raises(PublishError, match=r"README\.md was not written by"):
        published(tmp_path / "own", other)
    assert list(files(tmp_path / "own")) == ["README.md"]
    (tmp_path / "site").mkdir()
    shutil.copy(folder / MANIFEST, tmp_path / "site")
    with pytest.raises(PublishError, match="breakeven merge"):
        published(tmp_path / "site", other)
    (tmp_path / "site" / MANIFEST).write_text("{")
    with pytest.raises(PublishError, match="cannot be read"):
        published(tmp_path / "site", filled)


def test_a_full_disk_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the command, in one line; what was written is taken over by the next publication."""
    root, limits = tmp_path / "site", resource.getrlimit(resource.RLIMIT_FSIZE)
    url = store_outcomes(tmp_path / "one.db", "one", outcome(job(64)))
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, limits[1]))
    try:
        assert main(["publish", str(root), "--db", url]) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    printed = capsys.readouterr()
    assert re.fullmatch(
        r"breakeven: \S+ cannot be written: File too large; choose.*\n", printed.err
    )
    assert printed.out.startswith("host simulated → machine-")
    assert not list(root.rglob("*.part"))
    assert published(root, url).unchanged
    assert not list(root.rglob("*.part"))
    assert published(root, url).changed == 0


def test_vendored_files_are_named() -> None:
    """Those of others among the assets are the ones above, and their README names origin, version
    and licence.
    """
    assets = Path(__file__).parents[2] / "webapp/publish/assets"
    found = {path.relative_to(assets).as_posix() for path in assets.rglob("*.*")}
    own = {"page.html", "query.html", "card.md", "badge.svg", "style.css", "page.js", "query.js"}
    assert found - own == {*VENDORED, "sqlite3/README.md"} - {"vega.js"}
    words = (assets / "sqlite3/README.md").read_text()
    assert all(word in words for word in ("@sqlite.org/sqlite-wasm", "3.54.1", "public domain"))
