"""Rows: how values of the domain look as columns, their identities, and transactions."""
