"""Content hashes of data: a change of any file shows, unchanged files are read once, and a bad
cache costs time only.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sweeps.model.condition import Condition
from workers import data as data_sets
from workers.data import content_hashes, data_hash

HOUR_AGO = 1_000_000_000


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, and files that count as old at once: a status change cannot be set
    back.
    """
    folder = tmp_path / "cache"
    monkeypatch.setenv("BREAKEVEN_CACHE", str(folder))
    monkeypatch.setattr(data_sets, "SETTLED_NS", -HOUR_AGO)
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two classes of images of the same size, and a class map."""
    root = tmp_path / "data"
    for name in ("ant", "cat"):
        (root / name).mkdir(parents=True)
        for index in range(3):
            (root / name / f"{index}.png").write_bytes(f"{name}{index}".encode() * 100)
    (root / "class_map.txt").write_text("ant 310\ncat 281\n")
    return root


def requested(data: Path) -> str:
    """The hash that goes into a comparison's identity."""
    return data_hash(Condition(model="test_vit", image_size=64, data=f"imagefolder:{data}"))["data"]


def bytes_read(data: Path) -> int:
    """How much of the data one more listing reads, as counted by the kernel for this process."""

    def counted() -> int:
        lines = Path("/proc/self/io").read_text().splitlines()
        return int(lines[0].split()[1])

    before = counted()
    content_hashes(str(data))
    return counted() - before


def same_size(data: Path) -> None:
    one, other = data / "ant" / "0.png", data / "cat" / "0.png"
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)


def renamed(data: Path) -> None:
    (data / "ant" / "0.png").rename(data / "kept")
    (data / "cat" / "0.png").rename(data / "ant" / "0.png")
    (data / "kept").rename(data / "cat" / "0.png")


def relabelled(data: Path) -> None:
    (data / "class_map.txt").write_text("ant 281\ncat 310\n")


def times_put_back(data: Path) -> None:
    file = data / "cat" / "2.png"
    before = file.stat()
    file.write_bytes(file.read_bytes()[::-1])
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("change", [same_size, renamed, relabelled, times_put_back])
def test_a_change_that_keeps_names_and_sizes_changes_the_identity(
    data: Path, change: Callable[[Path], None]
) -> None:
    """Swapped images, another label, times put back: same sizes, another hash."""
    before = requested(data)
    assert requested(data) == before
    change(data)
    assert requested(data) != before


def test_unchanged_files_are_read_once(data: Path) -> None:
    """The second listing reads the cache only, and after a change only that file."""
    big = data / "cat" / "big.png"
    big.write_bytes(bytes(5_000_000))
    (data / "cat" / "other.png").write_bytes(bytes(3_000_000))
    assert bytes_read(data) > 8_000_000
    assert bytes_read(data) < 100_000
    big.write_bytes(bytes(4_999_999) + b"1")
    assert 5_000_000 <= bytes_read(data) < 5_500_000


def test_a_file_that_changed_just_now_is_read_again(
    data: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No hash of a new file is kept: a second change in one clock tick would not show."""
    monkeypatch.setattr(data_sets, "SETTLED_NS", 2_000_000_000)
    content_hashes(str(data))
    (kept,) = (
        (json.loads(file.read_text()) for file in cache.rglob("*.json"))
        if cache.exists()
        else ({},)
    )
    assert kept == {}


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", '{"ant/0.png": [1, 2]}', '{"format": 99, "files": {}}']
)
def test_a_damaged_cache_costs_time_only(data: Path, cache: Path, damage: str) -> None:
    """What cannot be read is made anew."""
    before = content_hashes(str(data))
    (file,) = cache.rglob("*.json")
    file.write_text(damage)
    assert content_hashes(str(data)) == before
    assert len(json.loads(file.read_text())) == len(before)


def test_what_was_read_before_an_interruption_is_kept(data: Path, cache: Path) -> None:
    """Hashes of files before an unreadable one are in the cache."""
    (data / "unreadable.png").symlink_to("/proc/self/mem")
    with pytest.raises(OSError, match="Input/output error"):
        content_hashes(str(data))
    (file,) = cache.rglob("*.json")
    assert len(json.loads(file.read_text())) == 7
