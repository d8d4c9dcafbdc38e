"""The app: opens the store, says what to do when there is none, and leads to the pages."""

import streamlit as st

from store.connection import StoreError
from webapp import frames

st.set_page_config(page_title="Breakeven", page_icon=":material/balance:", layout="wide")
page = st.navigation(
    [
        st.Page("pages/break_even.py", title="Break-even", icon=":material/balance:", default=True),
        st.Page("pages/sweeps.py", title="Sweeps", icon=":material/list:"),
    ],
    position="top",
)
try:
    frames.check()
except StoreError as problem:
    st.title("Nothing to show yet")
    st.markdown(f"{problem}".replace("\n", "  \n"))
    st.markdown("Measure your first break-even with one command; it takes about two minutes:")
    st.code("breakeven run sweeps/quickstart.yaml", language="bash")
    st.stop()
page.run()
