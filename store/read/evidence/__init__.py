"""The evidence of one answer, and answers side by side."""
