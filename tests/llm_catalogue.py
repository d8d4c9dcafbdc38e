"""Writes what is known of transformers' causal language models: `python -m tests.llm_catalogue
[ARCHITECTURE …]`, ten minutes for all.

Of each `model_type` a small random model is built and run: dense, with a cache, with rows skipped,
and with a rotated stream. `sweeps/geometry/llm_catalogue.json` gets what was found and
`docs/models.md` the same by reason.
"""

import json
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from logging import CRITICAL
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
from transformers.utils import logging

import sweeps
from sweeps.geometry.llm_geometry import catalogue, from_config, refusal
from sweeps.model.method import LanguageNetwork
from tests.workers.llm_zoo import ZOO
from tests.workers.tiny_llms import CONFIGS, POSITIONS, VOCABULARY, Letters
from workers.activation_sparsity.calibrate import random_rotations
from workers.activation_sparsity.rotation_fusion import fuse
from workers.errors import Unsupported
from workers.methods.language import topk_activation
from workers.models.architectures import module_names
from workers.models.language import LanguageModel, MacCounter, first_line, signature, spelled_out

CATALOGUE = Path(sweeps.__file__).with_name("geometry") / "llm_catalogue.json"
DOCUMENT = Path(__file__).parents[1] / "docs" / "models.md"
BEGIN, END = "<!-- language: python -m tests.llm_catalogue -->", "<!-- end of language -->"
SECONDS, MAX_WEIGHTS = 60, 30_000_000
PROMPT, NEW = 20, 5
SIZES: Mapping[str, Any] = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 96,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": POSITIONS,
    "num_experts": 4,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 48,
    "is_decoder": True,
    "rotary_dim": 8,
}
"""Under the usual names; an architecture gets those that it has."""
LATENT: Mapping[str, Any] = {
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 16,
    "first_k_dense_replace": 1,
    "n_routed_experts": 4,
    "n_group": 1,
    "topk_group": 1,
}
MORE = ("head_dim", "num_experts", "num_local_experts", "num_experts_per_tok", "layer_types")
SPECIAL = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}
TOWER = {
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}


class _TooLongError(Exception):
    pass


def examine(architecture: str) -> dict[str, Any]:
    """What the catalogue holds of one architecture."""
    try:
        model, config = built(architecture)
    except Exception as error:
        why = f"no small model was built: {_reason(error)}"
        return {"described": False, "unknown": why, "rows_refusal": why}
    if (reason := refusal(config)) is not None:
        return _refused(reason)
    if "cache" not in signature(model.__class__):
        return _refused("it has no keys and values to cache")
    try:
        logits = _logits(model)
        network = from_config(architecture, config, complete=True)
        return _examined(model, network, logits)
    except Exception as error:
        return _refused(f"a small model does not run: {_reason(error)}")


def _examined(model: Any, network: LanguageNetwork, logits: Tensor) -> dict[str, Any]:
    error = float((_with_cache(model) - logits).abs().max())
    if not error < 1e-3 * float(logits.abs().max()):
        return _refused(f"over a cache its logits differ by {error:.1g}")
    try:
        names = module_names(model)
    except Unsupported as unsupported:
        return {"described": False, "rows_refusal": str(unsupported)}
    layer = model.get_submodule(names.layers)[0]
    gated = names.experts or len(names.readers[2]) == 2 or _doubled(layer, names.readers, network)
    found: dict[str, Any] = {"described": True}
    if not gated:
        found["gated"] = False
    if len(names.norms) == 1:
        found["one_norm"] = True
    network = network.model_copy(update={"rows_refusal": None, **found})
    if network.macs(PROMPT, NEW) != MacCounter(model).macs(PROMPT, NEW):
        why = "its products are more or fewer than those of attention and MLP by its sizes"
        return {"described": False, "rows_refusal": why}
    arm = topk_activation.apply(
        LanguageModel(model, Letters(), network, network.architecture),
        topk_activation.Params(sparsity=0),
    )
    if (error := float((_with_cache(arm.model) - logits).abs().max())) > _tolerance(logits):
        return {
            "described": False,
            "rows_refusal": f"with all rows its logits differ by {error:.1g}",
        }
    try:
        rotated = fuse(model, network, random_rotations(network))
        error = float((_logits(rotated) - logits).abs().max())
        if error > 3 * _tolerance(logits):
            found["rotation_refusal"] = f"the logits of a rotated model differ by {error:.1g}"
    except Exception as unsupported:
        text = _reason(unsupported).removeprefix("its layers cannot work on a rotated stream: ")
        found["rotation_refusal"] = text
    return found


def _tolerance(logits: Tensor) -> float:
    return 1e-5 * max(1.0, float(logits.abs().max()))


def _doubled(layer: Any, readers: Any, network: LanguageNetwork) -> bool:
    """Whether the first matrix of the MLP holds gate and up."""
    (first,), (last,) = readers[2], readers[3]
    sizes = [max(layer.get_submodule(name).weight.shape) for name in (first, last)]
    return bool(sizes[0] == 2 * network.mlp_width)


