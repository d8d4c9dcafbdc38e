"""Sections and frames of single pages."""
