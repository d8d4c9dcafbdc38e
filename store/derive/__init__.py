"""Derived rows, computed from stored samples by sweeps.stats."""
