"""Which nodes of a cluster get jobs: checked alone, and with real nodes that are wrong, join late,
die and return.
"""

import os
import shutil
import subprocess
import sys
import textwrap
from contextlib import ExitStack
from pathlib import Path

import pytest

from orchestrator.cluster.nodes import check_node
from orchestrator.host import package_version
from orchestrator.host.worker_supervisor import NodeInfo
from store.rows.source_version import OUR_PACKAGES
from tests.orchestrator.commands import ROOT
from tests.orchestrator.conftest import Store, job
from tests.orchestrator.machines import clean_environment, head, kill, started
from tests.orchestrator.worker_entrypoints import ENVIRONMENTS

OURS = (package_version.source_version(),)


def row(**resources: float) -> dict[str, object]:
    """A row of `ray.nodes()`."""
    return {
        "NodeID": "ab",
        "NodeManagerHostname": "box",
        "NodeManagerAddress": "10.0.0.2",
        "Resources": resources,
    }


def test_node_offers_what_it_has_and_declares() -> None:
    """Both must hold, for each device class."""
    declared = {
        ("cpu", "cuda"): row(CPU=4.0, GPU=1.0),
        ("cpu",): row(CPU=4.0),
        ("cuda",): row(GPU=1.0),
    }
    for devices, facts in declared.items():
        found = check_node(facts, NodeInfo("box", ENVIRONMENTS, OURS))
        assert found.node is not None
        assert found.node.devices == devices


def test_head_without_cpus_gets_no_jobs() -> None:
    """`ray start --head --num-cpus 0` keeps jobs off the head; a line names it."""
    found = check_node(row(), NodeInfo("box", ENVIRONMENTS, OURS))
    assert found == (None, ("node box (10.0.0.2) gets no jobs: it offers no CPU to Ray",))


def test_declared_gpu_that_is_absent_is_named_and_not_offered() -> None:
    """`--num-gpus 1` on a machine without a device."""
    found = check_node(row(CPU=4.0, GPU=1.0), NodeInfo("box", {"cpu": ENVIRONMENTS["cpu"]}, OURS))
    assert found.node is not None
    assert found.node.devices == ("cpu",)
    (line,) = found.lines
    assert line.startswith(
        "node box (10.0.0.2) declares 1 GPUs to Ray, but no CUDA device can be used there"
    )


def test_other_version_of_the_package_is_named_on_both_sides() -> None:
    """The node's version, be it of the supervisor or of the workers, and ours stand in one line."""
    found = check_node(
        row(CPU=4.0), NodeInfo("box", ENVIRONMENTS, (*OURS, "0.0.9 (source 12345678)"))
    )
    assert found.node is None
    (line,) = found.lines
    assert line.startswith(
        "node box (10.0.0.2) is left out: it has breakeven 0.0.9 (source 12345678), here is "
    )
    assert package_version.source_version() in line


def test_version_changes_with_any_source_and_is_that_of_the_workers(tmp_path: Path) -> None:
    """One changed character makes another version; a process started from outside reports the one
    that it imports.
    """
    shutil.copytree(ROOT / "orchestrator", tmp_path / "orchestrator")
    (tmp_path / "orchestrator" / "__init__.py").write_text('"""Changed."""\n')
    assert (
        package_version.version_of_workers({**os.environ, "PYTHONPATH": str(ROOT)}, "/")
        == package_version.source_version()
    )
    assert (
        package_version.version_of_workers({**os.environ, "PYTHONPATH": str(tmp_path)}, "/")
        != package_version.source_version()
    )
    (tmp_path / "orchestrator" / "host" / "package_version.py").unlink()
    with pytest.raises(ImportError, match=r"No module named orchestrator\.host\.package"):
        package_version.version_of_workers({**os.environ, "PYTHONPATH": str(tmp_path)}, "/")


SCRIPT = """
    import sys
    from orchestrator.cluster.cluster import Cluster
    from orchestrator.loop.dispatcher import dispatch
    from store.open.engine import connect
    from sweeps.language.file_schema import Retry

    def shown(line):
        print(line, flush=True)

    def observe(event):
        if event.what == "started":
            shown(f"started on {event.node.node_id[:8]}")
        elif event.message:
            shown(f"{event.what}: {event.message}")

    if __name__ == "__main__":
        with Cluster.start(sys.argv[1], entry="tests.orchestrator.worker_entrypoints:run", notify=shown) as cluster:
            shown(f"{len(cluster.nodes())} nodes")
            print(dispatch(connect(sys.argv[2]), int(sys.argv[3]), cluster, retry=Retry(max_attempts=9), observer=observe))
"""


@pytest.mark.slow
@pytest.mark.ray
def test_wrong_nodes_are_left_out_and_late_ones_are_used(store: Store, tmp_path: Path) -> None:
    """A head without CPUs, nodes without the package, of another version, with an absent GPU; one
    joins, dies and returns.
    """
    for name in ("other", "none"):
        (tmp_path / name).mkdir()
    for folder in OUR_PACKAGES:
        shutil.copytree(ROOT / folder, tmp_path / "other" / folder)
    (tmp_path / "other" / "orchestrator" / "__init__.py").write_text('"""Changed."""\n')
    (tmp_path / "none" / "orchestrator").mkdir()
    (tmp_path / "none" / "orchestrator" / "__init__.py").write_text(
        "raise ImportError('no orchestrator here')\n"
    )
    sweep = store.submit(
        [job("a", model="slow", image_size=size) for size in range(32, 32 + 16 * 150, 16)]
    )
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPT))
    with ExitStack() as stack:
        address = stack.enter_context(head("--num-cpus", "0", home=tmp_path))

        def node(*options: str, **variables: str) -> "subprocess.Popen[bytes]":
            return stack.enter_context(
                started("--address", address, *options, home=tmp_path, **variables)
            )

        node("--num-cpus", "1", PYTHONPATH=str(tmp_path / "none"))
        node("--num-cpus", "1", PYTHONPATH=str(tmp_path / "other"))
        node("--num-cpus", "1", "--num-gpus", "1")
        process = stack.enter_context(
            subprocess.Popen(
                [sys.executable, tmp_path / "script.py", address, str(store.path), str(sweep)],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                cwd=tmp_path,  # Ray's workers import from the driver's current folder too
                env=clean_environment(tmp_path),
            )
        )
        seen: list[str] = []

        def until(text: str) -> str:
            assert process.stdout is not None
            for line in process.stdout:
                seen.append(line.strip())
                if text in line:
                    return line.strip()
            raise AssertionError("\n".join(seen))

        until("1 nodes")
        (missing,) = [line for line in seen if "is left out: it cannot run our worker" in line]
        for text in (
            "gets no jobs: it offers no CPU",
            "declares 1 GPUs to Ray, but no CUDA device",
            "is left out: it has breakeven",
        ):
            assert len([line for line in seen if text in line]) == 1
        assert "no orchestrator here" in missing

        def new_start(*known: str) -> str:
            while (line := until("started on ")) in known:
                pass
            return line

        first = until("started on ")
        late = node("--num-cpus", "1")
        until(" joined: cpu")
        second = new_start(first)
        kill(late)
        node("--num-cpus", "1")
        until(" joined: cpu")
        new_start(first, second)
        rest = process.stdout.read() if process.stdout else ""
        assert process.wait(120) == 0
    assert "Summary(measured=150, failed=0, unanswered=0, interrupted=False)" in rest
    assert store.states() == {"done": 150}
