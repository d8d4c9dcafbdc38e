"""larosa, teal, topk_activation and wina: exact at their neutral setting, as sparse as promised, and
counters that show their path.
"""

import dataclasses
import json
import re

import pytest
import torch
from transformers import DynamicCache

from tests.workers.tiny_llms import (
    ARCHITECTURES,
    CONFIGS,
    UNROTATABLE,
    VOCABULARY,
    FoldedBytes,
    tiny_llm,
)
from workers.activation_sparsity import inputs, kept_of_each
from workers.errors import Unsupported
from workers.methods.language import larosa, teal, topk_activation, wina
from workers.models.architectures import layers, matrix_and_bias, module_names, with_single_experts
from workers.models.share_weights import clone_shared

METHODS = (larosa, teal, topk_activation, wina)
PAIRS = [
    pytest.param(method, name, id=f"{method.__name__.rpartition('.')[2]}-{name}")
    for method in METHODS
    for name in (CONFIGS if method is topk_activation else ("llama", "phi", "gpt2", "qwen3_moe"))
]
"""Every architecture with one method, the others on one for each kind of layer."""
IDS = torch.randint(VOCABULARY, (1, 12), generator=torch.Generator().manual_seed(0))
SMALL = {"data": "topics", "calibration_tokens": 1024}
EXPERTS = ("qwen3_moe", "mixtral", "granitemoe")
MATRICES = dict.fromkeys(CONFIGS, 7) | {"phi": 6, "gpt2": 4, "starcoder2": 6, "phi3": 4}
"""Of a layer that one token is multiplied with."""
MATRICES |= dict.fromkeys(EXPERTS, 4 + 2 * 2)


@pytest.fixture(autouse=True, scope="module")
def _cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BREAKEVEN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def speaker_of(architecture, dtype=torch.float32, **more):
    return dataclasses.replace(tiny_llm(architecture, dtype, **more), tokenizer=FoldedBytes())


def params_of(method, **given):
    return method.Params(**given, **({} if method in (topk_activation, wina) else SMALL))


def prepared(lm):
    lm.reset_counters()
    return lm


def scored(lm, ids=IDS):
    with torch.inference_mode():
        return prepared(lm).scored_logits(ids, 0)


def decoded(lm, ids=IDS, prompt=1):
    """Logits of a prompt and of the tokens after it, one by one."""
    with torch.inference_mode():
        cache = DynamicCache()
        found = [prepared(lm).model(ids[:, :prompt], cache=cache).logits]
        found += [
            lm.model(ids[:, place : place + 1], cache=cache).logits
            for place in range(prompt, ids.shape[1])
        ]
    return torch.cat(found, 1)


def counted(lm):
    return lm.counters[-1].metrics()


@pytest.mark.parametrize(("method", "architecture"), PAIRS)
def test_neutral_is_exact_and_runs_on_the_kernels(method, architecture):
    """At sparsity 0 the dense model's logits to 1e-5, every matrix by its kernel."""
    given = speaker_of(architecture)
    wanted = scored(given)
    arm = method.apply(given, params_of(method, sparsity=0))
    near = 1e-5 * wanted.abs().max()
    assert (scored(arm) - wanted).abs().max() < near
    assert (decoded(arm) - wanted).abs().max() < near
    proof = counted(arm)
    assert proof["kernel_calls"] == IDS.shape[1] * given.network.layers * MATRICES[architecture]
    assert proof["fallback_calls"] == proof["masked_calls"] == proof["achieved_sparsity"] == 0
    assert torch.equal(scored(given), wanted)


@pytest.mark.parametrize(("method", "architecture"), PAIRS)
def test_decoding_and_scoring_agree(method, architecture):
    """Kernels by token and masks at once leave the same inputs out."""
    arm = method.apply(speaker_of(architecture), params_of(method, sparsity=0.4))
    one_by_one = decoded(arm)
    by_kernels = counted(arm)
    assert (scored(arm) - one_by_one).abs().max() < 1e-4
    assert (
        by_kernels["masked_calls"]
        == by_kernels["fallback_calls"]
        == counted(arm)["kernel_calls"]
        == 0
    )
    assert counted(arm)["achieved_sparsity"] == pytest.approx(by_kernels["achieved_sparsity"])
    assert (one_by_one - scored(speaker_of(architecture))).abs().max() > 0.01


