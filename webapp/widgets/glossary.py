"""What the words of the pages mean, for readers who see them for the first time."""

import streamlit as st

from sweeps.model.metrics import INTERVAL
from webapp.display import plain

MEANINGS = {
    "Arm": (
        "a method with its parameters, or the unmodified model in another runtime or type of"
        " numbers"
    ),
    "Baseline": "what an arm is compared with in pairs of runs; `dense` is the unmodified model",
    "Pays from x on": (
        "every point from there is faster; `at most` and `at least` are bounds, where the points"
        " allow no more"
    ),
    "Likely from": (
        "the likeliest place between two measured points, by the cost model (time: a fixed cost + a"
        " cost of work) where that fits; the claim is the bracket of the points"
    ),
    "Not shown to pay": "no point is faster, and none can gain more than 5 %",
    "Cannot tell": (
        "the data do not decide; `run --refine` measures longer there, and adds sizes inside a"
        " bracket"
    ),
    "[low, high]": (
        f"of speed-ups a {INTERVAL} interval; of break-evens one that is wrong for at most 1 curve"
        " in 20"
    ),
    "Faster, slower": (
        "the whole interval is above, or below, 1; `same`: it lies within the grey band; `unclear`:"
        " neither"
    ),
    "MACs": (
        "multiply-accumulates, of which papers call 1e9 a GFLOP; what they promise is the ratio of"
        " MACs"
    ),
    "A control, a ceiling": (
        "arms that are not for use: a control drops tokens at random, a ceiling costs nothing by"
        " itself"
    ),
}


def show_glossary() -> None:
    """The words in a box that is closed at first."""
    with st.expander("Words"):
        plain.sentence("\n".join(f"{word}: {meaning}." for word, meaning in MEANINGS.items()))
