"""Pages: Streamlit runs each file as `__main__`; tests import it."""
