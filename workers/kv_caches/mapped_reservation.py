"""MappedReservation: reserved addresses at which a driver maps pages on demand, and unmaps them
late.
"""

import contextlib
import weakref
from typing import Any, Protocol

import torch
from torch import Tensor

from workers.kv_caches.pages import ByteSpan, covering, inside


class Driver(Protocol):
    """The calls of a virtual memory manager that map pages. Drivers of one device are equal.

    `page`: bytes of the smallest page. `reserve`: the address of `size` reserved bytes without
    memory; raises `Unsupported`. `create`: memory of `size` bytes, mapped nowhere yet; raises
    `MemoryError`. `map`: at the addresses. `allow`: make what is mapped there readable and
    writable. `unmap`: exactly as it was mapped. `destroy`: free memory. `free`: free addresses.
    `synchronise`: wait until no launched work can access a page. `free_cached`: free memory that
    other allocators cache, because memory is short. `tensor`: the addresses as bytes `[size]`;
    keeps `owner` alive, and its first page is mapped.
    """

    def page(self) -> int: ...
    def reserve(self, size: int) -> int: ...
    def create(self, size: int) -> Any: ...
    def map(self, address: int, size: int, memory: Any) -> None: ...
    def allow(self, address: int, size: int) -> None: ...
    def unmap(self, address: int, size: int) -> None: ...
    def destroy(self, memory: Any) -> None: ...
    def free(self, address: int, size: int) -> None: ...
    def synchronise(self) -> None: ...
    def free_cached(self) -> None: ...
    def tensor(self, owner: object, address: int, size: int) -> Tensor: ...


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

    def __init__(self, size: int, driver: Driver) -> None:
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


def _drop(driver: Driver, address: int, page: int, memory: Any) -> None:
    driver.unmap(address, page)
    driver.destroy(memory)


def _close(driver: Driver, address: int, size: int, page: int, mapped: dict[int, Any]) -> None:
    driver.synchronise()
    for number, memory in mapped.items():
        _drop(driver, address + number * page, page, memory)
    driver.free(address, size)
