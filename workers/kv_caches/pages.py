"""Address space that is reserved without memory behind it: the arithmetic of pages, and the
reservation on a CPU.
"""

import ctypes
import mmap
import sys
from typing import NamedTuple

import torch
from torch import Tensor

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
