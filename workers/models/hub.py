"""Messages that explain why a model of the Hugging Face hub cannot be read."""

import contextlib
from collections.abc import Iterator

from huggingface_hub import constants
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
)

EXPLANATIONS: tuple[tuple[type[Exception], str], ...] = (
    (
        GatedRepoError,
        "the model is gated: accept the terms on its page, and set HF_TOKEN where the workers run",
    ),
    (
        RepositoryNotFoundError,
        (
            "the hub has no such model, or it is private: correct the name, or set HF_TOKEN where"
            " the workers run"
        ),
    ),
    (
        LocalEntryNotFoundError,
        (
            "it is not complete in {cache}, and the hub cannot be reached: connect the workers to a"
            " network, set HF_HOME to the download, or name a folder (./DIR) with the model"
        ),
    ),
    (EntryNotFoundError, "config.json or tokenizer.json is missing"),
)
"""The first that fits counts: some of the hub's errors are subclasses of others."""


@contextlib.contextmanager
def explained_errors(name: str) -> Iterator[None]:
    """Turn errors of the hub for the model `name` into an `OSError` whose message names the
    remedy.
    """
    try:
        yield
    except OSError as error:
        causes = (error, error.__cause__)  # transformers raises a bare OSError from the hub's
        found = (
            text for kind, text in EXPLANATIONS if any(isinstance(each, kind) for each in causes)
        )
        message = first_line(error)
        if "safetensors" in message:
            message = (
                "there are no weights (*.safetensors) in the model or its download; pickled weights"
                " are not read"
            )
        raise OSError(
            f"{name}: {next(found, message).replace('{cache}', str(constants.HF_HUB_CACHE))}"
        ) from error


def first_line(error: Exception) -> str:
    """The first line of an error's message."""
    return str(error).strip().partition("\n")[0]
