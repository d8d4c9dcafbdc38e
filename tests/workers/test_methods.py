"""What every method must keep to, tested for all method files on several makes of model, and how
methods are found.
"""

import pytest
import torch

from sweeps.geometry.vit_catalogue import networks
from sweeps.model.condition import Condition, Overrides
from sweeps.model.job import DENSE, Arm, Step
from tests.workers.tiny_vits import MAKES, SIZE, calm, images, small, small_network
from tests.workers.vision_jobs import planned
from workers import methods
from workers.arms.vision import build_vision
from workers.methods import InvalidMethod, conformance
from workers.models.vision import VisionModel

FOUND = methods.of_modality("vision")
CASES = [
    pytest.param(method, params, make, id=f"{name}-{index}-{make}")
    for name, method in FOUND.items()
    for index, params in enumerate(method.EXAMPLES)
    for make in MAKES
    if (index == 0 or make == "plain") and method.refuses(params, small_network(make)) is None
]
"""Every example on the plain model, and one on each of the others."""
ONE_EACH = [pytest.param(method, method.EXAMPLES[0], id=name) for name, method in FOUND.items()]
DEIT_S, DEIT_B, DEIT_TI = (
    networks()[f"deit_{size}_patch16_224"] for size in ("small", "base", "tiny")
)

calm = pytest.fixture(autouse=True)(calm)


def case_of(method, params, make):
    """A method on a make of model."""
    return conformance.Case(method, params, small(make), small_network(make))


@pytest.mark.parametrize(("method", "params", "make"), CASES)
@pytest.mark.parametrize("check", conformance.EACH, ids=lambda check: check.__name__)
def test_every_example(check, method, params, make):
    """Tokens and MACs are those promised, and each image is for itself, on every make of model."""
    check(case_of(method, params, make))


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("name", FOUND)
def test_exact_at_its_neutral_setting(name, make):
    """Where nothing is to be done the method changes nothing."""
    neutral = case_of(FOUND[name], FOUND[name].NEUTRAL, make)
    if neutral.method.refuses(neutral.params, neutral.network) is None:
        conformance.check_neutral(neutral)


@pytest.mark.parametrize(("method", "params"), ONE_EACH)
def test_prefix_tokens_stay_first(method, params):
    """Each prefix token leaves every block nearest to itself in the dense model."""
    conformance.check_prefix(case_of(method, params, "registers"))


@pytest.mark.parametrize(("method", "params"), ONE_EACH)
def test_two_forwards_at_once(method, params):
    """One that starts in the middle of another disturbs neither."""
    model = method.apply(small("plain"), params)
    alone, other = model(images(1)), model(images(2))
    inner = []

    def interrupt(*_):
        hook.remove()
        inner.append(model(images(2)))

    hook = conformance.blocks_of(model)[2].register_forward_pre_hook(interrupt)
    assert torch.equal(model(images(1)), alone)
    assert torch.equal(inner[0], other)


@pytest.mark.parametrize(("method", "params"), ONE_EACH)
def test_traces_as_one_graph(method, params):
    """One graph for torch.compile and the same answer, or refused with the reason."""
    conformance.check_graph(case_of(method, params, "registers"))
    if (reason := params.eager_only(Condition(model="", runtime="compile"))) is not None:
        refused = Arm(
            stack=(Step(method=method.__name__.split(".")[-1]),),
            overrides=Overrides(runtime="compile"),
        )
        with pytest.raises(Exception, match=reason):
            build_vision(
                VisionModel(small("registers"), small_network("registers")),
                Condition(model="registers", image_size=SIZE),
                refused,
            )


def test_topk_keeps_a_share_at_each_stage():
    """0.1 at blocks 3, 6, 9 of DeiT-B leaves 20, 2, 1 patch tokens and published MACs."""
    stages = planned("topk", keep_rate=0.1)
    assert [block.mlp for block in methods.promised_tokens(stages, DEIT_B, 224)] == [197] * 3 + [
        21
    ] * 3 + [3] * 3 + [2] * 3
    assert [block.mlp for block in methods.promised_tokens(stages, DEIT_B, 448)] == [785] * 3 + [
        80
    ] * 3 + [9] * 3 + [2] * 3
    gmacs = [
        [DEIT_B.macs(size, methods.promised_tokens(own, DEIT_B, size)) / 1e9 for size in (224, 448)]
        for own in (stages, DENSE)
    ]
    assert [round(one, 3) for one in gmacs[0]] == [5.552, 24.727]
    assert [round(one, 2) for one in gmacs[1]] == [17.56, 78.50]
    assert methods.method_macs(stages, DEIT_B, 224) == (197 + 21 + 3) * 768


@pytest.mark.parametrize(
    ("keep_rate", "left"),
    [(0.9, [176, 158, 142]), (0.7, [137, 96, 67]), (0.5, [98, 49, 24]), (0.25, [49, 12, 3])],
)
@pytest.mark.parametrize("name", ["topk", "random", "truncate", "dpcknn"])
def test_counts_of_the_paper(name, keep_rate, left):
    """`counts: image` keeps of 196 tokens what the code of topk's `PAPER` keeps."""
    params = FOUND[name].Params(keep_rate=keep_rate, counts="image")
    assert [block.mlp - 1 for block in FOUND[name].tokens(params, DEIT_S, 224)] == [196] * 3 + [
        n for n in left for _ in range(3)
    ]


