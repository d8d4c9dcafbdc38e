"""Audit: identities and limits that any table of measurements must hold, and what in a table
contradicts them.
"""
