"""Caches of keys and values: the same tokens from all of them, and memory behind the tokens that
there are.
"""

import gc
import json
import mmap
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from sweeps.model.condition import KvCache
from tests.workers.tiny_llms import (
    ARCHITECTURES,
    CONFIGS,
    POSITIONS,
    decode_with,
    forward,
    greedy,
    kv_bytes,
    prompt,
    tiny_llm,
)
from tests.workers.tiny_vits import calm
from workers.errors import Unsupported
from workers.kv_caches import cache_memory, make_cache
from workers.kv_caches.virtual import VirtualLayer

PAGE = mmap.PAGESIZE
TENSORS = 4
"""Keys and values of two layers."""


calm = pytest.fixture(autouse=True)(calm)


def layers(cache: Any) -> list[VirtualLayer]:
    assert {type(layer) for layer in cache.layers} == {VirtualLayer}
    return list(cache.layers)


def resident(cache: Any) -> int:
    return cache_memory(cache).resident


@pytest.mark.parametrize("architecture", CONFIGS)
def test_all_caches_give_the_same_tokens(architecture: Any) -> None:
    """Greedy tokens of every architecture do not depend on the cache."""
    lm = tiny_llm(architecture)
    dynamic, static, virtual = (
        decode_with(lm, kind, 3, 20, 30) for kind in ("dynamic", "static", "virtual")
    )
    assert len(dynamic.unique()) > 3
    assert torch.equal(static, dynamic)
    assert torch.equal(virtual, dynamic)


@pytest.mark.parametrize("architecture", [*ARCHITECTURES, "gemma3_text", "mixtral"])
def test_virtual_is_exact_in_half_precision(architecture: Any) -> None:
    """The virtual cache gives the dynamic one's logits to the last bit."""
    lm = tiny_llm(architecture, torch.bfloat16)
    caches = [make_cache(kind, lm, 2, 40) for kind in ("dynamic", "virtual")]
    for tokens in (prompt(2, 20), *prompt(2, 20).split(1, dim=1)):
        dynamic, virtual = (forward(lm, cache, tokens) for cache in caches)
        assert torch.equal(virtual, dynamic)


@pytest.mark.parametrize("kind", ["static", "virtual"])
def test_generate_takes_the_cache(kind: KvCache) -> None:
    """The library's `generate`, padding included, gives the tokens that it gives without."""
    lm = tiny_llm("llama")
    text = prompt(2, 12)
    mask = torch.ones_like(text)
    mask[0, :5] = 0
    options = {
        "attention_mask": mask,
        "max_new_tokens": 20,
        "do_sample": False,
        "pad_token_id": 0,
        "disable_compile": True,
    }
    expected = lm.model.generate(text, **options)
    cache = make_cache(kind, lm, 2, 32)
    assert torch.equal(lm.model.generate(text, cache=cache, **options), expected)
    assert cache.get_seq_length() == 31


def test_sliding_window() -> None:
    """Tokens stay those of the dynamic cache, and pages behind the window are given back."""
    # 2 KiB for a token: 2 tokens to a page
    lm = tiny_llm("mistral", head_dim=128, num_key_value_heads=4, sliding_window=10)
    cache = make_cache("virtual", lm, 1, 200)
    output = greedy(lm, cache, prompt(1, 50), 100)
    assert torch.equal(output, decode_with(lm, "dynamic", 1, 50, 100))
    memory = cache_memory(cache)
    assert memory.needed == 9 * 2048 * TENSORS
    assert memory.resident <= memory.needed + 2 * PAGE * TENSORS


def test_beyond_the_reservation() -> None:
    """One token too many is an error that names what to reserve; the cache stays usable."""
    lm = tiny_llm("llama")
    # longer than the model's own positions, if requested
    cache = make_cache("virtual", lm, 1, POSITIONS + 4)
    forward(lm, cache, prompt(1, POSITIONS + 4))
    with pytest.raises(
        ValueError,
        match=r"reserved for 260 tokens of each sequence.*make it with tokens=261 or more",
    ):
        forward(lm, cache, prompt(1, 1))
    assert cache.get_seq_length() == POSITIONS + 4


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("kind", ["dynamic", "static", "virtual"])
def test_memory_is_what_the_tokens_need(kind: KvCache, batch: int) -> None:
    """Only the static cache holds more than the geometry's bytes and a page per tensor."""
    lm = tiny_llm("mistral", head_dim=64)
    cache = make_cache(kind, lm, batch, POSITIONS)
    assert cache_memory(cache)[:2] == (0, 0)
    for tokens in (1, 7, 100):
        forward(lm, cache, prompt(batch, tokens - cache.get_seq_length()))
        memory = cache_memory(cache)
        assert memory.needed == batch * kv_bytes(lm.network, tokens, 4)
        whole = batch * kv_bytes(lm.network, POSITIONS, 4)
        assert memory.virtual == (memory.needed if kind == "dynamic" else whole)
        expected = whole if kind == "static" else memory.needed
        # A tensor of the other two begins anywhere in a page, and may so touch one more.
        assert (
            expected
            <= memory.resident
            <= expected + PAGE * TENSORS * (1 if kind == "virtual" else 2)
        )