def test_keep_rate_rounds_up_as_written():
    """Rounded up as a decimal number: 0.55 of 100 tokens is 55."""
    assert dict(FOUND["topk"].Params(keep_rate=0.55, layers=(1, 0)).left(12, 100)) == {0: 55, 1: 31}


def test_tome_merges_at_most_half():
    """r=13 on DeiT-S takes 13 a block and the published MACs; r=100 half each time."""
    merging = planned("tome", r=13)
    assert [block.mlp for block in methods.promised_tokens(merging, DEIT_S, 224)] == [
        197 - 13 * block for block in range(1, 13)
    ]
    assert round(DEIT_S.macs(224, methods.promised_tokens(merging, DEIT_S, 224)) / 1e9, 3) == 2.703
    assert round(DEIT_S.macs(224, DEIT_S.dense_tokens(224)) / 1e9, 3) == 4.599
    capped = methods.promised_tokens(planned("tome", r=100), DEIT_S, 224)
    assert [block.mlp for block in capped] == [99, 50, 26, 14, 8, 5, 3, 2, 2, 2, 2, 2]
    assert [block.mlp for block in methods.promised_tokens(planned("tome", r=16), DEIT_S, 224)][
        -2:
    ] == [21, 11]


def test_refusals():
    """A method names why it cannot run; two methods that remove tokens are refused too."""
    without_class = networks()["vit_base_patch16_siglip_224"]
    assert "no class token" in methods.stack_refusal(planned("topk", keep_rate=0.5), without_class)
    assert methods.stack_refusal(planned("random", keep_rate=0.5), without_class) is None
    assert "block 12, but deit_tiny_patch16_224 has the blocks 0 to 11" in methods.stack_refusal(
        planned("random", keep_rate=0.5, layers=(12,)), DEIT_TI
    )
    assert "r lists 13 blocks" in methods.stack_refusal(planned("tome", r=(1,) * 13), DEIT_TI)
    both = Arm(stack=planned("topk", keep_rate=0.5).stack + planned("tome", r=2).stack)
    assert (
        methods.stack_refusal(both, DEIT_TI)
        == "topk and tome both change the number of tokens; only one method of a stack can: write one"
        " file whose reduction does both (docs/methods.md)"
    )
    slowed = Arm(stack=planned("tome", r=2).stack + planned("slowed").stack)
    assert methods.stack_refusal(slowed, DEIT_TI) is None
    assert methods.promised_tokens(slowed, DEIT_TI, 224) == methods.promised_tokens(
        planned("tome", r=2), DEIT_TI, 224
    )


def test_unknown_names_and_versions():
    """Neither an unknown method nor another version is ever run as something else."""
    with pytest.raises(
        InvalidMethod, match="no method 'dyvit' for vision models; there are diffrate, dpcknn, "
    ):
        methods.promised_tokens(Arm(stack=(Step(method="dyvit"),)), DEIT_TI, 224)
    with pytest.raises(InvalidMethod, match="version 99 of 'topk'"):
        methods.promised_tokens(
            Arm(stack=(Step(method="topk", params={"keep_rate": 0.5}, version=99),)), DEIT_TI, 224
        )


OWN = '''"""Keeps everything."""
from sweeps.model.method import Params
PAPER = "none"
VERSION = 3
def tokens(params, network, image_size): return network.dense_tokens(image_size)
def macs(params, network, image_size): return 0
def refuses(params, network): return None
def apply(model, params): return model
'''


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("one", OWN.replace('"""Keeps everything."""', ""), "one.py: has no docstring"),
        ("two", OWN.replace("VERSION = 3", ""), "two.py: lacks VERSION"),
        (
            "three",
            OWN.replace("from sweeps.model.method import Params", "class Params: pass"),
            "three.py: Params must be a subclass",
        ),
        ("four", OWN.replace("def refuses", "def refuse"), "four.py: lacks refuses"),
        ("five", "import nothing_of_this_name", "five.py: cannot be imported: ModuleNotFoundError"),
        ("seven", "def broken(:", "seven.py: cannot be imported: SyntaxError"),
        ("topk", OWN, "topk.py: there is a method 'topk' already"),
    ],
)
def test_a_method_that_lacks_a_part(tmp_path, monkeypatch, name, text, message):
    """A file that cannot be used is left out with one line of reason; the others work."""
    (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "works.py").write_text(OWN)
    monkeypatch.setenv("BREAKEVEN_METHODS", str(tmp_path))
    assert set(methods.of_modality("vision")) == {"works", *FOUND}
    assert message in methods.left_out()[name]
    assert "\n" not in methods.left_out()[name]


def test_a_folder_that_is_not_there(tmp_path, monkeypatch):
    """A folder that does not exist is named."""
    monkeypatch.setenv("BREAKEVEN_METHODS", str(tmp_path / "gone"))
    assert set(methods.of_modality("vision")) == set(FOUND)
    assert [str(tmp_path / "gone") in line for line in methods.left_out().values()] == [True]
