"""Errors of the store."""


class StoreError(Exception):
    """What is wrong with the store and what would be right, in one line."""


class EmptyStoreError(StoreError):
    """A database without tables: a new one, or a store that another process is about to create."""
