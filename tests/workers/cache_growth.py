"""Memory of caches while a small model reads a long text: `python -m tests.workers.cache_growth
dynamic,virtual 16 100 1000`.

Each cache has a process of its own, forked before anything ran. Prints one line of JSON for every
length: what the cache reports of itself, and what the process holds beyond what it held before.
"""

import ctypes
import gc
import itertools
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import torch

from sweeps.model.condition import KvCache
from tests.workers.tiny_llms import tiny_llm
from workers.kv_caches import cache_memory, make_cache

GEOMETRY = {
    "hidden_size": 64,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "intermediate_size": 64,
    "vocab_size": 96,
    "max_position_embeddings": 16384,
}
"""A network whose keys and values (32 KiB for a token) outweigh everything else it needs."""


def private_bytes() -> int:
    """Anonymous memory of this process, page by page: the counters in `statm` lag behind."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    match = re.search(
        r"^Anonymous:\s+(\d+) kB$", Path("/proc/self/smaps_rollup").read_text(), re.MULTILINE
    )
    assert match is not None
    return int(match[1]) * 1024


def write(kind: KvCache, lengths: list[int]) -> list[dict[str, Any]]:
    """A row for each length of the text, read into one cache piece by piece."""
    lm = tiny_llm("llama", **GEOMETRY)
    text = torch.randint(0, 96, (1, lengths[-1]), generator=torch.Generator().manual_seed(1))
    before = private_bytes()
    cache = make_cache(kind, lm, 1, lengths[-1])
    rows: list[dict[str, Any]] = []
    for done, length in itertools.pairwise([0, *lengths]):
        logits = lm.model(input_ids=text[:, done:length], cache=cache, logits_to_keep=1).logits
        output = int(logits[0, -1].argmax())
        del logits
        row = {
            "kind": kind,
            "tokens": length,
            **cache_memory(cache)._asdict(),
            "process": private_bytes() - before,
        }
        rows.append({**row, "output": output})
    return rows


def main(kinds: list[KvCache], lengths: list[int]) -> None:
    torch.set_num_threads(1)
    tiny_llm("llama", **GEOMETRY)
    for kind in kinds:
        sys.stdout.flush()
        child = os.fork()
        if child:
            if os.waitpid(child, 0)[1]:
                sys.exit(f"{kind}: failed")
            continue
        with torch.inference_mode():
            # what is made once, such as buffers of the matrix products, is made here
            write(kind, [4, 5, 9])
            for row in write(kind, lengths):
                print(json.dumps(row))
        sys.stdout.flush()
        os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1].split(","), [int(length) for length in sys.argv[2:]])
