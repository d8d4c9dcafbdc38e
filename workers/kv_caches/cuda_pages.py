"""Reserved addresses at which pages are mapped on demand and unmapped late, on a GPU through CUDA's
virtual memory management (2 MiB each with the stock driver).

Needs `cuda-bindings`, a dependency of CUDA builds of torch; it is imported only when a cache is
made on a CUDA device.
"""

import contextlib
import weakref
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from workers.errors import Unsupported
from workers.kv_caches.pages import ByteSpan, covering, inside


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
