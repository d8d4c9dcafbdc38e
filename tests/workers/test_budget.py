"""Budgets: the parameter that keeps a method within a number of MACs, found without torch; and what
a budget cannot reach.
"""

import subprocess
import sys
import time

import pytest
from pydantic import ValidationError

from sweeps.geometry.vit_catalogue import networks
from sweeps.model.job import Arm, Step
from workers import methods
from workers.arms.budget import FINENESS, cost, solve
from workers.errors import Unsupported
from workers.token_reduction import Budget

FOUND = methods.of_modality("vision")
DEIT_S = networks()["deit_small_patch16_224"]
SOLVING = sorted(name for name, method in FOUND.items() if getattr(method, "SOLVES", None))
DENSE = DEIT_S.macs(224, DEIT_S.dense_tokens(224))


def arm(name, **params):
    """An arm of one step, its parameters spelled out as planning does."""
    return Arm(stack=(step(name, **params),))


def step(name, **params):
    method = FOUND[name]
    return Step(
        method=name, params=method.Params(**params).model_dump(mode="json"), version=method.VERSION
    )


@pytest.mark.parametrize("name", SOLVING)
@pytest.mark.parametrize("ratio", [0.5, 0.6, 0.75, 0.95])
def test_every_method_keeps_within_its_budget(name, ratio):
    """What is found costs no more than the budget and at most 2 % of the dense model less; figures
    and parameter are recorded.
    """
    solved = solve(arm(name, budget={"gmacs_ratio": ratio}), DEIT_S, 224)
    reached = cost(solved.arm, DEIT_S, 224)
    assert ratio * DENSE - 0.02 * DENSE < reached <= round(ratio * DENSE)
    assert solved.values["gmacs"] == reached / 1e9
    assert solved.values["gmacs_budget"] == pytest.approx(ratio * DENSE / 1e9)
    assert FOUND[name].SOLVES in solved.values
    assert solved.arm.stack[0].params["budget"] is None


@pytest.mark.parametrize("name", SOLVING)
def test_the_whole_of_the_dense_cost_is_the_neutral_setting(name):
    """A budget of all that the model costs changes nothing."""
    solved = solve(arm(name, budget={"gmacs_ratio": 1}), DEIT_S, 224)
    assert methods.promised_tokens(solved.arm, DEIT_S, 224) == DEIT_S.dense_tokens(224)


@pytest.mark.parametrize("gmacs", [1.6, 2.2, 2.7, 4.0, 4.59])
def test_no_keep_rate_comes_closer(gmacs):
    """Against brute force over every count that a first stage can keep: none costs more without
    costing too much.
    """
    found = cost(solve(arm("topk", budget={"gmacs": gmacs}), DEIT_S, 224).arm, DEIT_S, 224)
    rates = [number / 5000 for number in range(1, 5001)]
    within = [
        spent
        for rate in rates
        if (spent := cost(arm("topk", keep_rate=rate), DEIT_S, 224)) <= gmacs * 1e9
    ]
    assert found >= max(within)
    assert found <= gmacs * 1e9


@pytest.mark.parametrize("gmacs", [2.3, 2.7, 4.3])
def test_no_r_comes_closer(gmacs):
    """ToMe's r is refined block by block: at least as close as any single r, with blocks that
    differ by at most one token.
    """
    solved = solve(arm("tome", budget={"gmacs": gmacs}), DEIT_S, 224)
    found = cost(solved.arm, DEIT_S, 224)
    within = [
        spent for r in range(99) if (spent := cost(arm("tome", r=r), DEIT_S, 224)) <= gmacs * 1e9
    ]
    assert max(within) <= found <= gmacs * 1e9
    r = solved.arm.stack[0].params["r"]
    assert isinstance(r, int) or (max(r) - min(r) == 1 and r == sorted(r))


def test_figures_at_2_7_gmacs():
    """The reports' budget on DeiT-S: ToMe at r=13 with three blocks at 14, TopK at keep rate 0.623
    (124, 78 and 49 tokens).
    """
    tome = solve(arm("tome", budget={"gmacs": 2.7}), DEIT_S, 224)
    assert tome.values == {
        "r": 13,
        "r_plus_1_blocks": 3,
        "gmacs": pytest.approx(2.697, abs=5e-4),
        "gmacs_budget": 2.7,
    }
    topk = solve(arm("topk", budget={"gmacs": 2.7}), DEIT_S, 224)
    assert topk.values["keep_rate"] == pytest.approx(0.6234, abs=1e-4)
    assert sorted({block.mlp for block in methods.promised_tokens(topk.arm, DEIT_S, 224)}) == [
        49,
        78,
        124,
        197,
    ]


