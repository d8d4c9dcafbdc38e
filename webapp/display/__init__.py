"""How points look on pages and charts: labels, colours, axes, words and links."""
