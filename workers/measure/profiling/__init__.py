"""Profiling: recordings of torch and ranges for outside profilers."""
