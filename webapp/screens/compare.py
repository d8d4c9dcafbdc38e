"""Page: two sweeps, environments, revisions or days side by side, and the history of one
question.
"""

import streamlit as st

from store.errors import StoreError
from webapp.blocks import compare_blocks
from webapp.display import plain

plain.heading("Compare: side by side")
try:
    if question := st.query_params.get("question"):
        compare_blocks.history(question)
        st.subheader("Two sides", anchor=False)
    chosen = compare_blocks.choose_sides()
    if chosen is not None:
        compare_blocks.sides(*chosen)
except StoreError as problem:
    plain.sentence(str(problem))
