"""larosa, teal and topk_activation: exact at their neutral setting, as sparse as promised, and
counters that show their path.
"""

import dataclasses
import json
from typing import get_args

import pytest
import torch
from transformers import DynamicCache

from sweeps.model.method import Architecture
from tests.workers.tiny_llms import VOCABULARY, FoldedBytes, tiny_llm
from workers.errors import Unsupported
from workers.methods.language import larosa, teal, topk_activation
from workers.models.share_weights import clone_shared

ARCHITECTURES = get_args(Architecture)
METHODS = (larosa, teal, topk_activation)
IDS = torch.randint(VOCABULARY, (1, 12), generator=torch.Generator().manual_seed(0))
SMALL = {"data": "topics", "calibration_tokens": 1024}
MATRICES = {"llama": 7, "qwen2": 7, "mistral": 7, "phi": 6, "gpt2": 4}


@pytest.fixture(autouse=True, scope="module")
def _cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BREAKEVEN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def speaker_of(architecture, dtype=torch.float32, **more):
    return dataclasses.replace(tiny_llm(architecture, dtype, **more), tokenizer=FoldedBytes())


def params_of(method, **given):
    return method.Params(**given, **(SMALL if method is not topk_activation else {}))


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


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__.rpartition(".")[2])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_neutral_is_exact_and_runs_on_the_kernels(method, architecture):
    """At sparsity 0 scoring and decoding agree with the dense model within 1e-4, every matrix by
    its kernel, for every token.
    """
    given = speaker_of(architecture)
    wanted = scored(given)
    arm = method.apply(given, params_of(method, sparsity=0))
    assert (scored(arm) - wanted).abs().max() < 1e-4
    assert (decoded(arm) - wanted).abs().max() < 1e-4
    proof = counted(arm)
    assert proof["kernel_calls"] == IDS.shape[1] * given.network.layers * MATRICES[architecture]
    assert proof["fallback_calls"] == proof["masked_calls"] == proof["achieved_sparsity"] == 0
    assert torch.equal(scored(given), wanted)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__.rpartition(".")[2])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_decoding_and_scoring_agree(method, architecture):
    """One token at a time by the kernels, and all at once by masks, leave the same inputs out: what
    quality reads is what runs.
    """
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


