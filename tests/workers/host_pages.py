"""HostPages: pages of the operating system behind reserved addresses, mapped and unmapped as a
GPU's are.
"""

import ctypes
import mmap
import os
from dataclasses import dataclass, field

import torch
from torch import Tensor

from workers.kv_caches.virtual import MAP_NORESERVE

MAP_FIXED = 0x10
PROT_NONE = 0
SYSTEM = ctypes.CDLL(None, use_errno=True)
SYSTEM.mmap.restype = ctypes.c_void_p
NOWHERE = ctypes.c_void_p(-1).value


@dataclass(eq=False)
class HostPages:
    """A driver (see `cuda_pages.CudaDriver`) whose memory is that of anonymous files; at most
    `limit` pages at a time.
    """

    size: int = 1 << 16
    limit: int = 1000
    memory: set[int] = field(default_factory=set)
    """The files that exist now."""
    reserved: dict[int, int] = field(default_factory=dict)
    mapped: set[int] = field(default_factory=set)
    """The addresses at which memory is mapped now."""
    forbidden: bool = False
    """Whether access to mapped memory is refused."""
    settled: int = 0
    spared: int = 0

    def page(self) -> int:
        return self.size

    def reserve(self, size: int) -> int:
        address = self._map(
            None, size, PROT_NONE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE, -1
        )
        self.reserved[address] = size
        return address

    def create(self, size: int) -> int:
        if len(self.memory) >= self.limit:
            raise MemoryError("no page is left")
        file = os.memfd_create("page")
        os.ftruncate(file, size)
        self.memory.add(file)
        return file

    def map(self, address: int, size: int, memory: int) -> None:
        self._map(address, size, PROT_NONE, mmap.MAP_SHARED | MAP_FIXED, memory)
        self.mapped.add(address)

    def allow(self, address: int, size: int) -> None:
        if self.forbidden:
            raise RuntimeError("no access")
        writable = ctypes.c_int(mmap.PROT_READ | mmap.PROT_WRITE)
        assert SYSTEM.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), writable) == 0

    def unmap(self, address: int, size: int) -> None:
        self.mapped.remove(address)
        self._map(
            address,
            size,
            PROT_NONE,
            mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
            -1,
        )

    def destroy(self, memory: int) -> None:
        self.memory.remove(memory)
        os.close(memory)

    def free(self, address: int, size: int) -> None:
        assert self.reserved.pop(address) == size
        assert SYSTEM.munmap(ctypes.c_void_p(address), ctypes.c_size_t(size)) == 0

    def synchronise(self) -> None:
        self.settled += 1

    def free_cached(self) -> None:
        self.spared += 1

    def tensor(self, owner: object, address: int, size: int) -> Tensor:
        kind = type("Bytes", (ctypes.Array,), {"_length_": size, "_type_": ctypes.c_ubyte})
        array = kind.from_address(address)
        array.owner = owner
        return torch.frombuffer(array, dtype=torch.uint8)

    def _map(self, address: int | None, size: int, protection: int, flags: int, file: int) -> int:
        found = SYSTEM.mmap(
            ctypes.c_void_p(address),
            ctypes.c_size_t(size),
            protection,
            flags,
            file,
            ctypes.c_long(0),
        )
        if found == NOWHERE:
            raise OSError(ctypes.get_errno(), "mmap")
        return int(found)
