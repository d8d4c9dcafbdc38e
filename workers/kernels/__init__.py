"""Kernels in Triton and C++, each an equal of tensor code; Triton's modules are imported only where it is at hand."""
