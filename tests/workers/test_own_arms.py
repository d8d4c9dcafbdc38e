"""Jobs of models and functions from files of the user: what is built, called, counted and compared,
and what fails alone.
"""

from collections.abc import Mapping
from typing import Any

import pytest
import torch

from sweeps.model.condition import Condition
from sweeps.model.job import DENSE, Arm, Job, Pair, Protocol, Step
from sweeps.model.outcome import Outcome
from workers.arms.own import OwnWorkload
from workers.run import run

MODEL = """
import torch
import workers
from pack import inner, scale

def build(width):
    return inner.Net(width, torch.nn)

def inputs(n, width, batch_size):
    return torch.randn(batch_size, n, width)

def tokens(n):
    return n // workers.PATCH
"""
FILES = {
    "net.py": MODEL,
    "workers.py": "PATCH = 4\n",
    "pack/__init__.py": "",
    "pack/scale.py": "import pack.inner\nHALF = pack.inner.WHOLE / 2\n",
    "pack/inner.py": """
import torch
WHOLE = 1.0
class Net(torch.nn.Module):
    def __init__(self, width, nn):
        super().__init__()
        self.first, self.last = nn.Linear(width, width), nn.Linear(width, 1)
    def forward(self, x):
        return {"out": [self.last(self.first(x))]}
""",
    "arms.py": """
import torch
def same(model): return model
def fused(model, scale=1.0):
    weight, inner = model.last.weight @ model.first.weight, model.first.bias
    model.first = torch.nn.Identity()
    model.last.bias += model.last.weight[0] @ inner
    model.last.weight = torch.nn.Parameter(weight * scale)
    return model
def raises(model): raise ValueError("no such model")
def greedy(model):
    def call(x):
        found = model(x)
        x.zero_()
        return found
    return call
def number(model): return 3
def late(model, by=2.0, change_input=False):
    calls = []
    def call(x):
        calls.append(None)
        found = model(x)
        if len(calls) > 30:
            found["out"][0] = found["out"][0] * by
            if change_input: x.zero_()
        return found
    return call
""",
}
FUNCTIONS = {
    "train.py": """
import torch
check = None
def build(seed):
    weight = torch.ones(8, requires_grad=True)
    def step(x):
        loss = (weight * x).sum() + seed
        loss.backward()
        return loss.item()
    return step
def inputs(n): return {"x": torch.ones(n)}
""",
    "arms.py": "def twice(step, by=2):\n    return lambda x: [step(x) for _ in range(by)]\n",
}


def own(name: str, **params: Any) -> Arm:
    return Arm(stack=(Step(method=f"arms.py:{name}", params=params),))


def a_job(
    *arms: Arm, model: str = "net.py:build", files: Mapping[str, str] = FILES, **values: int
) -> Job:
    condition = Condition(
        model=model,
        threads=2,
        batch_size=1 if values else 2,
        values=values or {"n": 8, "width": 16},
        x_axis=("n",) if values else ("tokens", "n"),
    )
    return Job(
        kind="call",
        condition=condition,
        arms=(DENSE, *arms),
        pairs=tuple(Pair(0, index + 1) for index in range(len(arms))),
        protocol=Protocol(pairs_min=3, pairs_max=6, budget_s=0.2),
        files=dict(files),
    )


def failed(outcome: Outcome) -> dict[int | None, tuple[str, str]]:
    return {each.arm: (each.reason, each.message) for each in outcome.failures}


def test_arms_of_a_module() -> None:
    """Modules beside the file are theirs; MACs are an item's; no arm has another's changes."""
    outcome = run(a_job(own("same"), own("fused")))
    assert not outcome.failures, outcome.failures[0].detail
    dense, same, fused = outcome.arms
    assert (dense.tokens, dense.batch) == (2, 2)
    assert dense.gmacs == same.gmacs == 8 * (16 * 16 + 16) / 1e9
    assert fused.gmacs == 8 * 16 / 1e9
    assert (dense.parameters, fused.parameters) == (16 * 16 + 16 + 16 + 1, 16 + 1)
    assert outcome.samples is not None
    assert set(outcome.samples.arms) == {0, 1, 2}
    assert "latency" in {metric.name for metric in fused.metrics}


def test_wrong_arms_fail_alone() -> None:
    """Each names what is wrong with it, and the others are measured."""
    arms = (own("fused", scale=2.0), own("raises"), own("greedy"), own("number"), own("same"))
    outcome = run(a_job(*arms))
    found = failed(outcome)
    assert {arm: reason for arm, (reason, _) in found.items()} == {
        1: "wrong_result",
        2: "error",
        3: "wrong_result",
        4: "error",
    }
    assert "the result['out'][0][0, 0, 0] is " in found[1][1]
    assert found[2][1].endswith("no such model")
    assert "it changes its input: the input[0]" in found[3][1]
    assert "arms.py:number() is a int, which cannot be called" in found[4][1]
    assert [arm.arm for arm in outcome.arms] == [0, 5]


