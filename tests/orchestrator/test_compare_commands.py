"""`breakeven compare --command`: how commands are run, what is observed, and what ends them."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from orchestrator.api.commands import STARTS, Command, Commands, parse_command
from orchestrator.api.comparison import ArmFailedError
from orchestrator.api.measured_process import TAIL_BYTES
from sweeps.errors import UserError
from tests.orchestrator.commands import ROOT, breakeven

MEGABYTE = 1_000_000


def compare(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return breakeven("compare", "--command", *arguments, folder=folder)


@pytest.mark.parametrize(
    "text",
    [
        "awk '{print $1}' a.txt",
        "grep 'a;b' \"it's\"",
        "ls -l a=b",
    ],
)
def test_a_plain_command_needs_no_shell(text: str) -> None:
    """What is quoted is none of the shell's syntax."""
    program = text.partition(" ")[0]
    found = parse_command(text)
    assert not found.by_shell
    assert found.argv[0] == shutil.which(program)
    assert found.argv[1] == program


@pytest.mark.parametrize(
    "text",
    ["a | b", 'echo "$HOME"', "echo *", "A=1 env", "cd x"],
)
def test_syntax_of_a_shell_needs_one(text: str) -> None:
    found = parse_command(text)
    assert (found.by_shell, found.argv) == (True, ("/bin/sh", "sh", "-c", text))


@pytest.mark.parametrize("text", [" ", "no-such-program --help"])
def test_what_cannot_be_run_is_an_error_of_the_user(text: str) -> None:
    with pytest.raises(UserError):
        parse_command(text)


@pytest.fixture
def run() -> Iterator["Run"]:
    with Run() as made:
        yield made


class Run:
    """Observes one command at a time."""

    def __init__(self) -> None:
        self.open: list[Commands] = []

    def __call__(self, *texts: str, limit_s: float = 30.0, check: bool = True) -> Commands:
        commands = Commands([parse_command(text) for text in texts], None, limit_s, check=check)
        self.open.append(commands)
        return commands

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: object) -> None:
        for commands in self.open:
            commands.close()


def python(program: str) -> str:
    return f"{sys.executable} -S -c '{program}'"


def test_memory_and_cpu_are_of_all_processes(run: Run) -> None:
    """Of a shell whose two children hold 60 MB each at once, and compute until each has used 0.2 s:
    more than one of them, and no more than all that ran here.
    """
    child = python(
        "import time; x = bytes([1]) * 60_000_000; e = time.process_time() + 0.2\n"
        "while time.process_time() < e: pass\ntime.sleep(0.3)"
    )
    commands = run(f"{child} & {child}; wait", "true")
    commands.slots()
    commands.time(parse_command(f"{child} & {child}; wait"), 1)
    usage = commands.usages()[f"{child} & {child}; wait"]
    assert usage.peak_bytes is not None
    assert usage.peak_bytes > 120 * MEGABYTE
    assert 0.39 < usage.user_s + usage.system_s <= commands.own_s()


def test_what_this_process_holds_is_not_a_command_s(run: Run) -> None:
    """A small command's peak is far below that of the process that compares."""
    kept = bytearray(200 * MEGABYTE)
    commands = run("sleep 0.05", "sleep 0.05 ")
    commands.slots()
    commands.time(parse_command("sleep 0.05"), 1)
    peak = commands.usages()["sleep 0.05"].peak_bytes
    assert kept
    assert peak is not None
    assert peak < 20 * MEGABYTE


