"""Reports of what several hosts measured: each host's curves stand apart, and what a curve lacks is
named.
"""

from pathlib import Path

from sweeps.model.outcome import Environment, Outcome
from tests.orchestrator.vision_fixtures import printed, report_of
from tests.store.conftest import a_job, an_outcome

SIZES = (64, 128, 224, 384)
OTHER = Environment(device="cpu", device_name="Imaginary CPU", facts={"torch": "2.1"})


NEVER = ": not shown to pay at any point measured, 16 to 64 tokens; it can gain nothing"


def report(path: Path, outcomes: list[Outcome]) -> str:
    return printed(report_of(path, *outcomes), "markdown")


def test_hosts_are_named_and_what_they_lack(tmp_path: Path) -> None:
    """A whole curve of one host and two points of another: two blocks, each named, the second one
    incomplete.
    """
    outcomes = [
        an_outcome(a_job(size), speedups=(speedup,), host=host)
        for host, sizes in (("a", SIZES), ("b", SIZES[:2]))
        for size, speedup in zip(sizes, (0.7, 0.9, 1.2, 1.5), strict=False)
    ]
    text = report(tmp_path / "store.db", outcomes)
    headlines = [
        line for line in text.splitlines() if line.startswith("## ") and "Answers" not in line
    ]
    assert [
        "on Imaginary CPU (host a), 2 threads" in headlines[0],
        "on Imaginary CPU (host b)," in headlines[1],
    ] == [True, True]
    whole, part = [
        section.split("\n\n")[0] for section in text.split("### Break-even in tokens\n")[1:]
    ]
    assert ": pays at every point measured from" in whole
    assert f"{NEVER}; incomplete, 2 of 4 points are missing on host b" in part


def test_two_environments_of_a_host_are_distinguished(tmp_path: Path) -> None:
    """The same machine before and after an update: both are named by their environment."""
    outcomes = [
        an_outcome(a_job(size), environment=found)
        for found in (OTHER, an_outcome(a_job()).environment)
        for size in SIZES
    ]
    text = report(tmp_path / "store.db", outcomes)
    for outcome in outcomes[3:5]:
        assert f"(host here, environment {outcome.environment.environment_id[:8]})" in text
