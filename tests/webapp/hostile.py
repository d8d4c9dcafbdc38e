"""A store whose every text field holds Markdown, HTML and addresses of remote images, none of which
may be more than text.
"""

from store.open.engine import connect
from store.rows.owners import owner
from store.write.queue import claim
from store.write.record import record, record_imported
from store.write.submission import NewSweep, submit_sweep
from sweeps.model.condition import Condition
from sweeps.model.job import DENSE, Arm, Job, Pair, Step
from sweeps.model.outcome import Environment, Failure, Outcome
from tests.webapp.simulated import EXTRA, LOST, NOISE, SAVED, SIZES, outcome

REMOTE = "evil.example"
HOSTILE = (
    f"![i](http://{REMOTE}/a.png) <img src='http://{REMOTE}/b.png' onerror='window.harmed=1'>"
    f" <script src='http://{REMOTE}/c.js'></script> [l](http://{REMOTE}/d) **bold** :red[x] $x^2$"
    " :material/home: <a href='javascript:window.harmed=1'>j</a> ' \" & </div>"
)
LONG = "wide " + "x" * 500


def hostile_arm(keep_rate: float) -> Arm:
    """An arm with a parameter of 500 letters and more; how the arm runs is that of
    `tests.webapp.simulated`.
    """
    arm = Arm(
        stack=(
            Step(
                method="topk",
                params={"keep_rate": keep_rate, "layers": [3, 6, 9], "note": HOSTILE + LONG},
            ),
        )
    )
    for table, value in ((SAVED, 0.42 * keep_rate), (LOST, 0.0), (EXTRA, 0.3e-3), (NOISE, 0.01)):
        table.setdefault(arm, value)
    return arm


def hostile_store(url: str) -> str:
    """Fills the store at `url` and returns it; one arm fails, and one job waits."""
    arms = (DENSE, hostile_arm(0.5), hostile_arm(0.7))
    jobs = [
        Job(
            condition=Condition(model=f"model {HOSTILE}", image_size=size, batch_size=1, threads=2),
            arms=arms,
            pairs=(Pair(0, 1), Pair(0, 2)),
        )
        for size in SIZES
    ]
    engine = connect(url)
    sweep = submit_sweep(
        engine, NewSweep(f"sweep {HOSTILE}", f"name: {HOSTILE}", f"Question {HOSTILE}"), jobs, jobs
    )
    holder = owner()
    for number, queued in enumerate(claim(engine, sweep, owner=holder, limit=len(jobs) - 1)):
        failure = Failure(
            arm=2, reason="error", message=f"message {HOSTILE}", detail=f"traceback {HOSTILE}"
        )
        record(
            engine,
            queued.row,
            holder,
            _hostile(outcome(queued.job, failing={arms[2]: failure} if number == 0 else None)),
        )
    elsewhere = _hostile(outcome(jobs[0])).model_copy(update={"host": "elsewhere"})
    other = Environment(device="cpu", device_name=f"other {HOSTILE}", facts={"note": HOSTILE})
    record_imported(engine, [elsewhere.model_copy(update={"environment": other})])
    engine.dispose()
    return url


def _hostile(found: Outcome) -> Outcome:
    environment = Environment(
        device="cpu", device_name=f"device {HOSTILE}", facts={"cores": "2", "note": HOSTILE}
    )
    return found.model_copy(update={"environment": environment, "host": f"host {HOSTILE}"})
