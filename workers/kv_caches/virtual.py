"""VirtualLayer: keys and values of one layer at addresses reserved for the longest context, with
memory behind the tokens only; the arithmetic of pages, and reservations on a CPU and a GPU.

After Prabhu, Nayak, Mohan, Ramjee, Panwar, vAttention, ASPLOS 2025, arXiv 2405.04437: the cache
stays contiguous, so that attention needs no paged kernel. On a GPU pages (2 MiB each with the stock
driver) are mapped on demand and unmapped late, through CUDA's virtual memory management; that needs
`cuda-bindings`, a dependency of CUDA builds of torch, which is imported only when a cache is made
on a CUDA device. Shapes: B batch, H heads of keys and values, T tokens reserved, N new tokens, D
size of a head.
"""

import contextlib
import ctypes
import math
import mmap
import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers.cache_utils import CacheLayerMixin

from workers.errors import Unsupported

GIB = 2**30
MAP_NORESERVE = 0x4000
"""Linux's value on x86 and Arm; Python 3.11 has no name for it. The kernel then promises no memory
for the mapping."""
MINCORE_BYTES = GIB
"""Length of one mincore call, whose result has a byte for each page."""


class ByteSpan(NamedTuple):
    """Bytes from `start` up to but not including `end`, counted from the start of a reservation."""

    start: int
    end: int

    @property
    def size(self) -> int:
        return max(0, self.end - self.start)


