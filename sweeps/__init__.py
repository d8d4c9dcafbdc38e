"""Domain types, the sweep language, declarations of kinds and metrics, and statistics; no torch,
Ray, SQL or Streamlit.
"""
