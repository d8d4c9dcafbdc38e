"""Caveats: what a measurement of one language model does not show."""

from collections.abc import Iterator

SMALL_MODEL = 1e9
"""Parameters below which a model ranks methods only."""


def cautions(model: str, weights: str, parameters: float | None) -> Iterator[str]:
    """Sentences for one model, the same in the report and in the app; `parameters` of the unmodified model, `None` if not known."""
    small = f" of {parameters / 1e6:.3g} M parameters" if parameters is not None and parameters < SMALL_MODEL else ""
    if weights == "random":
        yield f"{model} has random weights: its times are real, its quality does not predict that of a trained model."
    if small or weights == "trained":
        yield f"{model}{small} ranks methods; it does not predict speed-ups or losses of models of 7B parameters."
