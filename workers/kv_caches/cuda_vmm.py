"""GPU pages mapped through CUDA's virtual memory management, 2 MiB each with the stock driver.

Needs `cuda-bindings`, a dependency of CUDA builds of torch; it is imported only when a cache is
made on a CUDA device.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from workers.errors import Unsupported


@dataclass(frozen=True)
class CudaDriver:
    """The pages of CUDA device `index`."""

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
