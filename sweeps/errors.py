"""The root of all errors that a user can correct."""


class UserError(Exception):
    """What is wrong and what would be right, in one line; the command line prints it without a traceback."""