def test_reservations_are_dropped_with_the_cache() -> None:
    """A cache without references leaves neither memory nor addresses behind."""
    lm = tiny_llm("llama")
    taken = []
    for _ in range(3):
        cache = make_cache("virtual", lm, 1, 1 << 28)  # 256 GiB of addresses each time
        forward(lm, cache, prompt(1, 10))
        del cache
        gc.collect()
        taken.append(int(Path("/proc/self/statm").read_text().split()[0]) * PAGE)
    assert max(taken) - min(taken) < 1 << 30


@pytest.mark.slow
def test_memory_of_a_fresh_process() -> None:
    """The process grows by what tokens need and a page per tensor, at most as with `dynamic`."""
    # activations and their like, which no cache can help
    lengths, tensors, slack = ((16, 17, 150, 600, 601), 16, 1 << 20)
    command = [
        sys.executable,
        "-m",
        "tests.workers.cache_growth",
        "dynamic,virtual",
        *map(str, lengths),
    ]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    dynamic, virtual = (
        [row for row in rows if row["kind"] == kind] for kind in ("dynamic", "virtual")
    )
    assert len(dynamic) == len(lengths)
    for theirs, ours in zip(dynamic, virtual, strict=True):
        allowed = 1.1 * ours["needed"] + PAGE * tensors
        assert ours["output"] == theirs["output"]
        assert ours["needed"] == theirs["needed"] <= ours["resident"] <= allowed
        assert ours["resident"] <= theirs["resident"] + PAGE * tensors
        assert ours["process"] <= allowed + slack
        assert ours["process"] <= theirs["process"] + PAGE * tensors + slack // 4
        assert ours["virtual"] > 20 * ours["needed"]


def test_beams_are_refused() -> None:
    """Transformers' own way would leave the stored tokens in the former order."""
    cache = make_cache("virtual", tiny_llm("qwen2"), 3, 60)
    with pytest.raises(NotImplementedError, match="no beam search"):
        cache.reorder_cache(torch.tensor([2, 0, 0]))


def test_what_cannot_be_had() -> None:
    """More addresses than there are are refused with the reason."""
    lm = tiny_llm("llama")
    with pytest.raises(
        Unsupported, match=r"does not reserve .* GiB of address space .*vm.overcommit_memory=2"
    ):
        make_cache("virtual", lm, 1, 1 << 50)


def test_reset_gives_memory_back_and_keeps_addresses() -> None:
    """No page is left, and the next text is written at the same addresses and read right."""
    lm = tiny_llm("phi")
    cache = make_cache("virtual", lm, 2, 100)
    first = greedy(lm, cache, prompt(2, 50), 20)
    addresses = [layer.keys.data_ptr() for layer in layers(cache) if layer.keys is not None]
    assert resident(cache) > 0
    cache.reset()
    assert cache.get_seq_length() == 0
    assert cache_memory(cache)[:2] == (0, 0)
    assert torch.equal(greedy(lm, cache, prompt(2, 50), 20), first)
    assert [layer.keys.data_ptr() for layer in layers(cache) if layer.keys is not None] == addresses


def test_another_batch() -> None:
    """Other sequences cannot continue those in the cache; after a reset they are welcome."""
    lm = tiny_llm("gpt2")
    cache = make_cache("virtual", lm, 2, 100)
    greedy(lm, cache, prompt(2, 10), 5)
    with pytest.raises(
        ValueError,
        match=r"holds 14 tokens of 2 sequences in torch.float32; a tensor of shape \(3, 4, 1, 16\)",
    ):
        layers(cache)[0].update(torch.zeros(3, 4, 1, 16), torch.zeros(3, 4, 1, 16))
    cache.reset()
    assert torch.equal(greedy(lm, cache, prompt(3, 10), 5), decode_with(lm, "dynamic", 3, 10, 5))
