"""Labels of arms: what differs from the defaults, in the words of a sweep file."""

import pytest

from sweeps.model.condition import Overrides
from sweeps.model.job import DENSE, Arm, Step
from workers.methods.arm_labels import arm_label, params_label


@pytest.mark.parametrize(
    ("method", "params", "without", "label"),
    [
        ("dense", None, "", "dense"),
        ("dense", '{"replicate":1}', "", "dense replicate=1"),
        ("tome", '{"prop_attn":true,"r":13}', "", "tome r=13"),
        ("topk", '{"keep_rate":0.7,"layers":[2,5]}', "keep_rate", "topk layers=[2,5]"),
        ("tome", '{"budget":{"gmacs_ratio":0.7}}', "", 'tome budget={"gmacs_ratio":0.7}'),
        ("tome", '{"budget":{"gmacs_ratio":0.7}}', "budget.gmacs_ratio", "tome"),
        ("adaptivocab", '{"mode":"append","ngrams":500}', "", "adaptivocab ngrams=500"),
        ("removed", '{"a":1,"b":null}', "", "removed a=1"),
        (
            "a+b",
            '[{"method":"a","k":500},{"method":"b","p":0.5},{"kv_cache":"virtual"}]',
            "",
            'a k=500 + b p=0.5 [kv_cache="virtual"]',
        ),
        ("a+b", '[{"method":"a","p":1},{"method":"b","p":0.5}]', "1.p", "a p=1 + b"),
    ],
    ids=[
        "dense",
        "replicate",
        "defaults",
        "varied",
        "budget",
        "varied budget",
        "amount by default",
        "not installed",
        "stack",
        "varied in a stack",
    ],
)
def test_labels(method: str, params: str | None, without: str, label: str) -> None:
    """A label has amounts and parameters that differ from defaults, less the one left out."""
    assert params_label(method, params, without=without) == label


def test_label_of_a_jobs_arm() -> None:
    """Overrides of the condition and the replicate number follow in brackets."""
    arm = Arm(
        stack=(Step(method="tome", params={"r": 13, "prop_attn": True}),),
        overrides=Overrides(dtype="float16"),
        replicate=2,
    )
    assert arm_label(arm) == 'tome r=13 [dtype="float16" replicate=2]'
    assert arm_label(DENSE) == "dense"
