"""Budgets: the parameter that keeps a method within a number of MACs, found without torch; and what
a budget cannot reach.
"""

import subprocess
import sys

import pytest
from pydantic import ValidationError

from sweeps.geometry.vit_catalogue import networks
from sweeps.model.job import Arm, Step
from tests.workers.vision_jobs import planned
from workers import methods
from workers.arms.budget import cost, solve
from workers.errors import Unsupported
from workers.token_reduction import Budget

FOUND = methods.of_modality("vision")
DEIT_S = networks()["deit_small_patch16_224"]
SOLVING = sorted(name for name, method in FOUND.items() if getattr(method, "SOLVES", None))
DENSE = DEIT_S.macs(224, DEIT_S.dense_tokens(224))


def step(name, **params):
    return planned(name, **params).stack[0]


@pytest.mark.parametrize("name", SOLVING)
@pytest.mark.parametrize("ratio", [0.5, 0.6, 0.75, 0.95])
def test_every_method_keeps_within_its_budget(name, ratio):
    """At most the budget, at most 2 % of the dense model less, and figures are recorded."""
    solved = solve(planned(name, budget={"gmacs_ratio": ratio}), DEIT_S, 224)
    reached = cost(solved.arm, DEIT_S, 224)
    assert ratio * DENSE - 0.02 * DENSE < reached <= round(ratio * DENSE)
    assert solved.values["gmacs"] == reached / 1e9
    assert solved.values["gmacs_budget"] == pytest.approx(ratio * DENSE / 1e9)
    assert FOUND[name].SOLVES in solved.values
    assert solved.arm.stack[0].params["budget"] is None


@pytest.mark.parametrize("gmacs", [2.3, 2.7, 4.3])
def test_no_r_comes_closer(gmacs):
    """ToMe's refined r is as close as any single r, blocks differing by at most one token."""
    solved = solve(planned("tome", budget={"gmacs": gmacs}), DEIT_S, 224)
    found = cost(solved.arm, DEIT_S, 224)
    within = [
        spent
        for r in range(99)
        if (spent := cost(planned("tome", r=r), DEIT_S, 224)) <= gmacs * 1e9
    ]
    assert max(within) <= found <= gmacs * 1e9
    r = solved.arm.stack[0].params["r"]
    assert isinstance(r, int) or (max(r) - min(r) == 1 and r == sorted(r))


def test_figures_at_2_7_gmacs():
    """DeiT-S at 2.7 GMACs: ToMe r=13 with three blocks at 14, TopK at keep rate 0.623."""
    tome = solve(planned("tome", budget={"gmacs": 2.7}), DEIT_S, 224)
    assert tome.values == {
        "r": 13,
        "r_plus_1_blocks": 3,
        "gmacs": pytest.approx(2.697, abs=5e-4),
        "gmacs_budget": 2.7,
    }
    topk = solve(planned("topk", budget={"gmacs": 2.7}), DEIT_S, 224)
    assert topk.values["keep_rate"] == pytest.approx(0.6234, abs=1e-4)
    assert sorted({block.mlp for block in methods.promised_tokens(topk.arm, DEIT_S, 224)}) == [
        49,
        78,
        124,
        197,
    ]


@pytest.mark.parametrize("name", ["topk", "tome"])
@pytest.mark.parametrize("gmacs", [0.3, 4.6, 1000])
def test_out_of_reach(name, gmacs):
    """Too little or more than the unmodified model is refused with the range to be had."""
    with pytest.raises(
        Unsupported,
        match=(
            rf"{name}: a budget of .* GMACs is out of reach at 224 pixels: .* between .* and 4.599"
            r" GMACs"
        ),
    ):
        solve(planned(name, budget={"gmacs": gmacs}), DEIT_S, 224)


