"""The catalogue of causal architectures agrees with what small models do today, and the page with
the catalogue.
"""

import pytest
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from sweeps.geometry.llm_geometry import catalogue, from_config
from tests.llm_catalogue import DOCUMENT, built, examine, table
from tests.workers.tiny_llms import CONFIGS
from workers.errors import Unsupported
from workers.methods.language import larosa, topk_activation
from workers.models.architectures import module_names


def test_every_causal_architecture_is_in_it() -> None:
    """Transformers has no other: a newer version shows here, and `python -m tests.llm_catalogue`
    adds what it brings.
    """
    assert set(catalogue()) == set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)


@pytest.mark.parametrize("architecture", [*CONFIGS, "opt", "olmoe", "bert", "gpt_oss", "mamba"])
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
        ("falcon", r"self_attention.query_key_value \(FalconLinear\)"),
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
