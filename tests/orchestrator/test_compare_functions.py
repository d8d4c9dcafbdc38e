"""`breakeven compare a.py:f b.py:f`: functions of the user's files in processes of their own, where
a module may be named as ours are.
"""

import json
import subprocess
from pathlib import Path

import psutil
import pytest

from orchestrator.api.comparison import ArmFailedError
from orchestrator.api.function_arms import FunctionArm, FunctionArms, default_python, parse_function
from tests.orchestrator.commands import breakeven

ARMS = """\
import collections, dataclasses, os, sys, threading, time
import store
import sweeps
import workers
import orchestrator

def f(n=100): return store.total(n)
def same(n=100): return store.total(n)
def twice(n=100): return sum(store.total(n) for _ in range(3)) // 3
def quick(n=100): return 2 * sum(range(n))
def other(n=100): return n
def boom(n=100): raise ValueError("no\\nway")
def leaves(n=100): os._exit(7)
def crashes(n=100): os.kill(os.getpid(), 11)
def exits(n=100): sys.exit("bye")
def hangs(n=100): time.sleep(60)
def floods(n=100):
    print("x" * 100_000_000)
    print("x" * 100_000_000, file=sys.stderr)
    return store.total(n)
def starts(n=100):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    return store.total(n)
spent = [0.0, 0.0]
def work():
    while True:
        spent[0] = time.thread_time()
        if spent[0] > spent[1]: time.sleep(0.001)
def busy(n=100):
    if not any(each.name == __name__ for each in threading.enumerate()):
        threading.Thread(target=work, daemon=True, name=__name__).start()
    spent[1] = spent[0] + 0.03
    while spent[0] < spent[1]: time.sleep(0.001)
    return store.total(n)
def sorts(values):
    values.sort()
    return values
def child(n=100):
    os.spawnlp(os.P_NOWAIT, "setsid", "setsid", "sleep", "3971")
    return store.total(n)

@dataclasses.dataclass
class Point:
    x: float
    parts: tuple
def point(n=1): return {"a": [Point(1.0, (n, b"b", {3, 1, 2}, None))]}
def moved(n=1): return {"a": [Point(1.5, (n, b"b", {3, 1, 2}, None))]}
def nothing(n=1): pass
class Box:
    nested = staticmethod(same)
number = 3
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose modules and packages have the names of ours."""
    made = tmp_path_factory.mktemp("project")
    (made / "arms.py").write_text(ARMS)
    (made / "store.py").write_text("def total(n):\n    return sum(2 * i for i in range(n))\n")
    (made / "sweeps").mkdir()
    (made / "sweeps" / "__init__.py").write_text("import workers\n")
    (made / "workers.py").write_text("assert not hasattr(__import__('store'), 'read')\n")
    (made / "orchestrator.py").write_text("")
    (made / "lists.py").write_text(
        "def make(n=5): return ([n - i for i in range(n)],)\n"
        "def named(n=5): return {'n': n}\n"
        "def one(n=5): return n\n"
        "def broken(n=5): raise KeyError('no inputs')\n"
    )
    (made / "broken.py").write_text("x = = 1\n")
    return made


def compare(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return breakeven("compare", *arguments, folder=folder)


def arms(
    folder: Path, *texts: str, inputs: str = "", limit_s: float = 20.0, fresh_s: float = 9.0
) -> FunctionArms:
    def path(text: str) -> str:
        return f"{folder}/{text}"

    made = parse_function(path(inputs)) if inputs else None
    found = [
        FunctionArm(text, parse_function(path(text)), made, default_python()) for text in texts
    ]
    return FunctionArms(found, fresh_s, limit_s, check=True).at({"n": 10})


def test_a_project_with_our_names_is_compared(folder: Path) -> None:
    """Its own modules are imported, and the quicker function takes less time."""
    found = compare(
        folder,
        "arms.py:f",
        "arms.py:quick",
        "arms.py:Box.nested",
        *("--time", "3s", "--format", "json"),
    )
    assert (found.returncode != 2, found.stderr) == (True, "")
    (place,) = json.loads(found.stdout)["places"]
    assert [arm["name"] for arm in place["arms"]] == ["arms.py:quick", "arms.py:Box.nested"]
    assert place["arms"][0]["ratio"] > 3
    assert place["seconds"]["arms.py:quick"] < place["seconds"]["arms.py:f"] / 3


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ("arms.py:other", "its result is not that of arms.py:f"),
        ("arms.py:boom", "it raises ValueError: no (arms.py:12)"),
        ("arms.py:leaves", "its process ended with exit code 7"),
        ("arms.py:crashes", "its process ended with signal SIGSEGV"),
        ("arms.py:exits", "it raises SystemExit: bye (arms.py:15)"),
        ("arms.py:hangs", "did not end within 1 s (--timeout)"),
        ("arms.py:number", "arms.py has no function 'number'"),
        ("missing.py:f", "there is no Python file missing.py"),
        ("broken.py:f", "broken.py, when it is imported, raises SyntaxError: invalid syntax"),
    ],
)
def test_what_a_function_does_wrong_is_one_line(folder: Path, other: str, reason: str) -> None:
    with arms(folder, "arms.py:f", other, limit_s=1.0) as found:
        with pytest.raises(ArmFailedError) as error:
            found.slots()
        assert error.value.arm == other
        assert reason in error.value.reason
        assert "\n" not in error.value.reason
        # the comparison goes on without it
        first, failed, last, _ = found.slots()
        assert first(2).wall > 0
        assert last(2).wall > 0
        with pytest.raises(ArmFailedError, match=other):
            failed(1)


