"""Bad input and failures, from the sweep file to the failure row: each has its own words, and the
sweep goes on.
"""

import pytest
import timm
from safetensors.torch import save_file

from sweeps.geometry.vit_catalogue import networks
from sweeps.language.expand import expand_file
from sweeps.language.yaml_reader import SweepError
from tests.workers.tiny_vits import calm
from workers import methods
from workers.run import run

calm = pytest.fixture(autouse=True)(calm)
TEXT = """schema: 1
name: trial
defaults: {{model: {model}, image_size: 64, device: cpu, threads: 1{extra}}}
methods:
  - {arm}
  - {{method: topk, keep_rate: 0.5, layers: {{list: [1]}}}}
jobs: {{latency: {{pairs: {{min: 6, max: 6}}, budget: 1s}}}}
"""


def expanded(arm, model="test_vit", extra=""):
    text = TEXT.format(arm=arm, model=model, extra=extra)
    return expand_file(
        "trial.yaml",
        text=text,
        methods=methods.of_modality("vision"),
        networks=networks(),
        auto="cpu",
    )


@pytest.mark.parametrize(
    ("arm", "message"),
    [
        (
            "{method: topk, keep_rate: 1.2}",
            r"trial.yaml:5: methods\[0\].keep_rate: .*less than or equal to 1, not 1.2",
        ),
        ("{method: topk}", r"methods\[0\]: give either keep_rate or budget"),
        ("{method: tome, r: 3, budget: {gmacs: 1}}", "not both r and budget"),
        ("{method: topk, budget: {gmac: 1}}", "unknown key 'gmac'; did you mean 'gmacs'"),
        ("{method: topk, budget: 2.7}", r"trial.yaml:5: methods\[0\].budget: .*\{gmacs: 2.7\}"),
        (
            "{method: topk, budget: 0.8}",
            r"trial.yaml:5: methods\[0\].budget: .*\{gmacs_ratio: 0.8\}",
        ),
        ("{method: tome, budget: [0.5, 0.8]}", r"methods\[0\].budget\[0\]: .*\{gmacs_ratio: 0.5\}"),
        (
            "{method: topk, budget: {gmacs_ratio: 1.5}}",
            r"methods\[0\].budget.gmacs_ratio: .*less than or equal to 1",
        ),
        (
            "{method: topk, budget: {gmacs: 1, gmacs_ratio: 0.5}}",
            "give either gmacs or gmacs_ratio, not both",
        ),
        ("{method: topk, keep_rate: 0.5, align: 0}", r"methods\[0\].align"),
        (
            "{method: topk, keep_rate: 0.5, layers: {list: [99]}}",
            "cannot run on any model of this sweep: layers name block 99, but test_vit has",
        ),
        ("{method: topk, keep_rate: 0.5, layers: {list: [-1]}}", "counted from 0"),
    ],
)
def test_usage_errors(arm, message):
    """What no model could run is an error of the file: line, key and what would be right."""
    with pytest.raises(SweepError, match=message):
        expanded(arm)


@pytest.mark.parametrize(
    ("arm", "reason", "message"),
    [
        (
            "{method: topk, layers: {list: [1]}, budget: {gmacs: 0.000001}}",
            "unsupported",
            "topk: a budget of 1e-06 GMACs is out of reach at 64 pixels",
        ),
        (
            "{method: tome, budget: {gmacs: 50}}",
            "unsupported",
            "tome: a budget of 50 GMACs is out of reach at 64 pixels",
        ),
        ("{method: dense, runtime: cudagraph}", "unsupported", "needs a CUDA device"),
        ("{method: dense, dtype: float16}", "not_a_number", "logits are not finite"),
    ],
)
def test_failure_rows(tmp_path, arm, reason, message):
    """What only this point cannot run is that arm's failure; the arm beside it is measured."""
    model = timm.create_model("test_vit", img_size=64)
    weights = {name: value.detach().clone() for name, value in model.state_dict().items()}
    weights["head.bias"] += 1e5  # finite in float32, beyond what float16 can hold
    save_file(weights, tmp_path / "large.safetensors")
    job = expanded(arm, extra=f", checkpoint: '{tmp_path / 'large.safetensors'}'").jobs[0]
    outcome = run(job, pass_seconds=0.05)
    assert [(row.arm, row.reason) for row in outcome.failures] == [(1, reason)]
    assert message in outcome.failures[0].message
    assert outcome.samples is not None
    assert outcome.samples.arms == (0, 2, 0, 2)


def test_what_was_solved_is_recorded():
    """A solved budget, a capped r and aligned tokens stand beside what was promised."""
    arms = (
        "{method: topk, layers: {list: [1]}, budget: {gmacs_ratio: 0.8}}",
        "{method: tome, r: 1000}",
        "{method: topk, keep_rate: 0.3, layers: {list: [1]}, align: 8}",
    )
    outcome = run(expanded("\n  - ".join(arms)).jobs[0], pass_seconds=0.05)
    assert not outcome.failures
    dense, budgeted, *others, _ = outcome.arms
    assert [set(arm.solved) for arm in (dense, budgeted, *others)] == [
        set(),
        {"keep_rate", "gmacs", "gmacs_budget"},
        {"r_capped_blocks"},
        {"align_extra_tokens"},
    ]
    assert not any("token_trace_mismatch" in arm.flags for arm in outcome.arms)
    spent = budgeted.gmacs + budgeted.gmacs_overhead
    assert spent == pytest.approx(budgeted.solved["gmacs"])
    assert 0.7 * dense.gmacs < spent <= 0.8 * dense.gmacs
