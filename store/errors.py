"""Errors of the store."""

from sweeps.errors import OutageError, UserError


class StoreError(UserError):
    """What is wrong with the store and what would be right, in one line."""


class NoStoreError(StoreError):
    """There is no store yet at the place that was named."""


class EmptyStoreError(NoStoreError):
    """A database without tables: a new one, or a store that another process is about to create."""


class StoreOutageError(StoreError, OutageError):
    """A store that cannot be used now: its server is away, its disk is full, or another program
    keeps it locked.
    """


class ServerAwayError(StoreOutageError):
    """A server that did not answer, or that ended the connection in the middle of a transaction."""
