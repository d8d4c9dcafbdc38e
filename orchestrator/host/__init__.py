"""One host: its lock, and the worker processes on it."""
