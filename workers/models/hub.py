"""Downloads: the files of a model of the Hugging Face hub, and in plain words what keeps one from being read."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from huggingface_hub import constants, hf_hub_download
from huggingface_hub.errors import EntryNotFoundError, GatedRepoError, LocalEntryNotFoundError, RepositoryNotFoundError


def fetched(name: str, file: str, *, local: bool) -> Path:
    """A file of the newest revision of a model, in a folder named like its commit; `local`: of the revision downloaded here.

    Raises `OSError` in the hub's own words (see `explained`).
    """
    return Path(hf_hub_download(name, file, local_files_only=local))


@contextlib.contextmanager
def explained(name: str) -> Iterator[None]:
    """Turn what the hub raises for the model `name` into an `OSError` that says what to do."""
    try:
        yield
    except OSError as error:
        raise OSError(f"{name}: {_said(error)}") from error


def _said(error: OSError) -> str:
    causes = (error, error.__cause__)  # transformers raises a bare OSError from the hub's
    if any(isinstance(each, GatedRepoError) for each in causes):
        return "the hub hands it out on consent only: agree to the terms on its page, and set HF_TOKEN where the workers run"
    if any(isinstance(each, RepositoryNotFoundError) for each in causes):
        return "the hub knows no such model, or it is private: correct the name, or set HF_TOKEN where the workers run"
    if any(isinstance(each, LocalEntryNotFoundError) for each in causes):
        return (
            f"it is not wholly in {constants.HF_HUB_CACHE}, and the hub cannot be reached: give the workers a network, set HF_HOME "
            "to where it was downloaded, or name a folder (./DIR) that holds it"
        )
    if any(isinstance(each, EntryNotFoundError) for each in causes):
        return "it holds no config.json or no tokenizer.json, which are needed"
    said = str(error).strip().partition("\n")[0]
    if "safetensors" in said:
        return "there are no weights (*.safetensors) in it, or in what was downloaded of it; pickled ones are not read"
    return said
