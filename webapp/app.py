"""The app: a choice of the sweep above every page, and a hint where there is no store."""

from pathlib import Path

import pandas as pd
import streamlit as st

from store.errors import StoreError
from webapp import filters, queries

st.set_page_config(page_title="Breakeven", page_icon=str(Path(__file__).with_name("icon.svg")), layout="wide")
page = st.navigation(
    [
        st.Page("screens/break_even.py", title="Break-even", icon=":material/balance:", default=True),
        st.Page("screens/sweeps.py", title="Sweeps", icon=":material/list:"),
    ],
    position="top",
)
try:
    sweeps = queries.sweeps()
    reason = "The store holds no sweep."
except StoreError as problem:
    sweeps, reason = pd.DataFrame(), f"{problem}."
if sweeps.empty:
    st.title("Nothing to show yet", anchor=False)
    st.text(reason)
    st.markdown("Measure your first break-even with one command; it takes about two minutes:")
    st.code("breakeven run sweeps/quickstart.yaml", language="bash")
else:
    heading, choice = st.columns([3, 1], vertical_alignment="bottom")
    with choice:
        sweep = filters.choose_sweep(list(sweeps["sweep"]))
    heading.header(str(sweeps.set_index("sweep").loc[sweep, "question"] or sweep), anchor=False)
    page.run()