def built(architecture: str) -> tuple[Any, dict[str, Any]]:
    """A small random model with uneven norms that runs, and its configuration with all sizes, some
    of which are left to transformers where they do not go together.
    """
    if (own := CONFIGS.get(architecture) or ZOO.get(architecture)) is not None:
        return _built(architecture, own)
    errors: list[Exception] = []
    default = AutoConfig.for_model(architecture).get_text_config(decoder=True)
    known = {name: value for name, value in SIZES.items() if hasattr(default, name)}
    if types := getattr(default, "layer_types", None):
        two = list(dict.fromkeys(types))[-2:]
        known["layer_types"] = [two[0], two[-1]]
    latent = {name: value for name, value in LATENT.items() if hasattr(default, name)}
    for left_out in (
        ("head_dim",) * bool(latent),
        ("head_dim",),
        ("head_dim", "num_key_value_heads"),
        MORE,
    ):
        sizes = latent | {name: value for name, value in known.items() if name not in left_out}
        try:
            model, config = _built(architecture, sizes)
            _logits(model)
        except Exception as error:
            errors.append(error)
        else:
            return model, config
    raise errors[0]


def _built(architecture: str, sizes: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    given = {**sizes, **SPECIAL, "vocab_size": VOCABULARY}
    config = AutoConfig.for_model(architecture, **given)
    if hasattr(config, "text_config"):
        kinds = {
            name: type(part).model_type
            for name, part in vars(config).items()
            if "_config" in name and hasattr(part, "model_type")
        }
        parts = {name: {**TOWER, "model_type": kind} for name, kind in kinds.items()}
        parts["text_config"] = {**given, "model_type": kinds["text_config"]}
        config = AutoConfig.for_model(architecture, **parts, **SPECIAL)
    with torch.device("meta"):
        empty: Any = AutoModelForCausalLM.from_config(config)
    if (weights := sum(parameter.numel() for parameter in empty.parameters())) > MAX_WEIGHTS:
        raise ValueError(f"it has {weights} weights with the sizes that transformers leaves open")
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        model: Any = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        model.eval().requires_grad_(requires_grad=False)
        for parameter in model.parameters():
            parameter.mul_(3 if parameter.dim() > 1 else 1)
            parameter.add_(0.2 * torch.rand_like(parameter) * (parameter.dim() == 1))
    return model, spelled_out(config)


def _ids() -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(2, VOCABULARY, (1, PROMPT + NEW), generator=generator)


def _logits(model: Any) -> Tensor:
    with torch.inference_mode():
        found: Tensor = model(_ids(), use_cache=False).logits
    return found


def _with_cache(model: Any) -> Tensor:
    cache, parts = (
        DynamicCache(config=model.config),
        torch.split(_ids(), [PROMPT, *[1] * NEW], dim=1),
    )
    with torch.inference_mode():
        return torch.cat([model(part, cache=cache, use_cache=True).logits for part in parts], 1)


def _refused(reason: str) -> dict[str, Any]:
    return {"described": False, "dense": reason, "rows_refusal": reason}


def _reason(error: Exception) -> str:
    text = first_line(error)[:160] or type(error).__name__
    return text if isinstance(error, Unsupported) else f"{type(error).__name__}: {text}"


def limited(architecture: str) -> dict[str, Any]:
    """`examine` for `SECONDS` at most."""

    def stop(*_: object) -> None:
        raise _TooLongError(f"it takes more than {SECONDS} seconds")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        return examine(architecture)
    finally:
        signal.alarm(0)


def table(found: Mapping[str, Mapping[str, Any]]) -> str:
    """The section of docs/models.md."""
    built_small = [name for name, entry in found.items() if "unknown" not in entry]
    dense = [name for name in built_small if "dense" not in found[name]]
    rows = [name for name in dense if "rows_refusal" not in found[name]]
    rotated = [name for name in rows if "rotation_refusal" not in found[name]]
    lines = [
        BEGIN,
        f"Of {len(found)} causal architectures of transformers (`model_type`), {len(built_small)}"
        f" were built small, with random weights; of these {len(dense)} run dense,"
        f" {len(rows)} with rows skipped (`teal`, `wina`, `topk_activation`) and MACs by formula,"
        f" and {len(rotated)} with `larosa` too. What cannot be built small may run all the same,"
        " dense. `breakeven plan` prints the whole reason of a refusal, with the names of modules.",
        "",
        "| methods | architectures |",
        "|---|---|",
        f"| all | {_listed(rotated)} |",
        f"| all but `larosa` | {_listed(set(rows) - set(rotated))} |",
        f"| dense only (with `adaptivocab` and every cache) | {_listed(set(dense) - set(rows))} |",
        "",
        "| refused | reason | architectures |",
        "|---|---|---|",
    ]
    kinds: list[tuple[str, str, Callable[[Mapping[str, Any]], bool]]] = [
        ("`larosa`", "rotation_refusal", lambda _: True),
        ("rows", "rows_refusal", lambda entry: not {"dense", "unknown"} & {*entry}),
        ("all", "dense", lambda _: True),
        ("not tried", "unknown", lambda _: True),
    ]
    for what, key, counts in kinds:
        by_reason = defaultdict(list)
        for name, entry in found.items():
            if key in entry and counts(entry):
                by_reason[entry[key].partition(": ")[0]].append(name)
        lines += [
            f"| {what} | {reason} | {_listed(names)} |"
            for reason, names in sorted(by_reason.items(), key=lambda pair: (-len(pair[1]), pair))
        ]
    return "\n".join([*lines, END])


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def main(chosen: Iterable[str]) -> None:
    """Examine the chosen architectures, or all, and write both files."""
    logging.set_verbosity(CRITICAL)
    found = dict(catalogue()) if chosen else {}
    for architecture in chosen or sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES):
        start = time.monotonic()
        found[architecture] = limited(architecture)
        print(f"{time.monotonic() - start:.1f} s", architecture, found[architecture], flush=True)
    lines = [f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in sorted(found.items())]
    CATALOGUE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    text = DOCUMENT.read_text(encoding="utf-8")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    DOCUMENT.write_text(before + table(dict(sorted(found.items()))) + after, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