@pytest.mark.parametrize("other", ["arms.py:floods", "arms.py:starts"])
def test_noise_of_a_function_does_no_harm(
    folder: Path, other: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """200 MB on both channels, and a thread at every call."""
    with arms(folder, "arms.py:f", other) as found:
        _, slot, *_ = found.slots()
        assert slot(1).wall > 0
    assert capfd.readouterr() == ("", "")


def test_a_thread_that_an_arm_leaves_is_flagged(folder: Path) -> None:
    """In the arm's own process, as in this one (see `tests/workers/test_disturbances.py`)."""
    found = compare(folder, "arms.py:f", "arms.py:busy", *("--time", "2s", "--format", "json"))
    (place,) = json.loads(found.stdout)["places"]
    assert "other_threads" in place["arms"][0]["flags"]


def test_every_slot_has_its_own_code_and_data(folder: Path, tmp_path: Path) -> None:
    """Two files with the same text that hold 4 MB each: four addresses, though inputs are equal."""
    text = (
        "import numpy, os\n"
        "values, process = numpy.ones(500_000), os.getpid()\n"
        "def make(n=1): return numpy.random.default_rng().standard_normal(3)\n"
        "def f(made):\n"
        "    data, own = f'{process}:{values.ctypes.data}', f'{process}:{id(made)}'\n"
        "    with open('addresses', 'a') as file: print(data, own, file=file)\n"
        "    return values.sum() + made.sum()\n"
    )
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(text.replace("'addresses'", f"'{tmp_path}/addresses'"))
    with arms(tmp_path, "a.py:f", "b.py:f", inputs="a.py:make") as found:
        for slot in found.slots():
            slot(1)
    rows = [line.split() for line in (tmp_path / "addresses").read_text().splitlines()]
    assert [len({row[column] for row in rows}) for column in range(2)] == [4, 4], rows
    assert [rows.count(row) for row in rows] == [2] * 8, f"once checked and once timed: {rows}"


def test_what_is_loaded_first_is_of_another_arm_in_every_second_visit(tmp_path: Path) -> None:
    """Memory that is taken first lies better: sums over 4 MB took 2.5 % less."""
    for name in "ab":
        line = f"with open('{tmp_path}/order', 'a') as file: file.write('{name}')\n"
        (tmp_path / f"{name}.py").write_text(f"{line}def f(n): return n\n")
    with arms(tmp_path, "a.py:f", "b.py:f") as found:
        for _ in range(3):
            assert [slot(1).wall > 0 for slot in found.slots()] == [True] * 4
    assert (tmp_path / "order").read_text() == "abba" + "baab" + "abba"


def test_a_file_that_cannot_be_loaded_twice_has_a_process_for_each_slot(tmp_path: Path) -> None:
    """As one that registers an operator."""
    (tmp_path / "once.py").write_text(
        "import sys\n"
        "assert not hasattr(sys, 'registered')\n"
        "sys.registered = True\n"
        "def f(n): return n\n"
        "def g(n): return n\n"
    )
    with arms(tmp_path, "once.py:f", "once.py:g") as found:
        before = len(psutil.Process().children())
        assert [slot(1).wall > 0 for slot in found.slots()] == [True] * 4
        assert len(psutil.Process().children()) == before + 4


def test_changed_arguments_are_an_error(folder: Path) -> None:
    """The second call would sort what is sorted."""
    with (
        arms(folder, "arms.py:sorts", "arms.py:sorts", inputs="lists.py:make") as found,
        pytest.raises(ArmFailedError, match="it changes its arguments"),
    ):
        found.slots()


@pytest.mark.parametrize(("inputs", "good"), [("named", True), ("one", True), ("broken", False)])
def test_inputs_are_positional_named_or_one(folder: Path, inputs: str, good: bool) -> None:
    with arms(folder, "arms.py:f", "arms.py:same", inputs=f"lists.py:{inputs}") as found:
        if good:
            assert all(slot(1).wall > 0 for slot in found.slots())
        else:
            with pytest.raises(ArmFailedError, match="the inputs raises KeyError: 'no inputs'"):
                found.slots()


def test_nested_results_are_compared(folder: Path) -> None:
    """Containers, sets, bytes and dataclasses."""
    with arms(folder, "arms.py:point", "arms.py:point") as found:
        found.slots()
    with (
        arms(folder, "arms.py:point", "arms.py:moved") as found,
        pytest.raises(ArmFailedError, match="its result is not that of"),
    ):
        found.slots()


def test_folders_with_equal_names_are_apart(tmp_path: Path) -> None:
    """Two versions of a module `work`, each beside its own function."""
    for number, folder in enumerate(("old", "new")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "work.py").write_text(f"NUMBER = {number}\n")
        (tmp_path / folder / "bench.py").write_text("import work\ndef f(n): return work.NUMBER\n")
    with (
        arms(tmp_path, "old/bench.py:f", "new/bench.py:f") as found,
        pytest.raises(ArmFailedError, match="its result is not that of"),
    ):
        found.slots()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("arms.py:f",), "write two different functions or more"),
        (("arms.py", "arms.py:f"), "'arms.py' names no function; write FILE.py:NAME"),
        (("arms.py:f", "arms.py:boom"), "arms.py:boom: it raises ValueError: no"),
        (("arms.py:f", "arms.py:same", "--prepare", "true"), "--prepare with --command"),
        (("arms.py:f", "arms.py:same", "--control", "arms.py:f"), "write two different functions"),
        (("arms.py:f", "arms.py:same", "--inputs", "arms.py:nothing"), "--inputs returns nothing"),
        (("arms.py:f", "arms.py:same", "--axis", "m=1,2"), "it raises TypeError: f() got an unex"),
    ],
)
def test_wrong_usage_is_one_line(folder: Path, arguments: tuple[str, ...], reason: str) -> None:
    found = compare(folder, *arguments, "--time", "2s")
    assert (found.returncode, found.stdout) == (2, "")
    assert reason in found.stderr
    assert found.stderr.count("\n") == 1


