"""Timing: rounds of all arms in random order, and what their clocks use."""
