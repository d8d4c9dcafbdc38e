"""Models: timm's vision transformers, how a method is fitted into their blocks, and how they are run."""


class Unsupported(Exception):  # noqa: N818 - a fact about a model and not a fault: it becomes the failure row `unsupported`
    """What was asked cannot be run on this model or device; the message is the reason that the result states."""
