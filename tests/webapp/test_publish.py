"""The published folder: what it holds, what it does not tell, and what a second publication does."""

import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from platform import node

import pandas as pd
import pytest
import yaml

from store.errors import StoreError
from store.open.engine import connect
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
from webapp.publish.folder import MANIFEST, PublishError
from webapp.publish.html import badge
from webapp.publish.publication import publish
from webapp.publish.redaction import PATH, Redaction

LIMIT = 4_000_000
"""Bytes of a folder with a sweep such as the quickstart."""
VENDORED = {"sqlite3/index.mjs", "sqlite3/sqlite3.wasm", "vega.js"}
"""Files below `assets/` that are of others; the README beside SQLite's says which."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, filled: str) -> Path:
    root = tmp_path_factory.mktemp("published") / "site"
    published(root, filled, address="https://example.org/b/")
    return root


def files(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def unpacked_parquet(path: Path) -> str:
    return str(pd.read_parquet(path).to_csv())


def unpacked_database(path: Path) -> str:
    return "\n".join(sqlite3.connect(path).iterdump())


def test_what_is_published(folder: Path, filled: str) -> None:
    """Each thing that docs/publish.md promises; every link and script of a page leads to a file of
    the folder.
    """
    found = files(folder)
    assert {
        *("index.html", "query.html", "store.sqlite", "feed.json", "README.md", MANIFEST),
        *("sweeps/quickstart/index.html", "sweeps/quickstart/sweep.yaml"),
        *("sweeps/quickstart/environment.json", "sweeps/quickstart/badges/0-0.svg"),
        *(f"assets/{name}" for name in VENDORED),
    } <= found.keys()
    effects = sqlite3.connect(filled).execute(
        "SELECT count(*) FROM (SELECT DISTINCT comparison_id, environment, host FROM effect)"
    )
    assert len([name for name in found if name.startswith("points/")]) == effects.fetchone()[0]
    for name, content in found.items():
        if name.endswith(".html"):
            for target in re.findall(r'(?:href|src)="?([^"> ]+)', content.decode()):
                address = target.partition("#")[0]
                if address and not address.startswith(("data:", "http://localhost:8000")):
                    assert (folder / name).parent.joinpath(address).resolve().is_file(), target
            for target in re.findall(r'"href":"([^"]+)"', content.decode()):
                assert (folder / name).parent.joinpath(target).resolve().is_file(), target
    assert yaml.safe_load(found["sweeps/quickstart/sweep.yaml"]) == {"name": "quickstart"}
    assert "Simulated CPU" in found["sweeps/quickstart/environment.json"].decode()


def test_the_page_of_a_sweep_answers_first(folder: Path) -> None:
    """The answer is the first heading below the question; the table of a point's page has the
    verdict of the store.
    """
    page = (folder / "sweeps/quickstart/index.html").read_text()
    (first, *_) = re.findall(r"<h2>([^<]+)</h2>", page)
    assert first.startswith("topk keep_rate=0.5 pays from 36 tokens on")
    assert page.count("<figure class=chart") == 2
    batches = (folder / "sweeps/batches/index.html").read_text()
    assert "pays in at least a part of 2 of 2 conditions" in batches
    assert batches.count("<section id=panel-") == 2


def test_tables_are_the_views(folder: Path, filled: str) -> None:
    """In the database with an index on each key, in Parquet with equal rows, and in the card."""
    database = sqlite3.connect(folder / "store.sqlite")
    source = sqlite3.connect(filled)
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
    _, front, _ = (folder / "README.md").read_text().split("---\n", 2)
    listed = {each["config_name"]: each["data_files"] for each in yaml.safe_load(front)["configs"]}
    assert listed == {path.stem: f"data/{path.name}" for path in (folder / "data").iterdir()}


@pytest.mark.parametrize("samples", ["none", "summary", "all"])
def test_raw_times_on_request(tmp_path: Path, filled: str, samples: str) -> None:
    """None by default, in a folder of limited size; a summary has a row for each arm of an attempt;
    all are those of the store.
    """
    published(tmp_path, filled, "quickstart", samples=samples)
    assert samples != "none" or sum(map(len, files(tmp_path).values())) < LIMIT
    database = sqlite3.connect(tmp_path / "store.sqlite")
    tables = {row[0] for row in database.execute("SELECT name FROM sqlite_schema")}
    assert ("sample" in tables) == (samples != "none")
    if samples == "summary":
        median = 'SELECT count(*), sum("ms_count"), min("ms_50%") FROM sample'
        arms, times, least = database.execute(median).fetchone()
        assert (arms, times) == (6 * len(SIZES) - 1, 40 * (6 * len(SIZES) - 1))
        assert least > 0
    if samples == "all":
        own = outcome(job(224)).samples
        rows = database.execute(
            "SELECT arm, ms FROM sample WHERE attempt = (SELECT max(attempt) FROM sample) ORDER BY"
            " round, arm"
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
    secrets = [
        USER_PATH,
        WINDOWS_PATH,
        SERIAL,
        "secret-place",
        "somebody",
        str(LOAD),
        str(tmp_path),
    ]
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


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("at /home/me/x.py, line 3", "at [path], line 3"),
        ("imagefolder:/data/in", "imagefolder:[path]"),
        ('"line\\n/home/me"', '"line\\n[path]"'),
        ('{"a": "~/x"}', '{"a": "[path]"}'),
        (r"D:\a b\c", "[path] b\\c"),
        ("https://example.org/a/b", "https://example.org/a/b"),
        ("../../points/x.html </td></tr> 3 GB/s and/or tokens/s 1/2/3", None),
        ("Standard 7/8", None),
    ],
)
def test_paths(text: str, kept: str | None) -> None:
    """Absolute ones alone; addresses, units and tags stay."""
    assert PATH.sub("[path]", text) == (text if kept is None else kept)


def test_hosts_are_words() -> None:
    """A short name is not replaced inside other words, and no number for a host with an address."""
    redaction = Redaction({"vm": "machine-1", "vm.lan": "machine-2", "10.0.0.5": "machine-3"})
    assert redaction.clean({"a": ["kvm vm, vm.lan", "10 of 10.0.0.5", 3]}) == {
        "a": ["kvm machine-1, machine-2", "10 of machine-3", 3]
    }


def test_a_host_with_the_name_of_a_device(tmp_path: Path) -> None:
    """Its columns have the alias, those of the device their word, and links lead to points."""
    measured = [outcome(job(size)).model_copy(update={"host": "cpu"}) for size in SIZES[:3]]
    published(tmp_path / "site", store_outcomes(tmp_path / "a.db", "one", *measured))
    database = sqlite3.connect(tmp_path / "site/store.sqlite")
    ((device, host),) = database.execute("SELECT DISTINCT device, host FROM speedup").fetchall()
    assert (device, host.startswith("machine-")) == ("cpu", True)
    found = json.loads((tmp_path / "site/sweeps/one/environment.json").read_text())
    assert [each["host"] for each in found] == [host]
    page = (tmp_path / "site/sweeps/one/index.html").read_text()
    for target in re.findall(r'"href":"([^"]+)"', page):
        assert (tmp_path / "site/sweeps/one" / target).resolve().is_file()


def test_again_writes_only_what_changed(tmp_path: Path) -> None:
    """Nothing the second time; a new outcome changes its pages; a sweep that is left out goes; own
    files stay.
    """
    root, url = tmp_path / "site", tmp_path / "a.db"
    store_outcomes(url, "one", *(outcome(job(size)) for size in SIZES[:2]))
    store_outcomes(url, "two", outcome(job(224, "deit_small_patch16_224")))
    first = published(root, str(url))
    times = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    assert published(root, str(url)) == (0, first.changed, 0)
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == times
    (root / "mine.txt").write_text("kept")
    (root / "points" / "own").mkdir()
    changed, unchanged, removed = published(root, str(url), "one")
    assert not (root / "sweeps/two").exists()
    assert (changed > 0, unchanged > 0, removed) == (True, True, 5 + 5 + 3)
    assert (root / "mine.txt").read_text() == "kept"
    assert (root / "points" / "own").is_dir()
    assert published(root, str(url)).removed == 0
    assert set(files(root)) == {
        path.relative_to(root).as_posix() for path in times if path.is_file()
    } | {"mine.txt"}


def test_nothing_outside_is_removed(tmp_path: Path) -> None:
    """Whatever a manifest names."""
    root, url = tmp_path / "site", store_outcomes(tmp_path / "a.db", "one", outcome(job(64)))
    published(root, url)
    (tmp_path / "mine.txt").write_text("kept")
    manifest = json.loads((root / MANIFEST).read_text())
    manifest["files"] |= {"../mine.txt": "0", str(tmp_path / "mine.txt"): "0"}
    (root / MANIFEST).write_text(json.dumps(manifest))
    assert published(root, url).removed == 0
    assert (tmp_path / "mine.txt").read_text() == "kept"


def test_machines_stand_side_by_side(tmp_path: Path) -> None:
    """Two stores merged: a panel and an alias for each machine."""
    urls = [tmp_path / f"{name}.db" for name in ("a", "b")]
    for url in urls:
        measured = [outcome(job(size)).model_copy(update={"host": url.stem}) for size in SIZES[:3]]
        store_outcomes(url, "one", *measured)
    merge_stores(*(connect(str(url)) for url in urls))
    published(tmp_path / "site", str(urls[0]))
    page = (tmp_path / "site/sweeps/one/index.html").read_text()
    assert page.count("<section id=panel-") == 2
    assert len(set(re.findall(r"machine-\w+", page))) == 2


def test_refusals(tmp_path: Path, filled: str, empty: str) -> None:
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
    (tmp_path / "own").mkdir()
    (tmp_path / "own/README.md").write_text("mine")
    with pytest.raises(PublishError, match=r"README\.md was not written by"):
        published(tmp_path / "own", filled)
    assert list(files(tmp_path / "own")) == ["README.md"]
    store_outcomes(tmp_path / "other.db", "other", outcome(job(64)))
    published(tmp_path / "site", str(tmp_path / "other.db"))
    with pytest.raises(PublishError, match="breakeven merge"):
        published(tmp_path / "site", filled)
    (tmp_path / "site" / MANIFEST).write_text("{")
    with pytest.raises(PublishError, match="cannot be read"):
        published(tmp_path / "site", filled)


def test_a_full_disk_is_said(tmp_path: Path, filled: str) -> None:
    """By the command, in one line; what was written is taken over by the next publication."""
    limited = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000));"
        " from webapp.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    root = tmp_path / "site"
    command = [sys.executable, "-c", limited, "publish", str(root), "--db", filled]
    command += ["--sweep", "quickstart"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2
    assert re.fullmatch(
        r"breakeven: \S+ cannot be written: File too large; choose.*\n", done.stderr
    )
    assert done.stdout.startswith("host simulated → machine-")
    assert not list(root.rglob("*.part"))
    published(root, filled, "quickstart")
    assert published(root, filled, "quickstart").changed == 0


def test_the_feed(folder: Path) -> None:
    """JSON Feed 1.1: an item for each sweep, newest first, at the address that was given."""
    found = json.loads((folder / "feed.json").read_text())
    assert found["version"] == "https://jsonfeed.org/version/1.1"
    items = found["items"]
    assert {item["url"] for item in items} == {
        f"https://example.org/b/sweeps/{name}/index.html" for name in ("quickstart", "batches")
    }
    dates = [item["date_modified"] for item in items]
    assert dates == sorted(dates, reverse=True)
    assert all("pays" in item["title"] for item in items)


def test_badges_are_escaped() -> None:
    """An SVG of the text."""
    svg = badge('<b> "x"', "from 36 tokens & more")
    assert "&lt;b&gt; &quot;x&quot;" in svg
    assert "<b>" not in svg


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