def covering(span: ByteSpan, page: int) -> ByteSpan:
    """The whole pages that hold at least one byte of `span`."""
    return ByteSpan(span.start // page * page, -(-span.end // page) * page)


def inside(span: ByteSpan, page: int) -> ByteSpan:
    """The whole pages inside `span`, which can be released with it."""
    start = -(-span.start // page) * page
    return ByteSpan(start, max(start, span.end // page * page))


class HostReservation:
    """A private mapping of a Linux process: a page gets memory when it is first written, and loses
    it by madvise.
    """

    page = mmap.PAGESIZE
    """Bytes of a page; `size` is the bytes of address space, whole pages."""

    def __init__(self, size: int) -> None:
        """Raises `Unsupported` where the system cannot reserve without committing, or lacks address
        space.
        """
        if not sys.platform.startswith("linux"):
            raise Unsupported(
                "kv_cache 'virtual' on a CPU needs Linux: other systems release memory differently"
            )
        self.size = covering(ByteSpan(0, size), self.page).end
        try:
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE
            self._mapping = mmap.mmap(-1, self.size, flags=flags)
        except (OSError, OverflowError) as refused:
            raise Unsupported(
                f"the system does not reserve {self.size / GIB:.1f} GiB of address space"
                f" ({refused}); a limit (ulimit -v or -d) or vm.overcommit_memory=2 forbids it;"
                " request fewer tokens"
            ) from refused

    def values(self, dtype: torch.dtype) -> Tensor:
        """The whole range as one dimension; it keeps the range alive. Only grown parts may be
        touched.
        """
        return torch.frombuffer(self._mapping, dtype=dtype, count=self.size // dtype.itemsize)

    def grow(self, end: int) -> None:
        """Allow access to the first `end` bytes; here the kernel provides a page on the first
        write.
        """

    def release(self, span: ByteSpan) -> None:
        """Release the memory of the whole pages inside `span`; their content is lost, the addresses
        stay reserved.
        """
        whole = inside(span, self.page)
        if whole.size:
            self._mapping.madvise(mmap.MADV_DONTNEED, whole.start, whole.size)

    def resident(self) -> int:
        """Bytes of memory in use by the range now."""
        values = self.values(torch.uint8)
        return resident_bytes(values.data_ptr(), self.size)


def resident_bytes(address: int, size: int) -> int:
    """Bytes of the pages of this process' range that are in memory (mincore). Raises `OSError`, and
    `Unsupported` off Linux.
    """
    if not sys.platform.startswith("linux"):
        raise Unsupported("which pages are in memory is read on Linux only")
    if size <= 0:
        return 0
    system = ctypes.CDLL(None, use_errno=True)
    pages = covering(ByteSpan(address, address + size), mmap.PAGESIZE)
    total = 0
    for start in range(pages.start, pages.end, MINCORE_BYTES):
        length = min(MINCORE_BYTES, pages.end - start)
        resident = (ctypes.c_ubyte * (length // mmap.PAGESIZE))()
        if system.mincore(ctypes.c_void_p(start), ctypes.c_size_t(length), resident):
            raise OSError(
                ctypes.get_errno(), "mincore failed: the pages of the cache in memory are unknown"
            )
        total += bytes(resident).translate(_LOWEST_BIT).count(1)
    return total * mmap.PAGESIZE


_LOWEST_BIT = bytes(value & 1 for value in range(256))
"""The only bit of mincore's result with a meaning."""


@dataclass(frozen=True)
class CudaDriver:
    """The pages of CUDA device `index`; drivers of one device are equal.

    `page`: bytes of the smallest page. `reserve`: the address of `size` reserved bytes without
    memory; raises `Unsupported`. `create`: memory of `size` bytes, mapped nowhere yet; raises
    `MemoryError`. `map`: at the addresses. `allow`: make what is mapped there readable and
    writable. `unmap`: exactly as it was mapped. `destroy`: free memory. `free`: free addresses.
    `synchronise`: wait until no launched work can access a page. `free_cached`: free memory that
    other allocators cache, because memory is short. `tensor`: the addresses as bytes `[size]`;
    keeps `owner` alive, and its first page is mapped.
    """

    index: int

    def page(self) -> int:
        cu = _bindings()
        flag = cu.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
        return int(_checked(cu.cuMemGetAllocationGranularity(self._kind(), flag)))

    def reserve(self, size: int) -> int:
        cu = _bindings()
        try:
            return int(_checked(cu.cuMemAddressReserve(size, 0, cu.CUdeviceptr(0), 0)))
        except (RuntimeError, MemoryError) as refused:
            raise Unsupported(
                f"CUDA device {self.index} does not reserve {size} bytes of address space"
                f" ({refused})"
            ) from refused

    def create(self, size: int) -> Any:
        return _checked(_bindings().cuMemCreate(size, self._kind(), 0))

    def map(self, address: int, size: int, memory: Any) -> None:
        _checked(_bindings().cuMemMap(address, size, 0, memory, 0))

    def allow(self, address: int, size: int) -> None:
        cu = _bindings()
        access = cu.CUmemAccessDesc()
        access.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        access.location.id = self.index
        access.flags = cu.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        _checked(cu.cuMemSetAccess(address, size, [access], 1))

    def unmap(self, address: int, size: int) -> None:
        _checked(_bindings().cuMemUnmap(address, size))

    def destroy(self, memory: Any) -> None:
        _checked(_bindings().cuMemRelease(memory))

    def free(self, address: int, size: int) -> None:
        _checked(_bindings().cuMemAddressFree(address, size))

    def synchronise(self) -> None:
        torch.cuda.synchronize(self.index)

    def free_cached(self) -> None:
        self.synchronise()
        torch.cuda.empty_cache()

    def tensor(self, owner: object, address: int, size: int) -> Tensor:
        return torch.as_tensor(
            _Bytes(owner, address, size), device=torch.device("cuda", self.index)
        )

    def _kind(self) -> Any:
        cu = _bindings()
        kind = cu.CUmemAllocationProp()
        kind.type = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        kind.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        kind.location.id = self.index
        return kind


class _Bytes:
    """Memory that torch wraps in a tensor without copying; plain bytes, because the protocol has no
    bfloat16.
    """

    def __init__(self, owner: object, address: int, size: int) -> None:
        self.owner = owner
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (address, False),
            "strides": None,
            "version": 3,
        }


def cuda_driver(device: torch.device) -> CudaDriver:
    """The driver of a CUDA device that can map pages. Raises `Unsupported` with the reason where
    there is none.
    """
    if not torch.cuda.is_available():
        raise Unsupported("kv_cache 'virtual' on CUDA needs a GPU, and torch finds none here")
    cu = _bindings()
    index = torch.cuda.current_device() if device.index is None else device.index
    torch.cuda.synchronize(index)  # makes the device's context current, as driver calls require
    attribute = cu.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
    if not _checked(cu.cuDeviceGetAttribute(attribute, _checked(cu.cuDeviceGet(index)))):
        raise Unsupported(
            f"CUDA device {index} ({torch.cuda.get_device_name(index)}) has no virtual memory"
            " management"
        )
    return CudaDriver(index)


def _bindings() -> Any:
    try:
        from cuda.bindings import driver
    except ImportError as missing:
        raise Unsupported("kv_cache 'virtual' on CUDA needs the package cuda-bindings") from missing
    return driver


def _checked(result: tuple[Any, ...]) -> Any:
    """The value of a driver call without its status. Raises `MemoryError` or `RuntimeError` when
    that is not success.
    """
    status, *values = result
    cu = _bindings()
    if status == cu.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
        raise MemoryError("the GPU has no memory left for a page of the KV cache")
    if status != cu.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"CUDA's virtual memory management failed: {status.name}")
    return values[0] if values else None


def pages_to_map(ready: int, end: int, page: int) -> range:
    """The numbers of the pages to be mapped so that `end` bytes may be touched, when the first
    `ready` pages are.
    """
    return range(ready, max(ready, covering(ByteSpan(0, end), page).end // page))


def pages_to_leave(span: ByteSpan, page: int) -> range:
    """The numbers of the pages that nothing outside `span` uses."""
    whole = inside(span, page)
    return range(whole.start // page, whole.end // page)


class MappedReservation:
    """As `HostReservation`, for pages that a driver maps; `grow` raises `MemoryError` where there
    is no memory for them.

    Released pages stay mapped and are reused when the same addresses grow; they are unmapped by
    `trim`, or when any reservation of the same device finds no memory (vAttention's deferred
    reclamation).
    """

    def __init__(self, size: int, driver: CudaDriver) -> None:
        """Reserves, and maps the first page. Raises `Unsupported` and `MemoryError`."""
        self.page = driver.page()
        self._requested = max(size, 1)
        self.size = covering(ByteSpan(0, self._requested), self.page).end
        self._driver = driver
        self._address = driver.reserve(self.size)
        self._mapped: dict[int, Any] = {}
        """The memory of each page, by its number."""
        self._idle: set[int] = set()
        """Mapped pages that were released."""
        self._ready = 0
        """The number of first pages grown since they were released; a sliding window may have
        released some again."""
        weakref.finalize(
            self, _close, driver, self._address, self.size, self.page, self._mapped
        ).atexit = False
        _LIVING.add(self)
        self.grow(1)

    def values(self, dtype: torch.dtype) -> Tensor:
        return self._driver.tensor(self, self._address, self.size).view(dtype)

    def grow(self, end: int) -> None:
        if end <= self._ready * self.page:
            return
        for number in pages_to_map(self._ready, min(end, self.size), self.page):
            if number not in self._mapped:
                memory, address = self._create(), self._address + number * self.page
                with contextlib.ExitStack() as undo:
                    undo.callback(self._driver.destroy, memory)
                    self._driver.map(address, self.page, memory)
                    undo.callback(self._driver.unmap, address, self.page)
                    self._driver.allow(address, self.page)
                    undo.pop_all()
                self._mapped[number] = memory
            self._idle.discard(number)
            self._ready = number + 1

    def release(self, span: ByteSpan) -> None:
        # A span that reaches the end of the requested bytes releases the last page too.
        left = pages_to_leave(
            ByteSpan(span.start, self.size if span.end >= self._requested else span.end), self.page
        )
        self._idle.update(number for number in left if number in self._mapped)
        if left.stop >= self._ready:
            self._ready = min(self._ready, left.start)

    def resident(self) -> int:
        return len(self._mapped) * self.page

    def trim(self) -> None:
        """Unmap what was released."""
        if self._idle:
            self._driver.synchronise()
            for number in sorted(self._idle):
                _drop(
                    self._driver,
                    self._address + number * self.page,
                    self.page,
                    self._mapped.pop(number),
                )
            self._idle.clear()

    def _create(self) -> Any:
        with contextlib.suppress(MemoryError):
            return self._driver.create(self.page)
        for reservation in list(_LIVING):
            if reservation._driver == self._driver:
                reservation.trim()
        self._driver.free_cached()
        return self._driver.create(self.page)


_LIVING: "weakref.WeakSet[MappedReservation]" = weakref.WeakSet()


def _drop(driver: CudaDriver, address: int, page: int, memory: Any) -> None:
    driver.unmap(address, page)
    driver.destroy(memory)


def _close(driver: CudaDriver, address: int, size: int, page: int, mapped: dict[int, Any]) -> None:
    driver.synchronise()
    for number, memory in mapped.items():
        _drop(driver, address + number * page, page, memory)
    driver.free(address, size)


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
