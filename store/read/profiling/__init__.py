"""Profiles of a stored sweep, and what they explain."""
