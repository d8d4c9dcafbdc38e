"""Files of a model of the Hugging Face hub, and messages that explain why one cannot be read."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from huggingface_hub import constants, hf_hub_download
from huggingface_hub.errors import EntryNotFoundError, GatedRepoError, LocalEntryNotFoundError, RepositoryNotFoundError


def fetched(name: str, file: str, *, local: bool) -> Path:
    """A file of the newest revision of a model, in a folder named like its commit; `local`: of the revision downloaded here.

    Raises the hub's `OSError` (see `explained_errors`).
    """
    return Path(hf_hub_download(name, file, local_files_only=local))


@contextlib.contextmanager
def explained_errors(name: str) -> Iterator[None]:
    """Turn errors of the hub for the model `name` into an `OSError` whose message names the remedy."""
    try:
        yield
    except OSError as error:
        raise OSError(f"{name}: {_explanation(error)}") from error


def _explanation(error: OSError) -> str:
    causes = (error, error.__cause__)  # transformers raises a bare OSError from the hub's
    if any(isinstance(each, GatedRepoError) for each in causes):
        return "the model is gated: accept the terms on its page, and set HF_TOKEN where the workers run"
    if any(isinstance(each, RepositoryNotFoundError) for each in causes):
        return "the hub has no such model, or it is private: correct the name, or set HF_TOKEN where the workers run"
    if any(isinstance(each, LocalEntryNotFoundError) for each in causes):
        return (
            f"it is not complete in {constants.HF_HUB_CACHE}, and the hub cannot be reached: connect the workers to a network, set "
            "HF_HOME to the download, or name a folder (./DIR) with the model"
        )
    if any(isinstance(each, EntryNotFoundError) for each in causes):
        return "config.json or tokenizer.json is missing"
    message = str(error).strip().partition("\n")[0]
    if "safetensors" in message:
        return "there are no weights (*.safetensors) in the model or its download; pickled weights are not read"
    return message
