"""Token reduction in vision transformers: token schedules, token operations and their kernels."""