def test_the_start_of_a_shell_is_not_counted(run: Run) -> None:
    """Of a command that sleeps for 0.2 s: the median start so far is subtracted."""
    slot, _ = run("true;sleep 0.2").slots()
    commands = run.open[0]
    assert slot(1).wall > 0
    assert len(commands.shell_starts) == STARTS
    assert all(seconds > 0 for seconds in commands.shell_starts)
    commands.shell_starts[:] = [0.15] * 99
    began = time.perf_counter()
    assert 0.05 <= slot(1).wall <= time.perf_counter() - began - 0.15
    assert len(commands.shell_starts) == 99 + 1
    assert any("start of /bin/sh" in note for note in commands.notes())


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ("printf 'a\\nc\\n'", "line 2 is 'c' and not 'b'"),
        ("printf 'a\\nb\\nc'", "5 bytes and not 4 bytes"),
        ("sh -c 'echo no >&2; exit 7'", "fails with exit code 7: no"),
        ("sh -c 'kill -SEGV $$'", "fails with signal SIGSEGV"),
        ("sleep 60", "did not end within 1 s (--timeout)"),
    ],
)
def test_what_differs_or_fails_is_one_line(run: Run, other: str, reason: str) -> None:
    commands = run("printf 'a\\nb\\n'", other, limit_s=1.0)
    with pytest.raises(ArmFailedError) as error:
        commands.slots()
    assert reason in str(error.value)
    assert str(error.value).startswith(f"{other}: ")


def test_unlike_outputs_can_be_compared_all_the_same(run: Run) -> None:
    for slot in run("echo a", "echo b", "false", check=False).slots():
        assert slot(1).wall > 0


def test_a_flood_of_output_takes_no_memory(run: Run) -> None:
    """100 MB on both channels: all of it is compared, and what reads it stays small."""
    flood = "head -c 100000000 /dev/zero"
    commands = run(f"{flood}; {flood} >&2", flood)
    commands.slots()
    (process,) = (
        each
        for each in psutil.Process().children()
        if "measured_process.py" in " ".join(each.cmdline())
    )
    assert process.memory_info().rss < 40 * MEGABYTE
    with pytest.raises(ArmFailedError, match=r"100,000,001 bytes and not 100,000,000 bytes"):
        run(flood, f"{flood}; echo").slots()
    assert TAIL_BYTES < MEGABYTE


def test_what_a_command_leaves_running_is_ended(run: Run) -> None:
    """Also what left its session; and it is said."""
    text = "setsid sleep 3961 & true"
    commands = run(text, text + " ")
    commands.slots()
    assert sleepers("3961")
    assert any("left processes running" in note for note in commands.notes())
    commands.close()
    assert not sleepers("3961")


def sleepers(argument: str) -> list[psutil.Process]:
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if process.info["cmdline"] == ["sleep", argument]
    ]


