"""Caches of keys and values (`kv_cache`): transformers' dynamic and static ones, and the virtual
one; and what memory they hold.
"""

from typing import TYPE_CHECKING, NamedTuple

from sweeps.model.condition import KvCache
from workers.errors import Unsupported

if TYPE_CHECKING:
    from torch import Tensor
    from transformers.cache_utils import (
        Cache,
        CacheLayerMixin,
        DummyLayer,
        LinearAttentionCacheLayerMixin,
    )

    from workers.models.language import LanguageModel


class CacheMemory(NamedTuple):
    """Bytes of keys and values: needed by the tokens held now, resident in memory, and reserved as
    addresses.
    """

    needed: int
    resident: int
    virtual: int


def make_cache(kind: KvCache, lm: "LanguageModel", batch: int, tokens: int) -> "Cache":
    """An empty cache for `batch` sequences of `tokens` tokens (prompt and new ones), to be given to
    `model(cache=…)`.

    `dynamic` grows by copying. `static` is allocated for `tokens` in the first forward, as
    `generate` does when it knows the length; attention always runs over all of it. `virtual`
    reserves addresses for the model's longest context, or for `tokens` if that is more. Raises
    `Unsupported` where `static` or `virtual` is impossible.
    """
    from transformers.cache_utils import DynamicCache, StaticCache

    config = lm.model.config
    if kind == "dynamic":
        return DynamicCache(config=config)
    if kind == "static":
        try:
            return StaticCache(config=config, max_cache_len=tokens)
        except KeyError as missing:
            raise Unsupported(
                "kv_cache 'static': transformers has no static cache for layers of the kind"
                f" {missing}"
            ) from None
    return _virtual(lm, batch, tokens)


def _virtual(lm: "LanguageModel", batch: int, tokens: int) -> "Cache":
    from transformers.cache_utils import (
        Cache,
        DynamicCache,
        DynamicLayer,
        DynamicSlidingWindowLayer,
    )

    from workers.kv_caches.virtual import VirtualLayer

    network, longest = lm.network, max(tokens, lm.network.positions)
    layers: list[CacheLayerMixin | LinearAttentionCacheLayerMixin | DummyLayer] = []
    for index, layer in enumerate(DynamicCache(config=lm.model.config).layers):
        if type(layer) not in (DynamicLayer, DynamicSlidingWindowLayer):
            raise Unsupported(
                f"kv_cache 'virtual' cannot hold the state of layer {index}"
                f" ({type(layer).__name__})"
            )
        layers.append(VirtualLayer(longest, window=getattr(layer, "sliding_window", None)))
    cache = Cache(layers=layers)
    if not network.described:
        return cache  # each layer reserves for the shapes that its first tokens have
    cache.early_initialization(
        batch, network.kv_heads, network.head_dim, lm.model.dtype, lm.model.device
    )
    return cache


def cache_memory(cache: "Cache") -> CacheMemory:
    """What a cache holds now.

    On a CPU resident bytes are counted page by page by the kernel (mincore), alike for every kind;
    on CUDA they are what is allocated, or mapped. The memory that `dynamic` needs while it copies
    shows in the process' peak only. Raises `Unsupported` where pages cannot be counted.
    """
    from transformers.cache_utils import CacheLayerMixin

    from workers.kv_caches.virtual import VirtualLayer

    parts = []
    for layer in cache.layers:
        if isinstance(layer, VirtualLayer):
            parts.append(CacheMemory(*layer.memory))
        elif (
            isinstance(layer, CacheLayerMixin)
            and layer.keys is not None
            and layer.values is not None
        ):
            tokens = int(layer.get_seq_length())
            parts += [_tensor(layer.keys, tokens), _tensor(layer.values, tokens)]
    return CacheMemory(*(sum(part[field] for part in parts) for field in range(3)))


def _tensor(states_BHTD: "Tensor", tokens: int) -> CacheMemory:
    from workers.kv_caches.virtual import resident_bytes

    if states_BHTD.numel() == 0:
        return CacheMemory(0, 0, 0)
    batch, heads, length, dim = states_BHTD.shape
    storage = states_BHTD.untyped_storage()
    needed = batch * heads * min(tokens, length) * dim * states_BHTD.dtype.itemsize
    allocated = storage.nbytes()
    return CacheMemory(
        needed,
        resident_bytes(storage.data_ptr(), allocated) if states_BHTD.is_cpu else allocated,
        allocated,
    )
