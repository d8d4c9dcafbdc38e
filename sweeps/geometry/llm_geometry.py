"""The geometry of language models by name or from a transformers configuration, without importing
torch or transformers.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from sweeps.model.identity import digest
from sweeps.model.method import LanguageNetwork

NO_CACHE = frozenset({"mamba", "mamba2", "falcon_mamba", "rwkv", "xlstm"})
"""Architectures without keys and values, which no `kv_cache` holds."""
UNSTATED = 131_072
"""Positions of a model whose configuration gives no bound."""


class SizesNotGivenError(ValueError):
    """A config.json leaves sizes to the defaults of transformers, which are not known without
    importing it.
    """


def _llama(  # noqa: PLR0917 - the order of every model card
    width: int, layers: int, heads: int, kv_heads: int, mlp_width: int, vocabulary: int, **more: Any
) -> dict[str, Any]:
    """Llama and its relatives."""
    return {
        "model_type": "llama",
        "max_position_embeddings": 4096,
        "tie_word_embeddings": False,
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "intermediate_size": mlp_width,
        "vocab_size": vocabulary,
        **more,
    }


_PHI = {"model_type": "phi", "max_position_embeddings": 2048}
_MISTRAL_WINDOW = 4096
"""What transformers takes where a Mistral's config.json has no value."""
_TINY = _llama(256, 4, 4, 4, 704, 2048, tie_word_embeddings=True, max_position_embeddings=1024)
# two of its layers, which fit a small machine
CONFIGS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        # Sizes for speed, with random weights. `config` is what transformers' `config.json` would
        # hold.
        "llama-15m": _llama(288, 6, 6, 6, 768, 4096),
        "llama-220m": _llama(2048, 4, 16, 16, 5632, 4096),
        "llama-8b-2l": _llama(4096, 2, 32, 8, 14336, 4096, rope_theta=500000.0),
        "llama-1b": _llama(2048, 16, 32, 8, 8192, 128256, rope_theta=500000.0),
        "llama-8b": _llama(4096, 32, 32, 8, 14336, 128256, rope_theta=500000.0),
        "qwen2-0.5b": _llama(
            896, 24, 14, 2, 4864, 151936, model_type="qwen2", tie_word_embeddings=True
        ),
        "mistral-7b": _llama(
            4096, 32, 32, 8, 14336, 32000, model_type="mistral", sliding_window=None
        ),
        "phi-2": _llama(2560, 32, 32, 32, 10240, 51200, **_PHI),
        "phi-1.5": _llama(2048, 24, 32, 32, 8192, 51200, **_PHI),
        "gpt2": {
            "model_type": "gpt2",
            "n_embd": 768,
            "n_layer": 12,
            "n_head": 12,
            "vocab_size": 50257,
            "n_positions": 1024,
            "tie_word_embeddings": True,
        },
        "tiny_lm": _TINY,
        "tiny_lm_smoke": _TINY,
    }
)
"""What a sweep may name without a folder, by name: the transformers configuration of each."""
TRAINED_LANGUAGE = ("tiny_lm", "tiny_lm_smoke")
"""Those whose weights are trained on demand (`weights: trained`): in minutes, or for a trial in one
(see `workers/training`)."""


