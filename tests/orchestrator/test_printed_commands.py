"""Every command that a report, a plan or a page prints, run where it is printed: none ends in a
traceback or a usage error.
"""

import contextlib
import io
import re
import shlex
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from orchestrator.commands import doctor
from store.open.engine import close_watches
from tests.orchestrator.commands import ROOT, breakeven, in_process
from tests.orchestrator.printed_commands import commands_in
from tests.webapp.conftest import APP
from tests.webapp.page_elements import html_texts
from tests.webapp.point_address import point_query
from tests.workers.saved_llm import saved, written
from workers.measure import peaks
from workers.run import main as run_jobs

pytestmark = pytest.mark.ray

SCREENS = sorted(
    path.stem
    for path in (ROOT / "webapp" / "screens").glob("*.py")
    if not path.stem.startswith("_")
)
FAILING = {"BREAKEVEN_METHODS": str(ROOT / "tests" / "faults" / "methods")}
VISION = """\
schema: 1
name: {name}
question: Does it run from one end to the other?
defaults: {{threads: 1, model: {model}, device: cpu}}
axes: {{image_size: {sizes}}}
methods: [{methods}]
jobs: {{{jobs}}}
"""
LANGUAGE = """\
schema: 1
name: language
question: Does it run from one end to the other?
defaults: {{model: {folder}/model, data: "text:{folder}/texts", device: cpu, threads: 1, prompt_tokens: 16, new_tokens: 4}}
methods: [{{method: topk_activation, sparsity: 0.5}}]
jobs:
  generation: {{pairs: {{min: 10, max: 10}}, budget: 2s, timeout: 1m}}
  quality: {{characters: 400, timeout: 1m}}
"""
QUICK = "latency: {pairs: {min: 10, max: 10}, budget: 2s, timeout: 1m}"
CUT = "latency: {pairs: {min: 200, max: 200}, budget: 20ms, timeout: 1m}"


def vision(
    name: str, methods: str, sizes: str = "[32]", jobs: str = QUICK, model: str = "test_vit"
) -> str:
    return VISION.format(name=name, methods=methods, sizes=sizes, jobs=jobs, model=model)


TOME = "{method: tome, r: [1, 2]}"
SWEEPS = {
    "one_size": vision("one_size", TOME),
    "one_arm": vision("one_arm", "{method: topk, keep_rate: 0.5, layers: {list: [3]}}", "[32, 48]"),
    "too_few": vision("too_few", "{method: tome, r: 3}", jobs=CUT),
    "no_pairs": vision("no_pairs", "{method: tome, r: 4}"),
    "failed": vision("failed", "{method: tome, r: 5}, {method: faulty, what: [raise, nan]}"),
    "accuracy": vision(
        "accuracy",
        "{method: tome, r: 2}",
        "[32]",
        "accuracy: {images: 20, timeout: 1m}",
        "digits_vit_64",
    ),
    "language": LANGUAGE,
}