def test_the_whole_stack_counts():
    """A step beside it changes nothing about the budget, and only one step can have one."""
    beside = Arm(stack=(step("slowed"), step("topk", budget={"gmacs": 2.7})))
    assert (
        solve(beside, DEIT_S, 224).values
        == solve(planned("topk", budget={"gmacs": 2.7}), DEIT_S, 224).values
    )
    with pytest.raises(Unsupported, match="topk and tome both change the number of tokens"):
        solve(
            Arm(stack=(step("topk", budget={"gmacs": 2}), step("tome", budget={"gmacs": 2}))),
            DEIT_S,
            224,
        )
    with pytest.raises(Unsupported, match="both change the number of tokens"):
        solve(Arm(stack=(step("topk", budget={"gmacs": 2}), step("tome", r=2))), DEIT_S, 224)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (Budget, "give either gmacs or gmacs_ratio"),
        (lambda: Budget(gmacs=1, gmacs_ratio=0.5), "not both"),
        (lambda: Budget(gmacs=0), "greater than 0"),
        (lambda: Budget(gmacs_ratio=1.2), "less than or equal to 1"),
        (FOUND["topk"].Params, "give either keep_rate or budget"),
        (
            lambda: FOUND["topk"].Params(keep_rate=0.5, budget={"gmacs": 2}),
            "not both keep_rate and budget",
        ),
        (lambda: FOUND["tome"].Params(r=3, budget={"gmacs": 2}), "not both r and budget"),
        (lambda: FOUND["topk"].Params(budget={"gmacs": 2}).left(12, 196), "solved first"),
        (lambda: FOUND["tome"].Params(budget={"gmacs": 2}).left(12, 196), "solved first"),
    ],
)
def test_what_cannot_be_requested(make, message):
    """Both, neither, impossible figures, tokens before solving: each has its message."""
    with pytest.raises((ValidationError, ValueError), match=message):
        make()


def test_solving_needs_no_torch():
    """Every method's budget is solved in a process that has not imported torch."""
    program = f"""
import sys
from sweeps.geometry.vit_catalogue import networks
from sweeps.model.job import Arm, Step
from workers.arms.budget import solve
from workers.methods import of_modality
for name in {SOLVING!r}:
    method = of_modality("vision")[name]
    params = method.Params(budget={{"gmacs_ratio": 0.7}}).model_dump(mode="json")
    arm = Arm(stack=(Step(method=name, params=params, version=method.VERSION),))
    solve(arm, networks()["deit_base_patch16_224"], 448)
assert not {{"torch", "timm"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_ramp_stays_a_ramp():
    """With `inflect` a single r is found, because a ramp is made of one."""
    solved = solve(planned("tome", budget={"gmacs": 2.7}, inflect=-0.5), DEIT_S, 224)
    assert isinstance(solved.arm.stack[0].params["r"], int)
    assert cost(solved.arm, DEIT_S, 224) <= 2.7e9


@pytest.mark.parametrize(
    ("inflect", "counts"),
    [(None, (8, 8, 8, 8, 8)), (-0.5, (12, 10, 8, 6, 4)), (1.0, (0, 4, 8, 12, 16))],
)
def test_a_ramp_merges_as_many_as_a_constant(inflect, counts):
    """It is linear around `r`; a list ends where it does."""
    params = FOUND["tome"].Params(r=8, inflect=inflect)
    assert params.ramp(5) == counts
    assert FOUND["tome"].Params(r=(3, 2)).ramp(4) == (3, 2, 0, 0)


def test_identity_is_what_was_requested():
    """A budget is part of the arm's identity, one that is not given is not."""
    requested = {planned("topk", budget={"gmacs": budget}).arm_id for budget in (2.7, 2.70, 2.6)}
    assert len(requested) == 2
    params = {"keep_rate": 0.5, "layers": [3, 6, 9], "implementation": "torch"}
    plain = Arm(stack=(Step(method="topk", params=params),))
    assert planned("topk", keep_rate=0.5).arm_id == plain.arm_id
