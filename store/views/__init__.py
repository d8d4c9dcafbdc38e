"""Public SQL views."""