def run_printed(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command line as it was printed; what takes minutes gets a second, and the app gets no
    browser.
    """
    program, *words = shlex.split(command)
    if program == "python":
        return worked(*words[2:], folder=folder)
    if words[0] == "calibrate":
        words += ["--processes", "0"]
    if words[:2] in (["run", "quickstart"], ["run", "null"]) or "--refine" in words:
        words += ["--time", "1s"]
    return command_in(folder, *words)


def worked(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """`python -m workers.run` in this process, where the models are loaded."""
    output, errors = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
    ):
        patch.chdir(folder)
        for name, value in FAILING.items():
            patch.setenv(name, value)
        code = run_jobs(list(words))
    return subprocess.CompletedProcess(words, code, output.getvalue(), errors.getvalue())


def command_in(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs share the cluster of all tests."""
    return (in_process if words[0] == "run" else breakeven)(*words, folder=folder, **FAILING)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a small language model and texts."""
    saved(tmp_path / "model")
    written(tmp_path / "texts")
    return tmp_path


def printed(name: str, folder: Path) -> set[str]:
    """The command lines that are printed about a sweep, once it is measured as its plan prints it;
    `no_pairs` is not measured.
    """
    text = LANGUAGE.format(folder=folder) if name == "language" else SWEEPS[name]
    (folder / f"{name}.yaml").write_text(text)
    (folder / "sweep.yaml").write_text(text)  # where the HTML report has it saved
    planned = breakeven("plan", f"{name}.yaml", "--jobs", "job files", folder=folder, **FAILING)
    assert planned.returncode == 0, planned.stderr
    (measure,) = commands_in(planned.stdout + planned.stderr)
    if name == "no_pairs":
        done = command_in(folder, "run", f"{name}.yaml", "--time", "1s")
        return {measure} | commands_in(done.stdout) | reported(name, folder) | paged(name, folder)
    assert run_printed(measure, folder).returncode in (0, 1)
    done = breakeven("import", "outcomes", "--sweep", f"{name}.yaml", folder=folder, **FAILING)
    assert done.returncode == 0, done.stderr
    return reported(name, folder) | paged(name, folder)


def reported(name: str, folder: Path) -> set[str]:
    """The command lines of the reports and other commands about a sweep."""
    found = set()
    commands: list[tuple[str, ...]] = [("report", name), ("status", name), ("audit", name)]
    if name == "one_size":  # what every sweep has
        commands += [("report", name, "--format", "html"), ("doctor",)]
    for words in commands:
        done = breakeven(*words, folder=folder, **FAILING)
        assert done.returncode in (0, 1, 2), done.stderr
        found |= commands_in(re.sub("<[^>]*>", "\n", done.stdout) + done.stderr)
    return found


def paged(name: str, folder: Path, place: Path = Path("breakeven.db")) -> set[str]:
    """The command lines on the pages about a sweep of the store at `place`, seen from `folder`; the files that
    a page offers beside them are saved beside the store.
    """
    url = str(folder / place)
    with closing(sqlite3.connect(url)) as store:
        of_sweep = (
            "SELECT comparison_id FROM sweep_comparison c JOIN sweep s ON s.id = c.sweep WHERE"
            f" s.name = '{name}'"
        )
        ids = f"comparison_id IN ({of_sweep})"
        answered = store.execute(f"SELECT count(*) FROM effect_row WHERE {ids}").fetchone()[0]
        timed = store.execute(
            f"SELECT model, tokens, batch_size FROM speedup WHERE {ids} LIMIT 1"
        ).fetchone()
    found = set()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("BREAKEVEN_DB", url)
        patch.setenv("BREAKEVEN_METHODS", FAILING["BREAKEVEN_METHODS"])
        for screen in SCREENS:
            query = {"sweep": name}
            if screen == "point":
                if not answered:
                    continue
                query = point_query(url, ids)
            if screen == "choose":
                if timed is None:
                    continue
                query = dict(zip(("model", "tokens", "batch"), map(str, timed), strict=True))
            app = AppTest.from_file(APP, default_timeout=60)
            for key, value in query.items():
                app.query_params[key] = value
            app.switch_page(f"screens/{screen}.py")
            app.run()
            found |= shown_commands(app, Path(url).parent)
            if screen == "choose":
                for choice in ("Measure the first again", "Measure what is missing"):
                    if choice in app.segmented_control(key="take").options:
                        app.segmented_control(key="take").set_value(choice).run()
                        found |= shown_commands(app, Path(url).parent)
    close_watches()
    return found


def shown_commands(app: AppTest, folder: Path) -> set[str]:
    """The command lines on a page; a sweep file on it is saved under the name that its command
    has.
    """
    assert not app.exception, app.exception
    codes = [str(element.value) for element in app.code]
    found = commands_in(
        "\n".join([*codes, *html_texts(app), *(str(element.value) for element in app.markdown)])
    )
    files = [code for code in codes if "\nschema: 1\n" in f"\n{code}"]
    for command in found:
        if (
            file := next((word for word in command.split() if word.endswith(".yaml")), None)
        ) and files:
            (folder / file).write_text(files[0])
    return found


SLOW = ("one_arm", "too_few", "failed", "language")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in SWEEPS],
)
@pytest.mark.usefixtures("shared_ray")
def test_every_printed_command_runs(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers, or ends with what is not answered: exit code 0 or 1, no traceback, no usage
    error; and it measures.
    """
    monkeypatch.setattr(doctor, "NULL_TEST_SECONDS", 0.6)
    monkeypatch.setattr(doctor, "PEAK_DTYPES", {"cpu": ("float32",)})
    monkeypatch.setitem(peaks.READ_BYTES, "cpu", 2**24)
    commands = printed(name, folder)
    assert commands
    before = attempts(folder)
    failed = {}
    for command in sorted(commands):
        done = run_printed(command, folder)
        # 2 without a message: no rule of the audit applied to this sweep
        fine = (0, 1) if done.stderr or " audit " not in command else (0, 1, 2)
        if done.returncode not in fine or "Traceback" in done.stderr:
            failed[command] = (done.returncode, done.stderr[-2000:])
    assert not failed
    assert attempts(folder) > before or name == "accuracy"


@pytest.mark.usefixtures("shared_ray")
def test_commands_for_a_store_elsewhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a report and the pages print about a store in another folder names it, and runs where it
    lies, without the sweep's file: none is wrong usage, and none makes a second store.
    """
    store = folder / "kept here" / "results.db"
    store.parent.mkdir()
    file = folder / "one_size.yaml"
    file.write_text(SWEEPS["one_size"])
    monkeypatch.setenv("BREAKEVEN_METHODS", FAILING["BREAKEVEN_METHODS"])
    place = ("--db", "kept here/results.db")
    assert in_process("run", file.name, *place, folder=folder).returncode in (0, 1)
    file.unlink()
    shown = set()
    for words in (
        ("report", "one_size", "--detail"),
        ("status", "one_size"),
        ("audit", "one_size"),
    ):
        done = in_process(*words, *place, folder=folder)
        shown |= commands_in(done.stdout + done.stderr)
    shown |= paged("one_size", folder, store)
    about = {command for command in shown if command.split()[1] in ("run", "advise", "report")}
    assert len(about) >= 2
    named = shlex.quote(str(store))
    assert [command for command in about if f"--db {named}" not in command] == []
    wrong = {}
    for command in sorted(shown):
        done = run_printed(command, store.parent)
        if done.returncode not in (0, 1) or "Traceback" in done.stderr:
            wrong[command] = (done.returncode, done.stderr[-500:])
    assert wrong == {}
    assert [found.name for found in folder.rglob("*.db")] == ["results.db"]


def attempts(folder: Path) -> int:
    """How many executions the store holds."""
    with closing(sqlite3.connect(folder / "breakeven.db")) as store:
        return int(store.execute("SELECT count(*) FROM attempt").fetchone()[0])
