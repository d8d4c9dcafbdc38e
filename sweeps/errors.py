"""The root of all errors that a user can correct."""


class UserError(Exception):
    """What is wrong and what would be right, in one line; the command line prints it without a
    traceback.
    """


class OutageError(UserError):
    """What the program needs is away or too busy, such as a database or a cluster: the same command
    works once it is back.
    """


class WeightsError(ValueError):
    """The model cannot have the weights that are requested; the message is the reason."""