def test_arms_are_checked_again_after_they_were_timed() -> None:
    """A result, or the input, that changes from the 31st call on; what the file allows is right."""
    arms = (own("late"), own("late", by=1.0, change_input=True), own("same"))
    job = a_job(*arms)
    protocol = job.protocol.model_copy(update={"pairs_min": 31, "pairs_max": 31, "budget_s": 5.0})
    found = failed(run(job.model_copy(update={"protocol": protocol})))
    assert {arm: reason for arm, (reason, _) in found.items()} == dict.fromkeys(
        (1, 2), "wrong_result"
    )
    assert "returns after it was timed: it returns something else than its bas" in found[1][1]
    assert "returns after it was timed: it changes its input: the input[0]" in found[2][1]
    files = {**FILES, "net.py": f"{MODEL}check = {{'rtol': 2.0}}\n"}
    allowed = a_job(own("late"), files=files).model_copy(update={"protocol": protocol})
    assert not run(allowed).failures


def test_a_baseline_that_changes_fails() -> None:
    """It is compared with what it returned at first."""
    files = {
        "net.py": "from arms import late\nimport torch\n"
        "def build(): return late(lambda x: {'out': [x + 1]})\n"
        "def inputs(n): return torch.ones(n)\n",
        "arms.py": FILES["arms.py"],
    }
    job = a_job(own("same"), files=files, n=8)
    protocol = job.protocol.model_copy(update={"pairs_min": 31, "pairs_max": 31, "budget_s": 5.0})
    found = failed(run(job.model_copy(update={"protocol": protocol})))
    assert {arm: reason for arm, (reason, _) in found.items()} == dict.fromkeys(
        (0, 1), "wrong_result"
    )


@pytest.mark.parametrize("check", ['{"rtol": 2.0}', "None", "lambda old, new: True"])
def test_a_file_states_what_may_differ(check: str) -> None:
    """By a tolerance, a function, or not at all."""
    files = {**FILES, "net.py": f"{MODEL}check = {check}\n"}
    assert not run(a_job(own("fused", scale=2.0), files=files)).failures


def test_a_function_that_trains() -> None:
    """Gradients may be computed; no MACs are counted, and results not compared on request."""
    job = a_job(own("twice", by=3), model="train.py:build", files=FUNCTIONS, n=8)
    outcome = run(job)
    assert not outcome.failures, outcome.failures[0].detail
    dense, twice = outcome.arms
    assert (dense.tokens, dense.gmacs, dense.parameters) == (8, None, None)
    slower = {metric.name: metric.value for metric in twice.metrics}["latency"]
    assert slower > {metric.name: metric.value for metric in dense.metrics}["latency"]
    assert not outcome.same_work(Pair(0, 1))


def test_a_file_that_cannot_be_loaded() -> None:
    """The job fails with the line of the user's file."""
    files = {"net.py": "import nothing_of_this_name\ndef build(): ...\n"}
    (failure,) = run(a_job(own("same"), files=files)).failures
    assert (failure.arm, failure.reason) == (None, "error")
    assert "No module named 'nothing_of_this_name'" in failure.message
    assert 'File "net.py", line 1' in failure.detail


def test_where_the_time_of_a_call_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operators of each arm, and what distinguishes it from the baseline, as for other models."""
    monkeypatch.setattr("workers.kinds.profile.ROUNDS_S", 0.1)
    job = a_job(own("fused")).model_copy(update={"kind": "call_profile"})
    outcome = run(job)
    assert not outcome.failures
    assert outcome.samples is None
    assert outcome.profiles is not None
    dense, fused = outcome.profiles
    assert (fused.baseline, fused.phase) == (0, "forward")
    assert fused.speedup is not None
    products = [
        sum(each.count for each in profile.activities if each.name == "aten::addmm")
        for profile in (dense, fused)
    ]
    assert products == [2, 1]


@pytest.mark.filterwarnings("ignore:.*weight_norm")
def test_a_model_that_cannot_be_copied_is_built_anew() -> None:
    """A weight-normalised module, whose weight is computed, gives each arm a model of its own with
    equal weights.
    """
    model = """
import torch
def build():
    net = torch.nn.Linear(8, 8)
    torch.nn.utils.weight_norm(net)
    net(torch.ones(1, 8))
    return net
def inputs(): return torch.ones(4, 8)
"""
    job = Job(
        kind="call",
        condition=Condition(model="normed.py:build", threads=1),
        arms=(DENSE, Arm(stack=(Step(method="normed_arms.py:same"),))),
        pairs=(Pair(0, 1),),
        protocol=Protocol(pairs_min=3, pairs_max=6, budget_s=0.1),
        files={"normed.py": model, "normed_arms.py": "def same(model): return model\n"},
    )
    workload = OwnWorkload(job)
    fresh = [workload.fresh(job.condition) for _ in range(2)]
    first, second = (one.weight_g for one in fresh)
    assert first is not second
    assert torch.equal(first, second)
    assert torch.equal(fresh[0].weight_v, workload.model.weight_v)