@pytest.mark.parametrize(
    ("method", "architecture", "allocation"),
    [
        (*pair.values, allocation)
        for pair in PAIRS
        if teal not in pair.values
        for allocation in (None, (0.8, 1.2, 0.8, 1.2), (1, 0.5, 1, 1.5))
        if allocation is None or {"gpt2", "qwen3_moe"} & {*pair.values}
    ],
)
def test_promised_and_achieved_sparsity_are_equal(method, architecture, allocation):
    """What `skipped` promises is what the kernels left out, near what was requested."""
    given = speaker_of(architecture)
    options = {"rotation": "random"} if method is larosa else {}
    params = params_of(method, sparsity=0.4, allocation=allocation, **options)
    arm = method.apply(given, params)
    decoded(arm)
    network = given.network
    matrices = sum(each.width * each.outputs for each in inputs(network))
    promised = method.skipped(params, network, 10) / (10 * network.layers * matrices)
    assert counted(arm)["achieved_sparsity"] == pytest.approx(promised, abs=1e-12)
    assert promised == pytest.approx(0.4, abs=0.01)


@pytest.mark.parametrize("kernel", ["auto", "embedding_bag"])
@pytest.mark.parametrize(
    ("architecture", "weights"),
    [("qwen2", "all"), ("starcoder2", "all"), ("mixtral", "all"), ("qwen2", "code")],
)
def test_wina_is_its_definition(architecture, weights, kernel):
    """By a plain loop: |x_i| times the norm of all weights that multiply it, the largest kept; as
    the authors' code, by keys and gate alone, each by itself, and |x_i| elsewhere.
    """
    given = speaker_of(architecture)
    parts, kept = module_names(given.model), kept_of_each(given.network, (0.4,) * 4)
    plain = with_single_experts(clone_shared(given.model))

    def masked(matrices, count, *, weighted=True):
        squares = sum(matrix_and_bias(matrix)[0].square().sum(1) for matrix in matrices)

        def hook(_module, arguments):
            scores_NI = arguments[0].abs() * (squares.sqrt() if weighted else 1)
            least_N1 = scores_NI.sort(-1, descending=True).values[..., count - 1, None]
            return (arguments[0] * (scores_NI >= least_N1),)

        for matrix in matrices:
            matrix.register_forward_pre_hook(hook)

    for layer in layers(plain, parts):
        for place, names in enumerate(parts.readers):
            matrices = [layer.get_submodule(name) for name in names]
            if weights == "code":
                for name, matrix in zip(names, matrices, strict=True):
                    by_norms = name.rpartition(".")[2] in {"k_proj", "gate_proj"}
                    masked([matrix], kept[place], weighted=by_norms)
                continue
            alone = parts.experts and place > 1  # experts share no input
            for group in [[matrix] for matrix in matrices] if alone else [matrices]:
                masked(group, kept[place])
    with torch.inference_mode():
        wanted = plain(IDS).logits
    arm = wina.apply(given, wina.Params(sparsity=0.4, kernel=kernel, weights=weights))
    assert (scored(arm) - wanted).abs().max() < 1e-4
    assert (decoded(arm) - wanted).abs().max() < 1e-4
    others = [topk_activation.apply(given, topk_activation.Params(sparsity=0.4))]
    if weights == "code":
        others.append(wina.apply(given, wina.Params(sparsity=0.4)))
    assert all((scored(other) - wanted).abs().max() > 0.01 for other in others)


@pytest.mark.parametrize("architecture", ["starcoder2", "phi3"])
def test_wina_by_code_needs_keys_and_gate(architecture):
    """Refused without a gate before a job waits, and where keys are a part of a larger matrix."""
    given, params = speaker_of(architecture), wina.Params(sparsity=0.4, weights="code")
    reason = wina.refuses(params, given.network)
    assert (reason is None) == given.network.gated
    with pytest.raises(Unsupported, match="weights: code"):
        wina.apply(given, params)


@pytest.mark.parametrize("architecture", UNROTATABLE)
def test_what_a_rotation_cannot_pass_is_named(architecture):
    """A norm behind attention or MLP: larosa is refused by name, other methods run."""
    given = speaker_of(architecture)
    reason = r"post_attention_layernorm \(\w+RMSNorm\) changes what attention or MLP add"
    for form in ("absorbed", "online"):
        params = larosa.Params(sparsity=0.5, rotation="random", form=form)
        assert re.search(reason, larosa.refuses(params, given.network))
        with pytest.raises(Unsupported, match=reason):
            larosa.apply(given, params)
    assert topk_activation.refuses(topk_activation.Params(sparsity=0.5), given.network) is None