def from_config(name: str, config: Mapping[str, Any], *, complete: bool = False) -> LanguageNetwork:
    """The geometry that a transformers `config.json` describes; `complete`: defaults of
    transformers are spelled out in it.

    Raises `ValueError` for what is no causal model in plain precision, and `SizesNotGivenError` for
    an architecture that is not described and whose sizes are left to defaults.
    """
    if (reason := refusal(config)) is not None:
        raise ValueError(f"{name}: {reason}")
    architecture = config["model_type"]
    text = config.get("text_config")
    stated: Mapping[str, Any] = text if isinstance(text, Mapping) else config
    known: dict[str, Any] = dict(catalogue().get(architecture, _UNKNOWN))
    for key in ("dense", "unknown"):
        known.pop(key, None)
    sizes: dict[str, int] = {"positions": UNSTATED} if complete else {}
    for field, names in _NAMES.items():
        values = (stated[key] for key in names if stated.get(key) is not None)
        if (most := next(values, None)) is not None:
            sizes[field] = int(max(most) if isinstance(most, list | tuple) else most)
    needed = ("layers", "width", "heads", "vocabulary", "positions")
    if lacking := [_NAMES[field][0] for field in needed if field not in sizes]:
        if known["described"] and lacking != [_NAMES["positions"][0]]:
            raise ValueError(
                f"{name}: its config.json lacks {lacking[0]!r}, which a {architecture} model has"
            )
        raise SizesNotGivenError(f"{name}: its config.json does not give {', '.join(lacking)}")
    width, heads = sizes["width"], sizes["heads"]
    window, windowed = _window(architecture, stated, sizes["layers"])
    # Falcon's newer layers have the heads of `num_kv_heads` and two norms
    newer = bool(stated.get("new_decoder_architecture"))
    own = {
        "kv_heads": 1 if stated.get("multi_query") and not newer else sizes.get("kv_heads", heads),
        "one_norm": architecture == "falcon" and not newer and stated.get("parallel_attn", True),
        "head_dim": int(stated.get("head_dim") or width // heads),
        "mlp_width": int(stated.get("moe_intermediate_size") or sizes.get("mlp_width", 4 * width)),
        "experts": next((int(stated[key]) for key in _EXPERTS if stated.get(key)), 0),
        "experts_used": int(stated.get("num_experts_per_tok") or 1),
    }
    return LanguageNetwork(
        name=name,
        architecture=architecture,
        window=window,
        windowed=windowed,
        tied=bool(stated.get("tie_word_embeddings", architecture != "llama")),
        **{**sizes, **own, **known},
    )


_UNKNOWN = {
    "described": False,
    "rows_refusal": "its layers are not described here: the version of transformers is newer",
}
"""Of an architecture that is not in the catalogue."""


@cache
def catalogue() -> Mapping[str, Mapping[str, Any]]:
    """What was found of each causal architecture of transformers on a small model (see
    `tests/llm_catalogue.py`): fields of `LanguageNetwork`, as `dense` why it does not run, or as
    `unknown` why it was not built.
    """
    text = files("sweeps.geometry").joinpath("llm_catalogue.json").read_text(encoding="utf-8")
    found: Mapping[str, Mapping[str, Any]] = json.loads(text)
    return found


def refusal(config: Mapping[str, Any]) -> str | None:
    """Why no model of this configuration runs here, in one line, or `None`: it is quantised, not
    causal, or keeps no cache.
    """
    architecture, classes = config.get("model_type"), config.get("architectures") or []
    if not architecture:
        return "its config.json holds no model_type, which names the architecture"
    if quantised := config.get("quantization_config"):
        how = (
            quantised.get("quant_method", "a method that is not named")
            if isinstance(quantised, Mapping)
            else quantised
        )
        return (
            f"its weights are quantised ({how}), which is not supported; write a model in float32,"
            " bfloat16 or float16"
        )
    if config.get("is_encoder_decoder"):
        return (
            f"model_type {architecture!r} is an encoder with a decoder; only causal language models"
            " (decoder only) are supported"
        )
    if classes and not any(
        re.search(r"CausalLM|LMHead|ConditionalGeneration|Decoder$|Model$", each)
        for each in classes
    ):
        return (
            f"{classes[0]} is no causal language model; only these are supported (decoder only,"
            " ...ForCausalLM)"
        )
    if architecture in NO_CACHE:
        return (
            f"model_type {architecture!r} is not supported: it has no keys and values, which"
            " language jobs keep in a cache"
        )
    return None


_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
        "width": ("hidden_size", "n_embd", "d_model"),
        "heads": ("num_attention_heads", "n_head", "n_heads", "attention_heads"),
        "kv_heads": ("num_key_value_heads", "num_kv_heads"),
        "mlp_width": ("intermediate_size", "ffn_hidden_size", "ffn_dim", "n_inner"),
        "vocabulary": ("vocab_size",),
        "positions": (
            "max_position_embeddings",
            "n_positions",
            "max_seq_len",
            "max_sequence_length",
            "seq_length",
        ),
    }
)
"""What architectures call their sizes in transformers' configurations, the usual name first."""
_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts")
USUAL_NAMES = (*(names[0] for names in _NAMES.values()), "head_dim", *_EXPERTS[:2])


def _window(architecture: str, config: Mapping[str, Any], layers: int) -> tuple[int | None, int]:
    """The sliding window and the number of layers that have it, as transformers reads them from the
    configuration.
    """
    window = config.get("sliding_window", _MISTRAL_WINDOW if architecture == "mistral" else None)
    optional = architecture.startswith(("qwen", "smollm"))
    if (types := config.get("layer_types")) is not None:
        windowed = list(types).count("sliding_attention")
    elif optional and not config.get("use_sliding_window"):
        windowed = 0
    else:
        windowed = max(layers - int(config.get("max_window_layers", 28)) * optional, 0)
    return (window, windowed) if window and windowed else (None, 0)


@cache
def languages() -> Mapping[str, LanguageNetwork]:
    """The geometry of every model of `CONFIGS`."""
    return MappingProxyType({name: from_config(name, config) for name, config in CONFIGS.items()})


_HUB = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")
_LAYER = re.compile(r"(?:^|\.)(?:layers|h)\.(\d+)\.")


def is_folder(model: str) -> bool:
    """Whether a model's name is the path of a directory: `.`, `./dir`, `../dir` or an absolute
    one.
    """
    return model in {".", ".."} or model.startswith(("./", "../", "/"))


