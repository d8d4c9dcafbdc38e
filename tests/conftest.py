"""For all tests: what the imported libraries hold is searched for garbage once, and not again in every job."""

import gc


def pytest_collection_finish() -> None:
    """Workers collect garbage around all that they measure: 0.2 s each time, with all of torch and transformers to look through."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Libraries that count what is left at the end find nothing."""
    gc.unfreeze()