@pytest.mark.parametrize("allocation", [None, (0.8, 1.2, 0.8, 1.2), (1, 0.5, 1, 1.5)])
@pytest.mark.parametrize("method", [larosa, topk_activation], ids=["larosa", "topk_activation"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_promised_and_achieved_sparsity_are_equal(architecture, method, allocation):
    """What `skipped` promises of a decoded token is what the kernels left out, exactly, and near
    what was requested.
    """
    given = speaker_of(architecture)
    options = {"rotation": "random"} if method is larosa else {}
    params = params_of(method, sparsity=0.4, allocation=allocation, **options)
    arm = method.apply(given, params)
    decoded(arm)
    network = given.network
    promised = method.skipped(params, network, 10) / (10 * network.layers * network.layer_macs)
    assert counted(arm)["achieved_sparsity"] == pytest.approx(promised, abs=1e-12)
    assert promised == pytest.approx(0.4, abs=0.01)


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


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_online_and_absorbed_agree(architecture):
    """Rotating forth and back leaves out what absorbed rotations do: equal losses; it skips
    nothing, and no kernel runs.
    """
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
    """A prompt goes through all rows, as the dense model's does, each matrix counted as a fallback;
    tokens after it are sparse.
    """
    given = speaker_of("qwen2")
    arm = topk_activation.apply(given, topk_activation.Params(sparsity=0.5))
    logits = decoded(arm, prompt=8)
    assert (logits[:, :8] - scored(given)[:, :8]).abs().max() < 1e-5
    proof, matrices = counted(arm), given.network.layers * MATRICES["qwen2"]
    assert (proof["fallback_calls"], proof["kernel_calls"]) == (matrices, 4 * matrices)
    assert proof["achieved_sparsity"] == pytest.approx(0.5, abs=0.01)


def test_scored_windows_begin_with_a_prompt():
    """Of a window whose later part stands for decoded tokens, the earlier part is treated as a
    prompt is.
    """
    arm = topk_activation.apply(speaker_of("llama"), topk_activation.Params(sparsity=0.5))
    with torch.inference_mode():
        logits = prepared(arm).scored_logits(IDS, 8)
    assert (logits - decoded(arm, prompt=8)).abs().max() < 1e-4
    assert counted(arm)["achieved_sparsity"] == pytest.approx(0.5, abs=0.01)


def test_part_of_a_prompt_can_be_sparse():
    """With `prefill: 0.5` the first half of a prompt is dense and the second as sparse as decoded
    tokens are.
    """
    given = speaker_of("llama")
    half = topk_activation.apply(given, topk_activation.Params(sparsity=0.5, prefill=0.5))
    whole = topk_activation.apply(given, topk_activation.Params(sparsity=0.5, prefill=1))
    logits, dense = decoded(half, prompt=12), scored(given)
    assert (logits[:, :6] - dense[:, :6]).abs().max() < 1e-5
    assert (logits[:, 6:] - dense[:, 6:]).abs().amax(-1).min() > 1e-3
    assert (decoded(whole, prompt=12) - scored(whole)).abs().max() < 1e-5


def test_several_sequences_fall_back_visibly():
    """Batches are decoded densely: the model's own logits, no kernel call, and nothing counts as
    left out.
    """
    given, ids = (
        speaker_of("gpt2"),
        torch.randint(VOCABULARY, (3, 6), generator=torch.Generator().manual_seed(3)),
    )
    arm = topk_activation.apply(given, topk_activation.Params(sparsity=0.5))
    assert (decoded(arm, ids) - scored(given, ids)).abs().max() < 1e-4
    proof = counted(arm)
    assert proof["fallback_calls"] == 6 * given.network.layers * MATRICES["gpt2"]
    assert proof["kernel_calls"] == proof["achieved_sparsity"] == 0


def test_routes_agree_and_are_counted():
    """Both routes give the same logits, and the proof names the one that ran."""
    given = speaker_of("qwen2")
    arms = {}
    for kernel in ("auto", "embedding_bag"):
        arms[kernel] = topk_activation.apply(
            given, topk_activation.Params(sparsity=0.5, kernel=kernel)
        )
    assert (decoded(arms["auto"]) - decoded(arms["embedding_bag"])).abs().max() < 1e-4
    proof = counted(arms["embedding_bag"])
    assert proof["kernel_calls_embedding_bag"] == proof["kernel_calls"] > 0
    with pytest.raises(Unsupported, match="kernel triton: it runs on cuda only"):
        topk_activation.apply(given, topk_activation.Params(sparsity=0.5, kernel="triton"))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_runs(dtype):
    """Half precision decodes sparsely too, near the dense model at sparsity 0."""
    given = speaker_of("llama", dtype)
    arm = topk_activation.apply(given, topk_activation.Params(sparsity=0))
    wanted = scored(given).float()
    assert (decoded(arm).float() - wanted).abs().mean() < 0.05 * wanted.abs().mean()
    sparse = larosa.apply(given, larosa.Params(sparsity=0.5, rotation="random"))
    assert decoded(sparse).isfinite().all()
    assert counted(sparse)["achieved_sparsity"] == pytest.approx(0.5)


def test_two_of_a_kind_do_not_stack():
    """A second method that changes the same matrices is refused with the reason."""
    arm = topk_activation.apply(speaker_of("llama"), topk_activation.Params(sparsity=0.5))
    with pytest.raises(
        Unsupported, match="a matrix is a RowSkippingLinear, which this method cannot change"
    ):
        topk_activation.apply(arm, topk_activation.Params(sparsity=0.5))


def test_arms_share_their_weights():
    """Two sparsities of one method hold the same tensors, also on twins of the model, as arms are
    built.
    """
    given = speaker_of("llama")
    for method, options in ((topk_activation, {}), (larosa, {"rotation": "random"})):
        arms = [
            method.apply(
                dataclasses.replace(given, model=clone_shared(given.model)),
                method.Params(sparsity=sparsity, **options),
            )
            for sparsity in (0.2, 0.5)
        ]
        pointers = [{parameter.data_ptr() for parameter in arm.model.parameters()} for arm in arms]
        assert pointers[0] == pointers[1]
        assert arms[0].weights_hash != arms[1].weights_hash


def test_a_copy_of_an_arm_goes_on_counting():
    """Another method may copy the arm's model: the proof still counts what the copy does."""
    arm = topk_activation.apply(speaker_of("llama"), topk_activation.Params(sparsity=0.5))
    copied = dataclasses.replace(arm, model=clone_shared(arm.model))
    assert torch.equal(decoded(copied), decoded(arm))
    decoded(copied)
    assert counted(arm)["kernel_calls"] == IDS.shape[1] * 2 * 7


def test_choices_hold_nothing_afterwards():
    """Nothing of a forward is kept: the last reader of an input lets go of it."""
    arm = topk_activation.apply(speaker_of("phi"), topk_activation.Params(sparsity=0.5))
    for run in (decoded, scored):
        run(arm)
        held = [module.mask._made for module in arm.model.modules() if hasattr(module, "mask")]
        assert held
        assert all(input_seen is None for input_seen, _, _ in held)


def test_calibrated_allocation_is_no_worse(tmp_path, monkeypatch):
    """The search begins with equal coefficients and keeps what lowers the loss; what it found is on
    disk with every loss.
    """
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
