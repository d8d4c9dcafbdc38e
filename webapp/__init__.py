"""Web app: Streamlit pages and Altair charts over the store's public views."""
