"""Caveats: what the measurements behind an answer do not show."""

from collections.abc import Iterable, Iterator

from sweeps.flags import split_flags
from sweeps.number_format import count

SMALL_MODEL = 1e9
"""Parameters below which a model ranks methods only."""


def cautions(model: str, weights: str, parameters: float | None) -> Iterator[str]:
    """Sentences for one model, the same in the report and in the app; `parameters` of the unmodified model, `None` if not known."""
    small = f" of {parameters / 1e6:.3g} M parameters" if parameters is not None and parameters < SMALL_MODEL else ""
    if weights == "random":
        yield f"{model} has random weights: its times are real, its quality does not predict that of a trained model."
    if small or weights == "trained":
        yield f"{model}{small} ranks methods; it does not predict speed-ups or losses of models of 7B parameters."


def load_caution(flags: Iterable[str | None]) -> Iterator[str]:
    """A sentence where speed-ups were measured beside other programs; `flags` are the joined ones of each speed-up.

    Beside a busy core some ratios are others, and not only noisier.
    """
    each = [split_flags(joined) for joined in flags]
    if loaded := sum("contended" in names for names in each):
        yield (
            f"measured beside other programs: {loaded} of {count(len(each), 'speed-up')}; the answers hold for a machine that is "
            "loaded so, a quiet one may differ"
        )
