"""Page: the evidence of one point."""

import streamlit as st

from webapp import plain

plain.heading("Evidence")
plain.sentence(st.query_params.get("id", "No point is named in the address; click on one in a chart."))