def test_a_ramp_stays_a_ramp():
    """With `inflect` a single r is found, because a ramp is made of one."""
    solved = solve(arm("tome", budget={"gmacs": 2.7}, inflect=-0.5), DEIT_S, 224)
    assert isinstance(solved.arm.stack[0].params["r"], int)
    assert cost(solved.arm, DEIT_S, 224) <= 2.7e9


def test_the_image_size_counts():
    """The same share at another size is another number of GMACs and another r; a share is of the
    model at that size.
    """
    small, large = (
        solve(arm("tome", budget={"gmacs_ratio": 0.6}), DEIT_S, size) for size in (224, 448)
    )
    assert large.values["gmacs"] > 4 * small.values["gmacs"]
    assert large.values["r"] > small.values["r"]


@pytest.mark.parametrize("name", ["topk", "tome"])
@pytest.mark.parametrize("gmacs", [0.3, 4.6, 1000])
def test_out_of_reach(name, gmacs):
    """Too little for the cheapest setting, or more than the unmodified model: refused, with the
    range that can be had.
    """
    with pytest.raises(
        Unsupported,
        match=(
            rf"{name}: a budget of .* GMACs is out of reach at 224 pixels: .* between .* and 4.599"
            r" GMACs"
        ),
    ):
        solve(arm(name, budget={"gmacs": gmacs}), DEIT_S, 224)


def test_the_whole_stack_counts():
    """A step beside it changes nothing about the budget, and only one step can have one."""
    beside = Arm(stack=(step("slowed"), step("topk", budget={"gmacs": 2.7})))
    assert (
        solve(beside, DEIT_S, 224).values
        == solve(arm("topk", budget={"gmacs": 2.7}), DEIT_S, 224).values
    )
    with pytest.raises(Unsupported, match="topk and tome both change the number of tokens"):
        solve(
            Arm(stack=(step("topk", budget={"gmacs": 2}), step("tome", budget={"gmacs": 2}))),
            DEIT_S,
            224,
        )
    with pytest.raises(Unsupported, match="both change the number of tokens"):
        solve(Arm(stack=(step("topk", budget={"gmacs": 2}), step("tome", r=2))), DEIT_S, 224)


def test_what_needs_no_solving_is_left_alone():
    """An arm without a budget is returned as it is."""
    for each in (Arm(), arm("topk", keep_rate=0.5), arm("slowed")):
        assert solve(each, DEIT_S, 224) == (each, {})


def test_identity_is_what_was_requested():
    """A budget is part of the arm's identity, one that is not given is not."""
    requested = {arm("topk", budget={"gmacs": budget}).arm_id for budget in (2.7, 2.70, 2.6)}
    assert len(requested) == 2
    plain = Arm(
        stack=(
            Step(
                method="topk",
                params={"keep_rate": 0.5, "layers": [3, 6, 9], "implementation": "torch"},
            ),
        )
    )
    assert arm("topk", keep_rate=0.5).arm_id == plain.arm_id


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
    """Both, neither, impossible figures, or tokens before the budget is solved: each has its own
    message.
    """
    with pytest.raises((ValidationError, ValueError), match=message):
        make()


@pytest.mark.alone
def test_solving_takes_milliseconds_and_no_torch():
    """Every method's budget is solved in less than 50 ms at 784 tokens, in a process that has not
    imported torch.
    """
    program = (
        "import sys, time\nfrom sweeps.geometry.vit_catalogue import networks\nfrom"
        " sweeps.model.job import Arm, Step\nfrom workers.methods import of_modality\nfrom"
        " workers.arms.budget import solve\nnetwork, found, slowest ="
        " networks()['deit_base_patch16_224'], of_modality('vision'), 0.0\nfor name in"
        f" {SOLVING!r}:\n    params = found[name].Params(budget={{'gmacs_ratio':"
        " 0.7}).model_dump(mode='json')\n    arm = Arm(stack=(Step(method=name, params=params,"
        " version=found[name].VERSION),))\n    times = []\n    for _ in range(3):\n        start ="
        " time.perf_counter(); solve(arm, network, 448); times.append(time.perf_counter() -"
        " start)\n    slowest = max(slowest, min(times))\nprint(slowest, sorted({'torch',"
        " 'timm'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    seconds, modules = done.stdout.split(maxsplit=1)
    assert modules.strip() == "[]"
    assert float(seconds) < 0.05


def test_fineness_is_finer_than_any_image():
    """A step of the keep rate is less than one token of the largest image that a ViT of patch 16 is
    used with.
    """
    assert FINENESS > (4096 // 16) ** 2


@pytest.mark.alone
def test_planning_a_budget_is_as_quick_as_planning_without():
    """Looking at an arm for refusals does not solve it."""
    start = time.perf_counter()
    for _ in range(100):
        assert methods.stack_refusal(arm("tome", budget={"gmacs": 2.7}), DEIT_S) is None
    assert time.perf_counter() - start < 1
