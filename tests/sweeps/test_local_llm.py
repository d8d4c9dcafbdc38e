"""Language models in folders: what is read of them, and a message for each part that is missing or
not described.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from sweeps.geometry.llm_geometry import CONFIGS, content, geometry
from tests.sweeps.llm_sweeps import GENERATION, expand, refused


def weights(name: str) -> bytes:
    """A safetensors file with one small tensor."""
    header = json.dumps({name: {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}}).encode()
    return len(header).to_bytes(8, "little") + header + bytes(4)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What planning reads of a directory with a language model."""
    (tmp_path / "config.json").write_text(json.dumps(dict(CONFIGS["llama-15m"])))
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(weights("one"))
    return tmp_path


def test_a_folder_is_a_model(folder: Path) -> None:
    """Its geometry bounds the text, its weights are its own, and its files are part of what makes
    an answer stale.
    """
    text = f"defaults: {{model: {folder}, prompt_tokens: 64, new_tokens: 16}}\nmethods: [skip]\n"
    (job,) = expand(text).jobs
    assert job.condition.weights == "pretrained"
    assert job.content_hashes == {"model": content(str(folder))}
    assert (
        "4096 positions"
        in refused(text.replace("prompt_tokens: 64", "prompt_tokens: 4090")).problem
    )
    assert (
        "has its own weights; write pretrained"
        in refused(text.replace("16}", "16, weights: random}")).problem
    )
    (folder / "model.safetensors").write_bytes(weights("another"))
    assert expand(text).jobs[0].content_hashes != job.content_hashes
    assert expand(text).jobs[0].condition == job.condition


def test_a_relative_folder_counts_from_here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`./dir` is a folder, `org/name` is on the hub unless a folder of that name is here, which is
    an error.
    """
    monkeypatch.chdir(folder.parent)
    named = (
        f"defaults: {{model: ./{folder.name}, prompt_tokens: 64, new_tokens: 16}}\nmethods:"
        " [skip]\n"
    )
    assert expand(named).jobs[0].condition.model == f"./{folder.name}"
    hub = named.replace(f"./{folder.name}", "org/name").replace("64", "64000")
    assert expand(hub).jobs[0].condition == GENERATION.model_copy(
        update={"model": "org/name", "prompt_tokens": 64000, "weights": "pretrained"}
    )
    (folder.parent / "org" / "name").mkdir(parents=True)
    assert "write ./org/name for the folder" in refused(hub).problem


QUANTISED = {"quantization_config": {"quant_method": "gptq", "bits": 4}}
SPOILT: list[tuple[str, Any, str]] = [
    ("config.json", None, "holds no config.json"),
    ("tokenizer.json", None, "holds no tokenizer.json"),
    ("model.safetensors", None, "holds no weights (*.safetensors); save its pickled"),
    ("model.safetensors", weights("one")[:-1], "is damaged, or only a part of the file"),
    ("model.safetensors", b"\x02\0\0\0\0\0\0\0[]", "copy or download it again"),
    ("config.json", b"{", "config.json cannot be read"),
    ("config.json", b"[]", "config.json makes no model"),
    ("config.json", b'{"model_type": "mamba"}', "'mamba' is not supported: it has no keys"),
    ("config.json", b'{"model_type": "llama"}', "lacks 'num_hidden_layers'"),
    ("config.json", b"{}", "its config.json holds no model_type"),
    ("config.json", QUANTISED, "its weights are quantised (gptq)"),
    ("config.json", {"model_type": "t5", "is_encoder_decoder": True}, "an encoder with a decoder"),
    ("config.json", {"architectures": ["BertForMaskedLM"]}, "no causal language model"),
    ("config.json", {**CONFIGS["gpt2"], "n_head": 0}, "makes no model: integer"),
    ("config.json", {**CONFIGS["gpt2"], "n_layer": 0}, "makes no model: layers: Input"),
]
"""A file, what it holds instead (nothing; bytes; fields of its JSON), and the message."""


@pytest.mark.parametrize(("name", "content", "expected"), SPOILT)
def test_a_folder_that_lacks_something(
    folder: Path, name: str, content: Any, expected: str
) -> None:
    """What is missing or not supported is reported at the line that names the folder."""
    if content is None:
        (folder / name).rename(folder / "pytorch_model.bin")
    elif isinstance(content, bytes):
        (folder / name).write_bytes(content)
    else:
        described(folder, **content)
    found = refused(
        f"defaults:\n  model: {folder}\n  prompt_tokens: 64\n  new_tokens: 16\nmethods: [skip]\n"
    )
    assert (found.line, found.key) == (4, "defaults.model")
    assert expected in found.problem


def described(folder: Path, **fields: Any) -> None:
    """Change fields of a folder's config.json."""
    file = folder / "config.json"
    known = {} if "n_layer" in fields else json.loads(file.read_text())
    file.write_text(json.dumps({**known, **fields}))


def test_architectures_that_are_not_described(folder: Path) -> None:
    """Their sizes are read where config.json has them; where it leaves them to transformers, the
    worker checks lengths.
    """
    text = f"defaults: {{model: {folder}, prompt_tokens: 4090, new_tokens: 16}}\nmethods: [skip]\n"
    described(folder, model_type="deepseek_v3", architectures=["DeepseekV3ForCausalLM"])
    assert "4096 positions" in refused(text).problem
    found = geometry(str(folder))
    assert found is not None
    assert not found.described
    (folder / "config.json").write_text('{"model_type": "deepseek_v3", "hidden_size": 64}')
    assert geometry(str(folder)) is None
    assert expand(text).jobs[0].condition.prompt_tokens == 4090
