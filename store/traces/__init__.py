"""Imported files of profilers: timelines in SQLite, and what is stored of them."""
