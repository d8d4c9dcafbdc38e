"""Importers: files of other tools and of other machines as values."""
