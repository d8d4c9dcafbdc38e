"""Sections of a detailed report, one module each."""
