"""llama.cpp as another engine: the weights of a Llama in a GGUF file, and a server of llama.cpp in
this process that decodes with them.

It decodes its own text token by token, since it cannot be fed the tokens of another.
"""

import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from sweeps.model.condition import Dtype
from workers.errors import Unsupported, extra_library

GGUF_TYPES: Mapping[Dtype, str] = {
    "float32": "F32",
    "bfloat16": "BF16",
    "int8": "Q8_0",
    "int4": "Q4_0",
}
"""Types of GGUF's matrices: the integers have a float16 scale for each 32 inputs, and llama.cpp
quantises the inputs of their products to int8."""
GGUF_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
"""Modules of transformers' Llama, those of a layer behind `model.layers.N.`, as GGUF calls them."""
SPINNING = "KMP_BLOCKTIME"
"""Set by ggml where Python does not see it: processes started later would have it as a request."""
VECTOR_UNITS = ("AVX2", "AVX512", "AVX512_VNNI", "AVX512_BF16", "AMX_INT8", "NEON", "SVE")
"""What a build of llama.cpp may use, by its own names."""


def write_gguf(model: Any, dtype: Dtype, path: Path) -> float:
    """Write a causal Llama of transformers; the bytes of a weight in its matrices, scales included.

    Tokens are called by their ids. Raises `Unsupported` for what the format has no place for here.
    """
    gguf = extra_library("gguf")
    config, kind = model.config, gguf.GGMLQuantizationType[GGUF_TYPES[dtype]]
    if config.model_type != "llama":
        raise Unsupported(f"runtime llamacpp: {config.model_type} is not written as GGUF here")
    if (rope := config.rope_parameters)["rope_type"] != "default":
        raise Unsupported(f"runtime llamacpp: rope_type {rope['rope_type']} is not written here")
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(rope["rope_theta"])
    writer.add_tokenizer_model("llama")
    writer.add_token_list([f"{token};".encode() for token in range(config.vocab_size)])
    writer.add_token_scores([0.0] * config.vocab_size)
    writer.add_token_types([gguf.TokenType.NORMAL] * config.vocab_size)
    for place in (writer.add_bos_token_id, writer.add_eos_token_id, writer.add_unk_token_id):
        place(0)
    held = read = 0
    for name, weight in model.named_parameters():
        value = _interleaved(name, weight.detach().float(), config).numpy()
        if weight.dim() == 1:
            writer.add_tensor(_gguf_name(name), value)
            continue
        packed = gguf.quants.quantize(value, kind)
        held, read = held + value.size, read + packed.nbytes
        writer.add_tensor(_gguf_name(name), packed, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return read / held


def _gguf_name(name: str) -> str:
    part, layer = name.removesuffix(".weight"), ""
    if part.startswith("model.layers."):
        _, _, index, part = part.split(".", 3)
        layer = f"blk.{index}."
    if part not in GGUF_NAMES:
        raise Unsupported(f"runtime llamacpp: {name} is not written as GGUF here")
    return f"{layer}{GGUF_NAMES[part]}.weight"


def _interleaved(name: str, weight: Tensor, config: Any) -> Tensor:
    """Rows of queries and keys as llama.cpp rotates them: pairs of neighbours, not of halves."""
    if not name.endswith(("q_proj.weight", "k_proj.weight")):
        return weight
    halves = weight.view(-1, 2, config.head_dim // 2, weight.shape[1])
    return halves.transpose(1, 2).reshape(weight.shape)


class LlamaCpp:
    """A Llama of transformers in llama.cpp, with as many threads as torch has now."""

    def __init__(self, model: Any, dtype: Dtype, positions: int) -> None:
        """`positions`: of the longest sequence. Raises `Unsupported`."""
        library = extra_library("xllamacpp")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model.gguf"
            self.bytes_per_weight = write_gguf(model, dtype, file)
            params = library.CommonParams()
            params.model.path = str(file)
            params.n_ctx, params.n_parallel, params.verbosity = positions, 1, -1
            if dtype == "float32":  # its fused attention computes in float16
                params.cache_type_k = params.cache_type_v = library.ggml_type.GGML_TYPE_F32
                kinds = library.llama_flash_attn_type
                params.flash_attn_type = kinds.LLAMA_FLASH_ATTN_TYPE_DISABLED
            for threads in (params.cpuparams, params.cpuparams_batch):
                threads.n_threads, threads.poll = torch.get_num_threads(), 0
            self._server = library.Server(params)  # maps the file, which may then be unlinked
        if SPINNING not in os.environ:
            os.unsetenv(SPINNING)
        units = [unit for unit in VECTOR_UNITS if f"{unit} = 1" in library.get_system_info()]
        self.implementation = f"llama.cpp, {' '.join(units)}"

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def decode(self, prompt: Sequence[int], new: int) -> tuple[list[int], list[float]]:
        """The most likely tokens after a prompt, and when each was there, by `perf_counter`."""
        stamps: list[float] = []
        tokens: list[int] = []

        def take(answer: dict[str, Any]) -> None:
            if "error" in answer:
                raise RuntimeError(answer["error"]["message"])
            if text := answer["choices"][0]["text"]:
                stamps.append(time.perf_counter())
                tokens.append(int(text.removesuffix(";")))

        options = {"temperature": 0, "ignore_eos": True, "cache_prompt": False, "stream": True}
        self._server.handle_completions({"prompt": [*prompt], "n_predict": new, **options}, take)
        if len(tokens) != new:
            raise RuntimeError(f"llama.cpp gave {len(tokens)} tokens, not {new}")
        return tokens, stamps

    def likeliest(self, prompt: Sequence[int], count: int) -> dict[int, float]:
        """The log probabilities of the `count` likeliest tokens after a prompt, by their ids."""
        answers: list[dict[str, Any]] = []
        options = {"temperature": 0, "cache_prompt": False, "logprobs": count}
        self._server.handle_completions(
            {"prompt": [*prompt], "n_predict": 1, **options}, answers.append
        )
        first = answers[0]["choices"][0]["logprobs"]["content"][0]
        return {each["id"]: each["logprob"] for each in first["top_logprobs"]}
