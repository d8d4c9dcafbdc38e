"""Two real Ray nodes with different libraries: every curve lies whole on one of them, and moves as
a whole when one is lost.
"""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from store.write.queue import progress
from tests.orchestrator.conftest import Store
from tests.orchestrator.machines import clean_environment, head, kill, started

pytestmark = pytest.mark.ray

SCRIPT = """
    import sys
    from pathlib import Path
    from rich.console import Console
    from orchestrator.cluster.cluster import Cluster
    from orchestrator.loop.run_loop import run_plan
    from orchestrator.loop.progress import Display
    from orchestrator.plan.sites import InfeasibleError
    from orchestrator.plan import planning
    from tests.orchestrator.conftest import Store, job
    from tests.orchestrator.sites import planned

    class Observer(Display):
        def __call__(self, event):
            if event.what == "answered":
                print("answered", event.outcome.environment.facts["libraries"], event.job.condition.model, flush=True)

    if __name__ == "__main__":
        store = Store(Path(sys.argv[2]))
        jobs = [job("a", model=model, image_size=size) for size in range(32, 32 + 16 * 14, 16) for model in ("one", "other")]
        names = {
            "entry": "tests.orchestrator.worker_entrypoints:mixed",
            "environments": "tests.orchestrator.worker_entrypoints:environments_mixed",
        }
        with Cluster.start(sys.argv[1], **names) as cluster, Observer(Console()) as display:
            try:
                wrong = planned(store, cluster.nodes(), jobs, resources={"zone": "south"})
                planning.require_feasible(wrong.expansion, cluster.nodes())
            except InfeasibleError as error:
                print(error, flush=True)
            plan = planned(store, cluster.nodes(), jobs)
            left = run_plan(store.engine, plan, lambda: cluster, display).plan
            print("left", len(left.jobs), flush=True)
"""


@pytest.mark.slow
def test_curves_lie_whole_on_one_node_and_move_as_a_whole(store: Store, tmp_path: Path) -> None:
    """Both nodes answer; one is killed after its second job: all of its curve is measured on the
    other, its part is incomplete.
    """
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    with (
        head(
            "--num-cpus", "1", "--labels", "zone=north", home=tmp_path, LIBRARIES="old"
        ) as address,
        started(
            "--address",
            address,
            "--num-cpus",
            "1",
            "--labels",
            "zone=east",
            home=tmp_path,
            LIBRARIES="new",
        ) as extra,
    ):
        command = [sys.executable, str(script), address, str(store.path)]
        environment = clean_environment(tmp_path)
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        ) as run:
            assert run.stdout is not None
            lines = []
            for line in run.stdout:
                lines.append(line.strip())
                if (
                    sum(each.startswith("answered new") for each in lines) == 2
                    and extra.poll() is None
                ):
                    kill(extra)
    assert "left 0" in lines, lines
    (refused,) = (
        line for line in lines if "requires a node with zone=south, and no node has it" in line
    )
    assert "zone=north" in refused
    assert "zone=east" in refused
    curves = store.table("""SELECT b.model, e.facts, b.points, b.points_missing FROM break_even AS b
           JOIN environment AS e ON e.environment_id = b.environment WHERE b.axis = 'tokens' AND b.metric = 'latency'
           ORDER BY b.points DESC, b.model""")
    whole, lost = curves[curves["points_missing"] == 0], curves[curves["points_missing"] > 0]
    assert list(whole["model"]) == ["one", "other"], lines
    assert list(whole["points"]) == [14, 14]
    assert set(whole["facts"]) == {'{"libraries":"old"}'}
    assert [(row.facts, row.points + row.points_missing) for row in lost.itertuples()] == [
        ('{"libraries":"new"}', 14)
    ]
    assert progress(store.engine, 1).counts["waiting"] == 0
