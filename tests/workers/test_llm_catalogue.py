"""The catalogue of causal architectures agrees with what small models do today, and the page with
the catalogue.
"""

from pathlib import Path

import pytest
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from sweeps.geometry.llm_geometry import catalogue, from_config
from sweeps.model.condition import Condition
from tests.llm_catalogue import DOCUMENT, built, examine, table
from tests.workers.llm_zoo import ZOO
from tests.workers.saved_llm import saved
from workers.errors import Unsupported
from workers.methods.language import larosa, topk_activation
from workers.models.architectures import module_names
from workers.models.language import load_language


def test_every_causal_architecture_is_in_it() -> None:
    """A newer transformers shows here; `python -m tests.llm_catalogue` adds its families."""
    assert set(catalogue()) == set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)


@pytest.mark.parametrize(
    "architecture", ["llama", "gpt2", "ministral", "qwen3_moe", "opt", "bert", "gpt_oss", "mamba"]
)
def test_it_holds_what_a_small_model_shows(architecture: str) -> None:
    """Dense, over a cache, by formula, with all rows on the kernels and rotated: examined anew."""
    assert examine(architecture) == catalogue()[architecture]


def test_the_page_lists_it() -> None:
    """docs/models.md holds the generated section."""
    assert table(catalogue()) in DOCUMENT.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("architecture", "module"),
    [
        ("qwen2_moe", "mlp.shared_expert.gate_proj"),
        ("gpt_oss", r"mlp.experts \(GptOssExperts\)"),
        ("deepseek_v4", r"self_attn.o_a_proj \(DeepseekV4GroupedLinear\)"),
        ("deepseek_v3", "self_attn.kv_b_proj"),
    ],
)
def test_reasons_name_the_module(architecture: str, module: str) -> None:
    """What keeps rows from being skipped is named by planning as by the worker."""
    model, config = built(architecture)
    with pytest.raises(Unsupported, match=module):
        module_names(model)
    network = from_config(architecture, config, complete=True)
    params = topk_activation.Params(sparsity=0.5)
    reason = topk_activation.refuses(params, network)
    assert reason is not None
    assert reason.startswith(
        f"rows of matrices are not skipped in {architecture}, a {architecture}"
    )
    assert module.replace("\\", "") in reason
    assert larosa.refuses(larosa.Params(sparsity=0.5), network) == reason


@pytest.mark.parametrize("more", [{"mlp_only_layers": [1]}, {"decoder_sparse_step": 2}])
def test_other_weights_than_the_sizes_give(tmp_path: Path, more: dict[str, object]) -> None:
    """Layers without experts: MACs are counted, and rows are not skipped, with the reason."""
    lm = load_language(
        Condition(model=str(saved(tmp_path, "qwen3_moe", **more)), weights="pretrained")
    )
    assert lm.counter is not None
    assert lm.macs(8, 2) != lm.network.macs(8, 2)
    reason = topk_activation.refuses(topk_activation.Params(sparsity=0.5), lm.network)
    assert reason is not None
    assert "its layers hold" in reason
    plain = load_language(
        Condition(model=str(saved(tmp_path / "plain", "qwen3_moe")), weights="pretrained")
    )
    assert plain.counter is None
    assert plain.network.described


@pytest.mark.parametrize(
    ("more", "kv_heads", "norms"),
    [
        ({}, 2, 2),
        ({"new_decoder_architecture": False, "multi_query": True}, 1, 1),
        ({"new_decoder_architecture": False, "multi_query": False, "num_kv_heads": 4}, 4, 1),
        ({"new_decoder_architecture": False, "parallel_attn": False}, 1, 2),
    ],
)
def test_falcons_of_both_kinds(
    tmp_path: Path, more: dict[str, object], kv_heads: int, norms: int
) -> None:
    """Heads, norms and MACs follow from the config.json as from the model itself."""
    folder = saved(tmp_path, "falcon", **ZOO["falcon"] | more)
    lm = load_language(Condition(model=str(folder), weights="pretrained"))
    assert lm.counter is None
    assert lm.network.kv_heads == kv_heads
    assert len(module_names(lm.model).norms) == norms == 2 - lm.network.one_norm
