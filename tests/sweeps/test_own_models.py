"""Sweeps that name models, functions and arms in files of the user: axes with free names, what
identities depend on, and a message for each wrong use. No file is run.
"""

from pathlib import Path
from typing import Any

import pytest

from sweeps.geometry.model_families import OwnFiles, code_name
from sweeps.language.confirmation import sweep_of
from sweeps.language.expand import Expansion, expand_file, refuse_files
from sweeps.language.yaml_reader import SweepError, read
from tests.sweeps.conftest import METHODS, NETWORKS

MODEL = """
import layers
from pack.inner import helper
raise RuntimeError("this file is run")
def build(depth=2): ...
def inputs(height, width, batch_size): ...
"""
ARM = "def apply(model, window, mode='same', *, chunks=2): ...\n"
FILES = {
    "net.py": MODEL,
    "fast.py": ARM,
    "layers.py": "import os\n",
    "pack/__init__.py": "",
    "pack/inner.py": "from . import deep\n",
    "pack/deep.py": "",
    "other.py": "",
}
TEXT = """schema: 1
name: own
defaults: {model: ./net.py:build, width: 64}
axes: {height: [64, 128], batch_size: [1, 4]}
methods: [{callable: ./fast.py:apply, window: [8, 16]}, {runtime: compile}]
"""


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def expand(folder: Path, text: str = TEXT, *, between: bool = False) -> Expansion:
    return expand_file(
        folder / "own.yaml",
        methods=METHODS,
        networks=NETWORKS,
        auto="cpu",
        text=text,
        between=between,
    )


def refused(folder: Path, old: str, new: str) -> str:
    assert old in TEXT
    with pytest.raises(SweepError) as caught:
        expand(folder, TEXT.replace(old, new))
    return f"{caught.value.line}: {caught.value.key}: {caught.value.problem}"


def test_jobs_of_a_model_in_a_file(files: Path) -> None:
    """Axes with free names are values of the condition, and the one that varies is the x axis."""
    jobs = expand(files).jobs
    assert {job.kind for job in jobs} == {"call"}
    assert [(dict(job.condition.values), job.condition.batch_size) for job in jobs] == [
        ({"height": height, "width": 64}, batch) for height in (64, 128) for batch in (1, 4)
    ]
    assert {job.condition.x_axis for job in jobs} == {("height",)}
    assert {job.condition.model for job in jobs} == {"net.py:build"}
    assert [str(arm) for arm in jobs[0].arms] == [
        "dense",
        "fast.py:apply(window=8)",
        "fast.py:apply(window=16)",
        "dense [runtime=compile]",
    ]


def test_files_travel_with_the_job(files: Path) -> None:
    """Those named, and what they import from their own folder; not what lies beside them."""
    found = expand(files).jobs[0].files
    assert found == {name: text for name, text in FILES.items() if name != "other.py"}


def test_a_changed_file_asks_the_question_anew(files: Path) -> None:
    """The question stays; answers of the arms that the file belongs to are stale."""

    def ids() -> list[tuple[str, str]]:
        job = expand(files).jobs[0]
        pairs = zip(job.comparisons(), job.comparison_ids(), strict=True)
        return [(comparison.question_id, key) for comparison, key in pairs]

    before = ids()
    (files / "other.py").write_text("changed = 1\n")
    assert ids() == before
    (files / "fast.py").write_text(ARM + "# changed\n")
    changed = ids()
    assert [question for question, _ in changed] == [question for question, _ in before]
    kept = [new == old for (_, new), (_, old) in zip(changed, before, strict=True)]
    assert kept == [False, False, True]
    (files / "pack/deep.py").write_text("changed = 1\n")
    assert not {key for _, key in ids()} & {key for _, key in changed}


def test_what_curves_run_along(files: Path) -> None:
    """What `tokens` counts, the axis that is named, or what moves together with it."""
    both = TEXT.replace("width: 64}", "}").replace("[64, 128],", "[64, 128], width: [64, 128],")
    named = expand(files, f"{both}x_axis: width\n").jobs
    assert {job.condition.x_axis for job in named} == {("width",)}
    assert {job.condition.fixed_values for job in named} == {(("height", 64),), (("height", 128),)}
    tied = expand(files, f"{both}x_axis: width\nzip: [[height, width]]\n").jobs
    assert {job.condition.x_axis for job in tied} == {("width", "height")}
    (files / "net.py").write_text(MODEL + "def tokens(height, width): ...\n")
    counted = expand(files, both).jobs
    assert {job.condition.x_axis for job in counted} == {("tokens", "height", "width")}
    assert {job.condition.fixed_values for job in counted} == {None}


