"""The package that is built: every folder of the source with its data files and its types."""

import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())
FOLDERS = CONFIG["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
DATA = [
    *(
        "sweeps/quickstart.yaml",
        "sweeps/schema.json",
        "sweeps/references/tr_nsys.yaml",
        "sweeps/references/batch_size_sweep_results.csv",
    ),
    *(
        "store/migrations/script.py.mako",
        "store/migrations/versions/0001_tables.py",
        "webapp/icon.svg",
    ),
    *("workers/token_reduction/tome.cpp", "workers/activation_sparsity/sparse_matvec.cpp"),
]


def test_every_folder_is_in_the_wheel() -> None:
    """Those that the import contracts know."""
    assert set(FOLDERS) == set(CONFIG["tool"]["importlinter"]["root_packages"])


@pytest.mark.parametrize("folder", FOLDERS)
def test_types_are_shipped(folder: str) -> None:
    """A marker by which type checkers read the annotations of an installed package."""
    assert (ROOT / folder / "py.typed").is_file()


def test_no_file_of_the_source_is_ignored() -> None:
    """The build leaves out what git ignores, and takes all other files below the folders: data
    files too.
    """
    assert [name for name in DATA if not (ROOT / name).is_file()] == []
    source = [
        str(path.relative_to(ROOT))
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.is_file()
    ]
    shipped = [name for name in source if "__pycache__" not in name]
    assert set(DATA) <= set(shipped)
    found = subprocess.run(
        ["git", "check-ignore", "--no-index", "--stdin"],
        cwd=ROOT,
        input="\n".join(shipped),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (found.returncode, found.stdout) == (1, "")
