"""Errors that a job's result names by their own reason; every folder of `workers` raises them."""


class Unsupported(Exception):  # noqa: N818 - a fact about a model, a method or a device: it becomes the failure row `unsupported`
    """The requested combination cannot run on this model or device; the message is the reason that
    the result gives.
    """


class DataError(ValueError):
    """The requested data cannot be evaluated; the message names the reason and what to do."""


class NotANumberError(Exception):
    """The logits of the model are not all finite."""