@pytest.mark.parametrize("more", ["", "x_axis: width\nzip: [[height, width]]\n"])
def test_a_point_measured_once_more(files: Path, more: str) -> None:
    """A sweep of one point requests the same questions."""
    text = TEXT.replace("width: 64}", "}").replace("[64, 128],", "[64, 128], width: [32, 64],")
    found = expand(files, (text if more else TEXT) + more).jobs[-1].comparisons()
    again = sweep_of(found, "again", "Still?", METHODS)
    assert [each.question_id for each in expand(files, again).comparisons] == [
        each.question_id for each in found
    ]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("net.py:build", "net.py:biuld", "net.py:1: has no 'biuld'; did you mean 'build'?"),
        ("net.py:build", "nte.py:build", "nte.py: cannot be read: No such file or directory"),
        ("net.py:build", "layers.py:os", "layers.py has no function 'inputs'"),
        ("fast.py:apply", "fast.py:aply", "fast.py:1: has no 'aply'; did you mean 'apply'?"),
        ("./fast.py:apply", "fast", 'needs FILE.py:FUNCTION, the path from this file, not "fast"'),
        ("window:", "windw:", "unknown key 'windw'; did you mean 'window'?"),
        (", window: [8, 16]", "", "missing"),
        ("height: [64", "hieght: [64", "unknown key 'hieght'; did you mean 'height'?"),
        ("height: [64", "image_size: [64", "is for vision models"),
        ("width: 64", "width: wide", 'needs a number, not "wide"'),
        (", width: 64", "", "net.py needs width, which stands neither under `axes` nor `defaults`"),
        ("[64, 128]", "[64.5, 128]", "64.5 is no whole number, as an x axis has"),
        ("runtime: compile", "runtime: openvino", "write eager or compile"),
        ("methods:", "x_axis: hight\nmethods:", "unknown axis 'hight'; did you mean 'height'?"),
        ("{runtime: compile}", "{method: topk}", "topk is for vision models"),
        ("methods:", "jobs: {accuracy: }\nmethods:", "request latency"),
        (
            "width: 64}\naxes: {",
            "}\naxes: {width: [64, 128], ",
            "width and height vary, and one is what curves run along; write x_axis: width",
        ),
    ],
)
def test_wrong_uses(files: Path, old: str, new: str, problem: str) -> None:
    """Each is refused in one line that names what is right."""
    assert problem in refused(files, old, new)


def test_no_python(files: Path) -> None:
    """A file with an error of syntax is named with its line."""
    (files / "net.py").write_text("def build():\n  return (\n")
    assert "net.py:2: is no Python: '(' was never closed" in refused(files, "schema", "schema")


@pytest.mark.parametrize(
    ("text", "name"),
    [("./a.py:f", "a.py:f"), ("sub/../a.py:f", "a.py:f"), ("text:notes.py", None), (3, None)],
)
def test_names_of_code(text: Any, name: str | None) -> None:
    """One name however a path is written."""
    assert code_name(text) == name


def test_who_may_run_no_code_may_name_none() -> None:
    """The keys are named, without a look at a file."""
    for old in ("./net.py:build", "./fast.py:apply"):
        text = TEXT.replace(old, "topk") if "net" in old else TEXT
        with pytest.raises(SweepError, match="names a file or code of the server") as caught:
            refuse_files(read("own.yaml", text))
        assert caught.value.key in {"defaults.model", "methods[0].callable"}


def test_parameters_of_a_class(files: Path) -> None:
    """A class is called as a function is."""
    (files / "c.py").write_text("class Net:\n  def __init__(self, depth, *, width=3): ...\n")
    found = OwnFiles(files).signature("c.py:Net")
    assert (found.required, found.optional, found.any) == (("depth",), ("width",), False)


def test_sizes_between_those_of_a_grid(files: Path) -> None:
    """Multiples of what divides all written values, as `--refine` may add them; none on axes that
    `zip` ties together.
    """
    text = TEXT.replace("[64, 128]", "[128, 256, 512]")
    found = [job.condition.values for job in expand(files, text, between=True).jobs]
    assert {dict(values or ())["height"] for values in found} == {128, 256, 384, 512}
    finer = text.replace("[128, 256, 512]", "[128, 250]")
    heights = {
        dict(job.condition.values or ())["height"]
        for job in expand(files, finer, between=True).jobs
    }
    assert {128, 250} < heights
    assert all(height % 2 == 0 and 128 <= height <= 250 for height in heights)
    tied = text.replace("width: 64}", "}").replace("512]", "512], width: [1, 2, 3]")
    tied += "zip: [[height, width]]\nx_axis: height\n"
    assert expand(files, tied, between=True).points == expand(files, tied).points
