"""VirtualLayer: keys and values of one layer at addresses reserved for the longest context, with
memory behind the tokens only.

After Prabhu, Nayak, Mohan, Ramjee, Panwar, vAttention, ASPLOS 2025, arXiv 2405.04437: the cache
stays contiguous, so that attention needs no paged kernel. Shapes: B batch, H heads of keys and
values, T tokens reserved, N new tokens, D size of a head.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import CacheLayerMixin

from workers.errors import Unsupported
from workers.kv_caches.cuda_pages import MappedReservation
from workers.kv_caches.pages import ByteSpan, HostReservation

TOKENS_AHEAD = 16
"""Pages are mapped this many tokens ahead, while the GPU still works on earlier tokens."""

Reservation = HostReservation | MappedReservation
"""A range of addresses that is longer than the memory behind it."""
Reserve = Callable[[int, torch.device], Reservation]
"""Reserves so many bytes of address space on a device."""


def reserve(size: int, device: torch.device) -> Reservation:
    """`size` bytes of address space. Raises `Unsupported`."""
    if device.type == "cpu":
        return HostReservation(size)
    if device.type == "cuda":
        from workers.kv_caches.cuda_pages import cuda_driver

        return MappedReservation(size, cuda_driver(device))
    raise Unsupported(f"kv_cache 'virtual' runs on cpu and cuda, not on {device.type}")


class VirtualLayer(CacheLayerMixin):  # type: ignore[no-untyped-call]
    """A cache layer of transformers; memory is ordered by token, so that all sequences of a batch
    share each tensor's last page.

    With a sliding window, the pages of tokens that have left it are released.
    """

    def __init__(
        self, tokens: int, window: int | None = None, reserving: Reserve = reserve
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.tokens = tokens
        self.window = window
        self.is_sliding = window is not None
        self.length = 0
        """Tokens seen since the last reset."""
        self._begin = 0
        """The first token whose memory is not released."""
        self._reserving = reserving
        self._stores: tuple[_Store, ...] = ()

    # Interface of transformers

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Reserve for tensors of these shapes `[B, H, N, D]` (N may be 0), dtype and device. Raises
        `Unsupported`.
        """
        self.dtype, self.device = key_states.dtype, key_states.device
        self._stores = tuple(
            _Store(self.tokens, states, self._reserving) for states in (key_states, value_states)
        )
        self.is_initialized = True

    def update(
        self, key_states: Tensor, value_states: Tensor, *_args: Any, **_kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Append N new tokens `[B, H, N, D]`; returns views `[B, H, tokens, D]` of all tokens to be
        attended to.

        Raises `ValueError` when there are more tokens than were reserved, or when the shape is not
        that of the tokens before.
        """
        states = (key_states, value_states)
        if self.length == 0 and [store.kind for store in self._stores] != list(map(_kind, states)):
            self.lazy_initialization(*states)
        start, end = self.length, self.length + key_states.shape[-2]
        if end > self.tokens:
            raise ValueError(
                f"the virtual KV cache is reserved for {self.tokens} tokens of each sequence, and"
                f" token {end} was to be written; make it with tokens={end} or more (address space"
                " costs nothing)"
            )
        first = 0
        if self.window is not None and start >= self.window:
            first = start - self.window + 1
            for store in self._stores:
                store.release_before(first, self._begin)
            self._begin = first
        self.keys, self.values = (
            store.write(new_BHND, first, start, end)
            for store, new_BHND in zip(self._stores, states, strict=True)
        )
        self.length = end
        return self.keys, self.values

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Tokens that the next `query_length` tokens attend to (themselves included), and the
        position of the first.
        """
        first = 0 if self.window is None else max(self.length - self.window + 1, 0)
        return self.length - first + query_length, first

    def get_seq_length(self) -> int:
        return self.length

    def get_max_length(self) -> int:
        return self.tokens

    def reset(self) -> None:
        """Remove all tokens and release their memory; the addresses stay reserved."""
        for store in self._stores:
            store.reservation.release(ByteSpan(0, self.tokens * store.row))
        self.keys = self.values = None
        self.length = self._begin = 0

    def reorder_cache(self, beam_idx: Tensor) -> None:
        raise NotImplementedError("the virtual KV cache has no beam search")

    # Interface of `cache_memory`

    @property
    def memory(self) -> tuple[int, int, int]:
        """Bytes of the tokens that the next token attends to, those resident, and those
        reserved.
        """
        tokens, _ = self.get_mask_sizes(0)
        return (
            tokens * sum(store.row for store in self._stores),
            sum(store.reservation.resident() for store in self._stores),
            sum(store.reservation.size for store in self._stores),
        )


class _Store:
    """Keys or values of one layer: a reservation, seen as `[B, H, T, D]`."""

    def __init__(self, tokens: int, like_BHND: Tensor, reserving: Reserve) -> None:
        batch, heads, _, dim = like_BHND.shape
        self.kind = _kind(like_BHND)
        self.row = batch * heads * dim * like_BHND.dtype.itemsize
        """Bytes of one token."""
        self.reservation = reserving(tokens * self.row, like_BHND.device)
        self._shape = (tokens, batch, heads, dim)
        # A tensor created in inference mode cannot be written outside of it; views of any other
        # take twice as long inside.
        with torch.inference_mode():
            self._fast_BHTD = self._whole(like_BHND.dtype)
        with torch.inference_mode(mode=False):
            self._plain_BHTD = self._whole(like_BHND.dtype)

    def write(self, states_BHND: Tensor, first: int, start: int, end: int) -> Tensor:
        """Write tokens `start` to `end`; returns the view of `first` to `end`. Raises `ValueError`
        for another shape or dtype.
        """
        all_BHTD = self._fast_BHTD if torch.is_inference_mode_enabled() else self._plain_BHTD
        place_BHND = all_BHTD.narrow(2, start, end - start)
        # it would be broadcast, or rounded
        if place_BHND.shape != states_BHND.shape or states_BHND.dtype != place_BHND.dtype:
            raise ValueError(
                f"the virtual KV cache holds {start} tokens of {place_BHND.shape[0]} sequences in"
                f" {place_BHND.dtype}; a tensor of shape {tuple(states_BHND.shape)} in"
                f" {states_BHND.dtype} does not continue them: reset it first"
            )
        self.reservation.grow((end + TOKENS_AHEAD) * self.row)
        place_BHND.copy_(states_BHND)
        return all_BHTD.narrow(2, first, end - first)

    def release_before(self, first: int, begin: int) -> None:
        """Release the memory before token `first`; that before token `begin` is released
        already.
        """
        page = self.reservation.page
        self.reservation.release(ByteSpan(begin * self.row // page * page, first * self.row))

    def _whole(self, dtype: torch.dtype) -> Tensor:
        values = self.reservation.values(dtype)
        return values[: math.prod(self._shape)].view(self._shape).permute(1, 2, 0, 3)


def _kind(states_BHND: Tensor) -> tuple[object, ...]:
    """What a store is made for: batch, heads, size of a head, dtype and device."""
    batch, heads, _, dim = states_BHND.shape
    return batch, heads, dim, states_BHND.dtype, states_BHND.device