def is_hub(model: str) -> bool:
    """Whether a model's name is one of the Hugging Face hub: `org/name`."""
    return _HUB.fullmatch(model) is not None


def geometry(model: str) -> LanguageNetwork | None:
    """The geometry of the model in a directory; `None` where its config.json leaves sizes to
    transformers.

    Raises `ValueError` that names what the directory lacks.
    """
    folder = Path(model)
    if not folder.is_dir():
        raise ValueError(
            f"there is no folder {model}; a relative one counts from the folder of the sweep"
        )
    weights = sorted(folder.glob("*.safetensors"))
    saved = "write what `save_pretrained` of transformers wrote"
    pickled = "save its pickled weights again as safetensors: nothing is unpickled here"
    for pattern, what, right in (
        ("config.json", "config.json, which describes the model", saved),
        (
            "tokenizer.json",
            "tokenizer.json, a fast tokenizer, which is saved apart from the model",
            f"AutoTokenizer.from_pretrained(NAME).save_pretrained({model!r}) of transformers"
            " writes one",
        ),
        (
            "*.safetensors",
            "weights (*.safetensors)",
            pickled if any(folder.glob("*.bin")) else saved,
        ),
    ):
        if not any(folder.glob(pattern)):
            raise ValueError(f"{model} holds no {what}; {right}")
    shapes: dict[str, list[int]] = {}
    for file in weights:
        try:
            shapes |= _shapes(file)
        except OSError as error:
            raise ValueError(f"{file} cannot be read: {error.strerror}") from None
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{model}: config.json cannot be read: {error}") from None
    try:
        network = from_config(model, config)
    except SizesNotGivenError:
        return None
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(
            f"{model}: config.json makes no model: {first['loc'][0]}: {first['msg']}"
        ) from None
    except (AttributeError, TypeError, ZeroDivisionError) as error:
        # no mapping, or words where numbers belong
        raise ValueError(f"{model}: config.json makes no model: {error}") from None
    _check_shapes(network, shapes)
    return network


def _check_shapes(network: LanguageNetwork, shapes: Mapping[str, list[int]]) -> None:
    """Raise `ValueError` where weights are not of the size in config.json, where their names
    tell without transformers.
    """
    if not network.described:
        return
    table, down = [network.vocabulary, network.width], [network.width, network.mlp_width]
    sizes = {"embed_tokens.weight": table}
    if not network.experts:  # else some layers may have an MLP of another width
        sizes["mlp.down_proj.weight"] = down
    if network.architecture == "gpt2":
        sizes = {"wte.weight": table, "mlp.c_fc.weight": down}
    for name, held in shapes.items():
        if "vision" in name:
            continue
        wanted = next((size for end, size in sizes.items() if name.endswith(end)), held)
        if held != wanted:
            found = f"{name} has the shape {held}, and by config.json {wanted}"
            raise ValueError(
                f"{network.name}: its weights are not those of its config.json: {found}; take both"
                " from one save"
            )
    layers = max(
        (int(at[1]) + 1 for at in map(_LAYER.search, shapes) if at), default=network.layers
    )
    if layers < network.layers:
        raise ValueError(
            f"{network.name}: its weights are of {layers} layers, and its config.json of"
            f" {network.layers}"
        )


def _shapes(file: Path) -> dict[str, list[int]]:
    """The shapes of the tensors in a safetensors file, by name. Raises `ValueError` unless the file
    has the promised length.

    It holds eight bytes with the header's length, the header, the tensors.
    """
    size = file.stat().st_size
    with file.open("rb") as opened:
        start = 8 + int.from_bytes(opened.read(8), "little")
        try:
            header = json.loads(opened.read(start - 8 if start <= size else 0))
            tensors = {name: tensor for name, tensor in header.items() if name != "__metadata__"}
            ends = [tensor["data_offsets"][1] for tensor in tensors.values()]
            shapes = {name: [*map(int, tensor["shape"])] for name, tensor in tensors.items()}
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            start, ends, shapes = size + 1, [], {}
    if size != start + max(ends, default=0):
        raise ValueError(
            f"{file} is damaged, or only a part of the file that was written; copy or download it"
            " again"
        )
    return shapes


def content(model: str) -> str:
    """Hash of all that the model comes from: every *.json and *.safetensors of the directory, by
    name.
    """
    files = sorted(
        file
        for file in Path(model).iterdir()
        if file.suffix in {".json", ".safetensors"} and file.is_file()
    )
    return digest(
        [[file.name, _hash(file, file.stat().st_size, file.stat().st_mtime_ns)] for file in files]
    )


@lru_cache(maxsize=1024)
def _hash(file: Path, size: int, changed: int) -> str:  # noqa: ARG001 - size and time make a changed file another key
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