def test_a_control_that_moves_voids_the_result(folder: Path, tmp_path: Path) -> None:
    """Exit code 3 although the arm is much faster. In a store the control is no arm, and what was
    measured is flagged as wrong.
    """
    found = compare(
        folder,
        *("arms.py:f", "arms.py:quick", "--control", "arms.py:twice", "--time", "4s"),
        *("--store", "--db", f"{tmp_path}/x.db"),
    )
    assert found.returncode == 3
    assert "Nothing may be concluded: the control arms.py:twice moved" in found.stdout
    assert "breakeven report 'arms.py:quick vs arms.py:f'" in found.stdout
    for view in ("arm", "effect", "speedup", "execution", "metric"):
        query = ("query", f"SELECT * FROM {view}", "--db", "x.db", "--format", "json")
        rows = breakeven(*query, folder=tmp_path).stdout
        assert "quick" in rows or view not in {"arm", "effect", "speedup"}
        assert "twice" not in rows
    report = breakeven("report", "arms.py:quick vs arms.py:f", "--db", "x.db", folder=tmp_path)
    assert "quick" in report.stdout
    assert "twice" not in report.stdout
    assert "* flagged" in report.stdout
    flags = breakeven("query", "SELECT job_flags FROM arm", "--db", "x.db", folder=tmp_path).stdout
    assert "void" in flags


@pytest.mark.parametrize("fresh_s", [0.0, 9.0])
def test_processes_that_load_slowly_stay(folder: Path, fresh_s: float) -> None:
    """Their arguments are made anew; otherwise each visit has processes of its own."""
    with arms(folder, "arms.py:f", "arms.py:same", fresh_s=fresh_s) as found:
        found.slots()
        before = psutil.Process().children()
        assert all(slot(1).wall > 0 for slot in found.slots())
        assert (psutil.Process().children() == before) == (fresh_s == 0.0)
        stay = [note for note in found.notes() if "processes stay for all visits" in note]
        assert len(stay) == (fresh_s == 0.0)
