"""Language models from folders and sizes: what is loaded, what is shared, and what cannot be
used.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from sweeps.geometry.llm_geometry import CONFIGS
from sweeps.model.condition import Condition, Overrides
from sweeps.model.job import Arm
from tests.workers.saved_llm import TEXTS, TOKENS, changed, saved
from tests.workers.tiny_llms import ARCHITECTURES
from tests.workers.tiny_vits import calm
from workers.arms.language import build_language
from workers.data import tokenization
from workers.data.tokenization import FastTokenizer, train_tokenizer
from workers.errors import Unsupported
from workers.models.language import load_language

calm = pytest.fixture(autouse=True)(calm)
PROMPT = torch.tensor([[5, 17, 42, 99, 7]])


def point(folder: Path, **more: Any) -> Condition:
    """The model in a folder."""
    return Condition(model=str(folder), **more)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_folder_is_what_was_saved(tmp_path: Path, architecture: str):
    """Geometry, weights and tokenizer of a saved model come back, on every architecture."""
    folder = saved(tmp_path, architecture)
    lm = load_language(point(folder))
    assert (lm.network.architecture, lm.network.layers, lm.network.vocabulary) == (
        architecture,
        2,
        TOKENS,
    )
    assert lm.tokenizer.decode(lm.tokenizer.encode(TEXTS[0])) == TEXTS[0]
    weights = load_file(folder / "model.safetensors")
    state = lm.model.state_dict()
    assert weights
    assert all(torch.equal(state[name], value) for name, value in weights.items())
    assert not any(parameter.requires_grad for parameter in lm.model.parameters())
    assert not lm.model.training


def with_a_weight_missing(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    del weights["model.norm.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def without_merges(folder: Path) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["model"]["merges"] = []
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))


def holding(file: str, text: str) -> Any:
    return lambda folder: (folder / file).write_text(text)


def configured(**fields: Any) -> Any:
    return lambda folder: changed(folder / "config.json", **fields)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda folder: (folder / "model.safetensors").unlink(),
            r"holds no weights \(\*.safetensors\)",
        ),
        (
            lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"),
            "save its pickled weights again as safetensors: nothing is unpickled here",
        ),
        (
            lambda folder: (folder / "tokenizer.json").unlink(),
            r"holds no tokenizer.json, .*AutoTokenizer.from_pretrained",
        ),
        (with_a_weight_missing, "1 weights are missing, the first being model.norm.weight"),
        (
            configured(intermediate_size=128),
            r"down_proj.weight has the shape \[64, 96\], and by config.json \[64, 128\]",
        ),
        (configured(model_type="mamba"), "model_type 'mamba' is not supported: it has no keys and"),
        (configured(model_type="unheard_of"), "Transformers does not recognize this architecture"),
        (
            configured(quantization_config={"quant_method": "awq"}),
            r"its weights are quantised \(awq\), which is not supported",
        ),
        (
            configured(model_type="t5", architectures=None),
            "is an encoder with a decoder; only causal language models",
        ),
        (configured(model_type="own", auto_map={"AutoConfig": "own.Config"}), "custom code"),
        (holding("config.json", "{"), "config.json cannot be read"),
        (without_merges, "the tokenizer has no merges"),
        (
            holding("tokenizer.json", train_tokenizer(TEXTS, TOKENS + 1).to_str()),
            f"a token {TOKENS}, and the model only {TOKENS} tokens",
        ),
        (holding("tokenizer.json", "{}"), "cannot be read as a tokenizer"),
    ],
)
def test_folders_that_cannot_be_used(tmp_path: Path, damage: Any, message: str):
    """Whatever a folder lacks is named, with what would be right."""
    folder = saved(tmp_path)
    damage(folder)
    with pytest.raises(Unsupported, match=message) as refused:
        load_language(point(folder))
    assert len(str(refused.value).splitlines()) == 1


def test_a_size_has_random_weights(monkeypatch: pytest.MonkeyPatch):
    """The seed decides the weights, another dtype rounds the same ones, and the tokenizer fits."""
    monkeypatch.setattr(
        tokenization,
        "trained_tokenizer",
        lambda size: FastTokenizer(train_tokenizer(TEXTS, min(size, TOKENS))),
    )
    monkeypatch.setattr(tokenization, "tokenizer_recipe", str)
    small = {
        **CONFIGS["tiny_lm"],
        "num_hidden_layers": 1,
        "hidden_size": 32,
        "intermediate_size": 64,
    }
    monkeypatch.setattr("workers.models.language.CONFIGS", {"tiny_lm": small})
    one, same, other = (load_language(Condition(model="tiny_lm", seed=seed)) for seed in (1, 1, 2))
    assert torch.equal(one.model(PROMPT).logits, same.model(PROMPT).logits)
    assert one.weights_hash == same.weights_hash != other.weights_hash
    assert not torch.equal(one.model(PROMPT).logits, other.model(PROMPT).logits)
    half = load_language(Condition(model="tiny_lm", seed=1, dtype="bfloat16"))
    assert torch.equal(half.model.lm_head.weight, one.model.lm_head.weight.bfloat16())
    assert one.network.layers == 1
    assert one.tokenizer.size == TOKENS


def test_scored_tokens_count_as_decoded_during_their_forward_only(tmp_path: Path):
    """Tokens stand for decoded ones only while scored, also after a forward that fails."""
    model = load_language(point(saved(tmp_path / "one")))
    seen: list[int | None] = []
    hook = model.model.register_forward_pre_hook(lambda *_: seen.append(model.scoring.decoded_from))
    model.scored_logits(PROMPT, 3)
    with pytest.raises(IndexError):
        model.scored_logits(PROMPT + 10**6, 2)
    model.model(PROMPT)
    hook.remove()
    assert seen == [3, 2, None]


def test_a_tokenizer_has_the_tokens_that_begin_a_text():
    """Special tokens that it puts before every text, and none where it puts none."""
    from tokenizers.processors import TemplateProcessing

    backend = train_tokenizer(TEXTS, TOKENS)
    assert FastTokenizer(backend).bos_ids == ()
    backend.post_processor = TemplateProcessing(
        single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", 0)]
    )
    assert FastTokenizer(backend).bos_ids == (0,)
    assert FastTokenizer(backend).encode("a") == FastTokenizer(
        train_tokenizer(TEXTS, TOKENS)
    ).encode("a")


def test_what_language_models_do_not_do(tmp_path: Path):
    """Autocast, and weights that are not published, are unsupported with the reason."""
    condition = point(saved(tmp_path))
    with pytest.raises(Unsupported, match="write float16 or bfloat16"):
        build_language(condition, Arm(overrides=Overrides(dtype="autocast-float16")), {})
    with pytest.raises(Unsupported, match="is a size with random weights"):
        load_language(Condition(model="llama-15m", weights="pretrained"))
    with pytest.raises(Unsupported, match="there is a recipe for tiny_lm"):
        load_language(Condition(model="llama-15m", weights="trained"))


def test_models_that_are_not_here(tmp_path: Path):
    """A folder that is not there, and a word that is no model, are unsupported, with a message that
    names what would be right.
    """
    with pytest.raises(Unsupported, match="there is no folder"):
        load_language(point(tmp_path / "missing"))
    with pytest.raises(
        Unsupported,
        match=r"llama is not a language model: write a folder .* or llama-15m, llama-220m",
    ):
        load_language(Condition(model="llama"))
