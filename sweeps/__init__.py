"""The nouns of the story and the maths on them: pure Python, pydantic, NumPy and SciPy, no torch, Ray, SQL or Streamlit."""