@pytest.mark.parametrize("architecture", EXPERTS)
def test_experts_know_the_positions_of_their_tokens(architecture):
    """Decoded tokens of several windows are sparse whichever expert reads them."""
    given = speaker_of(architecture)
    ids = torch.randint(VOCABULARY, (3, 10), generator=torch.Generator().manual_seed(5))
    arm = topk_activation.apply(given, topk_activation.Params(sparsity=0.5))
    with torch.inference_mode():
        both = prepared(arm).scored_logits(ids, 6)
        share = counted(arm)["achieved_sparsity"]
        alone = [prepared(arm).scored_logits(row[None], 6) for row in ids]
    assert (both - torch.cat(alone)).abs().max() < 1e-4
    assert (both - scored(given, ids))[:, :6].abs().max() < 1e-4
    assert (both - scored(given, ids))[:, 6:].abs().amax(-1).min() > 1e-3
    assert share == pytest.approx(0.5, abs=0.01)


def test_thresholds_meet_the_share_on_their_text():
    """TEAL leaves out on its calibration text what was requested, in the whole."""
    given = speaker_of("llama")
    from workers.activation_sparsity.calibrate import calibration_windows

    _, parts = calibration_windows(given, "topics", 1024)
    for sparsity in (0.25, 0.5):
        arm = teal.apply(given, params_of(teal, sparsity=sparsity))
        scored(arm, torch.cat([part for part in parts if part.shape[1] == parts[0].shape[1]]))
        # Inputs change with what earlier layers left out.
        assert counted(arm)["achieved_sparsity"] == pytest.approx(sparsity, abs=0.03)


@pytest.mark.parametrize("architecture", [*ARCHITECTURES, "smollm3", "mixtral"])
def test_online_and_absorbed_agree(architecture):
    """Equal losses; online skips nothing, and no kernel runs."""
    given = speaker_of(architecture)
    absorbed = larosa.apply(given, params_of(larosa, sparsity=0.5))
    online = larosa.apply(given, params_of(larosa, sparsity=0.5, form="online"))
    ids = torch.randint(VOCABULARY, (1, 100), generator=torch.Generator().manual_seed(2))
    losses = []
    for arm in (absorbed, online):
        logits = scored(arm, ids)
        losses.append(float(torch.nn.functional.cross_entropy(logits[0, :-1], ids[0, 1:])))
    assert (scored(online, ids) - scored(absorbed, ids)).abs().median() < 1e-4
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
    assert counted(online)["achieved_sparsity"] == pytest.approx(0.5, abs=0.01)
    decoded(online)
    assert counted(online)["kernel_calls"] == 0
    assert larosa.skipped(params_of(larosa, sparsity=0.5, form="online"), given.network, 5) == 0


def test_prompts_are_dense_and_counted():
    """A prompt goes through all rows as counted fallbacks; tokens after it are sparse."""
    given = speaker_of("qwen2")
    arm = topk_activation.apply(given, topk_activation.Params(sparsity=0.5))
    logits = decoded(arm, prompt=8)
    assert (logits[:, :8] - scored(given)[:, :8]).abs().max() < 1e-5
    proof, matrices = counted(arm), given.network.layers * MATRICES["qwen2"]
    assert (proof["fallback_calls"], proof["kernel_calls"]) == (matrices, 4 * matrices)
    assert proof["achieved_sparsity"] == pytest.approx(0.5, abs=0.01)


def test_calibrated_allocation_is_no_worse(tmp_path, monkeypatch):
    """The search keeps what lowers the loss and writes down every loss."""
    monkeypatch.setenv("BREAKEVEN_CACHE", str(tmp_path))
    given = speaker_of("llama")
    arm = larosa.apply(given, params_of(larosa, sparsity=0.5, allocation="calibrated"))
    (file,) = tmp_path.glob("allocation-*.json")
    found = json.loads(file.read_text())
    losses = {tuple(trial): loss for trial, loss in found["losses"]}
    assert len(losses) == 9
    assert losses[tuple(found["coefficients"])] == min(losses.values()) <= losses[1, 1, 1, 1]
    decoded(arm)
    assert counted(arm)["achieved_sparsity"] == pytest.approx(0.5, abs=0.01)


def test_two_of_a_kind_do_not_stack():
    """A second method that changes the same matrices is refused with the reason."""
    arm = topk_activation.apply(speaker_of("llama"), topk_activation.Params(sparsity=0.5))
    with pytest.raises(
        Unsupported, match="a matrix is a RowSkippingLinear, which this method cannot change"
    ):
        topk_activation.apply(arm, topk_activation.Params(sparsity=0.5))
