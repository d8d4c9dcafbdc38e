"""Geometry of models: enough to count tokens, MACs and bytes without building them."""
