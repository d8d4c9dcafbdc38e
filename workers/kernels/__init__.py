"""Triton kernels, each an equal of tensor code elsewhere; their modules are imported only where Triton is at hand."""