def test_prepare_runs_before_each_execution_and_is_not_timed(tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    prepare = parse_command(f"sleep 0.1; echo x >> {lines}")
    command = parse_command(f"wc -l {lines}")
    with Commands(
        [command, Command("other", command.argv, by_shell=False)], prepare, 9.0, check=False
    ) as made:
        slot, *_ = made.slots()
        before = len(lines.read_text().splitlines())
        began = time.perf_counter()
        assert 3 * slot(3).wall <= time.perf_counter() - began - 3 * 0.1
        assert len(lines.read_text().splitlines()) == before + 3
    broken = parse_command("false")
    with (
        Commands([command, command], broken, 9.0, check=True) as made,
        pytest.raises(ArmFailedError, match="--prepare fails with exit code 1"),
    ):
        made.slots()


def test_a_slower_command_is_found(tmp_path: Path) -> None:
    """Exit code 1, a table, Markdown for a pull request; in the other order exit code 0, and in
    a store it is a sweep, whose speed-ups the public views have.
    """
    found = compare(tmp_path, "sleep 0.01", "sleep 0.04", "--time", "2s", "--comment", "c.md")
    assert (found.returncode, found.stderr) == (1, "")
    assert "sleep 0.04: slower than sleep 0.01, 0." in found.stdout
    comment = (tmp_path / "c.md").read_text()
    assert comment.startswith("**sleep 0.04: slower than sleep 0.01, 0.")
    assert "The check `slower` fails." in comment
    assert "| sleep 0.01 | 1" in comment
    arms = ("sleep 0.04", "sleep 0.01", "--time", "2s", "--format", "json")
    quick = compare(tmp_path, *arms, "--store", "--db", "x.db")
    assert quick.returncode == 0
    (place,) = json.loads(quick.stdout)["places"]
    assert place["arms"][0]["verdict"] == "faster"
    assert place["usage"]["sleep 0.01"]["user_s"] < place["seconds"]["sleep 0.01"]
    assert "Stored as a sweep: breakeven report 'sleep 0.01 vs sleep 0.04'" in quick.stderr
    sql = "SELECT method, speedup FROM speedup"
    said = breakeven("query", sql, "--db", "x.db", "--format", "json", folder=tmp_path)
    (row,) = json.loads(said.stdout)
    assert (row["method"], row["speedup"] > 1.5) == ("sleep 0.01", True)


def test_an_axis_fills_the_command(tmp_path: Path) -> None:
    """One comparison for each value; braces of other words stay."""
    found = compare(
        tmp_path,
        "sleep 0.0{n}",
        "sh -c 'sleep 0.0{n}; : {m}'",
        *("--axis", "n=1,2", "--time", "1s", "--format", "json"),
    )
    places = json.loads(found.stdout)["places"]
    assert [place["axes"] for place in places] == [{"n": 1}, {"n": 2}]
    assert {place["baseline"] for place in places} == {"sleep 0.0{n}"}
    assert places[0]["seconds"]["sh -c 'sleep 0.0{n}; : {m}'"] > 0.01
    assert places[1]["seconds"]["sleep 0.0{n}"] > 0.02
    assert any("{m}'" in sentence for sentence in json.loads(found.stdout)["sentences"])


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("true",), "write two different commands or more"),
        (("true", "false"), "false: fails with exit code 1"),
        (("true", "true ", "--time", "soon"), "soon"),
        (("true", "true ", "--margin", "200%"), "--margin"),
        (("true", "true ", "--margin", "5"), "write a share between 0 and 100 %, such as 2%"),
        (("true", "true ", "--time", "0"), "'0' is no time; write 30s, 10m or 1h"),
        (("true", "true ", "--axis", "n=a"), "--axis"),
        *(
            (
                ("true {n}", "true", "--axis", f"n=1,{value}"),
                f"{value} is no finite number below 2**63",
            )
            for value in ("nan", "inf", "-inf", "1e999", "1" + 19 * "0")
        ),
        (("true", "true ", "--visits", "-1"), "No such option: --visits"),
        (("true", "true ", "--axis", "n=1,2"), "--axis n: no command contains {n}"),
        (("true {n}", "true", "--axis", "n=1,1"), "a name or a number stands twice"),
        (("true {n}", "true", "--axis", "n=1", "--axis", "n=2"), "a name or a number stands twice"),
        (("true", "true ", "--control", "true"), "write two different commands or more"),
        (("true", ""), "an empty command cannot be compared"),
        (("true", "true ", "--revision", "x"), "--command takes no --revision"),
    ],
)
def test_wrong_usage_is_one_line(tmp_path: Path, arguments: tuple[str, ...], reason: str) -> None:
    found = compare(tmp_path, *arguments)
    assert (found.returncode, found.stdout) == (2, "")
    assert reason in found.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_of_an_interrupted_comparison(tmp_path: Path, number: int) -> None:
    """By Ctrl-C with exit code 130; by SIGKILL too, whatever a command started."""
    mark = f"39{number:02}"
    started = subprocess.Popen(
        [
            *(sys.executable, "-m", "orchestrator", "compare", "--command", "--time", "1h"),
            *(f"setsid sleep {mark} & sleep {mark}", "true"),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: len(sleepers(mark)) == 2)
    started.send_signal(number)
    assert started.communicate(timeout=20)[1] == ""
    assert started.returncode == (-signal.SIGKILL if number == signal.SIGKILL else 130)
    wait_until(lambda: not sleepers(mark))


def wait_until(holds: Callable[[], bool], seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)
